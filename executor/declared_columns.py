"""A source's declared domains and ranges: typed against its columns, and the data held to them.

Data outside are refused, not only reported: literals are later held to the same declaration, and
a clamp gives the same rows only where no row lies outside.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tieout.artifacts.table import ORDINAL
from tieout.executor.catalog import ColumnTable, Source
from tieout.executor.errors import ExecutorError
from tieout.executor.ingest.declaration import column_table
from tieout.executor.ingest.reading import CsvReading
from tieout.executor.sql.declared_values import Kind, Value, below, kind_of, read

LINES_SHOWN_MAX: Final = 5
VALUE_CHARS_MAX: Final = 80
BIGINT_END: Final = 2**63
Arrow: TypeAlias = Any
"""pyarrow is untyped: a pyarrow.ChunkedArray."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column as it was read, and what is declared of it."""

    source: Source
    reading: CsvReading
    name: str
    declared: ColumnTable
    kind: Kind

    @property
    def values(self) -> Arrow:
        return self.reading.table.column(self.name)

    def native(self, text: str) -> object:
        """A declared value as Arrow takes it for this column."""
        value = self.value(text)
        if isinstance(value, Decimal) and pa.types.is_integer(self.values.type):
            return int(value)
        if isinstance(value, dt.datetime) and pa.types.is_date(self.values.type):
            return value.date()
        return value

    def value(self, text: str) -> Value:
        """A declared value, exactly: one that the column would have to round is refused."""
        value = read(text, self.kind)
        exact = not isinstance(value, Decimal) or value == Decimal(text)
        if isinstance(value, Decimal) and pa.types.is_integer(self.values.type):
            exact = exact and -BIGINT_END <= value < BIGINT_END
        if value is None or not exact:
            shown = text[:VALUE_CHARS_MAX]
            raise _wrong(self.source, self.name, f"cannot have the declared value {shown!r}")
        return value


def check_declared(source: Source, reading: CsvReading) -> None:
    """Every domain and range of the source fits its column's type, and every value fits it.

    Raises ExecutorError source.declared, source.outside_domain, source.outside_range.
    """
    for column in reading.columns:
        declared = source.table.column.get(column.name)
        if declared is None or not (declared.domain or declared.range):
            continue
        kind = kind_of(column.type)
        if declared.domain and declared.range:
            raise _wrong(source, column.name, "has both a domain and a range; one is enough")
        if kind is None or (declared.range and not kind.ordered):
            what = "domain" if declared.domain else "range"
            raise _wrong(source, column.name, f"is {column.type}, which can have no {what}")
        held = _Column(source, reading, column.name, declared, kind)
        if declared.domain:
            _check_domain(held)
        else:
            _check_range(held)


def _check_domain(column: _Column) -> None:
    known = [column.native(text) for text in column.declared.domain]
    listed = pc.is_in(column.values, value_set=pa.array(known, column.values.type))
    outside = pc.and_(pc.invert(listed), pc.is_valid(column.values))
    _refuse_rows(column, outside, "domain", "that its domain does not list")


def _check_range(column: _Column) -> None:
    texts = column.declared.range
    low, high = (column.value(text) if text else None for text in texts)
    if low is not None and high is not None and below(high, low):
        raise _wrong(column.source, column.name, "has a range that ends before it begins")
    outside = pc.and_(pc.is_valid(column.values), pa.scalar(value=False))
    for text, beyond in zip(texts, (pc.less, pc.greater), strict=True):
        if text:
            bound = pa.scalar(column.native(text), column.values.type)
            found = pc.fill_null(beyond(column.values, bound), fill_value=False)
            outside = pc.or_(outside, found)
    said = f"outside its range, {texts[0] or 'anything'} to {texts[1] or 'anything'}"
    _refuse_rows(column, outside, "range", said)


def _refuse_rows(column: _Column, outside: Arrow, key: str, said: str) -> None:
    """Refuse the rows that are marked, if any, with their lines and values."""
    count = pc.sum(outside).as_py() or 0
    if not count:
        return
    rows = column.reading.table.filter(outside).slice(0, LINES_SHOWN_MAX)
    lines = _lines(column.reading, rows.column(ORDINAL).to_pylist())
    values = [str(v)[:VALUE_CHARS_MAX] for v in rows.column(column.name).to_pylist()]
    shown = "; ".join(f"line {ln}: {v}" for ln, v in zip(lines, values, strict=True))
    more = f"; and {count - len(lines)} more" if count > len(lines) else ""
    raise ExecutorError(
        f"source.outside_{key}",
        f"column {column.name} has values {said} ({shown}{more})",
        place=f"{column.source.name}, column {column.name}, line {lines[0]}",
        remedy=f"Correct the file, or {key} under "
        f"{column_table(column.source.name, column.name)} in tieout.toml.",
    )


def _lines(reading: CsvReading, ordinals: Sequence[int]) -> list[int]:
    wanted = reading.records.filter(pc.is_in(reading.records["row"], pa.array(ordinals)))
    line = dict(zip(wanted["row"].to_pylist(), wanted["line_first"].to_pylist(), strict=True))
    return [line[ordinal] for ordinal in ordinals]


def _wrong(source: Source, name: str, said: str) -> ExecutorError:
    return ExecutorError(
        "source.declared",
        f"column {name} {said}",
        place=source.name,
        remedy=f"Correct {column_table(source.name, name)} in tieout.toml.",
    )
