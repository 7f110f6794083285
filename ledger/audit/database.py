"""Reading a ledger's file as an auditor: the standard library's sqlite3, read-only, unforgiving.

Nothing raises: what cannot be read is a finding, and what was read before it is still checked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote

from tieout.ledger.audit.findings import Finding, Level

# idx, entry, previous, sha256_hash, as they lie; a damaged file can hold any type anywhere.
Raw: TypeAlias = tuple[object, object, object, object]
Sink: TypeAlias = Callable[[Finding], None]

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
_GUARD: Final = "The entries were checked without it; find out who changed the file."

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
        present = path.is_file()
        room = path.stat().st_size if present else 0
        wal = path.with_name(path.name + "-wal")
        waiting = wal.stat().st_size if present and wal.is_file() else 0
    except OSError as error:
        sink(_broken("ledger.unreadable", f"the ledger cannot be read: {error.strerror}"))
        return
    if not present:
        sink(_broken("ledger.missing", "there is no ledger here"))
        return
    connection = _open(path, sink, waiting=waiting > 0)
    if connection is None:
        return
    with closing(connection):
        try:
            _check_file(connection, sink)
        except _FAILURES as error:
            sink(_broken("database.damaged", f"its schema cannot be read: {_say(error)}"))
            return
        yield from _scan(connection, sink, rows_max=(room + waiting) // ENTRY_BYTES_MIN + 1)


def _open(path: Path, sink: Sink, *, waiting: bool) -> sqlite3.Connection | None:
    """Read-only; where SQLite cannot keep its -shm (a read-only folder), as an immutable file."""
    reason: BaseException | None = None
    for option in ("mode=ro", "immutable=1"):
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


def _check_file(connection: sqlite3.Connection, sink: Sink) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        sink(_broken("ledger.not_ours", f"the file says it is of application {application}"))
    if version != FORMAT_VERSION:
        sink(_broken("ledger.format", f"the file says it is of format {version}"))
    found: dict[str, str] = {}
    for name, statement in connection.execute("SELECT name, sql FROM sqlite_master"):
        found[_text(name)] = _squeeze(_text(statement))
    for name, statement in EXPECTED.items():
        if found.get(name) != _squeeze(statement):
            state = "differs" if name in found else "missing"
            kind = statement.split()[1].lower().replace("unique", "index")
            make = _broken if kind == "table" else _warning
            sink(make(f"{kind}.{state}", f"the {kind} {name!r} of the ledger: {state}"))
    for name in sorted(found.keys() - EXPECTED.keys()):
        sink(_warning("schema.stranger", f"the ledger's file also holds {name[:80]!r}"))


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


def _warning(code: str, message: str) -> Finding:
    return Finding(Level.WARNING, code, message, _GUARD)
