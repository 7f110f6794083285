"""Reading a ledger's file as an auditor: the standard library's sqlite3, read-only, unforgiving.

Nothing raises: what cannot be read is a finding, and what was read before it is still checked.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote

from tieout.ledger.audit.findings import Finding, Level

# idx, entry, previous, sha256_hash, as they lie; a damaged file can hold any type anywhere.
Raw: TypeAlias = tuple[object, object, object, object]
Sink: TypeAlias = Callable[[Finding], None]

# Findings after which there may be entries that were not read.
UNREAD: Final = frozenset(
    {
        "database.damaged",
        "ledger.missing",
        "ledger.not_ours",
        "ledger.unreadable",
        "wal.unread",
    }
)
APPLICATION_ID: Final = 0x5449454F
FORMAT_VERSION: Final = 1
PAGE_ROWS: Final = 1_000
COMPLAINTS_MAX: Final = 100
# No entry is smaller than this, so a scan that gives more rows than the file has room for is
# going round in circles.
ENTRY_BYTES_MIN: Final = 64

_FUNCTIONS: Final = frozenset({"count", "json_extract", "length"})
_PRAGMAS: Final = frozenset(
    {"application_id", "user_version", "cell_size_check", "mmap_size", "integrity_check"}
)

# sqlite3 also lets ValueError out: error texts that are not UTF-8, a NUL, a huge integer.
_FAILURES: Final = (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError)

_RESTORE: Final = "Put back a copy of the ledger, or ask whoever keeps one."
_OTHER: Final = "Name the ledger's own file, or put back a copy of it."
_GUARD: Final = (
    "The entries were checked without it. Tieout reads this ledger and does not write to it as it "
    "is: find out who changed the file, put back a copy, or in the sqlite3 shell run: "
)
_MAGIC: Final = b"SQLite format 3\x00"
_HEADER_BYTES: Final = 100
_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

_FIELDS: Final = (
    ("req", "TEXT NOT NULL", "req"),
    ("kind", "TEXT", "kind"),
    ("trace_id", "TEXT", "trace_id"),
    ("subject", "TEXT", "subject"),
    ("step_sequence", "INT", "step_sequence"),
    ("attempt", "INT", "attempt"),
    ("tool_name", "TEXT", "tool_name"),
    ("output_address", "TEXT", "deterministic_output.address"),
    ("execution_timestamp", "TEXT", "execution_timestamp"),
    ("outcome_status", "TEXT", "outcome.status"),
    ("outcome_code", "TEXT", "outcome.code"),
)
# The schema as docs/FORMAT.md §7 gives it, written a second time; white space does not count.
EXPECTED: Final[dict[str, str]] = {
    "entry": "CREATE TABLE entry( idx INTEGER PRIMARY KEY, entry BLOB NOT NULL,"
    " previous BLOB NOT NULL CHECK(length(previous) = 32),"
    " sha256_hash BLOB NOT NULL CHECK(length(sha256_hash) = 32), "
    + ", ".join(
        f"{name} {kind} GENERATED ALWAYS AS (json_extract(CAST(entry AS TEXT), '$.{path}')) VIRTUAL"
        for name, kind, path in _FIELDS
    )
    + " ) STRICT",
    "entry_req": "CREATE UNIQUE INDEX entry_req ON entry(req)",
    "entry_trace": "CREATE INDEX entry_trace ON entry(trace_id, idx)",
    "no_upd": "CREATE TRIGGER no_upd BEFORE UPDATE ON entry"
    " BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "no_del": "CREATE TRIGGER no_del BEFORE DELETE ON entry"
    " BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "gapless": "CREATE TRIGGER gapless BEFORE INSERT ON entry"
    " WHEN NEW.idx IS NOT (SELECT coalesce(max(idx) + 1, 0) FROM entry)"
    " BEGIN SELECT RAISE(ABORT, 'gap'); END",
    "chained": "CREATE TRIGGER chained BEFORE INSERT ON entry"
    " WHEN NEW.previous IS NOT coalesce("
    "(SELECT sha256_hash FROM entry ORDER BY idx DESC LIMIT 1), zeroblob(32))"
    " BEGIN SELECT RAISE(ABORT, 'not chained'); END",
}


def read_rows(path: Path, sink: Sink) -> Iterator[Raw]:
    """Every row of the ledger's file in order of idx; findings go to `sink`."""
    try:
        room = _looked_at(path, sink)
        beside = {suffix: _beside(path, suffix) for suffix in ("-wal", "-journal", "-shm")}
    except (OSError, ValueError) as error:  # a name with a NUL in it is a ValueError
        reason = getattr(error, "strerror", None) or error
        sink(_broken("ledger.unreadable", f"the ledger cannot be read: {reason!s:.200}"))
        return
    if room is None:
        return
    strange = [suffix for suffix, size in beside.items() if size is None]
    for suffix in strange:
        message = f"what lies in the place of its {suffix} is not a file, and was not read"
        sink(_broken("wal.unread", message))
    waiting = beside["-wal"] or 0
    options = ("immutable=1",) if strange else ("mode=ro", "immutable=1")
    connection = _open(path, sink, options, waiting=waiting > 0)
    if connection is None:
        return
    with closing(connection):
        try:
            if not _check_file(connection, sink):
                return
        except _FAILURES as error:
            sink(_broken("database.damaged", f"its schema cannot be read: {_say(error)}"))
            return
        yield from _scan(connection, sink, rows_max=(room + waiting) // ENTRY_BYTES_MIN + 1)


def _looked_at(path: Path, sink: Sink) -> int | None:
    """The size of the file; None, and a finding, if it is not even the beginning of a ledger."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        sink(_broken("ledger.missing", "there is no ledger here"))
        return None
    if not stat.S_ISREG(status.st_mode):
        what = next((word for test, word in _KINDS if test(status.st_mode)), "no file")
    else:
        with path.open("rb") as stream:
            header = stream.read(_HEADER_BYTES)
        if len(header) == _HEADER_BYTES and header.startswith(_MAGIC):
            return status.st_size
        what = "a file that is no SQLite database" if header else "an empty file"
    sink(_not_ours(what))
    return None


def _beside(path: Path, suffix: str) -> int | None:
    """The size of a file beside the ledger, 0 without one; None for what is no file: SQLite
    would wait on a pipe."""
    try:
        status = os.lstat(f"{path}{suffix}")
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _open(
    path: Path, sink: Sink, options: tuple[str, ...], *, waiting: bool
) -> sqlite3.Connection | None:
    """Read-only; where SQLite cannot keep its -shm (a read-only folder), as an immutable file."""
    reason: BaseException | None = None
    for option in options:
        connection: sqlite3.Connection | None = None
        try:
            target = f"file:{quote(str(path.absolute()))}?{option}"
            connection = sqlite3.connect(target, uri=True, isolation_level=None)
            connection.text_factory = bytes
            connection.set_authorizer(_authorize)
            connection.execute("PRAGMA cell_size_check=ON")
            connection.execute("PRAGMA mmap_size=0")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except _FAILURES as error:
            reason = reason or error
            if connection is not None:
                connection.close()
            if not isinstance(error, sqlite3.OperationalError):
                break
            continue
        if option != "mode=ro" and waiting:
            sink(_broken("wal.unread", "the newest entries lie in its -wal, which cannot be read"))
        return connection
    sink(_broken("database.damaged", f"the ledger cannot be opened: {_say(reason)}"))
    return None


def _authorize(
    operation: int, first: str | None, second: str | None, _db: str | None, _by: str | None
) -> int:
    """Whatever stands in a stranger's schema, only this may run. (`trusted_schema=OFF` would be
    the usual way; older SQLite versions then refuse json_extract, which is ours.)"""
    if operation in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ):
        return sqlite3.SQLITE_OK
    if operation == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS:
        return sqlite3.SQLITE_OK
    if operation == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _check_file(connection: sqlite3.Connection, sink: Sink) -> bool:
    """The stamps and the schema; False if there is nothing of a ledger in it."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    found: dict[str, tuple[str, str]] = {}
    for kind, name, statement in connection.execute("SELECT type, name, sql FROM sqlite_master"):
        found[_text(name)] = (_text(kind), _squeeze(_text(statement)))
    if application != APPLICATION_ID:
        sink(_not_ours(f"another program's database (application_id {application})"))
        if "entry" not in found:
            return False
    if version != FORMAT_VERSION:
        sink(_broken("ledger.format", f"the file says it is of format {version}"))
    for name, statement in EXPECTED.items():
        if name not in found:
            sink(_altered(name, statement, "missing", f"{statement};"))
        elif found[name][1] != _squeeze(statement):
            drop = _drop(found[name][0], name)
            sink(_altered(name, statement, "differs", f"{drop} {statement};"))
    for name in sorted(found.keys() - EXPECTED.keys()):
        kind = found[name][0]
        message = f"the ledger's file also holds the {kind[:20]} {name[:80]!r}"
        # A trigger acts on what is written; anything else only lies there.
        level = Level.WARNING if kind == "trigger" else Level.NOTICE
        sink(Finding(level, "schema.stranger", message, _GUARD + _drop(kind, name)))
    return True


def _altered(name: str, statement: str, state: str, repair: str) -> Finding:
    kind = statement.split()[1].lower().replace("unique", "index")
    code, message = f"{kind}.{state}", f"the {kind} {name!r} of the ledger: {state}"
    if kind == "table":
        return _broken(code, message)
    return Finding(Level.WARNING, code, message, _GUARD + repair)


def _drop(kind: str, name: str) -> str:
    quoted = name[:80].replace('"', '""')
    return f'DROP {kind[:20].upper()} "{quoted}";'


def _scan(connection: sqlite3.Connection, sink: Sink, *, rows_max: int) -> Iterator[Raw]:
    query = (
        "SELECT idx, entry, previous, sha256_hash FROM entry WHERE idx >= ? ORDER BY idx LIMIT ?"
    )
    start, rows = -(2**63), 0
    while True:
        page: list[Raw] = []
        failure: BaseException | None = None
        try:
            for row in connection.execute(query, (start, PAGE_ROWS)):
                page.append(row)  # noqa: PERF402 - what was read before a failure is kept
        except _FAILURES as error:
            failure = error
        yield from page
        rows += len(page)
        if failure is not None:
            last = page[-1][0] if page else start - 1
            after = f"after entry {last}" if rows else "before the first entry"
            sink(_broken("database.damaged", f"nothing can be read {after}: {_say(failure)}"))
            return
        if len(page) < PAGE_ROWS:
            break
        last = page[-1][0]
        if not isinstance(last, int) or last < start or rows > rows_max or last == 2**63 - 1:
            sink(_broken("database.damaged", "the entries of the file go round in circles"))
            return
        start = last + 1
    _check_pages(connection, sink)


def _check_pages(connection: sqlite3.Connection, sink: Sink) -> None:
    """SQLite's own check, for what a scan does not touch: indexes, lost and shared pages."""
    try:
        for (complaint,) in connection.execute(f"PRAGMA integrity_check({COMPLAINTS_MAX})"):
            if complaint != b"ok":
                sink(_broken("database.damaged", f"SQLite says: {_text(complaint)[:300]}"))
    except _FAILURES as error:
        sink(_broken("database.damaged", f"SQLite cannot check its pages: {_say(error)}"))


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _squeeze(statement: str) -> str:
    return " ".join(statement.split())


def _say(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error!s:.200}"


def _broken(code: str, message: str) -> Finding:
    return Finding(Level.BROKEN, code, message, _RESTORE)


def _not_ours(what: str) -> Finding:
    return Finding(Level.BROKEN, "ledger.not_ours", f"this is {what}, not a ledger", _OTHER)
