"""Records that are refused or asked about: what is said of them, and the ways out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tieout.executor.errors import ExecutorError
from tieout.executor.ingest.csv_dialect import Layout
from tieout.executor.ingest.csv_records import QUOTED_EMPTY
from tieout.executor.ingest.declaration import (
    ColumnDeclaration,
    column_table,
    source_table,
    toml_text,
    under,
)
from tieout.executor.ingest.total_words import total_word

REJECTS_SHOWN_MAX = 5
TEXT_SHOWN_MAX = 80
PATTERNS_SHOWN_MAX = 5
NOTHING = '";,|\t '


@dataclass(frozen=True, slots=True)
class RecordView:
    """The records of a source, to be quoted in messages; footer: patterns declared."""

    layout: Layout
    first_lines: Sequence[int]
    name: str
    footer: tuple[str, ...]

    @property
    def table(self) -> str:
        """The line of the workspace file under which the source is declared."""
        return source_table(self.name)

    def line(self, index: int) -> int:
        """The physical line on which a record begins."""
        return self.first_lines[index]

    def text(self, index: int) -> str:
        """A record as received, decoded."""
        return self.layout.records.texts[index].decode("utf-8")

    def fields(self, index: int) -> list[str]:
        """The fields of a record; the whole text when they cannot be told apart."""
        found = self.layout.dialect.fields(self.layout.records.texts[index])
        if found is None:
            return [self.text(index)]
        return [field.replace(QUOTED_EMPTY, b"").decode("utf-8") for field in found]

    def named(self, index: int) -> str:
        """The first field of a record that is not empty, "" for none."""
        return next((field for field in self.fields(index) if field.strip()), "")

    def total_word(self, index: int) -> str:
        """The word with which a total line begins, "" when it does not look like one."""
        return total_word(self.named(index))


def value_error(
    view: RecordView, index: int, name: str, declared: ColumnDeclaration, text: str
) -> ExecutorError:
    """A value does not fit the declared type of its column."""
    if view.total_word(index):
        remedy = footer_remedy(view, [index])
    else:
        keep = under(view.table, 'rejected = "keep"')
        remedy = (
            f"Correct {column_table(view.name, name)}, or set such records apart, counted and"
            f" listed: {keep}"
        )
    said = declared.type or f'with format = "{declared.format}"'
    return ExecutorError(
        "csv.value",
        f"column {name} is declared {said}, which {text[:TEXT_SHOWN_MAX]} does not fit",
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
    ways = [footer_remedy(view, totals)] if totals else []
    if any(view.layout.widths[index] > view.layout.width for index in indices):
        extend = under(view.table, 'wide_rows = "extend"')
        ways.append(f"to take the extra fields as columns, {extend}")
    if not totals:
        pattern = _footer_line(view, [re.escape(view.text(shown[0])[:TEXT_SHOWN_MAX])])
        ways.append(f"if they are no data, name how they begin, such as {pattern}")
    keep = under(view.table, 'rejected = "keep"')
    ways.append(f"to set them apart, counted and listed, {keep}")
    remedy = "; ".join(ways)
    said = "1 record is" if len(indices) == 1 else f"{len(indices)} records are"
    return ExecutorError(
        "csv.rejected",
        f"{said} not like the header ({listed}{more})",
        place=f"{view.name}, line {view.line(indices[0])}",
        remedy=remedy[0].upper() + remedy[1:],
    )


def total_error(
    view: RecordView,
    indices: Sequence[int],
    why: str,
    *,
    column: tuple[str, str],
    others: Iterable[int],
) -> ExecutorError:
    """Records look like totals and would be counted as data.

    why: said of the last of them. column: the one whose declared type settles that they are
    data, with that type. others: records that are data, which no pattern may take.
    """
    last = indices[-1]
    shown = ", ".join(str(view.line(index)) for index in indices[:REJECTS_SHOWN_MAX])
    more = ", …" if len(indices) > REJECTS_SHOWN_MAX else ""
    text = view.text(last)[:TEXT_SHOWN_MAX]
    said = (
        f"line {shown} looks like a total and would be counted as data: {text}"
        if len(indices) == 1
        else f"{len(indices)} records look like totals and would be counted as data (lines"
        f" {shown}{more}), the last of them: {text}"
    )
    settle = under(column_table(view.name, column[0]), f'type = "{column[1]}"')
    return ExecutorError(
        "csv.total_line",
        f"{said} ({why})",
        place=f"{view.name}, line {view.line(last)}",
        remedy=f"{footer_remedy(view, indices, others)}; if they are data, {settle}",
    )


def footer_remedy(view: RecordView, indices: Sequence[int], others: Iterable[int] = ()) -> str:
    """The words that declare records to be footers, in patterns that take none of the others."""
    taken = list(others)
    patterns = dict.fromkeys(_pattern(view, index, taken) for index in indices)
    return f"If these are total lines, {_footer_line(view, list(patterns))}"


def _footer_line(view: RecordView, patterns: Sequence[str]) -> str:
    shown = [*view.footer, *(f"^{_readable(p)}" for p in patterns[:PATTERNS_SHOWN_MAX])]
    line = f"footer = [{', '.join(map(toml_text, shown))}]"
    return under(view.table, line, verb="set" if view.footer else "add")


def _readable(pattern: str) -> str:
    return pattern.replace("\\ ", " ")


def _pattern(view: RecordView, index: int, others: Sequence[int]) -> str:
    """How a record begins, or all of it where a record of the others begins so too.

    As footer patterns are, it is matched with the first field or with the whole text.
    """
    text, first = view.text(index), view.fields(index)[0]
    word = view.total_word(index)
    if first.strip():
        short, whole = word, f"{re.escape(first)}$"
    else:
        # Where nothing is named, the empty fields before the first value.
        at = text.find(word) if word else len(text) - len(text.lstrip(NOTHING))
        short, whole = text[: max(at, 0) + len(word)], f"{re.escape(text)}$"
    start = re.escape(short)
    matcher = re.compile(start)
    clash = any(matcher.match(candidate) for other in others for candidate in _matched(view, other))
    return whole if clash or not short else start


def _matched(view: RecordView, index: int) -> tuple[str, str]:
    return view.fields(index)[0], view.text(index)
