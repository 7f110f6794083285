"""What each record and each physical line of a file is, with sums that must agree."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

import pyarrow as pa

from tieout.executor.ingest.csv_records import Records
from tieout.executor.ingest.encoding import SourceText

# pyarrow ships no types.
RecordTable: TypeAlias = Any

KINDS = ("preamble", "header", "data", "blank", "footer", "rejected")


@dataclass(frozen=True, slots=True)
class LineAccount:
    """Physical lines of a file, and how many of them each kind of record takes."""

    lines: int
    preamble: int
    header: int
    data: int
    blank: int
    footer: int
    rejected: int

    def __post_init__(self) -> None:
        """Check that every line is accounted for."""
        parts = (
            self.preamble, self.header, self.data, self.blank, self.footer, self.rejected,
        )  # fmt: skip
        if sum(parts) != self.lines:
            raise AssertionError(f"{parts} do not add up to {self.lines} lines")


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that is not data though it stands among them: first line, why, its text."""

    line: int
    reason: str
    text: str


def account_lines(records: Records, kinds: Sequence[str], *, lines: int) -> LineAccount:
    """Count the physical lines of each kind of record."""
    taken = dict.fromkeys(KINDS, 0)
    for kind, count in zip(kinds, records.line_counts, strict=True):
        taken[kind] += count
    return LineAccount(lines=lines, **taken)


def record_table(
    text: SourceText, records: Records, kinds: Sequence[str], reasons: Mapping[int, str]
) -> RecordTable:
    """One row per record: what it is, its lines, its bytes in the file without line end.

    Columns: record, kind, row, line_first, line_last, byte_start, byte_end, reason.
    """
    starts, ends = _byte_spans(text, records)
    first = records.first_lines()
    last = array("q", map(int.__add__, first, (count - 1 for count in records.line_counts)))
    row, rows = 0, []
    for kind in kinds:
        row += kind == "data"
        rows.append(row if kind == "data" else None)
    count = len(kinds)
    return pa.table(
        {
            "record": pa.array(range(1, count + 1), pa.int64()),
            "kind": pa.array(kinds, pa.string()),
            "row": pa.array(rows, pa.int64()),
            "line_first": pa.array(first, pa.int64()),
            "line_last": pa.array(last, pa.int64()),
            "byte_start": pa.array(starts, pa.int64()),
            "byte_end": pa.array(ends, pa.int64()),
            "reason": pa.array((reasons.get(i) for i in range(count)), pa.string(), size=count),
        }
    )


def _byte_spans(text: SourceText, records: Records) -> tuple[array[int], array[int]]:
    width = text.raw_length(b"\n")
    lengths = array("q", map(text.raw_length, records.texts))
    whole = (length + width * end for length, end in zip(lengths, records.ends, strict=True))
    reached = accumulate(whole, initial=text.mark_bytes)
    starts = array("q", [start for start, _ in zip(reached, lengths, strict=False)])
    return starts, array("q", map(int.__add__, starts, lengths))
