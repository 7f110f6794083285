"""What is admitted gives one result in each order in which the rows may lie: usual and hostile."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.table import canonical
from tieout.executor.sql import functions, session
from tieout.executor.sql.equal_values import DIVIDES, TELLS_ZEROS
from tieout.executor.sql.examine import examine
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.shape import walk
from tieout.executor.sql.validate import GrantedColumn, GrantedTable, validate
from tieout.executor.sql.vocabulary import MAKES_ROWS

QUERIES = [
    line
    for line in Path(__file__).with_name("row_orders.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
BANK = {"id": "BIGINT", "dt": "DATE", "memo": "VARCHAR", "ccy": "VARCHAR", "amt": "DECIMAL(18,2)"}
BANK |= {"big": "BIGINT", "f": "DOUBLE", "q": "BIGINT"}
GL = {"k": "BIGINT", "bid": "BIGINT", "x": "BIGINT", "y": "DECIMAL(18,2)", "ccy": "VARCHAR"}
NO_KEY = {"a": "BIGINT", "b": "BIGINT", "c": "VARCHAR"}
TABLES = {"bank": (BANK, ("id",)), "gl": (GL, ("k",)), "nk": (NO_KEY, ())}
ORDERS = 6
FULL = 9_007_199_254_740_992
"""From here on, floats lack every other whole number."""


def rows() -> dict[str, list[tuple[object, ...]]]:
    """Ties in everything but the keys, zeros of both signs, numbers that floats do not tell."""
    chosen = random.Random(5)
    memos = ["Rent", "rent", "fee", "Fee", "a", "A", None, "x y", "y x", "b a"]
    bank = [
        (
            *(n, f"2026-01-0{1 + n % 7}", memos[n % 10], ["GBP", "EUR", "USD", None][n * 7 % 4]),
            *(Decimal(chosen.randint(-5, 5)), FULL + n % 3, [0.0, -0.0, 1.5, -1.5][n % 4], n % 4),
        )
        for n in range(1, 61)
    ]
    gl = [
        (n, n * 3 % 40 + 1, [5, 5, 7, 8][n % 4], Decimal(n % 5), ["GBP", "EUR", "USD"][n % 3])
        for n in range(1, 31)
    ]
    return {"bank": bank, "gl": gl, "nk": [(n % 3, n % 5, f"v{n % 4}") for n in range(40)]}


def filled(order: int):
    """A locked engine that holds the rows in an order of its own."""
    inside = session.connect()
    for name, (columns, _key) in TABLES.items():
        session.declare(inside, name, columns)
        given = rows()[name]
        if order == 1:
            given.reverse()
        elif order:
            random.Random(order).shuffle(given)
        marks = ", ".join("?" for _ in columns)
        inside.executemany(f"INSERT INTO {name} VALUES ({marks})", given).fetchall()
    session.lock(inside, memory_bytes=1 << 30)
    return inside


@pytest.fixture(scope="module")
def engines():
    made = [filled(order) for order in range(ORDERS)]
    yield made
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def judged():
    granted = {
        name: GrantedTable(name, tuple(GrantedColumn(*c) for c in columns.items()), key)
        for name, (columns, key) in TABLES.items()
    }
    inside = filled(0)
    yield lambda sql: validate(
        sql, granted, examine=lambda q, t: examine(inside, q, t, chars_max=32_768)
    )
    inside.close()


def outcome(engine, sql: str) -> str:
    """The digest of what a text gives, sequence aside, or the kind of its failure."""
    table = engine.sql(sql).to_arrow_table()
    try:
        return str(canonical(table).digest)
    except ArtifactError as error:
        return error.code


@pytest.mark.parametrize("line", QUERIES, ids=range(len(QUERIES)))
def test_an_admitted_text_gives_one_result_in_each_order_of_the_rows(line, judged, engines):
    """A line: what is to become of it (code, "as asked", "rewritten" or "any"), and the text."""
    expected, _, sql = line.partition(" | ")
    try:
        found = judged(sql)
    except SqlRefused as refused:
        assert expected in (refused.code, "any"), refused.message
        return
    named = "rewritten" if found.verdict.rewrites else "as asked"
    assert expected in (named, "any")
    assert len({outcome(engine, found.executed) for engine in engines}) == 1


def test_the_orders_of_rows_differ_enough_to_show_it(engines):
    """So that the test above can fail."""
    seen: Mapping[str, set[str]] = {
        sql: {outcome(engine, sql) for engine in engines}
        for sql in (
            "SELECT first(g.m) AS v FROM bank b LEFT JOIN (SELECT 1 AS m) g ON b.q = g.m",
            "SELECT max(f)::VARCHAR AS s FROM bank WHERE f = 0",
            "SELECT any_value(big) AS b FROM bank WHERE big = 9007199254740992e0",
        )
    }
    assert min(map(len, seen.values())) > 1


def test_each_function_of_the_engine_that_makes_rows_of_one_is_known(engines):
    """Macros that unnest are told by what they are made of."""
    made = engines[0].sql(
        "SELECT function_name FROM duckdb_functions() WHERE function_type = 'macro' "
        "AND macro_definition ILIKE '%unnest(%'"
    )
    admitted = {name for (name,) in made.fetchall() if functions.is_open(name)}
    assert admitted | {"unnest"} == MAKES_ROWS


ARGUMENTS = ["{z}", "1.5e0", "-1e0", "'{{:.2f}}'", "[{z}]"]


def shown(engine, call: str, zero: str) -> str:
    """What a call gives, a float zero of either sign told alike."""
    try:
        value = engine.sql(f"SELECT {call.format(z=zero)} AS r").fetchall()
    except duckdb.Error as error:
        return type(error).__name__
    return re.sub(r"(?<!')-0\.0", "0.0", repr(value))


@pytest.mark.slow
def test_each_function_that_tells_zeros_apart_is_known(engines):
    """All admitted functions of one or two arguments; the casts to texts are told by type."""
    named = engines[0].sql("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()
    found = set()
    for (name,) in named:
        if not functions.is_open(name) or not name.isidentifier():
            continue
        for given in (*itertools.product(ARGUMENTS, repeat=2), ARGUMENTS[:1]):
            call = f'"{name}"({", ".join(given)})'
            seen = {shown(engines[0], call, zero) for zero in ("0e0", "(-(0e0))")}
            if len(seen) > 1 and not casts(engines[0], call):
                found.add(name)
    assert found <= TELLS_ZEROS | DIVIDES
    assert {"signbit", "pow", "fdiv", "atan2", "format"} <= found


def casts(engine, call: str) -> bool:
    """Whether the binder casts a float of a call to a text by itself."""
    text = f"SELECT {call.format(z='f')} AS r FROM bank"
    ((plan,),) = engine.execute("SELECT json_serialize_plan(?::VARCHAR)", [text]).fetchall()
    return any(
        part.get("qname") == {"path": ["__cast"]} and "VARCHAR" in str(part["return_type"])
        for part in walk(json.loads(plan))
    )


TWO_ROUNDS = [
    "SELECT string_agg(c || (SELECT first(memo) FROM bank WHERE memo IS NOT NULL), ',') AS v FROM nk",
    "SELECT list_last(list((SELECT last(memo) FROM bank WHERE memo IS NOT NULL) || c)) AS v FROM nk",
]


@pytest.mark.parametrize("sql", TWO_ROUNDS)
def test_a_choice_inside_what_an_order_repeats_is_seen_by_the_countercheck(sql, judged, engines):
    found = judged(sql)
    assert outcome(engines[0], found.executed) != outcome(engines[0], found.countercheck)
