"""Whether rows stand in canonical order already, so that a sort and its copy can be saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

# pyarrow ships no types; this name says which of its objects is meant.
ArrowTable: TypeAlias = Any


def is_ascending(table: ArrowTable, names: Sequence[str], *, strictly: bool = False) -> bool:
    """Whether the rows are seen to ascend by these columns; False says only: not seen.

    strictly: no two rows are equal in them either. Nulls and NaN are not looked into, and not
    types that cannot be compared.
    """
    if table.num_rows < 2:
        return True
    tied = None  # pairs of neighbours that are equal in the columns so far
    for name in names:
        column = table.column(name)
        if column.null_count:
            return False
        before, after = column.slice(0, len(column) - 1), column.slice(1)
        try:
            rising, equal = pc.less_equal(before, after), pc.equal(before, after)
        except pa.ArrowNotImplementedError:  # a type without comparison takes the slow way
            return False
        if not _all(rising if tied is None else pc.or_(rising, pc.invert(tied))):
            return False
        tied = equal if tied is None else pc.and_(tied, equal)
        if not _any(tied):
            return True
    return not strictly


def _all(flags: Any) -> bool:
    return bool(pc.all(flags).as_py())


def _any(flags: Any) -> bool:
    return bool(pc.any(flags).as_py())
