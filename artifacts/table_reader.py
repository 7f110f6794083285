"""A stored table read back: its columns and key, single cells, pages of rows, rows by key.

Source: docs/FORMAT.md §3 and §5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from tieout.artifacts.errors import ArtifactError, Exit
from tieout.artifacts.table import (
    HIDDEN_PREFIX,
    METADATA_KEY,
    TABLE_FORMAT,
    ArrowTable,
    Column,
)
from tieout.artifacts.values import Cell, cell_text, row_key, type_name


class TableReader:
    """A stored table read back: columns, key, single cells, pages of rows.

    payload: the bytes as the store gave them (their address was checked there). Raises
    ArtifactError table.unreadable for bytes that are not a table artifact.
    """

    def __init__(self, payload: bytes) -> None:
        try:
            with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
                table = reader.read_all()
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable("it is not an Arrow stream") from error
        self._take(table, table.num_rows)

    def _take(self, table: ArrowTable, rows: int) -> None:
        """table: all rows, or the first of them. rows: how many there are."""
        note = (table.schema.metadata or {}).get(METADATA_KEY)
        if note is None:
            raise _unreadable("it has no tieout.table metadata")
        document = json.loads(note)
        if document.get("format") != TABLE_FORMAT:
            raise _unreadable(f"its format is {document.get('format')!r}")
        self._table = table
        self.key: tuple[str, ...] = tuple(document["key"])
        self.columns: tuple[Column, ...] = tuple(
            Column(field.name, type_name(field.type)) for field in table.schema
        )
        self.rows: int = rows

    @property
    def arrow(self) -> ArrowTable:
        """The whole table as Arrow."""
        return self._table

    def column(self, name: str) -> Column | None:
        """The column of this name, or None."""
        return next((column for column in self.columns if column.name == name), None)

    def value(self, position: int, column: str) -> Cell:
        """The value at a position from 0; None for null."""
        value: Cell = self._table.column(column)[position].as_py()
        return value

    def text(self, position: int, column: str) -> str | None:
        """The text of a cell (docs/FORMAT.md §5); None for null."""
        kind = next(c.type for c in self.columns if c.name == column)
        return cell_text(self.value(position, column), kind)

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
            column = self.column(name)
            if column is None:
                raise ArtifactError(
                    "table.no_column",
                    f"there is no column {name!r}; the columns are "
                    + ", ".join(c.name for c in self.columns),
                    remedy="Name a column of the result.",
                )
            values = self._table.column(name)
            if text is None:
                hit = pc.is_null(values)
            elif column.type == "VARCHAR":
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
        try:
            with pa.ipc.open_stream(stream) as reader:
                for batch in reader:
                    if held < rows_max:
                        kept.append(batch)
                        held += batch.num_rows
                    rows += batch.num_rows
                    del batch  # its memory is there for the next one
                table = pa.Table.from_batches(kept, schema=reader.schema)
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable("it is not an Arrow stream") from error
        self._take(table, rows)


def _unreadable(why: str) -> ArtifactError:
    return ArtifactError(
        "table.unreadable",
        f"the bytes are not a table artifact: {why}",
        remedy="Check the address; `tieout show ADDRESS` says what an artifact is.",
        exit_code=Exit.OTHER_FORMAT,
    )
