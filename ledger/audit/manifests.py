"""A snapshot's manifest against what it describes: sums, lines, and every byte of the file.

Source: docs/FORMAT.md §8. Called for manifests of the right shape only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from tieout.ledger.audit.contents import Document, stated_totals
from tieout.ledger.audit.document_shapes import LINE_KINDS
from tieout.ledger.audit.evidence import Evidence, Unavailable
from tieout.ledger.audit.findings import Finding
from tieout.ledger.audit.tables import ArrowTable, MalformedTable, read_stream

# A document whose shape was checked.
Manifest: TypeAlias = Mapping[str, Any]

COLUMNS: Final = ("record", "kind", "row", "line_first", "line_last", "byte_start", "byte_end")
_MARKS: Final = (b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_LINE_ENDS: Final = (b"\n", b"\r\n", b"\r")
_GAP_BYTES_MAX: Final = 4  # a CRLF of UTF-16


def check_manifest(manifest: Manifest, evidence: Evidence, source: Document) -> Iterator[Finding]:
    """Everything in which the manifest differs from its entry, its table or its file."""
    if manifest["kind"] == "text":
        yield from _check_entry(len(manifest["documents"]), (), source)
        return
    table = manifest["table"]
    yield from _check_entry(table["rows"], stated_totals(table), source)
    columns = manifest["reading"]["columns"]
    summed = [[c["name"], c["control_total"]] for c in columns if c["control_total"] is not None]
    if summed != table["control_totals"]:
        message = "the control totals of its columns are not those of its table"
        yield source.finding("manifest.totals", message)
    lines = manifest["reading"]["lines"]
    counted = sum(lines[kind] for kind in LINE_KINDS)
    if counted != lines["all"]:
        message = f"the file has {lines['all']} lines, its kinds add up to {counted}"
        yield source.finding("manifest.lines", message)
    yield from _check_records(manifest, evidence, source)


def _check_entry(
    rows: int, totals: tuple[tuple[str, str], ...] | None, source: Document
) -> Iterator[Finding]:
    """What the entry says of the snapshot, in its own row_count and control_totals."""
    if not source.is_output:
        return
    if source.rows is not None and source.rows != rows:
        message = f"the entry says {source.rows} rows, its manifest {rows}"
        yield source.finding("snapshot.rows", message)
    if source.totals != totals:
        message = "the control totals of the entry are not those of its manifest"
        yield source.finding("snapshot.totals", message)


def _check_records(manifest: Manifest, evidence: Evidence, source: Document) -> Iterator[Finding]:
    """That the records are the whole file and nothing else, and are counted as it says."""
    try:
        table, _ = read_stream(evidence.load(manifest["records"]["address"]))
    except (Unavailable, MalformedTable, ImportError, MemoryError):
        return  # said where the table itself is checked
    try:
        raw: bytes | None = evidence.load(manifest["file"]["address"])
    except Unavailable:
        raw = None  # said where objects are checked; lengths can be compared without it
    tiling = _Tiling(raw, manifest["file"]["size"])
    problem = tiling.problem_in(table) or tiling.problem_at_end(manifest)
    if problem:
        yield source.finding("manifest.records", problem)


class _Tiling:
    """The records of a file, one after the other, and what they add up to."""

    def __init__(self, raw: bytes | None, size: int) -> None:
        self._raw = raw
        self._size = size
        self._record = self._row = self._line = self._reached = 0
        self._lines = dict.fromkeys(LINE_KINDS, 0)

    def problem_in(self, table: ArrowTable) -> str:
        """The first thing wrong, "" if nothing is."""
        missing = [name for name in COLUMNS if name not in table.column_names]
        if missing:
            return f"its table of records has no column {missing[0]}"
        for batch in table.select(list(COLUMNS)).to_batches():
            for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                problem = self._problem(values)
                if problem:
                    return f"record {self._record}: {problem}"
        return ""

    def _problem(self, values: tuple[object, ...]) -> str:
        """What is wrong with the next record, its values in the order of COLUMNS."""
        record, kind, row, line_first, line_last, start, end = values
        self._record += 1
        if record != self._record:
            return f"it is numbered {record!s:.40}"
        if not isinstance(kind, str) or kind not in self._lines:
            return "its kind is none of the known"
        self._row += kind == "data"
        if row != (self._row if kind == "data" else None):
            return f"its row is {row!s:.40}, and it is data row {self._row} or none"
        if line_first != self._line + 1:
            return f"it should begin on line {self._line + 1}"
        if not isinstance(line_last, int) or line_last <= self._line:
            return "it ends before it begins"
        self._lines[kind] += line_last - self._line
        self._line = line_last
        if not isinstance(start, int) or not isinstance(end, int):
            return "it has no bytes"
        if not self._reached <= start <= end <= self._size:
            return f"its bytes {start} to {end} do not follow byte {self._reached}"
        problem = self._gap(start)
        self._reached = end
        return problem

    def _gap(self, start: int) -> str:
        """Between records there is a line end, and before the first at most a mark."""
        first = self._record == 1
        length = start - self._reached
        if length > _GAP_BYTES_MAX or (length == 0 and not first):
            return f"{length} bytes lie between it and the record before"
        if self._raw is None:
            return ""
        gap = self._raw[self._reached : start]
        if gap not in _MARKS if first else gap.replace(b"\0", b"") not in _LINE_ENDS:
            return f"between it and the record before lies {gap!r}"
        return ""

    def problem_at_end(self, manifest: Manifest) -> str:
        """What the records add up to, against what the manifest says."""
        rest = self._size - self._reached
        tail = b"" if self._raw is None else self._raw[self._reached :].replace(b"\0", b"")
        if rest > _GAP_BYTES_MAX or (tail and tail not in _LINE_ENDS):
            return f"the last {rest} bytes of the file belong to no record"
        lines = manifest["reading"]["lines"]
        for kind in LINE_KINDS:
            if lines[kind] != self._lines[kind]:
                return f"{self._lines[kind]} lines are {kind} in its records, not {lines[kind]}"
        if self._row != manifest["table"]["rows"]:
            return f"its records hold {self._row} rows of data, not {manifest['table']['rows']}"
        return ""
