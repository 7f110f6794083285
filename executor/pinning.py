"""Pinning sources in the ledger: a row for each snapshot, none for bytes that are pinned already.

Each source's snapshots are counted in their `req`, so that the newest is found by a few look-ups
however long the ledger is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tieout.artifacts.address import Address
from tieout.artifacts.errors import RoomError
from tieout.executor.catalog import Source
from tieout.executor.errors import SourcesRefused
from tieout.executor.limits import Limits
from tieout.executor.receive import receive
from tieout.executor.record import HOUSE, Recorder, RowDraft
from tieout.executor.snapshot import Snapshot, build
from tieout.ledger.log import Entry, Log
from tieout.ledger.row import Kind


@dataclass(frozen=True, slots=True)
class PinnedSource:
    """A source and its newest snapshot. fresh: pinned by this call; rows: rows or documents."""

    name: str
    manifest: Address
    fresh: bool
    rows: int


def newest(log: Log, source: str) -> Entry | None:
    """The newest snapshot's entry of a source, or None."""
    return _newest(log, source)[1]


def _newest(log: Log, source: str) -> tuple[int, Entry | None]:
    """How many snapshots a source has, and the newest; found by doubling and halving."""
    low, high = 0, 1
    found: Entry | None = None
    while (entry := log.find(_req(source, high))) is not None:
        low, high, found = high, high * 2, entry
    while high - low > 1:
        middle = (low + high) // 2
        entry = log.find(_req(source, middle))
        if entry is None:
            high = middle
        else:
            low, found = middle, entry
    return low, found


def _req(source: str, number: int) -> str:
    return f"snapshot/{source}/{number}"


def pin(
    sources: Iterable[Source], *, root: Path, recorder: Recorder, limits: Limits
) -> tuple[PinnedSource, ...]:
    """Read each source as it is now and pin it, unless just these bytes were pinned last.

    All sources are read before anything is stored: a fault in one pins none.
    Raises ExecutorError as receiving and reading do, SourcesRefused where several sources have
    a fault; what the store and the log raise.
    """
    snapshots: list[Snapshot] = []
    faults: list[RoomError] = []
    for source in sources:
        try:
            snapshots.append(build(source, receive(source, root, limits)))
        except RoomError as error:
            faults.append(error)
    if faults:
        raise SourcesRefused(faults[0], tuple(faults[1:])) if faults[1:] else faults[0]
    return tuple(_pin(snapshot, recorder) for snapshot in snapshots)


def _pin(snapshot: Snapshot, recorder: Recorder) -> PinnedSource:
    count, last = _newest(recorder.log, snapshot.source)
    output = None if last is None else last.row.deterministic_output
    address = snapshot.address
    fresh = output is None or output.address != address
    if fresh:
        recorder.record(
            RowDraft(
                kind=Kind.SNAPSHOT,
                subject=f"source/{snapshot.source}",
                sequence=count + 1,
                tool="snapshot",
                req=_req(snapshot.source, count + 1),
                output=snapshot.manifest,
                parts=snapshot.parts,
                loose=snapshot.loose,
                executor=HOUSE,
            )
        )
    return PinnedSource(snapshot.source, address, fresh, snapshot.rows)
