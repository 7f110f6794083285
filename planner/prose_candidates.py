"""Where numbers that a model typed also stand in the question's results: for a reader alone.

One pass over the results for all of them; a candidate never changes a label.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tieout.artifacts.table_reader import TableReader
from tieout.artifacts.values import FLOATS, cell_reference, decimal_scale, is_numeric
from tieout.executor.world import World

CANDIDATES_MAX: Final = 5
ROWS_SCANNED_MAX: Final = 100_000
TYPED_MAX: Final = 50
"""Typed numbers that are looked up, in order; later ones get no candidates."""


def candidates(world: World, typed: Iterable[Decimal]) -> Mapping[Decimal, tuple[str, ...]]:
    """`ADDRESS#ROWKEY:COLUMN` of cells that hold each value, in order of steps, columns, rows."""
    found: dict[Decimal, list[str]] = {}
    for value in typed:
        if len(found) == TYPED_MAX:
            break
        found.setdefault(value, [])
    if not found:
        return {}
    for step in world.steps.values():
        if not step.ok or step.rows > ROWS_SCANNED_MAX:
            continue
        address = step.receipt.parts["output"]
        reader = world.reader(address)
        for column in reader.columns:
            wanted = [value for value, cells in found.items() if len(cells) < CANDIDATES_MAX]
            if not wanted or not is_numeric(column.type):
                continue
            for value, position in _places(reader, column.name, column.type, wanted):
                if len(found[value]) < CANDIDATES_MAX:
                    row = reader.row_key(position)
                    found[value].append(cell_reference(str(address), row, column.name))
    return {value: tuple(cells) for value, cells in found.items()}


def _places(
    reader: TableReader, name: str, kind: str, wanted: list[Decimal]
) -> Iterator[tuple[Decimal, int]]:
    """(value, row) of the first cells of a column that hold a wanted value."""
    array = reader.arrow.column(name).combine_chunks()
    cells = {v: cell for v in wanted if (cell := _as_cell(v, kind, array.type)) is not None}
    if not cells:
        return
    values = pa.array(list(cells.values()), array.type)
    rows = pc.indices_nonzero(pc.is_in(array, value_set=values))
    if len(rows) == 0:
        return
    held = array.take(rows)
    for value, cell in cells.items():
        scalar = pa.scalar(cell, array.type)
        at = -1
        for _ in range(CANDIDATES_MAX):
            at = pc.index(held, scalar, start=at + 1).as_py()
            if at < 0:
                break
            yield value, rows[at].as_py()


def _as_cell(value: Decimal, kind: str, arrow_type: Any) -> Decimal | int | float | None:
    """The value as a cell of this type, or None when no such cell can equal it."""
    try:
        if kind in FLOATS:
            cell = pa.scalar(float(value), arrow_type).as_py()
            return cell if math.isfinite(cell) and Decimal(cell) == value else None
        whole = decimal_scale(kind) is None
        if whole and value != value.to_integral_value():
            return None
        cell = pa.scalar(int(value) if whole else value, arrow_type).as_py()
    except (pa.ArrowInvalid, OverflowError):
        return None  # it does not fit: no cell of this type holds it
    return cell if cell == value else None
