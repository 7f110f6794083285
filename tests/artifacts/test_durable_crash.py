"""A writer that is killed, limited, or lied to by its disk: all of an object or nothing of it."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tieout.artifacts import durable
from tieout.artifacts.address import Address
from tieout.artifacts.disk_errors import write_error
from tieout.artifacts.errors import ArtifactError, Exit
from tieout.artifacts.local import LocalStore


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(ArtifactError) as caught:
        call()
    assert caught.value.remedy
    return caught.value.code


# Forks once per line of the writing code and kills the child when it reaches that line, in
# the store, the durable writes and the hashing: every state that a crash of the process can
# leave. The parent checks each. Prints how many children died and how many came through.
KILL_AT_EVERY_LINE = """
import os, signal, sys
from pathlib import Path
from tieout.artifacts.address import Address
from tieout.artifacts.local import LocalStore
root, payload = Path(sys.argv[1]), bytes(range(256)) * 40
address = Address.of(payload)

def die_at(line):
    seen = 0
    def local(frame, event, argument):
        nonlocal seen
        if event == "line":
            seen += 1
            if seen == line:
                os.kill(os.getpid(), signal.SIGKILL)
        return local
    def trace(frame, event, argument):
        return local if "artifacts" in frame.f_code.co_filename else None
    sys.settrace(trace)

killed = finished = absent = 0
for line in range(1, 2000):
    place = root / str(line)
    LocalStore.create(place)
    child = os.fork()
    if not child:
        die_at(line)
        LocalStore(place).put(payload)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    store = LocalStore(place)
    found = list(store.addresses())
    assert found in ([], [address]), found
    for one in found:
        assert store.get(one) == payload
    absent += not found
    assert store.strangers() == [], store.strangers()
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0 and found == [address]
        finished += 1
        break
    assert os.WTERMSIG(status) == signal.SIGKILL
    killed += 1
    store.sweep()
    left = [name for _, _, names in os.walk(place) for name in names]
    assert len(left) == len(found), left
    assert store.put(payload).created == (not found)
    assert store.get(address) == payload
print(killed, finished, absent)
"""


def run_driver(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_killed_at_any_line_of_put_the_store_holds_all_or_nothing(tmp_path: Path) -> None:
    done = run_driver(KILL_AT_EVERY_LINE, tmp_path)
    assert done.returncode == 0, done.stderr
    killed, finished, absent = map(int, done.stdout.split())
    assert finished == 1
    assert killed > 60  # the lines of put, create_idempotent, _create, _Temp, _write, …
    assert 0 < absent < killed  # some died before the object had its name, some after


PUT_UNDER_LIMIT = """
import resource, sys
from pathlib import Path
from tieout.artifacts import durable
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.local import LocalStore
store = LocalStore.create(Path(sys.argv[1]) / "store")
journal = Path(sys.argv[1]) / "journal"
durable.append(journal, b"kept")
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
for write in (lambda: store.put(bytes(100_001)), lambda: durable.append(journal, bytes(99_997))):
    try:
        write()
    except ArtifactError as error:
        print(error.code, int(error.exit_code))
print(store.put(bytes(100_000)).created)
"""


def test_a_limit_on_file_size_leaves_nothing_half_written(tmp_path: Path) -> None:
    done = run_driver(PUT_UNDER_LIMIT, tmp_path)
    assert done.stdout.split() == ["disk.limit", "5", "disk.limit", "5", "True"], done.stderr
    assert (tmp_path / "journal").read_bytes() == b"kept"
    files = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert [path.stat().st_size for path in files] == [100_000]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tieout-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs root and the right to mount a tmpfs")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.root
def test_a_full_disk_leaves_nothing_half_written_and_recovers(small_disk: Path) -> None:
    store = LocalStore.create(small_disk / "store")
    kept = store.put(b"k" * 300_000).address
    durable.append(small_disk / "journal", b"kept")
    with pytest.raises(ArtifactError) as caught:
        store.put(b"n" * 900_000)
    assert caught.value.code == "disk.full"
    assert caught.value.exit_code is Exit.ENVIRONMENT
    assert "900000 bytes" in caught.value.message
    journal = small_disk / "journal"
    assert code_of(lambda: durable.append(journal, b"n" * 900_000)) == "disk.full"
    assert code_of(lambda: durable.replace(journal, b"n" * 900_000)) == "disk.full"
    assert journal.read_bytes() == b"kept"
    assert list(store.addresses()) == [kept]
    assert list(small_disk.rglob("*.temp")) == []
    # What was free before is free again.
    assert store.put(b"n" * 500_000).created


@pytest.mark.root
def test_a_read_only_disk_has_its_own_code(small_disk: Path) -> None:
    store = LocalStore.create(small_disk / "store")
    kept = store.put(b"kept").address
    remount = ["mount", "-o", "remount,ro", str(small_disk)]
    if subprocess.run(remount, capture_output=True, check=False).returncode:
        pytest.skip("cannot remount read-only here")
    assert code_of(lambda: store.put(b"new")) == "disk.read_only"
    assert code_of(lambda: durable.make_folder(small_disk / "x")) == "disk.read_only"
    assert store.get(kept) == b"kept"
    assert not store.put(b"kept").created


# strace fails or kills one system call of the put; the marker tells where the put begins.
PUT_ONCE = """
import os, sys
from pathlib import Path
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.local import LocalStore
store = LocalStore(Path(sys.argv[1]))
os.stat("/")
said = []
for payload in (b"first" * 1000, b"second" * 1000):
    try:
        said.append("created" if store.put(payload).created else "found")
    except ArtifactError as error:
        said.append(error.code)
os.write(1, " ".join(said).encode())
"""
CALLS = ("write", "fsync", "link", "unlink", "openat", "flock", "mkdir")
FAILURES = {"EIO": "disk.failing", "ENOSPC": "disk.full", "EROFS": "disk.read_only"}


def strace(store: Path, log: Path, *options: str) -> subprocess.CompletedProcess[str]:
    # By the path of the interpreter itself, and without writing .pyc: the same calls each time.
    command = [
        "strace",
        "-f",
        "-qq",
        "-o",
        str(log),
        "-e",
        f"trace={','.join(CALLS)},stat,newfstatat",
    ]
    command += [*options, sys.executable, "-B", "-c", PUT_ONCE, str(store)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def calls_of_the_puts(log: Path) -> list[tuple[str, int]]:
    """(call, how many of it the process had made) for each call after the marker."""
    made: Counter[str] = Counter()
    found: list[tuple[str, int]] = []
    started = False
    for line in log.read_text().splitlines():
        call = re.match(r"(?:\d+ +)?(\w+)\(", line)
        if call is None:
            continue
        made[call[1]] += 1
        if re.search(r'stat\w*\((AT_FDCWD, )?"/"', line):
            started = True
        elif started and call[1] in CALLS and "write(1," not in line:
            found.append((call[1], made[call[1]]))
    return found


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("harm", ["signal=KILL", *(f"error={name}" for name in FAILURES)])
def test_any_system_call_of_put_may_fail_or_be_the_last(tmp_path: Path, harm: str) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    plain = tmp_path / "plain"
    LocalStore.create(plain)
    done = strace(plain, tmp_path / "log")
    if done.returncode:
        pytest.skip(f"strace may not trace here: {done.stderr[:200]}")
    assert done.stdout == "created created"
    steps = calls_of_the_puts(tmp_path / "log")
    order = [call for call, _ in steps if call in ("write", "fsync", "link", "unlink")]
    # Twice: the shard's name, the bytes, the object's name, each synced before the next counts.
    assert order == ["fsync", "write", "fsync", "link", "fsync", "unlink"] * 2
    expected = {Address.of(b"first" * 1000), Address.of(b"second" * 1000)}
    for call, number in steps:
        place = tmp_path / f"{call}-{number}"
        LocalStore.create(place)
        inject = f"inject={call}:{harm}:when={number}"
        done = strace(place, tmp_path / "log", "-e", inject)
        store = LocalStore(place)
        found = set(store.addresses())
        assert found <= expected, inject
        for address in found:
            store.get(address)  # raises when it is not whole
        assert store.strangers() == [], inject
        if harm == "signal=KILL":
            assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), inject
        else:
            check_answers(done, call, harm.removeprefix("error="), inject)
            acknowledged = done.stdout.split().count("created")
            assert len(found) >= acknowledged, inject
        store.sweep()
        left = [path for path in place.rglob("*") if path.is_file()]
        assert len(left) == len(found), inject


def check_answers(
    done: subprocess.CompletedProcess[str], call: str, failure: str, inject: str
) -> None:
    """One of the two puts said the code of the failure; after EIO nothing was stored any more."""
    assert done.returncode == 0, (inject, done.stderr)
    said = done.stdout.split()
    code = FAILURES[failure]
    if call == "unlink" and said == ["created", "created"]:
        return  # a temp file that cannot be removed is swept later
    assert code in said, (inject, said)
    if code == "disk.failing":
        assert said in (["disk.failing", "disk.failing"], ["created", "disk.failing"]), inject


def test_after_a_failed_fsync_a_store_takes_nothing_more(tmp_path: Path) -> None:
    store = LocalStore.create(tmp_path / "store")
    store._failure = write_error(OSError(errno.EIO, "x"), tmp_path, wanted_bytes=1)
    assert code_of(lambda: store.put(b"more")) == "disk.failing"
    assert json.dumps(store._failure.document())


def test_the_strace_log_is_read_as_meant(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        '7 openat(AT_FDCWD, "/x", O_RDONLY) = 3\n7 newfstatat(AT_FDCWD, "/", {}, 0) = 0\n'
        '7 openat(AT_FDCWD, "/y", O_RDONLY) = 3\n7 fsync(3) = 0\n7 write(1, "x", 1) = 1\n'
    )
    assert calls_of_the_puts(log) == [("openat", 2), ("fsync", 1)]
