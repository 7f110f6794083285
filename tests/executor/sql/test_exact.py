"""Exact arithmetic: what runs instead, and that all else stays."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import pytest

from tieout.executor.sql import session
from tieout.executor.sql.examine import examine
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.validate import GrantedColumn, GrantedTable, validate

COLUMNS = {
    "id": "INTEGER",
    "k": "INTEGER",
    "a": "DECIMAL(18,2)",
    "b": "DECIMAL(18,4)",
    "i": "INTEGER",
    "d": "DOUBLE",
}
TABLES = {
    "t": GrantedTable("t", tuple(GrantedColumn(c, kind) for c, kind in COLUMNS.items()), ("id",))
}
ROWS = [
    (1, 1, Decimal("10.00"), Decimal("0.3300"), 3, 0.1),
    (2, 1, Decimal("-20.01"), Decimal("7.1250"), -7, 0.2),
    (3, 2, Decimal("0.05"), Decimal("-1.0001"), 11, -0.0),
    (4, 2, None, None, None, None),
]


@pytest.fixture(scope="module")
def engine():
    running = session.connect()
    session.declare(running, "t", COLUMNS)
    running.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", ROWS)
    session.lock(running, memory_bytes=1 << 30)
    yield running
    running.close()


@pytest.fixture(scope="module")
def gate(engine):
    def admitted(sql):
        return validate(sql, TABLES, examine=lambda q, t: examine(engine, q, t, chars_max=32_768))

    return admitted


def run(engine, sql):
    return engine.cursor().execute(sql).fetchall()


def q(over: str, under: str, kinds: str = "DECIMAL(18,2) DECIMAL(10,0)", places: int = 20) -> str:
    left, right = kinds.split()
    return f"decimal_division(CAST({over} AS {left}), CAST({under} AS {right}), {places})"


def mean(what: str, kind: str = "DECIMAL(38,18)") -> str:
    return f"decimal_average(CAST({what} AS {kind}))"


REWRITTEN = {
    "a / i": q("a", "i"),
    "a/i": q("a", "i"),
    "i / k": q("i", "k", "DECIMAL(10,0) DECIMAL(10,0)"),
    "a / /* by */ i": q("a", "i"),
    "a -- over\n / -- by\n i": q("a", "i"),
    "((a)) / ((i))": q("((a))", "((i))"),
    "(a + b) / i": q("(a + b)", "i", "DECIMAL(21,4) DECIMAL(10,0)"),
    "-a / -i": q("-a", "-i"),
    "a::DECIMAL(10,1) / i::INT": q("a::DECIMAL(10,1)", "i::INT", "DECIMAL(10,1) DECIMAL(10,0)"),
    "CAST(d AS DECIMAL(10,1)) / CAST(k AS SMALLINT)": q(
        "CAST(d AS DECIMAL(10,1))", "CAST(k AS SMALLINT)", "DECIMAL(10,1) DECIMAL(5,0)"
    ),
    "a / nullif(i, 0)": q("a", "nullif(i, 0)"),
    "a / CASE WHEN i / k > 1 THEN 2 ELSE 3 END": q(
        "a", f"CASE WHEN {q('i', 'k', 'DECIMAL(10,0) DECIMAL(10,0)')} > 1 THEN 2 ELSE 3 END"
    ),
    "100.0 * count(*) / sum(i)": q("100.0 * count(*)", "sum(i)", "DECIMAL(19,1) DECIMAL(38,0)"),
    "sum(a) / count(*)": q("sum(a)", "count(*)", "DECIMAL(20,2) DECIMAL(19,0)"),
    "a / b": q("a", "b", "DECIMAL(18,2) DECIMAL(18,4)", 18),
    "b / a": q("b", "a", "DECIMAL(18,4) DECIMAL(18,2)"),
    "sum(a) / sum(a)": q("sum(a)", "sum(a)", "DECIMAL(20,2) DECIMAL(38,2)", 18),
    "i::BIGINT / i": q("i::BIGINT", "i", "DECIMAL(19,0) DECIMAL(10,0)", 19),
    "a / i::BIGINT": q("a", "i::BIGINT", "DECIMAL(18,2) DECIMAL(19,0)", 21),
    "a / 100": q("a", "100", places=4),
    "a / 1000.0": q("a", "1000.0", "DECIMAL(18,2) DECIMAL(5,1)", 5),
    "avg(i)": mean("i"),
    "avg(i::BIGINT)": mean("i::BIGINT"),
    "avg(a)": mean("a"),
    "mean(a)": mean("a"),
    "AVG ( DISTINCT a )": f"decimal_average ( DISTINCT {'CAST(a AS DECIMAL(38,18))'} )",
    "avg(a + 1) FILTER (WHERE i > 3)": mean("a + 1") + " FILTER (WHERE i > 3)",
    "avg(a) OVER (PARTITION BY k)": mean("a") + " OVER (PARTITION BY k)",
    "sum(d)": "sum(d ORDER BY d)",
    "sum(d * 2)": "sum(d * 2 ORDER BY d * 2)",
    "stddev(a)": "stddev(a ORDER BY a)",
    "corr(d, a)": "corr(d, a ORDER BY d, a)",
    "sum(DISTINCT d) FILTER (WHERE k = 1)": "sum(DISTINCT d ORDER BY d) FILTER (WHERE k = 1)",
    "sum(d) OVER (PARTITION BY k)": "sum(d ORDER BY d) OVER (PARTITION BY k)",
}
"""An expression, and what runs instead."""

NESTED = {
    "a / i / 2": q(q("a", "i"), "2", "DECIMAL(36,20) DECIMAL(10,0)"),
    "avg(a / i)": mean(q("a", "i"), "DECIMAL(38,20)"),
    "avg(a) / 2": q(mean("a"), "2", "DECIMAL(36,18) DECIMAL(10,0)"),
    "round(avg(a) / 3 * 100, 2)": f"round({q(mean('a'), '3', 'DECIMAL(36,18) DECIMAL(10,0)')}"
    " * 100, 2)",
}
KEPT = [
    "a / d",
    "a::DOUBLE / i",
    "CAST(a AS DOUBLE) / CAST(i AS DOUBLE)",
    "avg(i::HUGEINT)",
    "avg(d ORDER BY d)",
    "a // i",
    "a * i",
    "sum(a)",
    "median(d)",
    "quantile_cont(d, 0.5)",
    "decimal_division(a, i, 4)",
    "list_transform([a], lambda v: v / 3)[1]",
]
"""What stays as it is: the model's own floats, order statistics, and what has no place."""


FLOAT_PRODUCTS = [
    "a / i / k",
    "1 / sum(a) / sum(b) / 1000000",
    "(a / b) * (a / i)",
    "a / (a / b)",
    "(a / b) * sum(a) OVER ()",
    "(sum(a) / sum(b * b)) * sum(b * b)",
    "avg(a) * count(*)",
    "avg(a) / avg(b)",
    "a / avg(a) OVER ()",
    "1 / i * 1000000000000",
    "a / b + d",
    "sqrt(a / b)",
]
"""A quotient is a factor there, and nothing bounds how many of its digits would be left."""


@pytest.mark.parametrize("asked", FLOAT_PRODUCTS)
def test_products_without_a_bound_stay_floats_and_say_so(asked, gate):
    found = gate(f"SELECT {asked} AS n FROM t")
    assert "decimal_" not in found.executed
    assert found.origins[0].inexact


EXACT_PRODUCTS = [
    "(a / b) * a",
    "a * (a / sum(a) OVER ())",
    "a / 100 * sum(a) OVER ()",
    "sum(a) / sum(b) * 100",
    "round(a / b, 2) * sum(a) OVER ()",
    "CASE WHEN a / b > 0.5 THEN a / i ELSE 1 END",
    "(a / b) * (1 + 0.2)",
]


@pytest.mark.parametrize("asked", EXACT_PRODUCTS)
def test_products_with_a_bound_are_exact(asked, gate):
    found = gate(f"SELECT {asked} AS n FROM t")
    assert "decimal_division" in found.executed
    assert not found.origins[0].inexact


LOSSES_ELSEWHERE = {
    "SELECT (a / b) * sum(a) OVER () AS n, a / i AS m FROM t": [True, False],
    "WITH x AS (SELECT k, a / b AS r FROM t) SELECT r * s AS n FROM x, "
    "(SELECT sum(a) AS s FROM t)": [True],
    "SELECT r * s * s AS n FROM (SELECT (a / b) * a AS r, a AS s FROM t)": [True],
    "SELECT a / b AS n FROM t UNION ALL SELECT d FROM t": [True],
    "WITH RECURSIVE r AS (SELECT 1 AS n, a / 3 AS v FROM t WHERE id = 1 UNION ALL "
    "SELECT n + 1, (v * 7.5 * a)::DECIMAL(38,20) FROM r, t WHERE id = 1 AND n < 3) "
    "SELECT max(v) AS n FROM r": [True],
    "SELECT decimal_division(a, b, 18) * sum(a) OVER () AS n, a AS m FROM t": [True, False],
    "SELECT stddev(a / b) AS n FROM t": [True],
}


@pytest.mark.parametrize(("sql", "inexact"), LOSSES_ELSEWHERE.items())
def test_a_loss_is_found_across_the_parts_of_a_query(sql, inexact, gate, engine):
    found = gate(sql)
    assert [o.inexact for o in found.origins] == inexact
    run(engine, found.executed)


@pytest.mark.parametrize("part", ["a / i", "a / i / 2", "avg(a / i)", "(a / i) * b"])
def test_two_hundred_columns_are_exact_together(part, gate):
    count = 150 if "*" in part else 200
    found = gate(f"SELECT {', '.join(f'{part} AS r{n}' for n in range(count))} FROM t")
    assert not any(o.inexact for o in found.origins)
    assert "/" not in found.executed
    assert max(r.round for r in found.verdict.rewrites) <= 2


def test_a_long_chain_is_too_complex(gate):
    with pytest.raises(SqlRefused) as caught:
        gate(f"SELECT a{' / a' * 300} AS n FROM t")
    assert caught.value.code == "sql.too_complex"


@pytest.mark.parametrize(("asked", "runs"), [*REWRITTEN.items(), *NESTED.items()])
def test_what_runs_instead(asked, runs, gate, engine):
    found = gate(f"SELECT {asked} AS n FROM t")
    assert found.executed == f"SELECT {runs} AS n FROM t"
    assert found.columns[0][0] == "n"
    run(engine, found.executed)


@pytest.mark.parametrize("asked", KEPT)
def test_what_stays(asked, gate):
    sql = f"SELECT {asked} AS n FROM t"
    assert gate(sql).executed == sql


@pytest.mark.parametrize("asked", [*REWRITTEN, *NESTED])
def test_only_floats_that_remain_are_inexact(asked, gate):
    found = gate(f"SELECT {asked} AS n FROM t")
    assert found.origins[0].inexact == (found.rewrites == ("ordered_sum",) or "(d AS" in asked)


WHOLE = {
    "SELECT k, sum(a) / count(*) AS n FROM t GROUP BY k HAVING sum(a) / count(*) > 1": 2,
    "SELECT a / i AS n, count(*) AS c FROM t GROUP BY a / i": 2,
    "WITH x AS (SELECT k, avg(a) AS m FROM t GROUP BY k) SELECT sum(m / 2) AS n FROM x": 2,
    "SELECT id FROM t WHERE a / i > 1 AND a / i < 5": 2,
    "SELECT x.a / y.m AS n FROM t x JOIN (SELECT k, max(a) AS m FROM t GROUP BY k) y USING (k)": 1,
    "SELECT a / i AS n FROM t UNION ALL SELECT avg(a) FROM t": 2,
    "SELECT a / i AS q, q / 2 AS n FROM t": 2,
    "SELECT id, row_number() OVER (ORDER BY a / i, id) AS n FROM t": 1,
    "SELECT 'é' AS x, a / i AS n FROM t WHERE 'ü / ö' <> 'a / i'": 1,
}
"""A query, and how many of its expressions become exact."""


@pytest.mark.parametrize(("sql", "count"), WHOLE.items())
def test_in_every_place_of_a_query(sql, count, gate, engine):
    found = gate(sql)
    made = [r.name for r in found.verdict.reasons if r.name.startswith("inexact")]
    assert len(made) == count
    assert found.executed.count("decimal_") == count
    run(engine, found.executed)


def test_reasons_have_the_place_of_the_operator_and_of_the_call(gate):
    found = gate("SELECT id,\n a / i / 2 AS n, avg(a) OVER () AS m FROM t")
    assert [(r.name, r.line, r.column) for r in found.verdict.reasons] == [
        ("inexact_division", 2, 4),
        ("inexact_average", 2, 18),
        ("inexact_division", 2, 8),
    ]


NAMES = [
    'SELECT "avg(a)" AS n FROM (SELECT avg(a) FROM t)',
    "SELECT * FROM (SELECT a / i, k FROM t) NATURAL JOIN (SELECT k, 1 AS q FROM t)",
    "SELECT * FROM (SELECT COLUMNS('a') / 2, i / k FROM t)",
]


@pytest.mark.parametrize("sql", NAMES)
def test_a_name_made_of_the_expression_keeps_it(sql, gate):
    """Where the new text would not bind, or columns meet by name, the text and its flag stay."""
    found = gate(sql)
    assert "decimal_" not in found.executed
    assert any(origin.inexact for origin in found.origins)


REFUSED = {
    "SELECT geomean(d) AS n FROM t": "sql.float_sum",
    "SELECT list_sum(list(d ORDER BY d)) AS n FROM t": "sql.float_sum",
    "SELECT exp(d) AS n FROM t": "sql.libm",
    "SELECT CAST(exp(d) AS DECIMAL(38,12)) AS n FROM t": "sql.libm",
    "SELECT CAST(power(d, 2) AS DECIMAL(13,13)) AS n FROM t": "sql.libm",
    "SELECT i ** 2 AS n FROM t": "sql.libm",
    "SELECT entropy(i) AS n FROM t": "sql.libm",
}


@pytest.mark.parametrize(("sql", "code"), REFUSED.items())
def test_what_has_no_fixed_digits_is_refused(sql, code, gate):
    with pytest.raises(SqlRefused) as caught:
        gate(sql)
    assert caught.value.code == code
    assert caught.value.remedy


@pytest.mark.parametrize(
    "expression",
    ["CAST(exp(d) AS DECIMAL(13,8))", "CAST(ln(d) AS DECIMAL(38,12))", "sqrt(d)"],
)
def test_digits_in_which_processors_agree_pass(expression, gate):
    assert gate(f"SELECT {expression} AS n FROM t").executed


# Sums of floats: the same for every order of rows and number of threads.

ONE = ["sum", "avg", "stddev", "var_pop", "sem", "skewness", "kurtosis", "fsum", "favg", "product"]
TWO = ["corr", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "regr_sxy"]
CALLS = [
    *(f"{name}(d)" for name in ONE),
    *(f"{name}(d, e)" for name in TWO),
    "sum(d) FILTER (WHERE k > 1)",
    "sum(DISTINCT d)",
    "sum(d) OVER (PARTITION BY k)",
    "avg(d) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 20 PRECEDING AND CURRENT ROW)",
]
FLOATS = GrantedTable(
    "f",
    (
        GrantedColumn("id", "INTEGER"),
        GrantedColumn("k", "INTEGER"),
        GrantedColumn("d", "DOUBLE"),
        GrantedColumn("e", "DOUBLE"),
    ),
    ("id",),
)
ORDERS = ("id", "hash(id)", "-id")


@pytest.fixture(scope="module")
def layouts():
    """The same rows in three orders; zeros of both signs among them."""
    running = duckdb.connect(":memory:")
    made = (
        "SELECT i::INTEGER AS id, (i % 5)::INTEGER AS k, "
        "CASE WHEN i % 97 = 0 THEN -0.0 WHEN i % 89 = 0 THEN 0.0 "
        "ELSE (hash(i) % 2003 + 1) * pow(10.0, (i % 9)::INTEGER - 12) END::DOUBLE AS d, "
        "(hash(i + 7) % 1009)::DOUBLE / 7 AS e FROM range(4000) r(i)"
    )
    for place, order in enumerate(ORDERS):
        running.execute(f"CREATE SCHEMA s{place}")
        running.execute(f"CREATE TABLE s{place}.f AS SELECT * FROM ({made}) ORDER BY {order}")
    yield running
    running.close()


@pytest.fixture(scope="module")
def floats():
    running = session.connect()
    session.declare(running, "f", {c.name: c.type for c in FLOATS.columns})
    session.lock(running, memory_bytes=1 << 30)
    tables = {"f": FLOATS}
    yield lambda sql: validate(
        sql, tables, examine=lambda q, t: examine(running, q, t, chars_max=32_768)
    )
    running.close()


@pytest.mark.parametrize("call", CALLS)
def test_a_sum_of_floats_is_one_for_all_orders_and_threads(call, floats, layouts):
    over = "id, " if " OVER " in call else ""
    found = floats(f"SELECT {over}{call} AS n FROM f")
    assert found.rewrites == ("ordered_sum",)
    seen = set()
    for threads in (1, 2, 8):
        layouts.execute(f"SET threads={threads}")
        for place in range(len(ORDERS)):
            layouts.execute(f"SET search_path='s{place}'")
            seen.add(repr(sorted(layouts.execute(found.executed).fetchall())))
    assert len(seen) == 1


def test_the_plain_sum_is_not_so(layouts):
    """What the order is needed for: the same rows, another order, another last digit."""
    seen = set()
    for place in range(len(ORDERS)):
        layouts.execute(f"SET search_path='s{place}'")
        seen.add(repr(layouts.execute("SELECT sum(d), avg(d * e) FROM f").fetchall()))
    assert len(seen) > 1
