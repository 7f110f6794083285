"""The SQLite file of a ledger: made whole, opened, and checked before it is relied on.

Nothing here changes a file that is not a ledger of this format, or one that does not hold.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final
from urllib.parse import quote

import apsw

from tieout.artifacts.errors import Exit
from tieout.ledger.database_errors import disk_error, translated
from tieout.ledger.errors import LedgerError
from tieout.ledger.log import FIRST_PREVIOUS, Entry, chain_hash
from tieout.ledger.schema import APPLICATION_ID, FORMAT_VERSION, OBJECTS

BUSY_WAIT_MS: Final = 5_000
_HEADER_BYTES: Final = 100
_MAGIC: Final = b"SQLite format 3\x00"
_SCHEMA: Final = "SELECT type, name, sql FROM sqlite_schema"
_LAST_TWO: Final = "SELECT idx, entry, previous, sha256_hash FROM entry ORDER BY idx DESC LIMIT 2"
# All that a connection may do once it is open; the rest (UPDATE, DELETE, DROP, ATTACH, …) is
# denied when a statement is prepared, whoever wrote it.
_ALLOWED: Final = frozenset(
    {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_TRANSACTION}
)


def require_file(path: Path) -> None:
    """Raise LedgerError `ledger.missing` (exit 10) if there is nothing, `ledger.not_ours` if
    there is something else than a file: SQLite would wait on a pipe."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise LedgerError(
            "ledger.missing",
            "there is no ledger here",
            place=str(path),
            remedy="Run `tieout init`, or go to the folder of the workspace.",
            exit_code=Exit.NO_WORKSPACE,
        ) from error
    except OSError as error:
        raise disk_error(error, path) from error
    kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    if not stat.S_ISREG(status.st_mode):
        what = next((word for test, word in kinds if test(status.st_mode)), "a device")
        raise _not_ours(path, what)
    if status.st_size == 0:  # SQLite takes it for a database of nothing
        raise _not_ours(path, "an empty file")


def check_header(path: Path) -> None:
    """Look at the first bytes before SQLite does, which would recover a stranger's journal.

    Only before a connection is open: closing the descriptor would drop its file locks.
    """
    try:
        with path.open("rb") as stream:
            header = stream.read(_HEADER_BYTES)
    except OSError as error:
        raise disk_error(error, path) from error
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise _not_ours(path, "a file that is no SQLite database")
    number = int.from_bytes
    _check_stamp(
        path, application=number(header[68:72], "big"), version=number(header[60:64], "big")
    )


def _check_length(db: apsw.Connection, path: Path) -> None:
    """SQLite reads zeros where the last page was cut off; an evidence file must not."""
    if _wal_bytes(path):
        return  # the newest pages lie there; SQLite checks each of them by its own sum
    size, wanted = path.stat().st_size, db.pragma("page_count") * db.pragma("page_size")
    if size < wanted:
        raise LedgerError(
            "ledger.damaged",
            f"the ledger is cut off: {size} bytes of {wanted}",
            place=str(path),
            remedy="Put back a copy; `tieout verify` says which entries are still whole.",
            exit_code=Exit.DOES_NOT_HOLD,
        )


def _wal_bytes(path: Path) -> int:
    wal = path.with_name(path.name + "-wal")
    return wal.stat().st_size if wal.exists() else 0


def _check_stamp(path: Path, *, application: int, version: int) -> None:
    if application != APPLICATION_ID:
        raise _not_ours(path, f"another program's database (application_id {application})")
    if version != FORMAT_VERSION:
        raise LedgerError(
            "ledger.format",
            f"the ledger has format {version}; this Tieout reads format {FORMAT_VERSION}",
            place=str(path),
            remedy="Use the Tieout that wrote it, or a newer one.",
            exit_code=Exit.OTHER_FORMAT,
        )


def _not_ours(path: Path, what: str) -> LedgerError:
    return LedgerError(
        "ledger.not_ours",
        f"this is {what}, not a ledger",
        place=str(path),
        remedy="Name the ledger's own file; this one was left as it is.",
        exit_code=Exit.REFUSED,
    )


def build(path: Path) -> None:
    """Build the empty database under another name, then give it its own in one step."""
    for taken in (path, path.with_name(path.name + "-wal")):
        if taken.exists():
            raise LedgerError(
                "ledger.exists",
                "there is a ledger, or the rest of one, already",
                place=str(taken),
                remedy="Open it, or choose another name; a ledger is never overwritten.",
                exit_code=Exit.REFUSED,
            )
    draft = path.with_name(path.name + ".new")
    try:
        for suffix in ("", "-journal", "-wal", "-shm"):  # left by a crash; we hold the lock
            draft.with_name(draft.name + suffix).unlink(missing_ok=True)
        with translated(path):
            _write_schema(draft)
        os.link(draft, path)  # unlike rename, fails if the name was taken meanwhile
        draft.unlink()
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise disk_error(error, path) from error


def _write_schema(path: Path) -> None:
    db = apsw.Connection(str(path))
    try:
        db.pragma("synchronous", "FULL")
        db.execute("BEGIN IMMEDIATE")
        for _, _, statement in OBJECTS:
            db.execute(statement)
        db.pragma("application_id", APPLICATION_ID)
        db.pragma("user_version", FORMAT_VERSION)
        db.execute("COMMIT")
        db.pragma("journal_mode", "WAL")
    finally:
        db.close()


def connect(path: Path, *, write: bool) -> apsw.Connection:
    """Open the file, which must be there; apsw's errors pass through."""
    if write:
        return apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    target = "file:" + quote(str(path.absolute()))
    if not os.access(path.parent, os.W_OK) and not _wal_bytes(path):
        # In a folder that we may not write SQLite cannot keep its -shm; no -wal, no loss.
        target += "?immutable=1"
    return apsw.Connection(target, flags=flags)


def prepare(db: apsw.Connection, path: Path, *, write: bool) -> None:
    """Set, read back and check all that the log relies on, then shut the door behind it."""
    db.set_busy_timeout(BUSY_WAIT_MS)
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    db.pragma("cell_size_check", "ON")
    db.pragma("recursive_triggers", "ON")
    db.pragma("mmap_size", 0)
    _check_stamp(path, application=db.pragma("application_id"), version=db.pragma("user_version"))
    _check_length(db, path)
    if write:
        db.pragma("synchronous", "FULL")
        mode, synchronous = db.pragma("journal_mode", "WAL"), db.pragma("synchronous")
        if (mode, synchronous) != ("wal", 2):
            raise LedgerError(
                "ledger.not_durable",
                f"SQLite runs with journal {mode} and synchronous {synchronous}, not WAL and FULL",
                place=str(path),
                remedy="Keep the ledger on a local disk; network file systems cannot do this.",
                exit_code=Exit.ENVIRONMENT,
            )
        _check_schema(db, path)
        _check_tail(db, path)
    db.authorizer = _authorize


def _check_schema(db: apsw.Connection, path: Path) -> None:
    rows = {
        (str(type_), str(name), _squeezed(str(sql))) for type_, name, sql in db.execute(_SCHEMA)
    }
    wanted = {(type_, name, _squeezed(sql)) for type_, name, sql in OBJECTS}
    differing = sorted({name for _, name, _ in rows ^ wanted})
    if differing:
        raise LedgerError(
            "ledger.schema",
            f"the ledger's tables or triggers were changed: {', '.join(differing)[:200]}",
            place=str(path),
            remedy="Run `tieout verify`: it says how to go on; or put back an unchanged copy.",
            exit_code=Exit.DOES_NOT_HOLD,
        )


def _squeezed(statement: str) -> str:
    """White space does not count: a guard that was put back by hand is the same guard."""
    return " ".join(statement.split())


def _check_tail(db: apsw.Connection, path: Path) -> None:
    """Never build on a last entry that does not hold; the whole is `tieout verify`'s duty."""
    last = [Entry(*found) for found in db.execute(_LAST_TWO)]
    if not last:
        return
    tail = last[0]
    index, before = (last[1].index, last[1].sha256_hash) if len(last) > 1 else (-1, FIRST_PREVIOUS)
    holds = chain_hash(tail.previous, tail.entry) == tail.sha256_hash
    if not holds or (index, before) != (tail.index - 1, tail.previous):
        raise LedgerError(
            "ledger.broken",
            f"entry {tail.index}, the last one, does not hold; nothing will be appended to it",
            place=f"{path}, entry {tail.index}",
            remedy="Run `tieout verify`: the ledger was changed from outside.",
            exit_code=Exit.DOES_NOT_HOLD,
        )


def _authorize(
    operation: int, first: str | None, _second: str | None, _db: str | None, _trigger: str | None
) -> int:
    if operation in _ALLOWED or (operation == apsw.SQLITE_INSERT and first == "entry"):
        return apsw.SQLITE_OK
    return apsw.SQLITE_DENY
