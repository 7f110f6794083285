"""The log: entries in one order, each bound to all before it. What every log promises.

Contract (one suite, `tests/ledger/test_log_contract.py`, runs it on every log):
- `append` MUST NOT return before all rows are durable, and MUST record either all of them or
  none. Indexes start at 0 and have no gap.
- A row whose `req` is recorded already MUST NOT be recorded again: with an equal entry (the
  time of execution apart) the earlier receipt is returned; another entry is an error.
- Entries are returned as the bytes that were hashed; nothing is ever changed or removed.

The chain (DESIGN §5, docs/FORMAT.md §7): leaf = SHA-256(0x00 || entry) as in RFC 6962,
sha256_hash = SHA-256(0x02 || previous || leaf), previous = the sha256_hash of the row before,
32 zero bytes for the first.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Final, Protocol

from tieout.artifacts.errors import Exit
from tieout.ledger import merkle
from tieout.ledger.errors import LedgerError
from tieout.ledger.row import LedgerRow

FIRST_PREVIOUS: Final = bytes(32)
_ANY_TIME: Final = "1970-01-01T00:00:00.000000Z"


@dataclass(frozen=True)  # no slots: the row is parsed once, when it is first asked for
class Entry:
    """One recorded entry. index: from 0. entry: the canonical bytes, as hashed."""

    index: int
    entry: bytes
    previous: bytes
    sha256_hash: bytes

    @cached_property
    def row(self) -> LedgerRow:
        """The entry as values. Raises LedgerError `entry.malformed` if it was tampered with."""
        return LedgerRow.parse(self.entry)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The receipt of an append. entry: the bytes that are recorded under this index; they
    differ from what was offered, by the time of execution, when the row was there already."""

    index: int
    sha256_hash: bytes
    entry: bytes


class Log(Protocol):
    """Entries by index; see the module's contract."""

    def append(self, rows: Sequence[LedgerRow]) -> tuple[Recorded, ...]:
        """Record the rows in this order, durably, all or none; one receipt for each.

        Raises LedgerError: ledger.req_reused, ledger.read_only, ledger.broken, ledger.stopped,
        disk.full, disk.failed.
        """
        ...

    def entry(self, index: int) -> Entry:
        """Raises LedgerError `entry.missing`."""
        ...

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Those with start <= index < stop, in order, as of the moment of the call or later."""
        ...

    def find(self, req: str) -> Entry | None:
        """The entry recorded for this request, if there is one."""
        ...

    def of_trace(self, trace_id: str) -> Iterator[Entry]:
        """The entries of one run, in order of index."""
        ...

    def size(self) -> int:
        """How many entries there are."""
        ...

    def root(self) -> bytes:
        """The RFC 6962 root over all entries (32 bytes)."""
        ...

    def close(self) -> None:
        """Let go of files and locks; a second call does nothing."""
        ...


def chain_hash(previous: bytes, entry: bytes) -> bytes:
    """SHA-256(0x02 || previous || leaf): binds the entry to every one before it."""
    return sha256(b"\x02" + previous + merkle.leaf_hash(entry)).digest()


def check_repeat(stored: bytes, offered: bytes, *, req: str) -> None:
    """Accept a repeated request that says the same, the time of execution apart.

    Raises LedgerError `ledger.req_reused` when it says something else.
    """
    if stored != offered and _timeless(stored) != _timeless(offered):
        raise LedgerError(
            "ledger.req_reused",
            f"the request {req!r:.120} is recorded already, with another content",
            place=f"req {req:.120}",
            remedy="Give each step its own req; repeat one only to resend the same row.",
            exit_code=Exit.REFUSED,
        )


def missing_entry(index: int, size: int) -> LedgerError:
    """The error for an index that the log does not have."""
    return LedgerError(
        "entry.missing",
        f"there is no entry {index}; the ledger has {size}",
        place=f"entry {index}",
        remedy="`tieout log` lists the entries.",
        exit_code=Exit.REFUSED,
    )


def _timeless(entry: bytes) -> LedgerRow:
    return replace(LedgerRow.parse(entry), execution_timestamp=_ANY_TIME)


class MemoryLog:
    """A log that lives as long as its process; replay writes into one."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._by_req: dict[str, int] = {}
        self._by_trace: dict[str, list[int]] = {}
        self._lock = threading.Lock()

    def append(self, rows: Sequence[LedgerRow]) -> tuple[Recorded, ...]:
        with self._lock:
            made: list[Entry] = []
            fresh: dict[str, int] = {}
            receipts: list[Recorded] = []
            for row in rows:
                offered = row.entry()
                index = self._by_req.get(row.req, fresh.get(row.req))
                if index is None:
                    known = self._next(made, offered)
                    made.append(known)
                    fresh[row.req] = known.index
                else:
                    known = (
                        self._entries[index]
                        if index < len(self._entries)
                        else made[index - len(self._entries)]
                    )
                    check_repeat(known.entry, offered, req=row.req)
                receipts.append(Recorded(known.index, known.sha256_hash, known.entry))
            self._keep(made)
            return tuple(receipts)

    def entry(self, index: int) -> Entry:
        if not 0 <= index < len(self._entries):
            raise missing_entry(index, len(self._entries))
        return self._entries[index]

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        end = self.size() if stop is None else min(stop, self.size())
        return (self._entries[index] for index in range(max(start, 0), end))

    def find(self, req: str) -> Entry | None:
        index = self._by_req.get(req)
        return None if index is None else self._entries[index]

    def of_trace(self, trace_id: str) -> Iterator[Entry]:
        return (self._entries[index] for index in tuple(self._by_trace.get(trace_id, ())))

    def size(self) -> int:
        return len(self._entries)

    def root(self) -> bytes:
        return merkle.root(merkle.leaf_hash(item.entry) for item in tuple(self._entries))

    def close(self) -> None:
        """Nothing to let go of."""

    def _next(self, made: list[Entry], payload: bytes) -> Entry:
        last = made or self._entries
        previous = last[-1].sha256_hash if last else FIRST_PREVIOUS
        index = len(self._entries) + len(made)
        return Entry(index, payload, previous, chain_hash(previous, payload))

    def _keep(self, made: list[Entry]) -> None:
        for item in made:
            self._entries.append(item)
            self._by_req[item.row.req] = item.index
            self._by_trace.setdefault(item.row.trace_id, []).append(item.index)
