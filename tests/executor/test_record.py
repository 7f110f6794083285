"""Receipts and what is shown: only from rows that are in the ledger, only as the store gives it back."""

from __future__ import annotations

import datetime as dt

import pytest
from support.worlds import recorder

from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.layers import Fault, Faulty, Harm
from tieout.artifacts.memory import MemoryStore
from tieout.executor.clock import SteppingClock
from tieout.executor.ending import INTERRUPTED, ending_recorded, is_ending
from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.record import Made, Receipt, Recorder, RowDraft, Shown, addresses_of
from tieout.ledger.log import MemoryLog
from tieout.ledger.row import INSTRUCTION_BYTES_MAX, Kind, Status


def faulty(*faults: Fault) -> tuple[Recorder, Faulty]:
    store = Faulty(MemoryStore(), faults)
    clock = SteppingClock(dt.datetime(2026, 6, 30, tzinfo=dt.UTC))
    return Recorder(store, MemoryLog(), clock, "r-test"), store


def draft(**more: object) -> RowDraft:
    return RowDraft(kind=Kind.SQL, subject="q/t1/a", **more)


def test_a_receipt_names_what_was_stored():
    keeper = recorder()
    (receipt,) = keeper.record(
        draft(
            output=Made("output", b"out", "text/plain"),
            parts=(Made("seen", b"seen", "text/plain"),),
        )
    )
    assert receipt.parts == {"output": Address.of(b"out"), "seen": Address.of(b"seen")}
    assert keeper.store.get(receipt.parts["seen"]) == b"seen"
    assert receipt.index == 0
    assert addresses_of([receipt]) == set(receipt.parts.values())
    shown = keeper.show(receipt, "seen", role="observation")
    assert (shown.text, shown.address, shown.index) == ("seen", Address.of(b"seen"), 0)


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_what_is_not_stored_is_not_recorded(nth):
    keeper, _ = faulty(Fault("put", nth, Harm.FULL))
    with pytest.raises(ArtifactError, match="planned fault"):
        keeper.record(
            draft(
                output=Made("output", b"out", "text/plain"),
                parts=(Made("a", b"a", "text/plain"), Made("b", b"b", "text/plain")),
            )
        )
    assert keeper.log.size() == 0


def test_a_store_that_keeps_other_bytes_is_found_at_once():
    class Wrong(MemoryStore):
        def put(self, payload, **more):
            return super().put(payload + b"!", **more)

    clock = SteppingClock(dt.datetime(2026, 6, 30, tzinfo=dt.UTC))
    keeper = Recorder(Wrong(), MemoryLog(), clock, "r-test")
    with pytest.raises(ExecutorError) as caught:
        keeper.record(draft(output=Made("output", b"out", "text/plain")))
    assert (caught.value.code, caught.value.exit_code) == ("store.other_bytes", Exit.DOES_NOT_HOLD)
    assert keeper.log.size() == 0


def test_what_is_shown_is_read_back_and_not_remembered():
    keeper, store = faulty()
    (receipt,) = keeper.record(draft(parts=(Made("seen", b"seen", "text/plain"),)))
    before = store.counts["get"]
    keeper.show(receipt, "seen", role="observation")
    assert store.counts["get"] == before + 1


def test_a_long_instruction_becomes_an_artifact():
    keeper = recorder()
    short, long = "SELECT 1", "x" * INSTRUCTION_BYTES_MAX
    first, second = keeper.record(draft(asked=short), draft(asked=long))
    assert first.row.raw_llm_instruction == short
    assert second.row.raw_llm_instruction == Address.of(long.encode()) == second.parts["asked"]
    (third,) = keeper.record(draft(asked="half \ud800"))
    assert isinstance(third.row.raw_llm_instruction, Address)


def test_requests_are_named_by_place_and_counted():
    keeper = recorder()
    rows = keeper.record(draft(), draft(), draft(attempt=1))
    assert [r.row.req for r in rows] == [
        "r-test/q/t1/a/sql/0/0",
        "r-test/q/t1/a/sql/0/1",
        "r-test/q/t1/a/sql/1/0",
    ]


@pytest.mark.parametrize("kind", [Receipt, Shown])
def test_nothing_is_minted_by_hand(kind):
    made = {
        Receipt: lambda: Receipt(None, 0, None),
        Shown: lambda: Shown(None, role="x", address=Address.of(b""), text="", index=0),
    }
    with pytest.raises(AssertionError):
        made[kind]()


def test_how_a_run_ended_is_recorded_and_told():
    keeper = recorder()
    with pytest.raises(ExecutorError), ending_recorded(keeper, tool="run"):
        raise ExecutorError(
            "source.missing", "it is not there", remedy="Put it there.", place="/x/bank.csv"
        )
    with pytest.raises(KeyboardInterrupt), ending_recorded(keeper, tool="run"):
        raise KeyboardInterrupt
    with ending_recorded(keeper, tool="run"):
        pass
    rows = [e.row for e in keeper.log.entries()]
    assert [(r.outcome.code, r.outcome.status) for r in rows] == [
        ("source.missing", Status.REFUSED),
        (INTERRUPTED, Status.FAILED),
    ]
    assert all(is_ending(r) for r in rows)
    assert not any(b"/x/bank.csv" in e.entry for e in keeper.log.entries())
