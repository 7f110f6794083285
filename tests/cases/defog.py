"""The golds of a public benchmark through the gate, and their results beside plain DuckDB's.

DIR/data/defog holds questions.jsonl, schema.json and one folder of CSV files for each database.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import duckdb
import pyarrow as pa

from tieout.artifacts.address import Address
from tieout.executor.engine import Engine, EngineLimits, TableBytes
from tieout.executor.errors import ExecutorError
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.validate import GrantedColumn, GrantedTable
from tieout.executor.sql.verdict import Standing

FOLDER: Final = Path("data", "defog")
AS_OF: Final = "2026-11-30"
"""The day on which the data was made: its dates count back from there."""
CLOCK: Final = {
    r"\bCURRENT_DATE\b": f"DATE '{AS_OF}'",
    r"\bCURRENT_TIMESTAMP\b|\bNOW\(\)": f"TIMESTAMPTZ '{AS_OF} 23:59:59.999999+00'",
}
"""What plain DuckDB is given in the place of the clock."""
RELATIVE_TOLERANCE: Final = 1e-9
ABSOLUTE_TOLERANCE: Final = 1e-11

Arrow: TypeAlias = Any
Row: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Gold:
    """One query of the benchmark."""

    id: str
    db: str
    sql: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a gold.

    standing: of the verdict, or the refusal's code. reasons, rewrites: names. differs: "" or how
    its result differs from plain DuckDB's.
    """

    gold: Gold
    standing: str
    admitted: bool
    reasons: tuple[str, ...] = ()
    rewrites: tuple[str, ...] = ()
    differs: str = ""


@dataclass(frozen=True, slots=True)
class Database:
    """Typed tables, as the gate is told of them, as the engine reads them, and for plain DuckDB."""

    granted: Mapping[str, GrantedTable]
    bytes: Mapping[str, TableBytes]
    arrow: Mapping[str, Arrow]


def golds_of(shared: Path) -> list[Gold]:
    """In the order of the file."""
    lines = (shared / FOLDER / "questions.jsonl").read_text("utf-8").splitlines()
    documents = [json.loads(line) for line in lines]
    return [Gold(d["id"], d["db"], d["sql"]) for d in documents]


def database_of(shared: Path, name: str) -> Database:
    """The tables of one database, with the types and keys of schema.json."""
    schema = json.loads((shared / FOLDER / "schema.json").read_text("utf-8"))[name]
    granted, bytes_, arrow = {}, {}, {}
    with duckdb.connect() as plain:
        plain.execute("SET TimeZone='UTC'")
        for table, told in schema.items():
            columns = [(column, kind) for column, kind in told["columns"]]
            path = shared / FOLDER / name / f"{table}.csv"
            read = plain.read_csv(
                str(path), header=True, na_values="\\N", columns=dict(columns)
            ).to_arrow_table()
            granted[table] = GrantedTable(
                table,
                tuple(GrantedColumn(column, kind) for column, kind in columns),
                tuple(told["primary_key"] or ()),
            )
            arrow[table] = read
            payload = _stream(read)
            bytes_[table] = TableBytes(Address.of(payload), partial(bytes, payload), kept=False)
    return Database(granted, bytes_, arrow)


def outcomes(shared: Path) -> Iterator[Outcome]:
    """Every gold: validated, run, compared."""
    databases: dict[str, Database] = {}
    with Engine(cache=None, limits=EngineLimits()) as engine:
        for gold in golds_of(shared):
            if gold.db not in databases:
                databases[gold.db] = database_of(shared, gold.db)
            yield outcome_of(engine, gold, databases[gold.db])


def outcome_of(engine: Engine, gold: Gold, database: Database) -> Outcome:
    """One gold."""
    try:
        admitted = engine.validate(gold.sql, database.granted, as_of=AS_OF)
    except SqlRefused as refused:
        names = tuple(reason.name for reason in refused.reasons)
        return Outcome(gold, refused.code, admitted=False, reasons=names, differs=refused.message)
    verdict = admitted.verdict
    names = tuple(dict.fromkeys(reason.name for reason in verdict.reasons))
    try:
        ours = engine.run(admitted, database.bytes).table
        differs = difference(
            ours, _plain(gold.sql, database), exact=verdict.standing == Standing.FUNCTION
        )
    except (ExecutorError, duckdb.Error) as error:
        differs = f"not run: {str(error).splitlines()[0]}"
    return Outcome(gold, verdict.standing, True, names, verdict.names, differs)


def _plain(sql: str, database: Database) -> Arrow:
    """The result of DuckDB as it comes, but for the clock."""
    for word, literal in CLOCK.items():
        sql = re.sub(word, literal, sql, flags=re.IGNORECASE)
    with duckdb.connect() as plain:
        plain.execute("SET TimeZone='UTC'")
        for name, table in database.arrow.items():
            plain.register(name, table)
        return plain.sql(sql).to_arrow_table()


def _stream(table: Arrow) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return bytes(sink.getvalue())


def difference(ours: Arrow, plain: Arrow, *, exact: bool) -> str:
    """ "" when both hold the same bag of rows; numbers may differ a little unless exact."""
    if ours.num_columns != plain.num_columns:
        return f"{ours.num_columns} columns, not {plain.num_columns}"
    left, right = _rows(ours), _rows(plain)
    if len(left) != len(right):
        return f"{len(left)} rows, not {len(right)}"
    if Counter(map(repr, left)) == Counter(map(repr, right)):
        return ""
    if exact:
        return "other values"
    near = all(map(_near, sorted(left, key=_place), sorted(right, key=_place)))
    return "" if near else "other values"


def _rows(table: Arrow) -> list[Row]:
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True))


def _near(left: Row, right: Row) -> bool:
    return all(_alike(a, b) for a, b in zip(left, right, strict=True))


def _alike(left: object, right: object) -> bool:
    if isinstance(left, float | int | Decimal) and isinstance(right, float | int | Decimal):
        return (
            math.isclose(left, right, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)
            or left == right
        )
    return left == right


def _place(row: Row) -> Sequence[str]:
    """An order that brings together what is nearly equal: numbers count to six digits."""
    return [
        f"{float(cell):.6e}" if isinstance(cell, float | int | Decimal) else repr(cell)
        for cell in row
    ]


def figures(found: Sequence[Outcome]) -> dict[str, object]:
    """Counts over all golds."""
    admitted = [outcome for outcome in found if outcome.admitted]
    reasons = Counter(name for outcome in admitted for name in outcome.reasons)
    rewrites = Counter(name for outcome in admitted for name in outcome.rewrites)
    return {
        "golds": len(found),
        "admitted": len(admitted),
        "standing": dict(sorted(Counter(outcome.standing for outcome in found).items())),
        "reasons": dict(sorted(reasons.items())),
        "rewrites": dict(sorted(rewrites.items())),
        "results_compared_with_plain_duckdb": len(admitted),
        "results_that_differ": sum(bool(outcome.differs) for outcome in admitted),
        "as_of": AS_OF,
    }


if __name__ == "__main__":
    # python tests/cases/defog.py DIR prints the figures that bench/results/defog.json keeps.
    print(json.dumps(figures(list(outcomes(Path(sys.argv[1])))), indent=1))
