"""The audit of snapshots: manifest against entry, table and file; and one that cannot be read."""

from __future__ import annotations

import codecs
import dataclasses
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledger_rows import raw_of, row
from support.recorded_close import RAW, RECORDS, TEXT, Close, found

from tieout.artifacts.address import Address
from tieout.executor.catalog import Source, SourceTable
from tieout.executor.receive import Received
from tieout.executor.snapshot import build
from tieout.ledger.audit import evidence
from tieout.ledger.audit.contents import MANIFEST_MEDIA
from tieout.ledger.audit.findings import Level, Report
from tieout.ledger.audit.fsck import check_rows
from tieout.ledger.audit.objects import StoreObjects
from tieout.ledger.row import ControlTotal, Input, Kind, LedgerRow


@pytest.fixture
def close() -> Close:
    return Close()


# --- against the entry and the table --------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "name", "value", "codes"),
    [
        ("table", "content_digest", "tieout.content/1:" + "0" * 64, {"table.digest"}),
        ("table", "rows", 3, {"table.rows", "snapshot.rows", "manifest.records"}),
        ("table", "control_totals", [["amount", "-3"]],
         {"table.totals", "snapshot.totals", "manifest.totals"}),
        ("records", "rows", 2, {"table.rows"}),
        ("records", "content_digest", "x:" + "0" * 64, {"table.digest"}),
        ("file", "size", len(RAW) + 1, {"object.size"}),
    ],
)  # fmt: skip
def test_a_manifest_is_compared_with_its_tables_and_its_file(
    close: Close, part, name, value, codes
) -> None:
    close.manifest[part][name] = value
    assert set(found(close.check())) == {(code, 0) for code in codes}


def test_the_size_of_a_document_is_that_of_its_bytes(close: Close) -> None:
    close.texts["documents"][0]["size"] = len(TEXT) - 1
    assert found(close.check()) == [("object.size", 1)]


def replaced(close: Close, number: int, **said: Any) -> list[LedgerRow]:
    rows = close.rows()
    output = dataclasses.replace(rows[number].deterministic_output, **said)
    rows[number] = dataclasses.replace(rows[number], deterministic_output=output)
    return rows


@pytest.mark.parametrize(
    ("number", "said", "code"),
    [
        (0, {"row_count": 3}, "snapshot.rows"),
        (0, {"control_totals": ()}, "snapshot.totals"),
        (0, {"control_totals": (ControlTotal("amount", "-3"),)}, "snapshot.totals"),
        (1, {"row_count": 2}, "snapshot.rows"),
        (1, {"control_totals": (ControlTotal("amount", "-3"),)}, "snapshot.totals"),
    ],
)
def test_an_entry_is_compared_with_its_manifest(close: Close, number, said, code) -> None:
    assert found(close.check(replaced(close, number, **said))) == [(code, number)]


def test_what_a_manifest_names_must_be_there_though_no_row_names_it(close: Close) -> None:
    rows = close.rows()[:2]
    report = close.check(rows, StoreObjects(close.without(close.text.address)))
    assert [(f.code, f.address) for f in report.findings if f.level is Level.BROKEN] == [
        ("object.missing", str(close.text.address))
    ]


# --- the lines and bytes of the file --------------------------------------------------------


@pytest.mark.parametrize("kind", ["all", "data", "footer"])
def test_the_kinds_of_lines_add_up(close: Close, kind: str) -> None:
    close.manifest["reading"]["lines"][kind] += 1
    assert ("manifest.lines", 0) in found(close.check())


def test_each_kind_of_line_is_counted_in_the_records(close: Close) -> None:
    close.manifest["reading"]["lines"] |= {"data": 1, "rejected": 1}
    assert found(close.check()) == [("manifest.records", 0)]


def bent(column: str, place: int, value: Any) -> dict[str, Any]:
    values = list(RECORDS[column])
    values[place] = value
    return {**RECORDS, column: values}


TILES = {
    "a number left out": bent("record", 3, 5),
    "an unknown kind": bent("kind", 1, "other"),
    "no kind": bent("kind", 1, None),
    "data that is said to be none": bent("kind", 1, "blank"),
    "a row that is left out": bent("row", 3, 3),
    "a row for a header": bent("row", 0, 1),
    "data without a row": bent("row", 1, None),
    "a line left out": bent("line_first", 2, 4),
    "a record that ends before it begins": bent("line_last", 2, 2),
    "two lines that are one": bent("line_last", 3, 5),
    "bytes that overlap": bent("byte_start", 1, 12),
    "bytes that are left out": bent("byte_start", 3, 24),
    "bytes from before": bent("byte_end", 1, 14),
    "bytes beyond the end": bent("byte_end", 3, len(RAW) + 1),
    "bytes of the end left out": bent("byte_end", 3, 25),
    "a mark that is none": bent("byte_start", 0, 1),
    "no bytes": bent("byte_start", 1, None),
    "no line end between": bent("byte_end", 1, 20),
    "a record of the end left out": {k: v[:3] for k, v in RECORDS.items()},
    "nothing at all": {k: pa.array(v, pa.string() if k in {"kind", "reason"} else pa.int64())[:0]
                       for k, v in RECORDS.items()},
    "a column left out": {k: v for k, v in RECORDS.items() if k != "byte_end"},
}  # fmt: skip


@pytest.mark.parametrize("columns", list(TILES.values()), ids=list(TILES))
def test_the_records_are_the_whole_file(close: Close, columns) -> None:
    close.put_records(columns)
    assert found(close.check()) == [("manifest.records", 0)]


def test_the_lengths_of_records_are_compared_without_the_file_too(close: Close) -> None:
    gone = ("object.missing", 0)
    for columns, wanted in (
        (RECORDS, [gone]),
        (TILES["bytes that overlap"], [("manifest.records", 0), gone]),
        (TILES["a record of the end left out"], [("manifest.records", 0), gone]),
    ):
        close.put_records(columns)
        rows = close.rows()
        lost = StoreObjects(close.without(close.raw.address))
        assert found(close.check(rows, lost)) == wanted


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if set(text) & set('"\n') else text


FIELDS = st.text(st.sampled_from('ab1é"\n'), max_size=4)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(FIELDS, FIELDS, ENDS), min_size=1, max_size=8),
    st.booleans(),
    st.sampled_from([("utf-8", b""), ("utf-8", codecs.BOM_UTF8), ("cp1252", b""),
                     ("utf-16-le", codecs.BOM_UTF16_LE), ("utf-16-be", codecs.BOM_UTF16_BE)]),
)  # fmt: skip
def test_what_the_reader_of_files_makes_tiles_every_file(lines, cut, coding) -> None:
    """Written by another room: the two agree on every byte, quotes, encodings and all."""
    encoding, mark = coding
    text = "".join(["x,y\n", *(f"{quoted('k' + a)},{quoted(b)}{end}" for a, b, end in lines)])
    raw = mark + (text[:-1] if cut and text[-2:] != "\r\n" else text).encode(encoding)
    table = SourceTable(file="f.csv", encoding=encoding, quote='"', delimiter=",", header_line=1)
    snapshot = build(Source("f", table), [Received("f.csv", raw)])
    close = Close()
    manifest = close.output(
        snapshot.manifest.payload, MANIFEST_MEDIA, row_count=snapshot.rows,
        control_totals=tuple(ControlTotal(*total) for total in snapshot.manifest.totals),
    )  # fmt: skip
    parts = tuple(close.keep(p.payload, p.role, p.media_type) for p in snapshot.parts)
    made = row(0, kind=Kind.SNAPSHOT, deterministic_output=manifest, attachments=parts)
    report = check_rows(raw_of(made), StoreObjects(close.store))
    assert [f for f in report.findings if f.code != "object.orphan"] == []


# --- one that cannot be read ----------------------------------------------------------------


def accused(report: Report) -> list[tuple[str, int | None]]:
    return [(f.code, f.index) for f in report.findings if f.level is not Level.UNCHECKED]


def test_a_missing_manifest_is_said_once_and_accuses_nobody(close: Close) -> None:
    """The text that is read and cited is named by the manifest alone."""
    rows = close.rows()
    (address,) = [r.deterministic_output.address for r in rows[1:2]]
    close.store.put(b"an orphan")
    report = close.check(rows, StoreObjects(close.without(address)))
    assert accused(report) == [("object.missing", 1)]
    assert "were not checked" in report.findings[0].message
    assert "belong to no entry" in report.findings[0].message


def test_a_corrupt_manifest_is_said_once_and_accuses_nobody(close: Close) -> None:
    class Bent(StoreObjects):
        def get(self, address: str) -> bytes:
            whole = super().get(address)
            return whole[:-1] + b"x" if address == manifest else whole

        def pages(self, address: str):
            yield self.get(address)

    rows = close.rows()
    manifest = str(rows[1].deterministic_output.address)
    report = close.check(rows, Bent(close.store))
    assert accused(report) == [("object.corrupt", 1)]
    assert "were not checked" in report.findings[0].message


def test_a_malformed_manifest_is_said_once_and_accuses_nobody(close: Close) -> None:
    del close.texts["documents"]
    report = close.check()
    assert accused(report) == [("document.malformed", 1)]
    assert "were not checked" in report.findings[0].message


def test_what_came_before_an_unreadable_manifest_is_still_accused(close: Close) -> None:
    rows = close.rows()
    ghost = Input("text", Address.of(b"never recorded"))
    early = [row(9, inputs=(ghost,)), *rows]
    lost = close.without(rows[1].deterministic_output.address)
    assert accused(close.check(early, StoreObjects(lost))) == [
        ("input.unrecorded", 0),
        ("object.missing", 0),
        ("object.missing", 2),
    ]


def test_an_entry_that_cannot_be_read_accuses_nobody_either(close: Close) -> None:
    raw = raw_of(*close.rows())
    index, entry, previous, link = raw[0]
    raw[0] = (index, entry.replace(b'"attempt":1', b'"attempt":x'), previous, link)
    report = check_rows(raw, StoreObjects(close.store))
    assert accused(report) == [("chain.hash", 0), ("entry.malformed", 0)]
    assert [f.code for f in report.findings if f.level is Level.UNCHECKED] == ["record.incomplete"]


def test_a_damaged_table_does_not_accuse_the_report_that_cites_it(close: Close) -> None:
    rows = close.rows()
    lost = StoreObjects(close.without(close.result.address, close.text.address))
    report = close.check(rows, lost)
    assert {code for code, _ in accused(report)} == {"object.missing"}
    assert len(accused(report)) == 2
    unchecked = [f for f in report.findings if f.level is Level.UNCHECKED]
    assert {(f.code, f.index) for f in unchecked} == {("report.unchecked", 3)}
    assert len(unchecked) == 4  # two figures, a span, a quote


def test_a_table_too_large_to_load_is_unchecked_and_accuses_nobody(close, monkeypatch) -> None:
    """Its entry says another size than it has; it is not loaded to be looked into."""
    monkeypatch.setattr(evidence, "UNSTATED_BYTES_MAX", 64)
    rows = replaced(close, 2, size=63)
    assert found(close.check(rows)) == [("object.size", 2)]
