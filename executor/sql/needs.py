"""What stands between a query and a verdict: a reason, and the edits that remove it, if any."""

from __future__ import annotations

from dataclasses import dataclass

from tieout.executor.sql.edits import Edit


@dataclass(frozen=True, slots=True)
class Need:
    """reason: a name of REASONS. code, message, remedy: of the refusal when there are no edits.

    offset: the place in the text at hand, in characters. edits: of that text; empty: refuse.
    remedy "": the way out of the code. optional: where the edits do not bind the text stays as it
    is, and says so otherwise.
    """

    reason: str
    code: str
    message: str
    offset: int | None = None
    edits: tuple[Edit, ...] = ()
    remedy: str = ""
    optional: bool = False
