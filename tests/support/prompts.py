"""Prompts for tests, made as everywhere else: recorded first, then read back from the store."""

import datetime as dt

from tieout.artifacts.memory import MemoryStore
from tieout.executor.clock import SteppingClock
from tieout.executor.record import Made, Recorder, RowDraft
from tieout.ledger.log import MemoryLog
from tieout.ledger.row import Kind
from tieout.planner.model import Prompt


def prompt(system: str, user: str) -> Prompt:
    clock = SteppingClock(dt.datetime(2026, 6, 30, tzinfo=dt.UTC))
    recorder = Recorder(MemoryStore(), MemoryLog(), clock, "r-test")
    parts = (
        Made("instructions", system.encode(), "text/plain"),
        Made("question", user.encode(), "text/plain"),
    )
    (receipt,) = recorder.record(RowDraft(kind=Kind.QUESTION, subject="q", parts=parts))
    return Prompt(
        tuple(recorder.show(receipt, role, role=role) for role in ("instructions", "question"))
    )
