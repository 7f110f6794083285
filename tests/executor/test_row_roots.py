"""Which results are recorded with their row root, and that a replay minds none that is absent."""

from __future__ import annotations

import dataclasses
import datetime as dt

import pyarrow as pa
import pytest
from support.worlds import recorder

from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.layers import Fault, Faulty, Harm, Verifying
from tieout.artifacts.memory import MemoryStore
from tieout.artifacts.rows import row_root
from tieout.artifacts.table import TABLE_MEDIA, canonical
from tieout.executor.clock import SteppingClock
from tieout.executor.record import ROOTED_ROWS_MAX, Made, Recorder, RowDraft, made_table
from tieout.executor.replay import compare
from tieout.ledger.log import Entry, MemoryLog
from tieout.ledger.row import Kind


def numbers(rows: int):
    return canonical(pa.table({"n": pa.array(range(rows), pa.int64())}), key=("n",))


@pytest.mark.parametrize("rows", [0, 1, 3, ROOTED_ROWS_MAX])
def test_a_result_of_ordinary_size_has_its_root(rows: int) -> None:
    keeper, made = recorder(), numbers(rows)
    drafts = [
        RowDraft(kind=kind, subject="q/t1/a", output=made_table(made))
        for kind in (Kind.SQL, Kind.SEARCH, Kind.EXTRACT)
    ]
    for receipt in keeper.record(*drafts):
        assert receipt.output.row_root == row_root(made.payload).root


def test_a_larger_table_and_what_is_no_table_have_none() -> None:
    keeper = recorder()
    large = made_table(numbers(ROOTED_ROWS_MAX + 1))
    outputs = (large, Made("output", b"{}", "application/json"), Made("output", b"x", TABLE_MEDIA))
    for output in outputs:
        (receipt,) = keeper.record(RowDraft(kind=Kind.SQL, subject="q/t1/a", output=output))
        assert receipt.output.row_root is None
        assert b"row_root" not in receipt.row.entry()


def test_the_root_is_of_what_the_store_gives_back() -> None:
    """A store that gives the bytes back otherwise is found before anything is recorded."""
    store = Verifying(Faulty(MemoryStore(), (Fault("get", 1, Harm.FLIP),)))
    log = MemoryLog()
    keeper = Recorder(store, log, SteppingClock(dt.datetime(2026, 6, 30, tzinfo=dt.UTC)), "r-test")
    with pytest.raises(ArtifactError, match="not what its address says"):
        keeper.record(RowDraft(kind=Kind.SQL, subject="q", output=made_table(numbers(3))))
    assert log.size() == 0


def without_roots(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """The same rows as they were recorded before there were roots."""
    log = MemoryLog()
    rows = []
    for entry in entries:
        output = entry.row.deterministic_output
        assert output.row_root is not None
        plain = dataclasses.replace(output, row_root=None)
        rows.append(dataclasses.replace(entry.row, deterministic_output=plain))
    log.append(rows)
    return tuple(log.entries())


def test_a_replay_of_a_run_without_roots_differs_in_nothing() -> None:
    keeper = recorder()
    for name in ("a", "b"):
        output = made_table(numbers(len(name) + 1))
        keeper.record(RowDraft(kind=Kind.SQL, subject=f"q/t1/{name}", output=output))
    new = tuple(keeper.log.entries())
    old = without_roots(new)
    assert [entry.entry for entry in old] != [entry.entry for entry in new]
    for recorded, replayed in ((old, new), (new, old)):
        found = compare(recorded, replayed)
        assert (found.compared, found.differences, found.builds) == (2, (), ())
