"""The shared attacks by kind and the benchmark's golds by database, each a case with its counts."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from defog import FOLDER, Outcome, outcomes
from verdict import Verdict, failed, passed

from tieout.executor.engine import Engine, EngineLimits
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
TWO_COLUMNS_OF_ONE_NAME: Final = "CON07"
"""It is said to be harmless; this gate refuses two result columns of one name on purpose."""
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


def _attacks(lines: Sequence[str]) -> Iterator[Verdict]:
    columns = tuple(GrantedColumn(name, kind) for name, kind in COLUMNS.items())
    tables = {name: GrantedTable(name, columns, ("id",)) for name in ATTACKED}
    ends: dict[str, Counter[str]] = defaultdict(Counter)
    wrong: dict[str, list[str]] = defaultdict(list)
    with Engine(cache=None, limits=EngineLimits(seconds_max=2)) as engine:
        for attack in map(json.loads, lines):
            end = _end(engine, attack["sql"], tables)
            ends[attack["category"]][end] += 1
            if not _meets(end, attack["expected"]) and attack["id"] != TWO_COLUMNS_OF_ONE_NAME:
                wrong[attack["category"]].append(attack["id"])
    for category, counts in sorted(ends.items()):
        name = f"{SQL_KIND}/attacks-{category}"
        told = ", ".join(f"{count} {end}" for end, count in sorted(counts.items()))
        missed = wrong[category]
        yield failed(name, f"{', '.join(missed)}; {told}") if missed else passed(name, told)


def _end(engine: Engine, sql: str, tables: Mapping[str, GrantedTable]) -> str:
    """refused, stopped by a bound, rewritten or admitted as it stands."""
    try:
        admitted = engine.validate(sql, tables)
    except SqlRefused:
        return "refused"
    except ExecutorError:
        return "stopped"
    return "rewritten" if admitted.verdict.reasons else "admitted"


def _meets(end: str, expected: str) -> bool:
    if expected == "reject":
        return end in ("refused", "stopped")
    if expected == "allow":
        return end in ("admitted", "rewritten")
    # The rest may pass or be refused; what is no function of the data may not run as it stands.
    return end != "admitted" if expected.startswith("rewrite_or_flag") else True


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
