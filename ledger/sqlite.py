"""The ledger in one SQLite file, through apsw: durable before `append` returns.

WAL with synchronous=FULL, read back on each connection: `NORMAL` loses acknowledged rows at a
power cut (measured, DECISIONS.md). apsw brings a SQLite with the WAL-reset fix (3.51.3), which
the system's often lacks. What stands in `-wal` after a crash is recovered by SQLite itself.

One process writes (writer_lock.py); any number read. Do not open the same file through another
SQLite library in the process that writes it: closing it would drop this one's file locks.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Self

import apsw

from tieout.artifacts.errors import Exit
from tieout.ledger import merkle
from tieout.ledger.database_errors import translated
from tieout.ledger.errors import LedgerError
from tieout.ledger.log import (
    FIRST_PREVIOUS,
    Entry,
    Recorded,
    chain_hash,
    check_repeat,
    missing_entry,
)
from tieout.ledger.row import LedgerRow
from tieout.ledger.sqlite_file import build, check_header, connect, prepare, require_file
from tieout.ledger.writer_lock import WriterLock

PAGE_ROWS: Final = 512
_COLUMNS: Final = "SELECT idx, entry, previous, sha256_hash FROM entry"


def create(path: Path) -> SqliteLog:
    """Make a new ledger and open it for writing.

    Raises LedgerError: ledger.exists, ledger.locked, ledger.no_folder, ledger.unwritable,
    disk.full, disk.failed. A crash or an error leaves either no ledger or a whole, empty one.
    """
    lock = WriterLock.take(path)
    try:
        build(path)
        return SqliteLog(path, lock=lock)
    except BaseException:
        lock.release()
        raise


def open_log(path: Path) -> SqliteLog:
    """Open a ledger for writing.

    Raises LedgerError: ledger.missing (exit 10), ledger.locked (11), ledger.format (12),
    ledger.not_ours, ledger.damaged, ledger.schema, ledger.broken. Nothing is changed then.
    """
    require_file(path)
    lock = WriterLock.take(path)
    try:
        check_header(path)
        return SqliteLog(path, lock=lock)
    except BaseException:
        lock.release()
        raise


def read_log(path: Path) -> SqliteLog:
    """Open a ledger for reading only, without the writer's lock. Raises as `open_log`."""
    require_file(path)
    return SqliteLog(path, lock=None)


class SqliteLog:
    """A Log (see log.py). Made by `create`, `open_log` and `read_log`; threads may share it."""

    def __init__(self, path: Path, *, lock: WriterLock | None) -> None:
        self.path = path
        self._lock = lock
        self._mutex = threading.RLock()
        self._stopped = False
        self._frontier = merkle.Frontier()
        with translated(path):
            self._db = connect(path, write=lock is not None)
            try:
                prepare(self._db, path, write=lock is not None)
            except BaseException:
                self._db.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, rows: Sequence[LedgerRow]) -> tuple[Recorded, ...]:
        """See Log.append. One transaction, one flush, however many rows."""
        offered = [(row.req, row.entry()) for row in rows]
        with self._mutex, translated(self.path):
            self._require_writable()
            if not offered:
                return ()
            try:
                self._db.execute("BEGIN IMMEDIATE")
                receipts = self._insert(offered)
                self._db.execute("COMMIT")
            except BaseException as error:
                # After a failed flush the kernel may have dropped the pages: what this
                # process believes to be on disk can no longer be trusted. Never retried.
                self._stopped = isinstance(error, apsw.IOError)
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            return receipts

    def entry(self, index: int) -> Entry:
        with self._mutex, translated(self.path):
            found = self._fetch(_COLUMNS + " WHERE idx = ?", index)
            if not found:
                raise missing_entry(index, self.size())
            return found[0]

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        end = self.size() if stop is None else stop
        return self._pages(" WHERE idx >= ? AND idx < ?", start, end)

    def find(self, req: str) -> Entry | None:
        with self._mutex, translated(self.path):
            found = self._fetch(_COLUMNS + " WHERE req = ?", req)
            return found[0] if found else None

    def of_trace(self, trace_id: str) -> Iterator[Entry]:
        return self._pages(" WHERE idx >= ? AND trace_id = ?", 0, trace_id)

    def size(self) -> int:
        with self._mutex, translated(self.path):
            return self._head()[0]

    def root(self) -> bytes:
        """See Log.root. The part of the tree that was seen before is not read again."""
        with self._mutex:
            seen = self._frontier.size
            leaves = (merkle.leaf_hash(item.entry) for item in self.entries(seen))
            self._frontier = self._frontier.extend(leaves)
            return self._frontier.root()

    def close(self) -> None:
        with self._mutex, translated(self.path):
            self._db.close()
            if self._lock is not None:
                self._lock.release()

    def _require_writable(self) -> None:
        if self._lock is None:
            raise LedgerError(
                "ledger.read_only",
                "the ledger was opened for reading only",
                place=str(self.path),
                remedy="Open it for writing; only one process can do so at a time.",
                exit_code=Exit.BUG,
            )
        if self._stopped:
            raise LedgerError(
                "ledger.stopped",
                "the disk failed during an earlier append; nothing is recorded any more",
                place=str(self.path),
                remedy="Check the disk, run `tieout verify`, then run the command again.",
                exit_code=Exit.ENVIRONMENT,
            )

    def _insert(self, offered: Sequence[tuple[str, bytes]]) -> tuple[Recorded, ...]:
        size, previous = self._head()
        receipts: list[Recorded] = []
        for req, payload in offered:
            known = self._fetch(_COLUMNS + " WHERE req = ?", req)
            if known:
                check_repeat(known[0].entry, payload, req=req)
                receipts.append(Recorded(known[0].index, known[0].sha256_hash, known[0].entry))
                continue
            link = chain_hash(previous, payload)
            self._db.execute(
                "INSERT INTO entry(idx, entry, previous, sha256_hash) VALUES(?, ?, ?, ?)",
                (size, payload, previous, link),
            )
            receipts.append(Recorded(size, link, payload))
            size, previous = size + 1, link
        return tuple(receipts)

    def _head(self) -> tuple[int, bytes]:
        """How many entries there are, and the hash that the next one builds on."""
        last = self._fetch(_COLUMNS + " ORDER BY idx DESC LIMIT 1")
        return (last[0].index + 1, last[0].sha256_hash) if last else (0, FIRST_PREVIOUS)

    def _fetch(self, query: str, *values: str | int) -> list[Entry]:
        return [
            Entry(index, entry, previous, link)
            for index, entry, previous, link in self._db.execute(query, values)
        ]

    def _pages(self, where: str, start: int, *values: str | int) -> Iterator[Entry]:
        """Entries page by page, so that a slow reader holds no snapshot open against the WAL."""
        query = f"{_COLUMNS}{where} ORDER BY idx LIMIT {PAGE_ROWS}"
        while True:
            with self._mutex, translated(self.path):
                page = self._fetch(query, start, *values)
            yield from page
            if len(page) < PAGE_ROWS:
                return
            start = page[-1].index + 1
