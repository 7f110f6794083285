"""The audit inside documents: manifests are followed, reports compared with what they cite."""

from __future__ import annotations

import copy

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledger_rows import row

from tieout.artifacts.memory import MemoryStore
from tieout.artifacts.table import TABLE_MEDIA, canonical
from tieout.ledger.audit.contents import MANIFEST_MEDIA, REPORT_MEDIA
from tieout.ledger.audit.findings import Level, Report
from tieout.ledger.audit.fsck import check_rows
from tieout.ledger.audit.objects import StoreObjects
from tieout.ledger.canon import encode
from tieout.ledger.log import MemoryLog
from tieout.ledger.row import Attachment, Input, Kind, LedgerRow, OutputRef

# --- manifests and reports ------------------------------------------------------------------


class Close:
    """A snapshot of a file, one of a text, a result, and the report that cites them."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        bank = canonical(
            pa.table({"__row": pa.array([1, 2], pa.int64()), "amount": pa.array([5, -7])}),
            key=["__row"],
        )
        records = canonical(pa.table({"record": [1, 2, 3]}), key=["record"])
        result = canonical(
            pa.table({"total": pa.array([-2], pa.int64()), "none": pa.nulls(1, pa.int64())})
        )
        text = self.keep(b"Japan has 124 million people.", "text", "text/plain")
        raw = self.keep(b"amount\n5\n-7\n", "raw", "text/csv")
        self.parts = [self.keep(t.payload, "table", TABLE_MEDIA) for t in (bank, records, result)]
        self.raw, self.text, self.result = raw, text, result
        self.manifest = {
            "file": {"name": "bank.csv", "address": str(raw.address)},
            "table": {
                "address": str(bank.address),
                "content_digest": bank.digest,
                "rows": 2,
                "control_totals": [list(total) for total in bank.totals],
            },
            "records": {
                "address": str(records.address),
                "content_digest": records.digest,
                "rows": 3,
            },
            "note": "blake3:" + "0" * 64,  # a stranger's words, no address of ours
        }
        self.texts = {
            "documents": [{"name": "a", "raw": str(text.address), "text": str(text.address)}]
        }
        self.report = self.make_report()

    def make_report(self) -> dict:
        quote = {
            "kind": "span",
            "snapshot": str(self.text.address),
            "text": str(self.text.address),
            "document": "a",
            "start": 10,
            "end": 21,
            "quote": "124 million",
        }
        cell = {"address": str(self.result.address), "row": "1", "column": "total"}
        return {
            "prose": "blake3:" + "0" * 64,
            "figures": [
                {"name": "total", "value": "-2", "span": None, **cell},
                {"name": "none", "value": None, "span": None, **cell, "column": "none"},
                {
                    "name": "pop", "value": "5", "span": quote,
                    "address": str(self.parts[0].address), "row": "__row=1", "column": "amount",
                },
                {"name": "typed", "value": None, "address": None, "row": None, "column": None},
            ],
            "quotes": [{"name": "q", **quote}],
            "steps": [{"address": str(self.result.address), "inputs": [{"address": str(self.parts[0].address)}]}],
        }  # fmt: skip

    def keep(self, payload: bytes, role: str, media: str) -> Attachment:
        stored = self.store.put(payload)
        return Attachment(role, stored.address, stored.sha256, stored.size, media)

    def output(self, payload: bytes, media: str) -> OutputRef:
        stored = self.store.put(payload)
        return OutputRef(stored.address, stored.sha256, stored.size, media)

    def rows(self) -> list[LedgerRow]:
        result = OutputRef(
            self.result.address,
            self.parts[2].sha256,
            self.parts[2].size,
            TABLE_MEDIA,
            content_digest=self.result.digest,
        )
        return [
            row(0, kind=Kind.SNAPSHOT,
                deterministic_output=self.output(encode(self.manifest), MANIFEST_MEDIA),
                attachments=(self.raw, *self.parts[:2])),
            row(1, kind=Kind.SNAPSHOT,
                deterministic_output=self.output(encode(self.texts), MANIFEST_MEDIA)),
            row(2, inputs=(Input("table:bank", self.parts[0].address),
                           Input("text", self.text.address)),
                attachments=(self.parts[2],)),
            row(3, kind=Kind.REPORT,
                inputs=(Input("result", result.address),),
                deterministic_output=self.output(encode(self.report), REPORT_MEDIA)),
        ]  # fmt: skip

    def check(self, rows: list[LedgerRow] | None = None) -> Report:
        log = MemoryLog()
        log.append(self.rows() if rows is None else rows)
        raw = [(e.index, e.entry, e.previous, e.sha256_hash) for e in log.entries()]
        return check_rows(raw, StoreObjects(self.store))


@pytest.fixture
def close() -> Close:
    return Close()


def found(report: Report) -> list[tuple[str, int | None]]:
    return [(item.code, item.index) for item in report.findings if item.level is Level.BROKEN]


def test_documents_that_hold(close: Close) -> None:
    report = close.check()
    assert report.findings == ()
    assert report.objects == 8


def test_a_manifest_is_compared_with_its_tables(close: Close) -> None:
    for part, name, value, code in (
        ("table", "content_digest", "tieout.content/1:" + "0" * 64, "table.digest"),
        ("table", "rows", 3, "table.rows"),
        ("table", "control_totals", [["amount", "-3"]], "table.totals"),
        ("records", "rows", 2, "table.rows"),
        ("records", "content_digest", "x", "table.digest"),
    ):
        manifest = copy.deepcopy(close.manifest)
        close.manifest[part][name] = value
        assert found(close.check()) == [(code, 0)]
        close.manifest = manifest


def test_what_a_manifest_names_must_be_there_though_no_row_names_it(close: Close) -> None:
    rows = close.rows()[:2]
    bare = MemoryStore()
    for address in close.store.addresses():
        if address != close.text.address:
            bare.put(close.store.get(address))
    close.store = bare
    report = close.check(rows)
    assert [
        (item.code, item.address) for item in report.findings if item.level is Level.BROKEN
    ] == [("object.missing", str(close.text.address))]


CHANGES = {
    "another value": (0, {"value": "-3"}, "report.value"),
    "a value for null": (1, {"value": "0"}, "report.value"),
    "null for a value": (0, {"value": None}, "report.value"),
    "another column": (0, {"column": "sum"}, "report.cell"),
    "another row": (0, {"row": "2"}, "report.cell"),
    "no row": (0, {"row": None}, "report.malformed"),
    "a quote's words": (2, {"span": {"quote": "125 million"}}, "report.quote"),
    "a quote's start": (2, {"span": {"start": 9}}, "report.quote"),
    "a quote beyond the end": (2, {"span": {"end": 999}}, "report.quote"),
    "a quote of nothing": (2, {"span": {"end": 10, "quote": ""}}, "report.quote"),
    "a quote without place": (2, {"span": {"start": None}}, "report.malformed"),
}


@pytest.mark.parametrize(("figure", "change", "code"), list(CHANGES.values()), ids=list(CHANGES))
def test_a_report_is_compared_with_what_it_cites(close: Close, figure, change, code) -> None:
    part = close.report["figures"][figure]
    if "span" in change:
        part["span"] = part["span"] | change["span"]
    else:
        part |= change
    report = close.check()
    assert found(report) == [(code, 3)]


def test_a_quote_of_the_answer_is_compared_too(close: Close) -> None:
    close.report["quotes"][0]["quote"] = "124 billion"
    assert found(close.check()) == [("report.quote", 3)]


def test_a_report_may_not_rest_on_what_was_recorded_after_it(close: Close) -> None:
    rows = close.rows()
    late = [
        rows[0],
        rows[1],
        row(3, kind=Kind.REPORT, deterministic_output=rows[3].deterministic_output),
        rows[2],
    ]
    assert found(close.check(late)) == [("report.unrecorded", 2)]


def test_a_report_citing_what_is_no_table_or_not_there(close: Close) -> None:
    close.report["figures"][0]["address"] = str(close.text.address)
    assert found(close.check()) == [("report.cell", 3)]
    close.report["figures"][0]["address"] = "blake3:" + "1" * 64
    assert found(close.check()) == [("report.unrecorded", 3), ("report.cell", 3)]


@pytest.mark.parametrize("payload", [b"", b"[]", b"\xff", b"[" * 100_000, b"{}"])
def test_documents_that_are_none_never_make_it_raise(close: Close, payload: bytes) -> None:
    for media in (MANIFEST_MEDIA, REPORT_MEDIA):
        report = close.check([row(0, deterministic_output=close.output(payload, media))])
        expected = [] if payload == b"{}" else [("document.malformed", 0)]
        assert found(report) == expected


CLOSE = Close()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["1", "blake3:" + "2" * 64]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["figures", "quotes", "steps", "inputs", "span", "address", "row", "column", "value",
             "text", "start", "end", "quote", "table", "records", "file", "documents",
             "control_totals", "content_digest", "rows"]
        ),
        inner,
        max_size=6,
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["figures", "quotes", "steps", "table", "records", "file", "documents"]),
        JSON,
    )
)
def test_any_document_gives_findings_never_an_error(document) -> None:
    for media in (MANIFEST_MEDIA, REPORT_MEDIA):
        CLOSE.check([row(0, deterministic_output=CLOSE.output(encode(document), media))])
