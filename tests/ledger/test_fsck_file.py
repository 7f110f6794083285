"""The independent check of the ledger's file: its schema, what lies in its place, damage."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from support.ledger_rows import World, broken, codes, row

from tieout.ledger.audit import database
from tieout.ledger.audit.findings import Level, Report
from tieout.ledger.audit.fsck import check
from tieout.ledger.audit.objects import LocalObjects
from tieout.ledger.errors import LedgerError
from tieout.ledger.sqlite import create, open_log, read_log

SIZE = 8

# --- the file around the entries ------------------------------------------------------------


def statements(report: Report) -> str:
    """What the remedies say to run in the sqlite3 shell."""
    return " ".join(item.remedy.partition("sqlite3 shell run: ")[2] for item in report.findings)


@pytest.mark.parametrize("name", ["no_upd", "no_del", "gapless", "chained"])
def test_a_missing_or_altered_trigger_is_a_warning_that_says_how_to_go_on(
    world: World, name: str
) -> None:
    connection = database.sqlite3.connect(world.ledger)
    connection.execute(f"DROP TRIGGER {name}")
    connection.commit()
    report = world.verify()
    assert [(item.level, item.code) for item in report.findings] == [
        (Level.WARNING, "trigger.missing")
    ]
    connection.executescript(statements(report))
    assert world.verify().findings == ()
    connection.execute(f"DROP TRIGGER {name}")
    connection.execute(f"CREATE TRIGGER {name} BEFORE UPDATE ON entry BEGIN SELECT 1; END")
    connection.commit()
    report = world.verify()
    assert codes(report) == ["trigger.differs"]
    assert report.holds
    connection.executescript(statements(report))
    connection.close()
    assert world.verify().findings == ()
    with open_log(world.ledger) as log:  # the writer takes it again
        log.append([row(8)])


def test_strangers_in_the_file_are_notices_and_those_that_act_warnings(world: World) -> None:
    world.rewrite(
        "DROP INDEX entry_trace",
        'CREATE TABLE "no""tes"(a)',
        "CREATE TRIGGER extra AFTER INSERT ON entry BEGIN SELECT 1; END",
    )
    report = world.verify()
    assert report.holds
    assert [(item.level, item.code) for item in report.findings] == [
        (Level.WARNING, "index.missing"),
        (Level.WARNING, "schema.stranger"),
        (Level.NOTICE, "schema.stranger"),
    ]
    connection = database.sqlite3.connect(world.ledger)
    connection.executescript(statements(report))
    connection.close()
    assert world.verify().findings == ()
    open_log(world.ledger).close()


def test_an_index_that_hides_an_entry_is_found(world: World) -> None:
    """`find` would not see the entry; a scan of the table would."""
    connection = database.sqlite3.connect(world.ledger, isolation_level=None)
    (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name='entry_req'").fetchone()
    connection.execute("PRAGMA writable_schema = ON")
    hidden = sql + " WHERE idx <> 3"
    connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'entry_req'", (hidden,))
    connection.execute("PRAGMA writable_schema = RESET")
    connection.execute("REINDEX entry_req")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'entry_req'", (sql,))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with read_log(world.ledger) as log:
        assert log.find("req-3") is None
    report = world.verify()
    assert ("database.damaged", None) in broken(report)


def test_a_file_of_another_program_or_format(world: World) -> None:
    world.rewrite("PRAGMA application_id = 7", "PRAGMA user_version = 9")
    assert codes(world.verify()) == ["ledger.not_ours", "ledger.format"]


def other_database(path: Path) -> None:
    path.unlink()
    connection = database.sqlite3.connect(path)
    connection.execute("CREATE TABLE t(a)")
    connection.close()


NO_LEDGERS = {
    "nothing there": (lambda path: path.unlink(), "there is no ledger here"),
    "a link to nothing": (
        lambda path: (path.unlink(), path.symlink_to("gone")), "there is no ledger here",
    ),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "this is a folder, not a ledger"),
    "a pipe": (lambda path: (path.unlink(), os.mkfifo(path)), "this is a pipe, not a ledger"),
    "an empty file": (
        lambda path: path.write_bytes(b""), "this is an empty file, not a ledger",
    ),
    "text": (
        lambda path: path.write_bytes(b"no database at all" * 99),
        "this is a file that is no SQLite database, not a ledger",
    ),
    "another program's": (
        other_database, "this is another program's database (application_id 0), not a ledger",
    ),
    "a header alone": (lambda path: os.truncate(path, 100), ""),
    "one page": (lambda path: os.truncate(path, 4096), ""),
    "a database in itself": (
        lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(4096 - 16)), "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "message"), list(NO_LEDGERS.values()), ids=list(NO_LEDGERS))
def test_what_is_no_ledger_is_a_finding(world: World, spoil, message: str) -> None:
    """One finding, in the words in which the log refuses to open it; no object is accused."""
    spoil(world.ledger)
    report = world.verify(expect_root=(SIZE, world.root))
    assert not report.holds
    assert codes(report)[-2:] == ["log.shorter", "record.incomplete"]
    assert "recorded 9 things" in report.findings[-1].message
    if message:
        assert [item.message for item in report.findings[:-2]] == [message]
        for opening in (open_log, read_log):
            with pytest.raises(LedgerError) as caught:
                opening(world.ledger)
            assert caught.value.message.startswith(message)


@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
def test_a_pipe_beside_the_ledger_does_not_stop_it(world: World, suffix: str) -> None:
    os.mkfifo(f"{world.ledger}{suffix}")
    report = world.verify()
    assert broken(report) == [("wal.unread", None)]
    assert (report.entries, report.root) == (SIZE, world.root)


def test_a_view_in_the_place_of_the_table_cannot_run_anything(world: World) -> None:
    world.ledger.unlink()
    connection = database.sqlite3.connect(world.ledger)
    connection.execute(
        "CREATE VIEW entry AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)"
        " SELECT i AS idx, x'' AS entry, x'' AS previous, x'' AS sha256_hash FROM n"
    )
    connection.close()
    report = world.verify()
    assert {"table.differs", "database.damaged"} <= set(codes(report))
    assert report.entries == 0


def damaged_file(ledger: Path, store: Path, root: str, positions: list[int]) -> None:
    """The audit neither raises nor hangs, and what means nothing changes nothing."""
    whole = ledger.read_bytes()
    holding = 0
    for number, position in enumerate(positions):
        changed = bytearray(whole)
        changed[position] ^= 1 << (position + number) % 8
        ledger.write_bytes(changed)
        report = check(ledger, LocalObjects(store), expect_root=(SIZE, root))
        holding += report.holds
        if report.holds:  # an empty place of a page, or a count that nobody relies on
            assert (report.entries, report.root) == (SIZE, root)
    assert holding < len(positions)
    ledger.write_bytes(whole)


def test_one_flipped_byte_anywhere_in_the_file_never_makes_it_raise(world: World) -> None:
    size = world.ledger.stat().st_size
    seed = random.Random(11)
    positions = [*range(0, 100, 7), *(seed.randrange(size) for _ in range(110))]
    damaged_file(world.ledger, world.folder, world.root, positions)


@pytest.mark.soak
@pytest.mark.parametrize("quarter", range(4))
def test_each_flipped_byte_of_a_whole_file(tmp_path, quarter: int) -> None:
    ledger = tmp_path / "ledger.sqlite"
    with create(ledger) as log:
        log.append([row(number) for number in range(SIZE)])
        root = log.root().hex()
    positions = list(range(quarter, ledger.stat().st_size, 4))
    damaged_file(ledger, tmp_path / "store", root, positions)


def test_a_file_cut_off_anywhere_never_makes_it_raise(world: World) -> None:
    whole = world.ledger.read_bytes()
    for size in range(0, len(whole), 1_024):
        world.ledger.write_bytes(whole[:size])
        assert not world.verify(expect_root=(SIZE, world.root)).holds
