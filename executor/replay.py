"""Running the past again: what a replay may read, and what differs from what was recorded.

A replay sees only snapshots' raw bytes and manifests, the questions, and the replies of the
model. Tables, texts, indexes, results, prompts and reports are hidden from it and must come out
again, address by address: a replay that could read its own results would prove nothing.
Source: DESIGN §8.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tieout.artifacts.address import Address
from tieout.artifacts.layers import Overlay, Restricted
from tieout.artifacts.memory import MemoryStore
from tieout.artifacts.store import Store
from tieout.executor.ending import is_ending
from tieout.executor.errors import ExecutorError
from tieout.executor.receive import Received
from tieout.executor.snapshot import build, source_of
from tieout.executor.sql.settings import HOST_FACTS
from tieout.ledger.log import Entry, Log
from tieout.ledger.row import Kind, LedgerRow


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that came out otherwise. place: subject and kind; what: which part of the row."""

    place: str
    what: str
    recorded: str
    replayed: str


def rows_of(log: Log, run: str) -> tuple[Entry, ...]:
    """The entries of a run. Raises ExecutorError replay.unknown_run."""
    entries = tuple(log.of_trace(run))
    if not any(entry.row.kind is Kind.RUN for entry in entries):
        raise ExecutorError(
            "replay.unknown_run",
            f"the ledger has no run {run!r}",
            place=run,
            remedy="`tieout log` lists the runs.",
        )
    return entries


def run_row(entries: Sequence[Entry]) -> LedgerRow:
    """The row that opened the run."""
    return next(entry.row for entry in entries if entry.row.kind is Kind.RUN)


def readable(store: Store, entries: Sequence[Entry]) -> frozenset[Address]:
    """The addresses that a replay may read: evidence that came from outside, never results."""
    allowed: set[Address] = set()
    for entry in entries:
        row = entry.row
        if row.kind is Kind.RUN:
            allowed |= {part.address for part in row.attachments}
            if row.deterministic_output is not None:
                address = row.deterministic_output.address
                allowed |= {address, *_plans(store.get(address))}
            for item in row.inputs:
                allowed.add(item.address)
                _, files = source_of(store.get(item.address))
                allowed |= {address for _, address in files}
        elif row.kind is Kind.MODEL_REPLY and row.deterministic_output is not None:
            allowed.add(row.deterministic_output.address)
            allowed |= {p.address for p in row.attachments if p.role.startswith("attempt:")}
        elif row.kind is Kind.FAILURE:
            allowed |= {p.address for p in row.attachments if p.role.startswith("attempt:")}
    return frozenset(allowed)


def _plans(questions: bytes) -> set[Address]:
    """The plan files that a run's questions name."""
    listed = json.loads(questions)["questions"]
    return {Address.parse(question["plan"]) for question in listed if question["plan"]}


def replay_store(store: Store, entries: Sequence[Entry]) -> Store:
    """A store that reads only what a replay may read, and writes into memory."""
    return Overlay(Restricted(store, readable(store, entries)), MemoryStore())


def rebuild_snapshots(store: Store, row: LedgerRow) -> tuple[Difference, ...]:
    """Read the run's sources again from their raw bytes, into the store, and compare manifests."""
    differences = []
    for item in row.inputs:
        source, files = source_of(store.get(item.address))
        received = [Received(name, store.get(address)) for name, address in files]
        snapshot = build(source, received)
        for made in (snapshot.manifest, *snapshot.parts, *snapshot.loose):
            store.put(made.payload, retention=made.retention)
        if snapshot.address != item.address:
            differences.append(
                Difference(
                    f"source/{source.name}", "manifest", str(item.address), str(snapshot.address)
                )
            )
    return tuple(differences)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Recorded rows against replayed ones.

    compared: rows that exist on both sides; addresses: artifacts compared by address; digests:
    tables compared by content digest; builds: executors named otherwise on the two sides; hosts:
    what else differs of the machines (libc, cpu, sandbox), which is told and is no other build.
    """

    compared: int
    addresses: int
    digests: int
    differences: tuple[Difference, ...]
    builds: tuple[Difference, ...]
    hosts: tuple[Difference, ...] = ()


def compare(
    recorded: Iterable[Entry], replayed: Iterable[Entry], *, finished: bool = True
) -> Comparison:
    """Compare by `req`, everything but time, the store's own version and the builds.

    finished: False for a run that was cut off; what a replay then makes beyond its end is no
    difference.
    """
    new = {entry.row.req: entry.row for entry in replayed}
    differences: list[Difference] = []
    builds: list[Difference] = []
    hosts: list[Difference] = []
    compared = addresses = digests = 0
    for entry in recorded:
        old = entry.row
        if old.kind is Kind.SNAPSHOT or is_ending(old):
            continue
        row = new.pop(old.req, None)
        place = f"{old.subject} {old.kind}"
        if row is None:
            differences.append(Difference(place, "row", "recorded", "did not come out"))
            continue
        compared += 1
        names = _names(old)
        addresses += len(names)
        digests += old.deterministic_output is not None and (
            old.deterministic_output.content_digest is not None
        )
        differences += _row_differences(place, old, row)
        if _executor(old) != _executor(row):
            builds.append(Difference(place, "executor", _executor(old), _executor(row)))
        if _host(old) != _host(row):
            hosts.append(Difference(place, "host", _host(old), _host(row)))
    differences += [
        Difference(f"{row.subject} {row.kind}", "row", "not recorded", "came out")
        for row in new.values()
        if finished
    ]
    return Comparison(compared, addresses, digests, tuple(differences), tuple(builds), tuple(hosts))


def _names(row: LedgerRow) -> dict[str, str]:
    """Every address of a row by what it is to it."""
    names = {f"attachment {p.role}": str(p.address) for p in row.attachments}
    names |= {f"input {n}:{i.role}": str(i.address) for n, i in enumerate(row.inputs)}
    if row.executed is not None:
        names["executed"] = str(row.executed)
    if row.deterministic_output is not None:
        names["output"] = str(row.deterministic_output.address)
    return names


def _row_differences(place: str, old: LedgerRow, new: LedgerRow) -> list[Difference]:
    before, after = _facts(old), _facts(new)
    return [
        Difference(place, what, before.get(what, "none"), after.get(what, "none"))
        for what in sorted(before.keys() | after.keys())
        if before.get(what) != after.get(what)
    ]


def _facts(row: LedgerRow) -> dict[str, str]:
    facts = _names(row)
    output = row.deterministic_output
    if output is not None:
        facts["content digest"] = str(output.content_digest)
        facts["rows"] = str(output.row_count)
        facts["control totals"] = ", ".join(f"{t.column}={t.value}" for t in output.control_totals)
    facts["outcome"] = f"{row.outcome.status} {row.outcome.code} {row.outcome.message}"
    facts["asked"] = str(row.raw_llm_instruction)
    return facts


def _executor(row: LedgerRow) -> str:
    info = row.executor
    settings = (f"{k}={v}" for k, v in sorted(info.settings.items()) if k not in HOST_FACTS)
    return f"{info.name} {info.version} {info.build} ({', '.join(settings)})"


def _host(row: LedgerRow) -> str:
    """What a row says of its machine; "" where it says nothing, as rows of early versions do."""
    settings = row.executor.settings
    return ", ".join(f"{key}={settings[key]}" for key in HOST_FACTS if key in settings)
