"""The SQLite log: one writer, durable, append-only, and clear about every file it cannot use."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from support.ledger_rows import row, unguarded

from tieout.artifacts.errors import Exit
from tieout.ledger.errors import LedgerError
from tieout.ledger.sqlite import create, open_log, read_log

ROOT = Path(__file__).parents[2]
HOLD = """
import sys
from pathlib import Path
from tieout.ledger.sqlite import open_log
with open_log(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
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


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_was_appended_is_there_after_opening_again(path: Path) -> None:
    with open_log(path) as log:
        assert log.size() == 3
        root = log.root()
        assert log.append([row(3)])[0].index == 3
    with read_log(path) as log:
        assert [entry.row for entry in log.entries()] == [row(number) for number in range(4)]
        assert log.root() != root


def test_the_connection_is_durable(path: Path) -> None:
    with open_log(path) as log:
        log._db.authorizer = None
        assert log._db.pragma("journal_mode") == "wal"
        assert log._db.pragma("synchronous") == 2
        assert log._db.pragma("cell_size_check") == 1
        assert log._db.pragma("recursive_triggers") == 1
        assert log._db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, -1) == 0
        assert log._db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1) == 1
    assert apsw.sqlite_lib_version() >= "3.51.3"  # the WAL-reset fix


# --- one writer -----------------------------------------------------------------------------


def test_a_second_process_is_told_who_writes(path: Path) -> None:
    holder = python(HOLD, path)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        error = refusal(open_log, path)
        assert (error.code, error.exit_code) == ("ledger.locked", Exit.LOCKED)
        assert f"process {holder.pid}" in error.message
        with read_log(path) as log:  # readers need no lock
            assert log.size() == 3
    finally:
        holder.kill()
        holder.communicate()
    with open_log(path) as log:  # the lock goes with the process, however it ended
        assert log.size() == 3


def test_the_same_process_cannot_open_it_twice(path: Path) -> None:
    with open_log(path):
        assert refusal(open_log, path).code == "ledger.locked"
    open_log(path).close()


def test_a_refused_opening_lets_the_lock_go(path: Path) -> None:
    path.write_bytes(b"")
    for _ in range(2):
        assert refusal(open_log, path).code == "ledger.not_ours"


def test_a_reader_cannot_write(path: Path) -> None:
    with read_log(path) as log:
        assert refusal(log.append, [row(9)]).code == "ledger.read_only"


def test_a_reader_sees_what_is_committed_meanwhile(path: Path) -> None:
    with open_log(path) as log, read_log(path) as reader:
        log.append([row(3)])
        assert reader.size() == 4


def test_a_closed_log_says_so(path: Path) -> None:
    log = open_log(path)
    log.close()
    assert refusal(log.size).code == "ledger.closed"
    assert refusal(log.append, [row(9)]).code == "ledger.closed"


# --- files that are no ledger, or not this one's --------------------------------------------


def other_database(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE entry(idx INTEGER PRIMARY KEY)")
    connection.close()


def stamped(path: Path, pragma: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(pragma)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


FILES = {
    "empty": (lambda path: path.write_bytes(b""), "ledger.not_ours", Exit.REFUSED),
    "text": (lambda path: path.write_text("a,b\n" * 99), "ledger.not_ours", Exit.REFUSED),
    "short": (lambda path: os.truncate(path, 60), "ledger.not_ours", Exit.REFUSED),
    "another database": (other_database, "ledger.not_ours", Exit.REFUSED),
    "another application": (
        lambda path: stamped(path, "PRAGMA application_id=7"),
        "ledger.not_ours",
        Exit.REFUSED,
    ),
    "another format": (
        lambda path: stamped(path, "PRAGMA user_version=2"),
        "ledger.format",
        Exit.OTHER_FORMAT,
    ),
    "cut off": (
        lambda path: os.truncate(path, path.stat().st_size - 4096),
        "ledger.damaged",
        Exit.DOES_NOT_HOLD,
    ),
    "cut within a page": (
        lambda path: os.truncate(path, path.stat().st_size - 1),
        "ledger.damaged",
        Exit.DOES_NOT_HOLD,
    ),
}


@pytest.mark.parametrize(("spoil", "code", "exit_code"), list(FILES.values()), ids=list(FILES))
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(path, spoil, code, exit_code) -> None:
    spoil(path)
    before = digest(path)
    for opening in (open_log, read_log):
        error = refusal(lambda call: call(path).size(), opening)
        assert (error.code, error.exit_code) == (code, exit_code)
        assert str(path) in error.place
    assert digest(path) == before


@pytest.mark.parametrize("opening", [open_log, read_log])
def test_no_ledger_at_all(tmp_path, opening) -> None:
    error = refusal(opening, tmp_path / "ledger.sqlite")
    assert (error.code, error.exit_code) == ("ledger.missing", Exit.NO_WORKSPACE)
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_is_never_created_over_anything(path: Path) -> None:
    before = digest(path)
    assert refusal(create, path).code == "ledger.exists"
    assert digest(path) == before
    path.unlink()
    path.with_name(path.name + "-wal").write_bytes(b"the rest of another")
    assert refusal(create, path).code == "ledger.exists"


def test_a_creation_that_was_cut_off_leaves_room_for_the_next(tmp_path) -> None:
    path = tmp_path / "ledger.sqlite"
    for suffix in (".new", ".new-journal", ".new-wal"):
        (tmp_path / ("ledger.sqlite" + suffix)).write_bytes(b"half")
    create(path).close()
    assert sorted(item.name for item in tmp_path.iterdir()) == [
        "ledger.sqlite",
        "ledger.sqlite.lock",
    ]


def test_a_folder_that_is_not_there(tmp_path) -> None:
    error = refusal(create, tmp_path / "no" / "ledger.sqlite")
    assert (error.code, error.exit_code) == ("ledger.no_folder", Exit.NO_WORKSPACE)


# --- append-only ----------------------------------------------------------------------------

DENIED = [
    "UPDATE entry SET entry = x'00'",
    "DELETE FROM entry",
    "DROP TABLE entry",
    "DROP TRIGGER no_upd",
    "ALTER TABLE entry RENAME TO gone",
    "CREATE TABLE other(a)",
    "ATTACH 'x.sqlite' AS x",
    "VACUUM INTO 'x.sqlite'",
    "PRAGMA writable_schema = ON",
    "PRAGMA synchronous = OFF",
    "REINDEX",
]


@pytest.mark.parametrize("statement", DENIED)
def test_the_open_connection_cannot_change_anything(path: Path, statement: str) -> None:
    with open_log(path) as log, pytest.raises(apsw.AuthError):
        log._db.execute(statement)


GUARDED = [
    "UPDATE entry SET entry = x'7b7d' WHERE idx = 1",
    "UPDATE entry SET idx = 7 WHERE idx = 2",
    "DELETE FROM entry WHERE idx = 2",
    (
        "INSERT OR REPLACE INTO entry(idx, entry, previous, sha256_hash)"
        " SELECT 1, entry, previous, sha256_hash FROM entry WHERE idx = 2"
    ),
    (
        "INSERT INTO entry(idx, entry, previous, sha256_hash)"
        " SELECT 5, replace(entry, 'req-2', 'req-5'), sha256_hash, previous FROM entry WHERE idx = 2"
    ),
    (
        "INSERT INTO entry(idx, entry, previous, sha256_hash)"
        " SELECT 3, replace(entry, 'req-2', 'req-5'), previous, previous FROM entry WHERE idx = 2"
    ),
    (
        "INSERT INTO entry(idx, entry, previous, sha256_hash)"
        " SELECT 3, entry, sha256_hash, previous FROM entry WHERE idx = 2"
    ),
    (
        "INSERT INTO entry(idx, entry, previous, sha256_hash) SELECT 3, x'00', sha256_hash, x'00'"
        " FROM entry WHERE idx = 2"
    ),
]


@pytest.mark.parametrize("statement", GUARDED)
def test_the_triggers_stop_a_careless_hand(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.Error):
        connection.execute(statement)
    connection.close()
    with open_log(path) as log:
        assert log.size() == 3


@pytest.mark.parametrize("name", ["no_upd", "no_del", "gapless", "chained"])
def test_nothing_is_appended_without_its_guards(path: Path, name: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(f"DROP TRIGGER {name}")
    connection.close()
    error = refusal(open_log, path)
    assert (error.code, error.exit_code) == ("ledger.schema", Exit.DOES_NOT_HOLD)
    assert name in error.message
    with read_log(path) as log:  # what is recorded can still be read
        assert log.size() == 3


TAILS = [
    "UPDATE entry SET entry = CAST(replace(entry, 'trace-1', 'trace-2') AS BLOB) WHERE idx = 2",
    "UPDATE entry SET sha256_hash = zeroblob(32) WHERE idx = 2",
    "UPDATE entry SET previous = zeroblob(32) WHERE idx = 2",
    "UPDATE entry SET idx = 5 WHERE idx = 2",
    "UPDATE entry SET sha256_hash = zeroblob(32) WHERE idx = 1",
    "DELETE FROM entry WHERE idx = 1",
]


@pytest.mark.parametrize("statement", TAILS)
def test_nothing_is_appended_to_an_end_that_does_not_hold(path: Path, statement: str) -> None:
    with unguarded(path) as connection:
        connection.execute(statement)
    error = refusal(open_log, path)
    assert (error.code, error.exit_code) == ("ledger.broken", Exit.DOES_NOT_HOLD)


def test_an_entry_edited_by_hand_is_an_error_where_it_is_read(path: Path) -> None:
    with unguarded(path) as connection:
        connection.execute("UPDATE entry SET entry = CAST(entry || x'20' AS BLOB) WHERE idx = 0")
    with open_log(path) as log:
        assert refusal(lambda: log.entry(0).row).code == "entry.malformed"
        assert refusal(log.append, [row(0, subject="x")]).code == "entry.malformed"
        assert log.append([row(3)])[0].index == 3
