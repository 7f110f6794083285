"""Rows and small worlds (a ledger and a store that agree) for the tests of the ledger."""

from __future__ import annotations

import copy
import shutil
import sqlite3
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tieout.artifacts.address import Address
from tieout.artifacts.local import LocalStore
from tieout.artifacts.store import RetentionClass
from tieout.artifacts.table import TABLE_MEDIA, canonical
from tieout.ledger.audit.findings import Level, Report
from tieout.ledger.audit.fsck import check
from tieout.ledger.audit.objects import LocalObjects
from tieout.ledger.log import MemoryLog
from tieout.ledger.row import (
    Attachment,
    ControlTotal,
    ExecutorInfo,
    Input,
    Kind,
    LedgerRow,
    ModelUse,
    Outcome,
    OutputRef,
    Position,
    Status,
)
from tieout.ledger.sqlite import create

NOON = "2026-06-30T12:00:00.000000Z"
MIDNIGHT = "2026-07-01T00:00:00.000000Z"


def row(number: int = 0, **changes: Any) -> LedgerRow:
    values: dict[str, Any] = {
        "kind": Kind.SQL,
        "req": f"req-{number}",
        "trace_id": "trace-1",
        "subject": "bank-1010/t1/totals",
        "step_sequence": number,
        "attempt": 1,
        "tool_name": "sql",
        "raw_llm_instruction": "SELECT 1 AS one",
        "executed": None,
        "inputs": (),
        "deterministic_output": None,
        "attachments": (),
        "execution_timestamp": NOON,
        "executor": ExecutorInfo("duckdb", "2.0.1"),
        "model": None,
        "outcome": Outcome(Status.DONE),
    }
    return LedgerRow(**(values | changes))


# --- any row at all -------------------------------------------------------------------------

TEXT = st.text(max_size=20)
NAMES = st.text(
    st.characters(min_codepoint=32, exclude_characters="\x7f", exclude_categories=["Cs"]),
    min_size=1,
    max_size=20,
)
LABELS = st.just("") | NAMES
COUNTS = st.integers(0, 2**53 - 1)
ADDRESSES = st.binary(max_size=3).map(Address.of)
SHA = st.binary(max_size=3).map(lambda payload: sha256(payload).hexdigest())
RETENTION = st.sampled_from([RetentionClass.RETAIN, RetentionClass.DISCARD])
KEYS = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=10)
OUTPUTS = st.builds(
    OutputRef,
    address=ADDRESSES,
    sha256=SHA,
    size=COUNTS,
    media_type=NAMES,
    retention=RETENTION,
    content_digest=st.none() | SHA.map("tieout.content/1:{}".format),
    row_count=st.none() | COUNTS,
    control_totals=st.lists(st.builds(ControlTotal, TEXT, TEXT), max_size=3).map(tuple),
    version=TEXT,
)
ATTACHMENTS = st.builds(
    Attachment,
    role=NAMES,
    address=ADDRESSES,
    sha256=SHA,
    size=COUNTS,
    media_type=NAMES,
    retention=RETENTION,
)
ROWS = st.builds(
    LedgerRow,
    kind=st.sampled_from(Kind),
    req=NAMES,
    trace_id=NAMES,
    subject=LABELS,
    step_sequence=COUNTS,
    attempt=COUNTS,
    tool_name=LABELS,
    raw_llm_instruction=st.none() | TEXT | ADDRESSES,
    executed=st.none() | ADDRESSES,
    inputs=st.lists(st.builds(Input, NAMES, ADDRESSES), max_size=3).map(tuple),
    deterministic_output=st.none() | OUTPUTS,
    attachments=st.lists(ATTACHMENTS, max_size=3).map(tuple),
    execution_timestamp=st.datetimes().map(lambda t: t.isoformat(timespec="microseconds") + "Z"),
    executor=st.builds(ExecutorInfo, NAMES, TEXT, TEXT, st.dictionaries(KEYS, TEXT, max_size=3)),
    model=st.none() | st.builds(ModelUse, TEXT, TEXT, st.none(), TEXT, st.none() | COUNTS),
    outcome=st.builds(
        Outcome,
        st.sampled_from(Status),
        LABELS,
        TEXT,
        st.none() | st.builds(Position, st.integers(1, 9), st.integers(1, 9)),
    ),
)


# --- a world --------------------------------------------------------------------------------


class World:
    """A ledger of eight rows and its store, which hold; tests then break them."""

    def __init__(self, folder: Path) -> None:
        self.ledger = folder / "ledger.sqlite"
        self.folder = folder / "store"
        self.store = LocalStore.create(self.folder)
        bank = canonical(
            pa.table({"line_id": ["a", "b", "c"], "amount": pa.array([5, -7, None], pa.int64())}),
            key=["line_id"],
        )
        total = canonical(pa.table({"total": pa.array([-2], pa.int64())}))
        self.table = self.output(bank)
        self.result = self.output(total)
        self.rows = self.make_rows()
        with create(self.ledger) as log:
            log.append(self.rows)
            self.root = log.root().hex()

    def make_rows(self) -> list[LedgerRow]:
        raw = self.keep(b"line_id,amount\na,5\nb,-7\nc,\n", "raw", "text/csv")
        question = self.keep(b"What is the total?", "question", "text/plain")
        prompt = self.keep(b'{"messages":[]}', "request", "application/json")
        reply = self.keep(b'{"steps":[]}', "reply", "application/json")
        sql = self.keep(b"SELECT sum(amount) AS total FROM bank", "executed", "application/sql")
        seen = self.keep(b"total\n-2\n", "observation", "text/plain")
        answer = self.keep(b"The total is -2.", "answer", "text/plain")
        inputs = (Input("table:bank", self.table.address),)
        shown = (Input("question", question.address), Input("catalog", raw.address))
        return [
            row(0, kind=Kind.WORKSPACE, raw_llm_instruction=None),
            row(
                1,
                kind=Kind.SNAPSHOT,
                raw_llm_instruction=None,
                deterministic_output=self.table,
                attachments=(raw,),
            ),
            row(2, kind=Kind.QUESTION, raw_llm_instruction=None, attachments=(question,)),
            row(3, kind=Kind.MODEL_REQUEST, inputs=shown, attachments=(prompt,)),
            row(
                4,
                kind=Kind.MODEL_REPLY,
                inputs=(Input("request", prompt.address),),
                attachments=(reply,),
                raw_llm_instruction=reply.address,
            ),
            row(
                5,
                executed=sql.address,
                inputs=(*inputs, Input("text", sql.address)),
                deterministic_output=self.result,
                attachments=(sql, seen),
            ),
            row(6, kind=Kind.MODEL_REQUEST, inputs=(*shown, Input("seen", seen.address))),
            row(
                7,
                kind=Kind.ANSWER,
                inputs=(Input("result", self.result.address),),
                attachments=(answer,),
            ),
        ]

    def copied(self, folder: Path) -> World:
        """The same world in another folder; making one anew waits for the disk."""
        shutil.copy(self.ledger, folder / self.ledger.name)
        shutil.copytree(self.folder, folder / self.folder.name)
        twin = copy.copy(self)
        twin.ledger = folder / self.ledger.name
        twin.folder = folder / self.folder.name
        twin.store = LocalStore(twin.folder)
        return twin

    def keep(self, payload: bytes, role: str, media: str) -> Attachment:
        stored = self.store.put(payload)
        return Attachment(role, stored.address, stored.sha256, stored.size, media)

    def output(self, table: Any) -> OutputRef:
        stored = self.store.put(table.payload)
        totals = tuple(ControlTotal(name, value) for name, value in table.totals)
        return OutputRef(
            stored.address,
            stored.sha256,
            stored.size,
            TABLE_MEDIA,
            content_digest=table.digest,
            row_count=table.rows,
            control_totals=totals,
        )

    def path(self, address: Address) -> Path:
        return self.folder / address.key

    def verify(self, **options: Any) -> Report:
        return check(self.ledger, LocalObjects(self.folder), **options)

    def rewrite(self, *statements: str, values: Sequence[object] = ()) -> None:
        """What anyone with the file and the sqlite3 shell can do."""
        with unguarded(self.ledger) as connection:
            for statement in statements:
                connection.execute(statement, values if "?" in statement else ())


class unguarded:  # noqa: N801 - reads as a statement
    """The ledger's file in a foreign hand, triggers dropped and put back afterwards."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        triggers = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        self.triggers = self.connection.execute(triggers).fetchall()

    def __enter__(self) -> sqlite3.Connection:
        for name, _ in self.triggers:
            self.connection.execute(f"DROP TRIGGER {name}")
        return self.connection

    def __exit__(self, *_: object) -> None:
        for _, statement in self.triggers:
            self.connection.execute(statement)
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.connection.close()


def broken(report: Report) -> list[tuple[str, int | None]]:
    return [(item.code, item.index) for item in report.findings if item.level is Level.BROKEN]


def codes(report: Report) -> list[str]:
    return [item.code for item in report.findings]


def raw_of(*rows: LedgerRow) -> list[tuple[object, ...]]:
    """The rows as an audit reads them, chained."""
    log = MemoryLog()
    log.append(rows)
    return [(e.index, e.entry, e.previous, e.sha256_hash) for e in log.entries()]
