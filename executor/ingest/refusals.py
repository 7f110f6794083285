"""Records that are refused or asked about: what is said of them, and the ways out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow.compute as pc

from tieout.executor.errors import ExecutorError
from tieout.executor.ingest.cells import Texts, Typed
from tieout.executor.ingest.columns import ColumnReading
from tieout.executor.ingest.csv_dialect import Layout
from tieout.executor.ingest.declaration import column_table, toml_key

REJECTS_SHOWN_MAX = 5
TEXT_SHOWN_MAX = 80
WORDS_SHOWN_MAX = 5
# Below this many records above it, a sum proves nothing.
SUMMED_RECORDS_MIN = 2

# What the first field of a subtotal, total or print line begins with; also read by RE2.
TOTAL_WORDS = re.compile(
    r"\W*(?:(?:sub|grand|zwischen|gesamt|end)?[- ]?(?:totals?|totaal|totale|summe|saldo)|sum|gesamt"
    r"|insgesamt|somme|suma|printed|end of report|(?:opening|closing) balance"
    r"|(?:carried|brought) forward|record count)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class RecordView:
    """The records of a source, to be quoted in messages."""

    layout: Layout
    first_lines: Sequence[int]
    name: str

    @property
    def table(self) -> str:
        """The line of the workspace file under which the source is declared."""
        return f"[source.{toml_key(self.name)}]"

    def line(self, index: int) -> int:
        """The physical line on which a record begins."""
        return self.first_lines[index]

    def text(self, index: int) -> str:
        """A record as received, decoded."""
        return self.layout.records.texts[index].decode("utf-8")

    def total_word(self, index: int) -> str:
        """The word with which a total line begins, "" when it does not look like one."""
        quote = self.layout.dialect.quote.decode()
        found = TOTAL_WORDS.match(self.text(index).lstrip(quote))
        return found[0].strip() if found else ""


def value_error(
    view: RecordView, index: int, name: str, type_text: str, text: str
) -> ExecutorError:
    """A value does not fit the declared type of its column."""
    if view.total_word(index):
        remedy = _footer_remedy(view, [index])
    else:
        remedy = (
            f"Correct {column_table(view.name, name)}, or set such records apart, counted and"
            f' listed: {view.table} rejected = "keep".'
        )
    return ExecutorError(
        "csv.value",
        f"column {name} is declared {type_text}, which {text[:TEXT_SHOWN_MAX]} does not fit",
        place=f"{view.name}, column {name}, line {view.line(index)}",
        remedy=remedy,
    )


def rejected_error(view: RecordView, why: Mapping[int, str]) -> ExecutorError:
    """Records have not the width of the header; the first of them, and the ways out."""
    indices = sorted(why)
    shown = indices[:REJECTS_SHOWN_MAX]
    listed = "; ".join(
        f"line {view.line(index)}: {why[index]}: {view.text(index)[:TEXT_SHOWN_MAX]}"
        for index in shown
    )
    more = f"; and {len(indices) - len(shown)} more" if len(indices) > len(shown) else ""
    totals = [index for index in indices if view.total_word(index)]
    ways = [_footer_remedy(view, totals)] if totals else []
    if any(view.layout.widths[index] > view.layout.width for index in indices):
        ways.append(f'Take the extra fields as columns: {view.table} wide_rows = "extend".')
    if not totals:
        ways.append(f'If they are no data, name how they begin: {view.table} footer = ["^…"].')
    ways.append(f'Or set them apart, counted and listed: {view.table} rejected = "keep".')
    return ExecutorError(
        "csv.rejected",
        f"{len(indices)} of the records are not like the header ({listed}{more})",
        place=f"{view.name}, line {view.line(indices[0])}",
        remedy=" ".join(ways),
    )


def total_error(view: RecordView, indices: Sequence[int], why: str) -> ExecutorError:
    """Records look like totals and would be counted as data."""
    last = indices[-1]
    return ExecutorError(
        "csv.total_line",
        f"a record looks like a total and would be counted as data:"
        f" {view.text(last)[:TEXT_SHOWN_MAX]} ({why})",
        place=f"{view.name}, line {view.line(last)}",
        remedy=f"{_footer_remedy(view, indices)} If it is data, declare the type of the column"
        " in which its name stands.",
    )


def rows_of_totals(texts: Sequence[Texts], place: int) -> list[int]:
    """Rows whose first field that is not empty stands in this column and names a total."""
    pattern = f"^(?:{TOTAL_WORDS.pattern})"
    hits = pc.match_substring_regex(texts[place], pattern, ignore_case=True)
    if not pc.any(hits).as_py():
        return []
    for before in texts[:place]:
        hits = pc.and_(hits, pc.is_null(before))
    return [int(row) for row in pc.indices_nonzero(hits).to_pylist()]


def refuse_sum(
    view: RecordView,
    data: Sequence[int],
    readings: Sequence[ColumnReading],
    columns: Sequence[Typed],
) -> None:
    """Ask about a last record that is named a total and is the sum of those above it.

    data: record of each row. Raises ExecutorError csv.total_line.
    """
    if len(data) <= SUMMED_RECORDS_MIN or not view.total_word(data[-1]):
        return
    for reading, values in zip(readings, columns, strict=True):
        value = None if reading.control_total is None else values[-1].as_py()
        if value and Decimal(reading.control_total or 0) == 2 * value:
            why = f"it is the sum of column {reading.name} above it"
            raise total_error(view, [data[-1]], why)


def _footer_remedy(view: RecordView, indices: Sequence[int]) -> str:
    words: dict[str, None] = dict.fromkeys(view.total_word(index) for index in indices)
    shown = [word for word in words if word][:WORDS_SHOWN_MAX]
    patterns = ", ".join(f'"^{re.escape(word)}"' for word in shown) or '"^…"'
    return f"If these are total lines, declare {view.table} footer = [{patterns}]."
