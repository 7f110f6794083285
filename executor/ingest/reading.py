"""A CSV file as received to a typed table, with an account of every line and every choice."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tieout.executor.errors import ExecutorError
from tieout.executor.ingest.account import (
    LineAccount,
    Reject,
    account_lines,
    record_table,
)
from tieout.executor.ingest.cells import Texts
from tieout.executor.ingest.columns import (
    ColumnReading,
    Conversion,
    convert_column,
    describe_column,
)
from tieout.executor.ingest.csv_dialect import NO_HEADER, Footer, Layout, find_layout
from tieout.executor.ingest.csv_records import (
    MALFORMED,
    ONE_COLUMN,
    QUOTED_EMPTY,
    newline_style,
    split_lines,
)
from tieout.executor.ingest.declaration import (
    ColumnDeclaration,
    CsvDeclaration,
    check_declaration,
)
from tieout.executor.ingest.encoding import SourceText, decode
from tieout.executor.ingest.header import check_declared_columns, column_names
from tieout.executor.ingest.refusals import (
    TEXT_SHOWN_MAX,
    RecordView,
    rejected_error,
    total_error,
    value_error,
)
from tieout.executor.ingest.totals import refuse_totals, rows_of_totals

__all__ = [
    "ColumnDeclaration",
    "ColumnReading",
    "CsvDeclaration",
    "CsvReading",
    "LineAccount",
    "Reject",
    "read_csv",
]

ROW_COLUMN = "__row"
CHUNK_RECORDS = 65_536

# pyarrow ships no types.
Table: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class CsvReading:
    """A CSV file read.

    encoding, delimiter ("" in a file of one column), quote ("" for none), newline (as in the
    file, "mixed", or "" for none), header_line (0 for none) and reasons say how. table: `__row`
    (ordinal of the data record, from 1), then the columns in file order. records: one row per
    record of the file, see account.record_table.
    """

    encoding: str
    bom: bool
    delimiter: str
    quote: str
    newline: str
    header_line: int
    reasons: Mapping[str, str]
    columns: tuple[ColumnReading, ...]
    account: LineAccount
    data_rows: int
    table: Table
    records: Table
    rejects: tuple[Reject, ...]


def read_csv(raw: bytes, declaration: CsvDeclaration, *, name: str) -> CsvReading:
    """Read the bytes of a CSV file; name is the source's name in the workspace.

    Raises ExecutorError: csv.declaration, csv.empty, csv.blank, csv.encoding, csv.nul_byte,
    csv.unclosed_quote, csv.ambiguous_delimiter, csv.header, csv.header_line, csv.columns,
    csv.reserved_name, csv.unknown_column, csv.rejected, csv.value, csv.total_line,
    csv.ambiguous_number, csv.number_conflict, csv.ambiguous_date, csv.date_conflict.
    """
    patterns = check_declaration(declaration, name=name)
    if not raw:
        raise _nothing("csv.empty", "the file is empty", name)
    text = decode(raw, declared=declaration.encoding, name=name)
    if not text.work.strip():
        raise _nothing("csv.blank", "the file has no line that is not blank", name)
    lines = split_lines(text.work)
    footer = Footer(patterns, declaration.footer_lines or 0)
    layout = find_layout(text.work, lines, declaration, footer, name=name)
    if all(layout.aside) and declaration.header_line is None:
        raise _nothing("csv.blank", "every line of the file is blank or a footer", name)
    return _Reader(text, layout, declaration, len(lines.texts), name).reading()


class _Reader:
    """The steps from a layout to a reading; each record's kind is settled on the way."""

    def __init__(
        self, text: SourceText, layout: Layout, declaration: CsvDeclaration, lines: int, name: str
    ) -> None:
        self._text = text
        self._layout = layout
        self._declaration = declaration
        self._lines = lines
        self._name = name
        self._first_lines = layout.records.first_lines()
        self._view = RecordView(layout, self._first_lines, name, declaration.footer)
        self._why: dict[int, str] = {}
        self._kinds = self._record_kinds()
        self._data = array("q", (i for i, kind in enumerate(self._kinds) if kind == "data"))

    def reading(self) -> CsvReading:
        """The reading, or the first refusal."""
        layout, declaration = self._layout, self._declaration
        names, headers = self._names()
        if self._why and declaration.rejected == "refuse":
            raise rejected_error(self._view, self._why)
        check_declared_columns(names, declaration.columns, name=self._name)
        columns, readings = self._columns(names, headers)
        records = layout.records
        newline, newline_reason = newline_style(records, self._text.work)
        reasons = {**layout.reasons, "encoding": self._text.reason, "newline": newline_reason}
        ordinals = pa.array(range(1, len(self._data) + 1), pa.int64())
        delimiter = layout.dialect.delimiter
        return CsvReading(
            encoding=self._text.encoding,
            bom=self._text.mark_bytes > 0,
            delimiter="" if delimiter == ONE_COLUMN else delimiter.decode(),
            quote=layout.dialect.quote.decode(),
            newline=newline,
            header_line=0 if layout.header == NO_HEADER else self._first_lines[layout.header],
            reasons=MappingProxyType(dict(sorted(reasons.items()))),
            columns=readings,
            account=account_lines(records, self._kinds, lines=self._lines),
            data_rows=len(self._data),
            table=pa.table([ordinals, *columns], names=[ROW_COLUMN, *names]),
            records=record_table(self._text, records, self._kinds, self._why),
            rejects=self._rejects(),
        )

    def _record_kinds(self) -> list[str]:
        layout = self._layout
        extend = self._declaration.wide_rows == "extend"
        kinds = []
        for index, (aside, width) in enumerate(zip(layout.aside, layout.widths, strict=True)):
            if index == layout.header:
                kinds.append("header")
            elif index < layout.header:
                kinds.append("blank" if aside == "blank" else "preamble")
            elif aside:
                kinds.append(aside)
            elif width == layout.width or (extend and width > layout.width):
                kinds.append("data")
            else:
                kinds.append("rejected")
                self._why[index] = self._width_reason(width)
        return kinds

    def _width_reason(self, width: int) -> str:
        if width == MALFORMED:
            return "text follows a closing quote"
        wanted = self._layout.width
        word = "wider" if width > wanted else "narrower"
        return f"{width} fields, {word} than the header's {wanted}"

    def _names(self) -> tuple[tuple[str, ...], list[str]]:
        layout, line = self._layout, 1
        fields: list[str] = [""] * layout.width
        if layout.header != NO_HEADER:
            line = self._first_lines[layout.header]
            found = layout.dialect.fields(layout.records.texts[layout.header])
            if found is None:
                raise ExecutorError(
                    "csv.header",
                    "in the header, text follows a closing quote",
                    place=f"{self._name}, line {line}",
                    remedy="Declare the line of the header, the delimiter or the quote.",
                )
            fields = [f.replace(QUOTED_EMPTY, b"").decode("utf-8") for f in found]
        widest = max((layout.widths[index] for index in self._data), default=0)
        extra = max(0, widest - len(fields))
        names = column_names(fields, extra=extra, name=self._name, line=line)
        return names, fields + [""] * extra

    def _columns(
        self, names: Sequence[str], headers: Sequence[str]
    ) -> tuple[list[Texts], tuple[ColumnReading, ...]]:
        texts = self._texts(len(names))
        declared = self._declaration.columns
        done: dict[int, Conversion] = {}
        for place, name in enumerate(names):
            if name in declared and (declared[name].type or declared[name].format):
                done[place] = self._converted(texts[place], name)
        keep = self._settle_misfits(names, done)
        if keep is not None:
            texts = [column.filter(keep) for column in texts]
        columns, readings = [], []
        for place, (name, header) in enumerate(zip(names, headers, strict=True)):
            if place in done:
                conversion = done[place]
                values = conversion.values if keep is None else conversion.values.filter(keep)
            else:
                if name not in declared or not declared[name].type:
                    self._suspect_totals(texts, place, name)
                conversion = self._converted(texts[place], name)
                values = conversion.values
            columns.append(values)
            readings.append(describe_column(conversion, values, name=name, header=header))
        refuse_totals(self._view, self._data, texts, readings, columns, declared=declared)
        return columns, tuple(readings)

    def _suspect_totals(self, texts: Sequence[Texts], place: int, name: str) -> None:
        """Ask about total lines that would turn a column of dates or numbers into text."""
        rows = rows_of_totals(texts, place)
        present = len(texts[place]) - texts[place].null_count
        if not rows or len(rows) == present:
            return
        gone = set(rows)
        kept = [row for row in range(len(self._data)) if row not in gone]
        conversion = convert_column(
            texts[place].take(pa.array(kept, pa.int64())),
            self._declaration.columns.get(name, ColumnDeclaration()),
            source=self._name,
            name=name,
            locate=lambda row: self._located(kept[row]),
        )
        if conversion.plan.type != "VARCHAR":
            why = f"every other value of column {name} is {conversion.plan.type}"
            raise total_error(
                self._view,
                [self._data[row] for row in rows],
                why,
                column=(name, "VARCHAR"),
                others=[self._data[row] for row in kept],
            )

    def _converted(self, texts: Texts, name: str) -> Conversion:
        declared = self._declaration.columns.get(name, ColumnDeclaration())
        return convert_column(texts, declared, source=self._name, name=name, locate=self._located)

    def _located(self, row: int) -> str:
        return f"line {self._first_lines[self._data[row]]}"

    def _texts(self, width: int) -> list[Texts]:
        columns: list[list[Texts]] = [[] for _ in range(width)]
        for start in range(0, len(self._data), CHUNK_RECORDS):
            rows = list(self._rows(self._data[start : start + CHUNK_RECORDS], width))
            for column, fields in zip(columns, zip(*rows, strict=True), strict=True):
                column.append(_string_array(fields))
        return [pa.chunked_array(chunks, pa.string()) for chunks in columns]

    def _rows(self, indices: Sequence[int], width: int) -> Iterator[list[bytes]]:
        records, dialect = self._layout.records.texts, self._layout.dialect
        for index in indices:
            fields = dialect.fields(records[index])
            if fields is None:
                raise AssertionError("a malformed record is not data")
            yield fields if len(fields) == width else fields + [b""] * (width - len(fields))

    def _settle_misfits(self, names: Sequence[str], done: Mapping[int, Conversion]) -> Table | None:
        """Refuse values that do not fit, or reject their records; a mask of the rows kept."""
        bad: dict[int, tuple[str, str, str]] = {}
        for place, conversion in done.items():
            for misfit in conversion.misfits:
                bad.setdefault(misfit.row, (names[place], conversion.plan.type, misfit.text))
        if not bad:
            return None
        if self._declaration.rejected == "refuse":
            row = min(bad)
            name, _, text = bad[row]
            raise value_error(
                self._view, self._data[row], name, self._declaration.columns[name], text
            )
        for row, (name, type_text, text) in bad.items():
            index = self._data[row]
            self._kinds[index] = "rejected"
            self._why[index] = f"column {name}: {text[:TEXT_SHOWN_MAX]} does not fit {type_text}"
        keep = pa.array([row not in bad for row in range(len(self._data))], pa.bool_())
        self._data = array("q", (i for row, i in enumerate(self._data) if row not in bad))
        return keep

    def _rejects(self) -> tuple[Reject, ...]:
        return tuple(
            Reject(self._first_lines[index], self._why[index], self._view.text(index))
            for index in sorted(self._why)
        )


def _string_array(fields: Sequence[bytes]) -> Texts:
    """Fields as strings: null for nothing between delimiters, "" for a pair of quotes."""
    values = pa.array(fields, pa.string())
    lengths = pc.binary_length(values)
    values = pc.if_else(pc.equal(lengths, 0), pa.scalar(None, pa.string()), values)
    quoted = pc.equal(values, QUOTED_EMPTY.decode())
    return pc.if_else(quoted, "", values) if pc.any(quoted).as_py() else values


def _nothing(code: str, message: str, name: str) -> ExecutorError:
    return ExecutorError(
        code, message, place=name, remedy="Ask for the file again, or take the source out."
    )
