"""The independent check: what holds passes, every kind of damage is found and named."""

from __future__ import annotations

import random
import shutil
from hashlib import sha256

import pytest
from support.ledger_rows import World, broken, codes, raw_of, row, unguarded

from tieout.artifacts.memory import MemoryStore
from tieout.ledger.audit import database, shapes
from tieout.ledger.audit.findings import Level
from tieout.ledger.audit.fsck import check, check_rows
from tieout.ledger.audit.objects import LocalObjects, StoreObjects
from tieout.ledger.log import MemoryLog
from tieout.ledger.row import (
    ENTRY_BYTES_MAX,
    INSTRUCTION_BYTES_MAX,
    MESSAGE_CHARS_MAX,
    Kind,
    Status,
)
from tieout.ledger.schema import APPLICATION_ID, FORMAT_VERSION, OBJECTS
from tieout.ledger.sqlite import create, open_log, read_log

SIZE = 8


def raw_rows(world: World) -> list[tuple[object, ...]]:
    with read_log(world.ledger) as log:
        return [(e.index, e.entry, e.previous, e.sha256_hash) for e in log.entries()]


# --- a record that holds --------------------------------------------------------------------


def test_a_record_that_holds_has_no_findings(world: World) -> None:
    report = world.verify()
    assert report.findings == ()
    assert report.holds
    assert (report.entries, report.objects, report.root) == (SIZE, 9, world.root)
    assert report.last_hash == raw_rows(world)[-1][3].hex()


def test_an_empty_ledger_holds(tmp_path) -> None:
    create(tmp_path / "l").close()
    report = check(tmp_path / "l", StoreObjects(MemoryStore()))
    assert (report.findings, report.entries, report.last_hash) == ((), 0, "")
    assert report.root == sha256(b"").hexdigest()


def test_a_kept_root_is_confirmed_at_every_size(world: World) -> None:
    for size in range(SIZE + 1):
        log = MemoryLog()
        log.append(world.rows[:size])
        report = world.verify(expect_root=(size, log.root().hex().upper()))
        assert report.findings == ()


def test_what_still_lies_in_the_wal_is_read(world: World) -> None:
    with open_log(world.ledger) as log:
        log.append([row(8)])
        folder = world.ledger.parent / "copy"
        folder.mkdir()
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{world.ledger}{suffix}", folder / f"ledger.sqlite{suffix}")
    report = check(folder / "ledger.sqlite", LocalObjects(world.folder))
    assert (report.findings, report.entries) == ((), SIZE + 1)


def test_other_stores_are_read_through_their_interface(world: World) -> None:
    store = MemoryStore()
    for address in world.store.addresses():
        store.put(world.store.get(address))
    assert check(world.ledger, StoreObjects(store)).findings == ()
    assert "object.missing" in codes(check(world.ledger, StoreObjects(MemoryStore())))


# --- bytes changed --------------------------------------------------------------------------


def flip_columns(world: World, step: int) -> None:
    rows = raw_rows(world)
    objects = LocalObjects(world.folder.parent / "nothing")
    for index, whole in enumerate(rows):
        for column in (1, 2, 3):
            for position in range(index % step, len(whole[column]), step):
                bent = list(whole)
                changed = bytearray(whole[column])
                changed[position] ^= 1 << (position * 5 + index) % 8
                bent[column] = bytes(changed)
                # The rows before hold, and the one after shows where the damage ends.
                report = check_rows([*rows[:index], tuple(bent), *rows[index + 1 :][:1]], objects)
                named = {at for code, at in broken(report) if code.startswith("chain.")}
                assert named == {index}


def test_a_flipped_byte_of_any_column_is_found_at_its_index(world: World) -> None:
    flip_columns(world, 11)


@pytest.mark.slow
def test_every_flipped_byte_of_every_column_is_found_at_its_index(world: World) -> None:
    flip_columns(world, 1)


def test_a_flipped_byte_in_the_file_is_found_at_its_index(world: World) -> None:
    seed = random.Random(6)
    for _ in range(12):
        index = seed.randrange(SIZE)
        column = seed.choice(["entry", "previous", "sha256_hash"])
        value = raw_rows(world)[index][{"entry": 1, "previous": 2, "sha256_hash": 3}[column]]
        changed = bytearray(value)
        changed[seed.randrange(len(changed))] ^= 1 << seed.randrange(8)
        with unguarded(world.ledger) as connection:
            update = f"UPDATE entry SET {column} = ? WHERE idx = {index}"
            # An entry that is no JSON any more cannot be indexed: SQLite itself refuses it.
            try:
                connection.execute(update, (bytes(changed),))
            except Exception as error:
                assert "malformed JSON" in str(error) or "NOT NULL" in str(error)
                continue
        report = world.verify()
        assert not report.holds
        assert {at for code, at in broken(report) if code.startswith("chain.")} == {index}
        world.rewrite(f"UPDATE entry SET {column} = ? WHERE idx = {index}", values=(value,))
    assert world.verify().holds


EDITS = {
    "a row deleted": (["DELETE FROM entry WHERE idx = 3"], {"index.gap": 4, "chain.previous": 4}),
    "the first deleted": (
        ["DELETE FROM entry WHERE idx = 0"],
        {"index.gap": 1, "chain.previous": 1},
    ),
    "deleted and renumbered": (
        [
            "DELETE FROM entry WHERE idx = 3",
            "UPDATE entry SET idx = idx + 100 WHERE idx > 3",
            "UPDATE entry SET idx = idx - 101 WHERE idx > 100",
        ],
        {"chain.previous": 3},
    ),
    "two rows swapped": (
        [
            "UPDATE entry SET idx = 100 WHERE idx = 2",
            "UPDATE entry SET idx = 2 WHERE idx = 3",
            "UPDATE entry SET idx = 3 WHERE idx = 100",
        ],
        {"chain.previous": 2},
    ),
    "a row inserted": (
        [
            "UPDATE entry SET idx = idx + 101 WHERE idx > 3",
            "UPDATE entry SET idx = idx - 100 WHERE idx > 100",
            (
                "INSERT INTO entry(idx, entry, previous, sha256_hash) SELECT 4,"
                " CAST(replace(entry, 'req-3', 'req-x') AS BLOB), sha256_hash, sha256_hash"
                " FROM entry WHERE idx = 3"
            ),
        ],
        {"chain.hash": 4},
    ),
    "a word changed": (
        [
            (
                "UPDATE entry SET entry = CAST(replace(entry, 'bank-1010', 'bank-1011') AS BLOB)"
                " WHERE idx = 5"
            )
        ],
        {"chain.hash": 5},
    ),
    "two contents exchanged": (
        [
            "UPDATE entry SET entry = CAST(replace(entry, 'req-2', 'req-x') AS BLOB) WHERE idx = 2",
        ],
        {"chain.hash": 2},
    ),
}


@pytest.mark.parametrize(("statements", "expected"), list(EDITS.values()), ids=list(EDITS))
def test_what_a_hand_with_the_file_can_do_is_found_at_its_index(
    world: World, statements, expected
) -> None:
    world.rewrite(*statements)
    report = world.verify()
    found = broken(report)
    for code, index in expected.items():
        assert next(at for name, at in found if name == code) == index
    assert codes(report).count("trigger.missing") == 0  # they were put back: the edit is hidden


def test_a_cut_off_end_holds_in_itself_and_is_found_by_a_kept_root(world: World) -> None:
    world.rewrite(f"DELETE FROM entry WHERE idx = {SIZE - 1}")
    assert world.verify().holds
    report = world.verify(expect_root=(SIZE, world.root))
    assert broken(report) == [("log.shorter", None)]


def test_a_wholly_rewritten_history_is_found_by_a_kept_root(world: World) -> None:
    """An administrator who edits a row and recomputes every later hash."""
    rows = [*world.rows]
    rows[2] = row(2, kind=Kind.QUESTION, raw_llm_instruction=None, subject="another question",
                  attachments=world.rows[2].attachments)  # fmt: skip
    world.ledger.unlink()
    with create(world.ledger) as log:
        log.append(rows)
    assert world.verify().findings == ()
    for size in range(3, SIZE + 1):
        earlier = MemoryLog()
        earlier.append(world.rows[:size])
        report = world.verify(expect_root=(size, earlier.root().hex()))
        assert broken(report) == [("root.differs", None)]


def test_an_older_copy_put_back_is_found_by_a_kept_root(world: World) -> None:
    older = world.ledger.read_bytes()
    with open_log(world.ledger) as log:
        log.append([row(8)])
        kept = (log.size(), log.root().hex())
    world.ledger.write_bytes(older)
    assert world.verify().holds
    assert broken(world.verify(expect_root=kept)) == [("log.shorter", None)]


# --- rows around the chain ------------------------------------------------------------------


def test_times_that_go_back_are_a_warning(world: World) -> None:
    later = "2026-06-30T12:00:00.000001Z"
    rows = [row(0), row(1, execution_timestamp=later), row(2), row(3), row(4)]
    report = check_rows(raw_of(*rows), LocalObjects(world.folder))
    assert report.holds
    assert [(f.level, f.code, f.index) for f in report.findings if f.index is not None] == [
        (Level.WARNING, "time.backwards", 2)
    ]


def test_rows_of_other_types_never_make_it_raise(world: World) -> None:
    rows = raw_rows(world)
    for value in (None, 7, 7.5, "text", b"", b"\x00", b"{}", b"[" * 60_000, b'{"a":1}' * 10_000):
        for column in range(4):
            bent = list(rows[3])
            bent[column] = value
            report = check_rows([*rows[:3], tuple(bent), *rows[4:]], LocalObjects(world.folder))
            assert not report.holds


def test_the_schema_written_twice_says_the_same() -> None:
    assert {name: " ".join(sql.split()) for _, name, sql in OBJECTS} == {
        name: " ".join(sql.split()) for name, sql in database.EXPECTED.items()
    }
    assert (database.APPLICATION_ID, database.FORMAT_VERSION) == (APPLICATION_ID, FORMAT_VERSION)
    assert tuple(Kind) == shapes.KINDS
    assert tuple(Status) == shapes.STATUSES
    assert shapes.ENTRY_BYTES_MAX == ENTRY_BYTES_MAX
    assert shapes.INSTRUCTION_BYTES_MAX == INSTRUCTION_BYTES_MAX
    assert shapes.MESSAGE_CHARS_MAX == MESSAGE_CHARS_MAX
