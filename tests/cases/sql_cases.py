"""The shared attacks by kind and the benchmark's golds by database, each a case with its counts."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa
from defog import FOLDER, Outcome, outcomes
from verdict import Verdict, failed, passed

from tieout.artifacts.address import Address
from tieout.executor.check_document import reasons_of
from tieout.executor.engine import Engine, EngineLimits, TableBytes
from tieout.executor.errors import ExecutorError
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.validate import GrantedColumn, GrantedTable
from tieout.executor.sql.verdict import Standing

SQL_KIND: Final = "sql"
ATTACKS: Final = Path("sql", "attacks.jsonl")
ATTACKED: Final = ("bank", "ledger")
COLUMNS: Final = {
    "id": "INTEGER",
    "amt": "DECIMAL(18,2)",
    "memo": "VARCHAR",
    "dt": "DATE",
    "acct_key": "INTEGER",
}
LIMITS: Final = EngineLimits(
    seconds_max=2, memory_bytes_max=256 << 20, rows_max=10_000, result_bytes_max=64 << 20
)
"""Small, so that what should reach a bound does so soon."""
ROWS: Final = 30
PLANTED: Final = "planted-4711-"
"""What begins each text of a cell: no message may hold it."""
TYPED: Final = frozenset(
    {"sql.conversion", "sql.overflow", "sql.several_rows", "sql.value", "sql.too_complex"}
)
"""Failures of a run for the values, each with words of our own."""
ASOF_TIES: Final = "CON07"
"""It is said to be harmless, and is but for the verdict: rows can tie in its ASOF join."""
KNOWN_REFUSALS: Final = (
    Path(__file__).resolve().parent.parent / "executor" / "sql" / "defog_refusals.json"
)


def run_sql(shared: Path, only: str) -> Iterator[Verdict]:
    """Attacks, then golds, as far as the folder holds them and their id begins with `only`."""
    found = chain(_attacks_of(shared, only), _golds_of(shared, only))
    yield from (verdict for verdict in found if verdict.case.startswith(only))


def _wanted(prefix: str, only: str) -> bool:
    return prefix.startswith(only) or only.startswith(prefix)


def _attacks_of(shared: Path, only: str) -> Iterator[Verdict]:
    if (shared / ATTACKS).is_file() and _wanted(f"{SQL_KIND}/attacks-", only):
        yield from _attacks((shared / ATTACKS).read_text("utf-8").splitlines())


def _golds_of(shared: Path, only: str) -> Iterator[Verdict]:
    if not (shared / FOLDER).is_dir() or not _wanted(f"{SQL_KIND}/defog-", only):
        return
    by_database: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes(shared):
        by_database[outcome.gold.db].append(outcome)
    known = json.loads(KNOWN_REFUSALS.read_text("utf-8"))
    yield from (_golds(db, found, known) for db, found in sorted(by_database.items()))


@dataclass(frozen=True)
class End:
    """How an attack ended. how: refused, stopped (by a bound), failed (typed, by the engine), cut
    (at the rows kept), or ran; code: of a refusal, a bound, a failure; standing: where admitted;
    reasons: why it is no function of the data; said: the message of a bound or a failure.
    """

    how: str
    code: str = ""
    standing: Standing | None = None
    reasons: int = 0
    said: str = ""

    def __str__(self) -> str:
        rewritten = self.standing is Standing.REWRITTEN
        return f"{self.how} as rewritten" if rewritten else self.how


def _attacks(lines: Sequence[str]) -> Iterator[Verdict]:
    columns = tuple(GrantedColumn(name, kind) for name, kind in COLUMNS.items())
    tables = {name: GrantedTable(name, columns, ("id",)) for name in ATTACKED}
    ends: dict[str, Counter[str]] = defaultdict(Counter)
    wrong: dict[str, list[str]] = defaultdict(list)
    with Engine(cache=None, limits=LIMITS) as engine:
        zone = engine.info.settings["TimeZone"]
        for attack in map(json.loads, lines):
            end = _end(engine, attack["sql"], tables)
            ends[attack["category"]][str(end)] += 1
            if not meets(end, attack["expected"], zone) and attack["id"] != ASOF_TIES:
                wrong[attack["category"]].append(attack["id"])
    for category, counts in sorted(ends.items()):
        name = f"{SQL_KIND}/attacks-{category}"
        told = ", ".join(f"{count} {end}" for end, count in sorted(counts.items()))
        missed = wrong[category]
        yield failed(name, f"{', '.join(missed)}; {told}") if missed else passed(name, told)


def _end(engine: Engine, sql: str, tables: Mapping[str, GrantedTable]) -> End:
    """Validate a text and, where it is admitted, run it over a few rows."""
    standing = None
    payload = _rows()
    given = {n: TableBytes(Address.of(payload), lambda: payload, kept=False) for n in tables}
    try:
        admitted = engine.validate(sql, tables)
        standing = admitted.verdict.standing
        found = engine.run(admitted, given)
    except SqlRefused as error:
        return End("refused", error.code, reasons=len(reasons_of(error)), said=error.message)
    except ExecutorError as error:
        how = "stopped" if error.code.startswith("limit.") else "failed"
        return End(how, error.code, standing, said=error.message)
    return End("ran" if found.complete else "cut", standing=standing)


def _rows() -> bytes:
    """A few rows of the tables attacked, as an Arrow IPC stream."""
    day = dt.date(2026, 1, 1)
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int32()),
            "amt": pa.array([Decimal(n % 7) for n in range(ROWS)], pa.decimal128(18, 2)),
            "memo": pa.array([f"{PLANTED}{n % 5}" for n in range(ROWS)]),
            "dt": pa.array([day + dt.timedelta(n % 11) for n in range(ROWS)]),
            "acct_key": pa.array([n % 3 for n in range(ROWS)], pa.int32()),
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def meets(end: End, expected: str, zone: str = "UTC") -> bool:
    """Whether an attack may end so. zone: of the engine's clock. An unknown kind is met by none."""
    typed = end.how == "failed" and end.code in TYPED
    ended = end.how in ("ran", "cut")
    masked = PLANTED not in end.said
    match expected:
        case "reject":
            return end.how == "refused" or (end.how == "stopped" and end.standing is None)
        case "allow" | "allow_if_both_agree":
            return ended or (expected != "allow" and end.how == "refused")
        case "allow_but_killed_by_limits":
            return end.how in ("refused", "stopped", "cut") or typed
        case "allow_engine_rejects_value":
            return end.how == "refused" or typed
        case "allow_but_error_text_must_be_ledgered_or_masked":
            return masked and (end.how == "refused" or ended or typed)
        case "allow_only_with_pinned_TimeZone_else_reject":
            return end.how == "refused" or (ended and zone == "UTC")
    if not expected.startswith("rewrite_or_flag"):
        return False
    if end.how == "refused":
        return end.reasons > 0
    return ended and end.standing is Standing.REWRITTEN


def _golds(db: str, found: Sequence[Outcome], known: Mapping[str, Mapping[str, object]]) -> Verdict:
    name = f"{SQL_KIND}/defog-{db}"
    admitted = [outcome for outcome in found if outcome.admitted]
    rewritten = sum(outcome.standing == Standing.REWRITTEN for outcome in admitted)
    told = f"{len(admitted)} of {len(found)} admitted, {rewritten} rewritten"
    wrong = [
        f"{outcome.gold.id}: {outcome.differs or outcome.standing}"
        for outcome in found
        if (outcome.differs or not outcome.admitted)
        and outcome.gold.id not in known["differ" if outcome.admitted else "refused"]
    ]
    return failed(name, "; ".join([told, *wrong])) if wrong else passed(name, told)
