"""A stored table read back: its columns and key, single cells, pages of rows, rows by key.

Source: docs/FORMAT.md §3 and §5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.table import HIDDEN_PREFIX, ArrowTable, Column
from tieout.artifacts.table_shape import (
    STREAM_END,
    check_values,
    decoding,
    read_schema,
    unreadable,
)
from tieout.artifacts.values import Cell, cell_text, row_key


class TableReader:
    """A stored table read back: columns, key, single cells, pages of rows.

    payload: the bytes as the store gave them (their address was checked there). Raises
    ArtifactError table.unreadable for bytes that are not a table artifact.
    """

    def __init__(self, payload: bytes) -> None:
        with decoding():
            source = pa.BufferReader(payload)
            with pa.ipc.open_stream(source) as reader:
                table = reader.read_all()
            end = source.tell()
        # Arrow takes a stream that was cut off between two batches for a whole one.
        if end != len(payload) or not payload.endswith(STREAM_END):
            raise unreadable("it does not end where its stream ends")
        self._take(table, table.num_rows)

    def _take(self, table: ArrowTable, rows: int) -> None:
        """table: all rows, or the first of them. rows: how many there are."""
        self.key: tuple[str, ...]
        self.columns: tuple[Column, ...]
        self.key, self.columns = read_schema(table.schema)
        check_values(table)
        self._table = table
        self._named = {column.name: column for column in self.columns}
        self.rows: int = rows

    @property
    def arrow(self) -> ArrowTable:
        """The whole table as Arrow."""
        return self._table

    def column(self, name: str) -> Column | None:
        """The column of this name, or None."""
        return self._named.get(name)

    def value(self, position: int, column: str) -> Cell:
        """The value at a position from 0; None for null.

        Raises ArtifactError table.no_column, table.no_row.
        """
        self._known(column)
        if not 0 <= position < self._table.num_rows:
            raise ArtifactError(
                "table.no_row",
                f"there is no row at position {position + 1} of {self.rows}",
                remedy="Positions count from 0; `positions` finds rows by their key.",
            )
        value: Cell = self._table.column(column)[position].as_py()
        return value

    def text(self, position: int, column: str) -> str | None:
        """The text of a cell (docs/FORMAT.md §5); None for null. Raises as `value`."""
        return cell_text(self.value(position, column), self._known(column).type)

    def _known(self, name: str) -> Column:
        column = self.column(name)
        if column is None:
            raise ArtifactError(
                "table.no_column",
                f"there is no column {name!r}; the columns are "
                + ", ".join(c.name for c in self.columns),
                remedy="Name a column of the result.",
            )
        return column

    def row_key(self, position: int) -> str:
        """The text that names the row at a position from 0."""
        return row_key(self.key, {n: self.text(position, n) for n in self.key}, position)

    def page(self, start: int, rows: int) -> list[dict[str, Cell]]:
        """Rows start..start+rows as dictionaries of visible columns."""
        names = [c.name for c in self.columns if not c.name.startswith(HIDDEN_PREFIX)]
        page: list[dict[str, Cell]] = self._table.select(names).slice(start, rows).to_pylist()
        return page

    def positions(self, wanted: Mapping[str, str | None]) -> list[int]:
        """Positions (from 0) of the rows whose cells have these texts (None: null).

        Raises ArtifactError table.no_column for a name that is not a column.
        """
        mask = None
        for name, text in wanted.items():
            column = self._known(name)
            values = self._table.column(name)
            if text is None:
                hit = pc.is_null(values)
            elif column.type == "VARCHAR" and _in_utf8(text):
                hit = pc.fill_null(pc.equal(values, text), False)
            else:
                texts = [cell_text(v, column.type) for v in values.to_pylist()]
                hit = pa.array([t == text for t in texts], type=pa.bool_())
            mask = hit if mask is None else pc.and_(mask, hit)
        if mask is None:
            return list(range(self.rows))
        found: list[int] = pc.indices_nonzero(mask).to_pylist()
        return found


class TableHead(TableReader):
    """The first rows of a stored table; the others are read and counted, one chunk at a time.

    `rows` is the number of all; only the cells of the first rows_max, and of those in their chunks,
    can be asked for. stream: as a store's `scan` gives it. Raises ArtifactError table.unreadable.
    """

    def __init__(self, stream: BinaryIO, rows_max: int) -> None:
        kept, held, rows = [], 0, 0
        with decoding(), pa.ipc.open_stream(stream) as reader:
            for batch in reader:
                if held < rows_max:
                    kept.append(batch)
                    held += batch.num_rows
                rows += batch.num_rows
                del batch  # its memory is there for the next one
            table = pa.Table.from_batches(kept, schema=reader.schema)
        self._take(table, rows)


def _in_utf8(text: str) -> bool:
    """Whether a cell can hold it: a lone surrogate is in none, and Arrow does not take it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
