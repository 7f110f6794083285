"""What the columns of a search or an extraction come from: the text, or code that counts."""

from __future__ import annotations

from typing import Final

from tieout.artifacts.table import TableArtifact
from tieout.executor.sql.validate import ColumnOrigin

POSITION: Final = "position"
"""Stands among the literals of a column that says where a passage is, or how it ranks."""
_PLACES: Final = frozenset({"rank", "score", "start", "end", "number_start", "number_end"})


def text_origins(
    table: TableArtifact, source: str, literals: tuple[str, ...] = ()
) -> dict[str, ColumnOrigin]:
    """The origin of each column of passages. literals: what of the plan flows into all of them.

    Offsets and ranks are made by code about a source and are no statement of it, so a figure
    must not cite one as if the source said it.
    """
    return {
        name: ColumnOrigin(
            name,
            (*literals, POSITION) if name in _PLACES else literals,
            ((source, "text"),),
            "",
            inexact=False,
        )
        for name in (column.name for column in table.columns)
    }
