"""The text of an added order, and the same order turned round."""

from __future__ import annotations

from dataclasses import dataclass

from tieout.executor.sql.edits import Edit

TURNED = " DESC NULLS FIRST"
"""Turns round an order by default, which is ASC NULLS LAST (settings.py)."""


@dataclass(frozen=True, slots=True)
class Ordering:
    """Expressions to order by, as texts."""

    texts: tuple[str, ...]

    def listed(self, *, turned: bool) -> str:
        """The list as it stands after ORDER BY."""
        return ", ".join(text + TURNED * turned for text in self.texts)

    def put(self, at: int, rewrite: str, *, after: bool, chooses: bool = True) -> Edit:
        """An insertion at a character offset. after: an ORDER BY ends there, to be continued.

        chooses: the order may decide more than the sequence of a result, so that it has an
        opposite.
        """
        lead = ", " if after else " ORDER BY "
        opposite = lead + self.listed(turned=True) if chooses else None
        return Edit(at, at, lead + self.listed(turned=False), rewrite, opposite)
