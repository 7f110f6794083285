"""What every log promises (log.py), asked of each log in the same words."""

from __future__ import annotations

import threading
from hashlib import sha256

import pytest
from support.ledger_rows import MIDNIGHT, NOON, row

from tieout.ledger import merkle
from tieout.ledger.errors import LedgerError
from tieout.ledger.log import FIRST_PREVIOUS, MemoryLog
from tieout.ledger.row import LedgerRow, Outcome, Status
from tieout.ledger.sqlite import create


@pytest.fixture(params=["memory", "sqlite"])
def log(request, tmp_path):
    made = MemoryLog() if request.param == "memory" else create(tmp_path / "ledger.sqlite")
    yield made
    made.close()


def test_an_empty_log(log) -> None:
    assert log.size() == 0
    assert list(log.entries()) == []
    assert log.root() == sha256(b"").digest()
    assert log.find("req-0") is None
    assert list(log.of_trace("trace-1")) == []
    assert log.append([]) == ()
    with pytest.raises(LedgerError) as caught:
        log.entry(0)
    assert caught.value.code == "entry.missing"


def test_rows_are_chained_in_order(log) -> None:
    receipts = [*log.append([row(0), row(1)]), *log.append([row(2)])]
    assert [receipt.index for receipt in receipts] == [0, 1, 2]
    previous = FIRST_PREVIOUS
    for number, (entry, receipt) in enumerate(zip(log.entries(), receipts, strict=True)):
        leaf = sha256(b"\x00" + row(number).entry()).digest()
        assert entry.entry == receipt.entry == row(number).entry()
        assert entry.previous == previous
        assert entry.sha256_hash == sha256(b"\x02" + previous + leaf).digest()
        assert receipt.sha256_hash == entry.sha256_hash
        assert entry.row == row(number)
        previous = entry.sha256_hash
    assert log.size() == 3


def test_the_root_follows_the_log(log) -> None:
    for number in range(9):
        log.append([row(number)])
        leaves = [merkle.leaf_hash(row(item).entry()) for item in range(number + 1)]
        assert log.root() == merkle.root(leaves)
        assert log.root() == merkle.root(leaves)


def test_entries_are_found(log) -> None:
    log.append([row(0), row(1, trace_id="trace-2"), row(2), row(3, req="ü' --")])
    assert log.entry(1).row.trace_id == "trace-2"
    assert log.find("req-2").index == 2
    assert log.find("ü' --").index == 3
    assert log.find("req-9") is None
    assert [entry.index for entry in log.of_trace("trace-1")] == [0, 2, 3]
    assert [entry.index for entry in log.entries(1, 3)] == [1, 2]
    assert [entry.index for entry in log.entries(3, 99)] == [3]
    assert list(log.entries(5)) == list(log.entries(2, 2)) == []
    for index in (-1, 4):
        with pytest.raises(LedgerError):
            log.entry(index)


def test_a_repeated_row_gives_the_earlier_receipt(log) -> None:
    first = log.append([row(0), row(1)])
    assert log.append([row(1), row(0)]) == (first[1], first[0])
    assert log.size() == 2


def test_a_repeated_row_may_be_later_and_the_stored_one_wins(log) -> None:
    (first,) = log.append([row(0)])
    (again,) = log.append([row(0, execution_timestamp=MIDNIGHT)])
    assert again == first
    assert LedgerRow.parse(again.entry).execution_timestamp == NOON


def test_a_reused_req_is_refused_and_nothing_of_the_batch_is_kept(log) -> None:
    log.append([row(0)])
    for other in (
        row(0, subject="another"),
        row(0, outcome=Outcome(Status.FAILED)),
        row(0, raw_llm_instruction="SELECT 2"),
    ):
        with pytest.raises(LedgerError) as caught:
            log.append([row(1), other])
        assert caught.value.code == "ledger.req_reused"
        assert "req-0" in caught.value.message
    assert log.size() == 1
    assert log.find("req-1") is None
    assert log.append([row(1)])[0].index == 1


def test_a_batch_may_repeat_itself(log) -> None:
    receipts = log.append([row(0), row(1), row(0, execution_timestamp=MIDNIGHT)])
    assert receipts[2] == receipts[0]
    assert log.size() == 2
    with pytest.raises(LedgerError):
        log.append([row(2), row(2, subject="another")])
    assert log.size() == 2


def test_a_large_batch_is_read_back_page_by_page(log) -> None:
    log.append([row(number) for number in range(1_100)])
    assert [entry.index for entry in log.entries()] == list(range(1_100))
    assert [entry.index for entry in log.of_trace("trace-1")] == list(range(1_100))
    assert [entry.index for entry in log.entries(500, 1_030)] == list(range(500, 1_030))


def test_reading_goes_on_while_rows_are_added(log) -> None:
    log.append([row(number) for number in range(600)])
    seen = []
    for entry in log.entries():
        seen.append(entry.index)
        if entry.index == 0:
            log.append([row(600)])
    assert seen == list(range(600))
    assert log.size() == 601


def test_threads_may_share_it(log) -> None:
    failures: list[Exception] = []

    def work(worker: int) -> None:
        try:
            for number in range(20):
                log.append([row(number, req=f"w{worker}-{number}")])
                log.append([row(0, req="shared")])
                list(log.entries())
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert log.size() == 81
    assert [entry.index for entry in log.entries()] == list(range(81))


def test_closing_twice_does_nothing(log) -> None:
    log.append([row(0)])
    log.close()
    log.close()


def test_both_logs_record_the_same_bytes(tmp_path) -> None:
    rows = [row(number) for number in range(5)]
    memory = MemoryLog()
    with create(tmp_path / "ledger.sqlite") as disk:
        assert memory.append(rows) == disk.append(rows)
        assert list(memory.entries()) == list(disk.entries())
        assert memory.root() == disk.root()
