"""Which columns a float reaches, column by column; what is not followed counts for all."""

from __future__ import annotations

import json
import random

import pytest

from tieout.executor.sql.plan_columns import Reach, reached, rows_reached

FLOAT = "sqrt(max(id))::DECIMAL(18,2)"
"""A value that has passed through a float and whose type does not say so."""

CASES = [
    (
        (
            "SELECT stddev(amt) AS a, sum(amt) AS b, count(*) AS c, max(dt) AS d, min(memo) AS e "
            "FROM bank"
        ),
        "a",
    ),
    (f"SELECT memo, {FLOAT} AS a, sum(amt) AS b FROM bank GROUP BY memo", "a"),
    (
        (
            f"WITH t AS (SELECT memo, {FLOAT} AS m, sum(amt) AS s FROM bank GROUP BY memo) "
            "SELECT max(m) AS a, max(s) AS b, count(*) AS c FROM t"
        ),
        "a",
    ),
    (
        (
            f"WITH t AS MATERIALIZED (SELECT memo, {FLOAT} AS m FROM bank GROUP BY memo) "
            "SELECT x.m + 1 AS a, length(y.memo) AS b FROM t x JOIN t y ON x.memo = y.memo"
        ),
        "a",
    ),
    (
        f"SELECT (SELECT {FLOAT} FROM bank b WHERE b.id = l.id) AS a, amt * 2 AS b FROM ledger l",
        "a",
    ),
    ("SELECT amt * 2 AS b, id IN (SELECT x FROM floats) AS a FROM bank", "a"),
    (
        "SELECT amt * 2 AS b, EXISTS (SELECT 1 FROM floats f WHERE f.x > bank.amt) AS a FROM bank",
        "",
    ),
    ("SELECT sum(id) AS b FROM floats WHERE x > 1", ""),
    (
        "SELECT x::DECIMAL(9,2) AS a, row_number() OVER (ORDER BY x, id) AS c, -id AS b FROM floats",
        "ac",
    ),
    ("SELECT sum(id) OVER (PARTITION BY x) AS a, -id AS b FROM floats", "a"),
    ("SELECT x::DECIMAL(9,2) AS a, count(*) AS c FROM floats GROUP BY x", "ac"),
    ("SELECT count(*) AS a FROM (SELECT DISTINCT x FROM floats) t", "a"),
    ("SELECT -id AS b, count(*) OVER () AS a FROM (SELECT DISTINCT id, x FROM floats) t", "a"),
    ("SELECT count(*) AS a FROM (SELECT unnest(range(x::BIGINT)) AS u FROM floats) t", "a"),
    ("SELECT grouping(x) AS a, count(id) AS b FROM floats GROUP BY ROLLUP (x)", "ab"),
    ("SELECT sum(id) AS b, max(x)::DECIMAL(9,2) AS a FROM floats WHERE x > 1", "a"),
    ("SELECT count(*) AS a FROM (SELECT id, x FROM floats EXCEPT SELECT id, 1 FROM bank) t", "a"),
    (
        (
            "WITH RECURSIVE r AS (SELECT x AS n FROM floats UNION SELECT n + 1 FROM r WHERE n < 5) "
            "SELECT count(*) AS a FROM r"
        ),
        "a",
    ),
    ("SELECT count(*) AS a FROM (SELECT x FROM floats INTERSECT SELECT x FROM floats) t", "a"),
    ("SELECT count(*) AS b FROM (SELECT id FROM bank INTERSECT SELECT id FROM ledger) t", ""),
    (f"SELECT 2 AS b, {FLOAT} AS a FROM bank UNION ALL SELECT sum(id), 2 FROM bank", "a"),
    (
        (
            "WITH RECURSIVE r AS (SELECT 1 AS n, 2.0 AS m, 1 AS k UNION ALL "
            "SELECT n + 1, sqrt(m)::DECIMAL(3,1), k + 1 FROM r WHERE n < 5) "
            "SELECT n + 0 AS b, m + 0 AS a, k + 0 AS c FROM r"
        ),
        "a",
    ),
    (
        (
            "WITH RECURSIVE r AS (SELECT 1 AS n, 2.0 AS m UNION ALL "
            "SELECT m::INTEGER, sqrt(m)::DECIMAL(3,1) FROM r WHERE n < 5) SELECT n + 0 AS a FROM r"
        ),
        "a",
    ),
    (f"SELECT list_transform([{FLOAT}], lambda x : x + 1) AS a, sum(id) AS b FROM bank", "a"),
    (
        (
            "SELECT list_transform([1], lambda x : x + m)[1] AS a, -id AS b "
            "FROM (SELECT id, x::DECIMAL(9,2) AS m FROM floats) t"
        ),
        "a",
    ),
    ("SELECT unnest([x::DECIMAL(9,2)]) AS a, -id AS b FROM floats", "a"),
    ("SELECT v.m::DECIMAL(9,2) AS a, v.n + 1 AS b FROM (VALUES (1, 2.0::DOUBLE)) v(n, m)", "a"),
    ("SELECT count(*) FILTER (WHERE x > 1) AS a, count(*) AS b FROM floats", "a"),
    (
        "SELECT f.x::DECIMAL(9,2) AS a, b.amt + 1 AS c FROM floats f FULL JOIN bank b USING (id)",
        "a",
    ),
]


@pytest.mark.parametrize(("sql", "inexact"), CASES)
def test_a_float_is_followed_by_column(sql, inexact, validate):
    assert {o.name for o in validate(sql).origins if o.inexact} == set(inexact)


Columns = list[tuple[str, bool]]
"""Name, and whether a float is on its way."""


def _relation(chance: random.Random, depth: int) -> tuple[str, Columns]:
    """A query of numbers, and which of its columns a float reaches, by how it was made."""
    if depth == 0:
        return "SELECT id AS a, x::DECIMAL(18,2) AS b, id + 1 AS c FROM floats", [
            ("a", False),
            ("b", True),
            ("c", False),
        ]
    inner, columns = _relation(chance, depth - 1)
    kind = chance.choice(["project", "join", "union", "group", "window", "cte", "scalar"])
    names = dict(columns)
    exact = [name for name, floats in columns if not floats]
    if kind == "union":
        shuffled = chance.sample(columns, len(columns))
        listed = ", ".join(name for name, _ in shuffled)
        both = [
            (name, floats or other)
            for (name, floats), (_, other) in zip(columns, shuffled, strict=True)
        ]
        return f"{inner} UNION ALL SELECT {listed} FROM ({inner}) u", both
    if kind == "join" and exact:
        on = chance.choice(exact)
        made = [(f"j{i}", *chance.choice(columns), chance.choice("lr")) for i in range(3)]
        listed = ", ".join(f"{side}.{name} AS {new}" for new, name, _, side in made)
        how = chance.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        text = f"SELECT {listed} FROM ({inner}) l {how} ({inner}) r ON l.{on} = r.{on}"
        return text, [(new, floats) for new, _, floats, _ in made]
    if kind == "group" and exact:
        by, of = chance.choice(exact), chance.choice(columns)
        text = f"SELECT {by} AS g, max({of[0]}) AS m, count(*) AS n FROM ({inner}) t GROUP BY {by}"
        return text, [("g", False), ("m", of[1]), ("n", False)]
    if kind == "window" and exact:
        by, of = chance.choice(exact), chance.choice(columns)
        text = f"SELECT {of[0]} AS p, max({of[0]}) OVER (PARTITION BY {by}) AS w, {by} AS q"
        return f"{text} FROM ({inner}) t", [("p", of[1]), ("w", of[1]), ("q", False)]
    if kind == "scalar":
        of = chance.choice(columns)
        text = f"SELECT t.*, (SELECT max({of[0]}) FROM ({inner}) s) AS s{depth} FROM ({inner}) t"
        return text, [*columns, (f"s{depth}", of[1])]
    one, two = chance.choice(columns), chance.choice(columns)
    text = f"SELECT {one[0]} AS y, greatest({one[0]}, {two[0]}) AS z, 1 AS k"
    found = [("y", names[one[0]]), ("z", one[1] or two[1]), ("k", False)]
    if kind == "cte":
        return f"SELECT * FROM (WITH c AS ({inner}) {text} FROM c) v", found
    return f"{text} FROM ({inner}) t", found


def test_random_queries_are_followed_by_column(validate):
    chance = random.Random(7)
    seen = {False: 0, True: 0}
    for _ in range(60):
        text, columns = _relation(chance, chance.randint(1, 4))
        listed = ", ".join(f"abs({name}) AS {name}" for name, _ in columns)
        found = validate(f"SELECT {listed} FROM ({text}) t").origins
        assert [(o.name, o.inexact) for o in found] == columns, text
        for _, floats in columns:
            seen[floats] += 1
    assert min(seen.values()) > 30


def test_an_earlier_step_is_followed_by_column(validate):
    found = validate("SELECT s.total + 1 AS b, f.x::DECIMAL(9,2) AS a FROM step1 s, floats f")
    assert [o.inexact for o in found.origins] == [False, True]


def _plan(*operators):
    """Operators from the top down, each above the next."""
    node = None
    for operator in reversed(operators):
        node = {"children": [node] if node else [], **operator}
    return node


DUMMY = {"type": "LOGICAL_DUMMY_SCAN"}
REF = {"expression_class": "BOUND_REF", "index": 0, "return_type": {"id": "INTEGER"}}
NOTHING = Reach(table=lambda _t, _c: False, expression=lambda _n: False, conditions=True)

UNKNOWN = {
    "an operator": _plan({"type": "LOGICAL_PIVOT"}, DUMMY),
    "a place beyond the columns": _plan(
        {"type": "LOGICAL_PROJECTION", "expressions": [{**REF, "index": 1}]}, DUMMY
    ),
    "a reference by binding": _plan(
        {"type": "LOGICAL_PROJECTION", "expressions": [{"expression_class": "BOUND_COLUMN_REF"}]},
        DUMMY,
    ),
    "a shared table that is not there": _plan({"type": "LOGICAL_CTE_REF", "cte_index": 9}),
    "a projection map beyond the columns": _plan(
        {"type": "LOGICAL_FILTER", "expressions": [], "projection_map": [3]}, DUMMY
    ),
    "a join of no known kind": {
        "type": "LOGICAL_COMPARISON_JOIN",
        "join_type": "OTHER",
        "children": [DUMMY, DUMMY],
    },
}


@pytest.mark.parametrize("plan", UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_known_is_not_followed(plan):
    assert reached(plan, NOTHING) is None
    known = _plan({"type": "LOGICAL_PROJECTION", "expressions": [REF]}, DUMMY)
    assert reached(known, NOTHING) == (False,)


def test_a_plan_that_is_not_followed_counts_for_every_column(validate):
    found = validate("SELECT * FROM (PIVOT floats ON id IN (1, 2) USING first(x ORDER BY x))")
    assert all(o.inexact for o in found.origins)


CHOSEN = [
    ("SELECT total FROM step1", [True]),
    ("SELECT count(*) AS n FROM step1", [False]),
    ("SELECT count(*) AS n FROM step1 WHERE total > 1", [True]),
    ("SELECT bank.id FROM bank JOIN step1 ON amt = total", [True]),
    ("SELECT bank.id FROM bank, step1", [False]),
    ("SELECT bank.id, total FROM bank, step1", [False, True]),
    ("SELECT 1 AS n FROM step1 ORDER BY total LIMIT 1", [True]),
    ("SELECT bank.id FROM step1 JOIN bank ON total = amt", [True]),
    ("SELECT b.id FROM (SELECT id FROM bank, step1 WHERE total > 1) b, ledger", [True]),
    ("SELECT b.id FROM ledger, (SELECT id FROM bank, step1 WHERE total > 1) b", [True]),
    ("SELECT EXISTS (SELECT 1 FROM step1 WHERE total > amt) AS e, id FROM bank", [True, False]),
    (
        "SELECT id IN (SELECT b.id FROM bank b, step1 WHERE total > 1) AS e, id FROM bank",
        [True, False],
    ),
    ("SELECT total + 0 AS n FROM (VALUES (1), (2)) v(total)", [False]),
    ("SELECT id FROM bank WHERE id = (SELECT max(total) FROM step1)", [True]),
    ("SELECT count(*) AS n FROM (SELECT DISTINCT total FROM step1) t", [True]),
]


def test_rows_of_a_table_that_ties_chose_are_followed(validate):
    rows = Reach(
        table=lambda table, column: (table, column) == ("step1", "*"),
        expression=lambda _node: False,
        conditions=True,
    )
    for sql, expected in [
        ("SELECT count(*) AS n FROM step1", (True,)),
        ("SELECT bank.id FROM bank, step1", (True,)),
        ("SELECT id, (SELECT count(*) FROM step1) AS n FROM bank", (True, True)),
        ("SELECT id FROM bank", (False,)),
    ]:
        plan = json.loads(validate(sql).plan)
        assert reached(plan, rows) == expected, sql
        assert rows_reached(plan, rows) is expected[0]


CONSTANT = {"expression_class": "BOUND_CONSTANT", "return_type": {"id": "INTEGER"}}
MARK = {"expression_class": "BOUND_CONSTANT", "return_type": {"id": "DOUBLE"}}
DOUBLES = Reach(
    table=lambda _t, _c: False,
    expression=lambda node: node.get("return_type") == {"id": "DOUBLE"},
    conditions=True,
)
THREE = {
    "type": "LOGICAL_EXPRESSION_GET",
    "expressions": [[CONSTANT, MARK, CONSTANT], [CONSTANT, CONSTANT, CONSTANT]],
    "children": [DUMMY],
}
BY_HAND = [
    (THREE, (False, True, False)),
    (
        {
            "type": "LOGICAL_COMPARISON_JOIN",
            "join_type": "INNER",
            "left_projection_map": [1],
            "right_projection_map": [2, 0],
            "children": [THREE, THREE],
        },
        (True, False, False),
    ),
    (
        {
            "type": "LOGICAL_PROJECTION",
            "expressions": [
                {"expression_class": "BOUND_FUNCTION", "function_data": {"f": {**REF, "index": 7}}},
                {"expression_class": "BOUND_LAMBDA", "child": {**REF, "index": 9}},
                {**REF, "index": 2},
            ],
            "children": [THREE],
        },
        (True, True, False),
    ),
]
"""Shapes that the engine does not make of every text: a reference inside a lambda may mean any
column, whatever its number."""


@pytest.mark.parametrize(("plan", "expected"), BY_HAND)
def test_plans_by_hand(plan, expected):
    assert reached(plan, DOUBLES) == expected


@pytest.mark.parametrize(("filters", "expected"), [([], (False,)), ([{"column": 1}], (True,))])
def test_a_filter_inside_a_scan_chooses_rows(filters, expected):
    scan = {
        "type": "LOGICAL_GET",
        "names": ["id", "total"],
        "column_indexes": [{"index": 0}],
        "function_data": {"qualified_name": {"path": ["memory", "main", "step1"]}},
        "table_filters": {"filters": filters},
    }
    total = Reach(
        table=lambda table, column: (table, column) == ("step1", "total"),
        expression=lambda _node: False,
        conditions=True,
    )
    assert reached(scan, total) == expected


@pytest.mark.parametrize(("sql", "expected"), CHOSEN)
def test_rows_that_are_chosen_by_a_column_are_followed(sql, expected, validate):
    tied = Reach(
        table=lambda table, column: (table, column) == ("step1", "total"),
        expression=lambda _node: False,
        conditions=True,
    )
    plan = json.loads(validate(sql).plan)
    assert list(reached(plan, tied) or ()) == expected
