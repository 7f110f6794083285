"""The SQLite log when the process is killed, the disk fails or is full."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.ledger_rows import row

from tieout.artifacts.errors import Exit
from tieout.ledger.errors import LedgerError
from tieout.ledger.log import FIRST_PREVIOUS, chain_hash
from tieout.ledger.sqlite import create, open_log, read_log

ROOT = Path(__file__).parents[2]
WRITE = """
import sys
from pathlib import Path
from support.ledger_rows import row
from tieout.ledger.sqlite import open_log
path, first, batch = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
with open_log(path) as log:
    number = first
    while True:
        receipts = log.append([row(number + more) for more in range(batch)])
        number += batch
        print(*(receipt.index for receipt in receipts), flush=True)
"""


def python(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
    )


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    ledger = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    with create(ledger) as log:
        log.append([row(number) for number in range(3)])
    return ledger


@pytest.fixture
def path(template: Path, tmp_path) -> Path:
    return Path(shutil.copy(template, tmp_path))


def refusal(call, *arguments) -> LedgerError:
    with pytest.raises(LedgerError) as caught:
        call(*arguments)
    assert caught.value.remedy
    return caught.value


# --- crashes and full disks -----------------------------------------------------------------


def held(path: Path) -> list[bytes]:
    """The entries of a ledger that is whole: gapless and chained."""
    with open_log(path) as log:
        previous = FIRST_PREVIOUS
        for number, entry in enumerate(log.entries()):
            assert (entry.index, entry.previous) == (number, previous)
            assert entry.sha256_hash == chain_hash(previous, entry.entry)
            previous = entry.sha256_hash
        return [entry.entry for entry in log.entries()]


def kill_in_mid_write(path: Path, rounds: int) -> None:
    first = len(held(path))
    for number in range(rounds):
        batch = 1 + number % 4
        writer = python(WRITE, path, first, batch)
        assert writer.stdout is not None
        acked = [writer.stdout.readline() for _ in range(1 + 7 * number % 23)]
        writer.send_signal(signal.SIGKILL)
        # communicate() reads past the buffer of readline and would lose the lines that wait there.
        acked += writer.stdout.read().splitlines()
        writer.communicate()
        whole = [line for line in acked if len(line.split()) == batch]
        indexes = [int(index) for line in whole for index in line.split()]
        stored = held(path)
        assert indexes == list(range(first, first + len(indexes)))
        assert len(stored) >= first + len(indexes)  # acknowledged is stored
        assert len(stored) % batch == first % batch  # all of a batch or none
        assert stored == [row(item).entry() for item in range(len(stored))]
        first = len(stored)


def test_a_writer_killed_at_any_moment_loses_nothing_it_acknowledged(path: Path) -> None:
    kill_in_mid_write(path, 6)


@pytest.mark.soak
def test_a_writer_killed_many_times(path: Path) -> None:
    kill_in_mid_write(path, 100)


def test_a_full_database_is_an_error_and_nothing_is_half_written(path: Path) -> None:
    with open_log(path) as log:
        log._db.authorizer = None
        log._db.pragma("max_page_count", log._db.pragma("page_count") + 2)
        error = refusal(log.append, [row(number) for number in range(3, 99)])
        assert (error.code, error.exit_code) == ("disk.full", Exit.ENVIRONMENT)
        assert log.size() == 3
        log._db.pragma("max_page_count", 1_000_000)  # space returns
        assert log.append([row(3)])[0].index == 3
    assert len(held(path)) == 4


def test_a_failing_disk_stops_the_log(path: Path) -> None:
    """A write beyond the size limit fails with EFBIG, which SQLite takes for a failing disk."""
    program = """
import json, resource, signal, sys
from pathlib import Path
from support.ledger_rows import row
from tieout.ledger.errors import LedgerError
from tieout.ledger.sqlite import open_log
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open_log(Path(sys.argv[1])) as log:
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    codes, number = [], 3
    while len(codes) < 2:
        try:
            log.append([row(number)])
            number += 1
        except LedgerError as error:
            codes.append(error.code)
    print(json.dumps([number, codes]))
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    output = python(program, path).communicate(timeout=60)[0]
    number, codes = json.loads(output)
    assert codes == ["disk.failed", "ledger.stopped"]
    assert number > 10
    assert len(held(path)) >= number


@pytest.fixture
def small_disk(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.root
def test_a_full_disk(small_disk: Path) -> None:
    path = small_disk / "ledger.sqlite"
    with create(path) as log:
        acked = 0
        error = None
        while error is None:
            try:
                acked += len(log.append([row(acked)]))
            except LedgerError as refused:
                error = refused
        assert (error.code, error.exit_code) == ("disk.full", Exit.ENVIRONMENT)
        assert log.size() == acked > 10
    assert len(held(path)) == acked


@pytest.mark.root
def test_no_room_to_create_one(small_disk: Path) -> None:
    path = small_disk / "ledger.sqlite"
    refused = 0
    for ballast in range(420_000, 520_000, 4_096):
        (small_disk / "ballast").write_bytes(bytes(ballast))
        try:
            create(path).close()
        except LedgerError as error:
            assert error.code == "disk.full"
            refused += 1
        (small_disk / "ballast").unlink()
        with open_log(path) if path.exists() else create(path) as log:
            assert log.append([row(0)])[0].index == 0
        for item in small_disk.iterdir():
            item.unlink()
    assert refused > 5


@pytest.mark.root
def test_a_ledger_on_a_disk_that_cannot_be_written_can_be_read(small_disk: Path) -> None:
    path = small_disk / "ledger.sqlite"
    with create(path) as log:
        log.append([row(0)])
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with read_log(path) as log:
        assert log.find("req-0").index == 0
    assert refusal(open_log, path).code == "ledger.unwritable"
