"""Whether rows tied where our own order chose: the query once more, with that order turned round.

Equal contents say that the choice made no difference; others, that rows tie and it did. The result
itself does not depend on this: it has the order that was added, and is the same every time.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.table import canonical
from tieout.executor.engine import Engine, TableBytes
from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.sql.validate import ValidatedSql

Arrow: TypeAlias = Any
"""pyarrow is untyped: a pyarrow.Table."""


class Ties(StrEnum):
    """IMPOSSIBLE: no order that could choose was added. NONE: it chose nothing. DECIDED: rows tie,
    and it chose. UNCHECKED: the check reached a bound."""

    IMPOSSIBLE = ""
    NONE = "none"
    DECIDED = "decided"
    UNCHECKED = "unchecked"


def ties(
    engine: Engine, validated: ValidatedSql, tables: Mapping[str, TableBytes], result: Arrow
) -> Ties:
    """Run the countercheck of a query, if it has one, and compare it with the result as bags.

    Raises what `Engine.run` raises, but where a bound was reached or the turned text failed.
    """
    if not validated.countercheck:
        return Ties.IMPOSSIBLE
    try:
        turned = engine.run(validated, tables, opposite=True)
        same = _content(turned.table) == _content(result)
    except ExecutorError as error:
        if error.exit_code is not Exit.INCOMPLETE:
            raise
        return Ties.UNCHECKED
    except ArtifactError:  # a value that cannot be stored, met in one of the two orders only
        return Ties.UNCHECKED
    if not turned.complete:
        return Ties.UNCHECKED
    return Ties.NONE if same else Ties.DECIDED


def _content(table: Arrow) -> str:
    """The content digest of the rows, whatever order they came in."""
    return str(canonical(table).digest)
