"""One cell of a table artifact, found by its row key and said as text (docs/FORMAT.md §3, §5).

Written a second time for the audit: a figure of a report is compared with the cell it cites.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from urllib.parse import unquote

from tieout.ledger.audit.tables import ArrowTable, MalformedTable, read_stream


class NoSuchCell(Exception):
    """The table has no such row or column; the argument says which."""


class TableCells:
    """The cells of one table; the rows of its key are looked up once for all.

    Raises MalformedTable, or ImportError when pyarrow is not installed.
    """

    def __init__(self, payload: bytes) -> None:
        self._table, self._key = read_stream(payload)
        self._places: dict[tuple[str | None, ...], list[int]] | None = None

    def find(self, row: str, column: str) -> str | None:
        """The text of the cell, None for null. Raises NoSuchCell, MalformedTable."""
        if column not in self._table.column_names:
            raise NoSuchCell(f"there is no column {column[:80]!r}")
        if self._key:
            positions = self._matching(row)
        else:
            whole = row.isascii() and row.isdecimal() and not row.startswith("0")
            positions = [int(row) - 1] if whole and len(row) < 18 else []
            positions = [position for position in positions if position < self._table.num_rows]
        if len(positions) != 1:
            raise NoSuchCell(f"{len(positions)} rows have the key {row[:120]!r}")
        return _texts(self._table.column(column).slice(positions[0], 1))[0]

    def _matching(self, row: str) -> list[int]:
        """The positions of the rows with this key."""
        wanted: list[tuple[str, str | None]] = []
        for part in row.split("&"):
            name, equals, value = part.partition("=")
            if equals:
                wanted.append((unquote(name), unquote(value)))
            elif name.startswith("!"):
                wanted.append((unquote(name[1:]), None))
        if [name for name, _ in wanted] != self._key:
            raise NoSuchCell(f"{row[:120]!r} does not name the key columns {', '.join(self._key)}")
        if self._places is None:
            self._places = {}
            columns = [_texts(self._table.column(name)) for name in self._key]
            for position, values in enumerate(zip(*columns, strict=True)):
                self._places.setdefault(values, []).append(position)
        return self._places.get(tuple(value for _, value in wanted), [])


def find_cell(payload: bytes, row: str, column: str) -> str | None:
    """The text of one cell of the table of these bytes. Raises as TableCells."""
    return TableCells(payload).find(row, column)


def _texts(column: ArrowTable) -> list[str | None]:
    try:
        return [value_text(value) for value in column.to_pylist()]
    except (ArithmeticError, ValueError) as error:  # a date that no calendar has
        raise MalformedTable(f"{type(error).__name__}: {error}") from error


def value_text(value: object) -> str | None:
    """The text of a value as FORMAT §5 has it; None for null."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return repr(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, int):
        return str(value)
    raise MalformedTable(f"a value of type {type(value).__name__}")
