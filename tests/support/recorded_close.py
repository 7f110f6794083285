"""A small close on record: a table and a text pinned, one result, its report and the batch."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from support.ledger_rows import row

from tieout.artifacts.memory import MemoryStore
from tieout.artifacts.table import TABLE_MEDIA, canonical
from tieout.ledger.audit.contents import BATCH_MEDIA, MANIFEST_MEDIA, REPORT_MEDIA
from tieout.ledger.audit.findings import Level, Report
from tieout.ledger.audit.fsck import check_rows
from tieout.ledger.audit.objects import Objects, StoreObjects
from tieout.ledger.canon import encode
from tieout.ledger.log import MemoryLog
from tieout.ledger.row import Attachment, ControlTotal, Input, Kind, LedgerRow, OutputRef

RAW = b"\xef\xbb\xbfday,amount\r\n1,5\r\n\r\n2,-7\n"
RECORDS = {
    "record": [1, 2, 3, 4],
    "kind": ["header", "data", "blank", "data"],
    "row": [None, 1, None, 2],
    "line_first": [1, 2, 3, 4],
    "line_last": [1, 2, 3, 4],
    "byte_start": [3, 15, 20, 22],
    "byte_end": [13, 18, 20, 26],
    "reason": pa.nulls(4, pa.string()),
}
TEXT = b"Japan has 124 million people."
ANYWHERE = "blake3:" + "0" * 64
ITS_REPORT = "blake3:" + "f" * 64  # in the batch: the report as it is by then


class Close:
    """Documents are plain values until `rows` is asked for; tests bend them before."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.bank = canonical(
            pa.table({"__row": pa.array([1, 2], pa.int64()), "amount": pa.array([5, -7])}),
            key=["__row"],
        )
        self.result = canonical(
            pa.table({"total": pa.array([-2], pa.int64()), "none": pa.nulls(1, pa.int64())})
        )
        self.raw = self.keep(RAW, "raw", "text/csv")
        self.text = self.keep(TEXT, "text", "text/plain")
        self.index = self.keep(b"{}", "index", "application/json")
        self.table, self.total = (
            self.keep(t.payload, "table", TABLE_MEDIA) for t in (self.bank, self.result)
        )
        self.manifest = self.make_manifest()
        self.put_records(RECORDS)
        self.texts = self.make_texts()
        self.report = self.make_report()
        self.batch: dict[str, Any] = {
            "format": "tieout.batch/1",
            "questions": [
                {"id": "q", "status": "answered_with_unsourced", "ties": True,
                 "report": ITS_REPORT}
            ],
        }  # fmt: skip

    def put_records(self, columns: dict[str, Any]) -> None:
        """Another table of records, named by the manifest as it is."""
        records = canonical(pa.table(columns), key=["record"])
        self.records = self.keep(records.payload, "records", TABLE_MEDIA)
        self.manifest["records"] = {
            "address": str(records.address), "content_digest": records.digest,
            "rows": records.rows,
        }  # fmt: skip

    def make_manifest(self) -> dict[str, Any]:
        return {
            "format": "tieout.snapshot/1",
            "kind": "table",
            "source": "bank",
            "declaration": '{"column":{"größe":{}},"file":"bank.csv"}',
            "note": ANYWHERE,  # a stranger's words, no address of ours
            "file": {"name": "bank.csv", "size": len(RAW), "address": str(self.raw.address)},
            "reading": {
                "encoding": "utf-8", "bom": True, "delimiter": ",", "quote": "",
                "header_line": 1, "reasons": {},
                "columns": [
                    {"name": "amount", "type": "BIGINT", "rule": {}, "reason": "", "nulls": 0,
                     "control_total": "-2"}
                ],
                "lines": {"all": 4, "preamble": 0, "header": 1, "data": 2, "blank": 1,
                          "footer": 0, "rejected": 0},
            },
            "table": {
                "address": str(self.bank.address), "content_digest": self.bank.digest, "rows": 2,
                "key": ["__row"], "control_totals": [["amount", "-2"]],
            },
        }  # fmt: skip

    def make_texts(self) -> dict[str, Any]:
        text, index = str(self.text.address), str(self.index.address)
        document = {
            "name": "a", "size": len(TEXT), "raw": text, "text": text, "map": index,
            "media": "text/plain", "encoding": "utf-8", "encoding_reason": "",
            "characters": len(TEXT), "title": "", "published": "2026-01-31",
        }  # fmt: skip
        return {
            "format": "tieout.snapshot/1", "kind": "text", "source": "news", "declaration": "{}",
            "note": "", "documents": [document], "index": index, "index_manifest": index,
        }  # fmt: skip

    def make_report(self) -> dict[str, Any]:
        span = {
            "kind": "span", "snapshot": str(self.text.address), "text": str(self.text.address),
            "document": "a", "start": 10, "end": 21, "quote": "124 million",
        }  # fmt: skip
        bank = {"address": str(self.bank.address), "row": "__row=1", "column": "amount"}
        return {
            "format": "tieout.report/1",
            "question": {"id": "q", "text": "What is the total?", "as_of": ""},
            "status": "answered_with_unsourced",
            "code": "",
            "message": "",
            "template": "The total is {total} of {pop}, not 9; they say “{q}”.",
            "prose": "The total is (2) of 5, not 9; they say “124 million”.",
            "figures": [
                self.figure("total", "-2", shown="(2)"),
                self.figure("none", None, column="none"),
                self.figure("pop", "5", span=span, **bank),
                self.figure("typed", None, address=None, row=None, column=None),
            ],
            "quotes": [{"name": "q", **span}],
            "numbers": [
                number(13, "(2)", figure="total"), number(20, "5", figure="pop"),
                number(27, "9", label="unsourced", reason="uncited"),
                number(40, "124 million", figure="q"),
            ],
            "expectations": [{"name": "total", "holds": True}],
            "steps": [
                {
                    "address": str(self.result.address), "inputs": [{"address": bank["address"]}],
                    "executed": str(self.text.address), "standing": "function_of_data_as_rewritten",
                    "reasons": [{"name": "sequence", "detail": "", "line": 1, "column": 8}],
                    "rewrites": [{"name": "total_order", "removed": "", "inserted": "ORDER BY ALL",
                                  "line": 1, "column": 9, "round": 1, "at": 8}],
                    "ties": "decided", "tied": ["total"],
                },
                {"address": None, "inputs": [], "executed": None, "standing": None, "reasons": [],
                 "rewrites": [], "ties": "", "tied": []},
            ],
            "refusals": [], "unused_results": [], "problems": [],
        }  # fmt: skip

    def figure(self, name: str, value: str | None, **changes: Any) -> dict[str, Any]:
        made = {
            "name": name, "value": value, "shown": str(value), "type": "BIGINT",
            "label": "sourced", "reason": None, "flags": [], "step": "s",
            "address": str(self.result.address), "row": "1", "column": "total", "span": None,
            "operation": "", "literals": [],
        }  # fmt: skip
        return made | changes

    def keep(self, payload: bytes, role: str, media: str) -> Attachment:
        stored = self.store.put(payload)
        return Attachment(role, stored.address, stored.sha256, stored.size, media)

    def output(self, payload: bytes, media: str, **said: Any) -> OutputRef:
        stored = self.store.put(payload)
        return OutputRef(stored.address, stored.sha256, stored.size, media, **said)

    def rows(self) -> list[LedgerRow]:
        total, report = self.total, self.output(encode(self.report), REPORT_MEDIA)
        batch = encode(self.batch).replace(ITS_REPORT.encode(), str(report.address).encode())
        amount = (ControlTotal("amount", "-2"),)
        manifest = self.output(
            encode(self.manifest), MANIFEST_MEDIA, row_count=2, control_totals=amount
        )
        return [
            row(0, kind=Kind.SNAPSHOT, deterministic_output=manifest,
                attachments=(self.raw, self.table, self.records)),
            row(1, kind=Kind.SNAPSHOT, attachments=(self.index,),
                deterministic_output=self.output(
                    encode(self.texts), MANIFEST_MEDIA, row_count=1)),
            row(2, inputs=(Input("table:bank", self.bank.address),
                           Input("text", self.text.address)),
                deterministic_output=OutputRef(
                    total.address, total.sha256, total.size, TABLE_MEDIA,
                    content_digest=self.result.digest, row_count=1,
                    control_totals=(ControlTotal("total", "-2"), ControlTotal("none", "0")))),
            row(3, kind=Kind.REPORT, inputs=(Input("result", self.result.address),),
                deterministic_output=report),
            row(4, kind=Kind.REPORT, inputs=(Input("report:q", report.address),),
                deterministic_output=self.output(batch, BATCH_MEDIA)),
        ]  # fmt: skip

    def check(self, rows: list[LedgerRow] | None = None, objects: Objects | None = None) -> Report:
        log = MemoryLog()
        log.append(self.rows() if rows is None else rows)
        raw = [(e.index, e.entry, e.previous, e.sha256_hash) for e in log.entries()]
        return check_rows(raw, objects or StoreObjects(self.store))

    def without(self, *addresses: object) -> MemoryStore:
        """The store as it is now, some objects lost."""
        lost = {str(address) for address in addresses}
        rest = MemoryStore()
        for address in self.store.addresses():
            if str(address) not in lost:
                rest.put(self.store.get(address))
        return rest


def number(start: int, text: str, *, label: str = "sourced", **changes: Any) -> dict[str, Any]:
    made = {
        "start": start, "end": start + len(text), "text": text, "label": label, "reason": None,
        "flags": [], "figure": "", "candidates": [],
    }  # fmt: skip
    return made | changes


def found(report: Report) -> list[tuple[str, int | None]]:
    """What is broken: (code, index)."""
    return [(item.code, item.index) for item in report.findings if item.level is Level.BROKEN]
