"""A question's world for tests of answers: recorded tables and documents, without an engine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal

import pyarrow as pa

from tieout.artifacts.memory import MemoryStore
from tieout.artifacts.table import Column, canonical
from tieout.executor.catalog import Source, SourceTable
from tieout.executor.clock import SteppingClock
from tieout.executor.receive import Received
from tieout.executor.record import Recorder, RowDraft, made_table
from tieout.executor.snapshot import build
from tieout.executor.sql.validate import ColumnOrigin
from tieout.executor.world import Pinned, StepResult, World, load_pinned
from tieout.ledger.log import MemoryLog
from tieout.ledger.row import Kind, Outcome, Status


def recorder() -> Recorder:
    clock = SteppingClock(dt.datetime(2026, 6, 30, tzinfo=dt.UTC))
    return Recorder(MemoryStore(), MemoryLog(), clock, "r-test")


def copied(table: str, column: str) -> ColumnOrigin:
    return ColumnOrigin(column, (), ((table, column),), "", inexact=False)


def step(
    keeper: Recorder,
    name: str,
    columns: Mapping[str, object],
    *,
    key: tuple[str, ...] = (),
    origins: Mapping[str, ColumnOrigin] | None = None,
    verb: str = "sql",
    complete: bool = True,
) -> StepResult:
    """A step that was done: its table stored, its row recorded."""
    table = canonical(pa.table(dict(columns)), key=key)
    kind = Kind.SQL if verb == "sql" else Kind.EXTRACT
    (receipt,) = keeper.record(
        RowDraft(kind=kind, subject=f"q/t1/{name}", output=made_table(table))
    )
    return StepResult(
        id=name,
        verb=verb,
        receipt=receipt,
        ok=True,
        columns=tuple(Column(c.name, c.type) for c in table.columns),
        key=key,
        origins=origins or {c.name: copied("bank", c.name) for c in table.columns},
        rows=table.rows,
        complete=complete,
    )


def failed(keeper: Recorder, name: str, code: str) -> StepResult:
    outcome = Outcome(Status.REFUSED, code, "no")
    (receipt,) = keeper.record(RowDraft(kind=Kind.REFUSAL, subject=f"q/t1/{name}", outcome=outcome))
    return StepResult(id=name, verb="sql", receipt=receipt, ok=False, code=code)


def notes(
    keeper: Recorder, documents: Mapping[str, str], published: Mapping[str, str] | None = None
) -> Pinned:
    """A text source of these documents, pinned. published: date by document."""
    source = Source("notes", SourceTable(folder="notes", published=dict(published or {})))
    received = [Received(n, text.encode()) for n, text in sorted(documents.items())]
    snapshot = build(source, received)
    for made in (snapshot.manifest, *snapshot.parts, *snapshot.loose):
        keeper.store.put(made.payload)
    return load_pinned(keeper.store, snapshot.address)


def world(
    keeper: Recorder, *steps: StepResult, documents: Mapping[str, str] | None = None
) -> World:
    sources = {"notes": notes(keeper, documents)} if documents else {}
    return World(keeper.store, sources, steps={s.id: s for s in steps})


def money(*values: str | None) -> pa.Array:
    return pa.array([None if v is None else Decimal(v) for v in values], pa.decimal128(18, 2))
