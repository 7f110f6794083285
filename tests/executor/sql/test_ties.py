"""Ties: an order that can leave two rows equal is continued, one that cannot stays as it is."""

from __future__ import annotations

import itertools

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieout.executor.sql.keys import Block, Keyed
from tieout.executor.sql.verdict import Standing

TIED = [
    ("SELECT row_number() OVER (ORDER BY memo) AS n FROM bank", "ordered_window"),
    ("SELECT row_number() OVER (PARTITION BY memo ORDER BY dt) AS n FROM bank", "ordered_window"),
    ("SELECT lag(amt) OVER (ORDER BY amt) AS n FROM bank", "ordered_window"),
    ("SELECT first_value(amt) OVER (ORDER BY memo) AS n FROM bank", "ordered_window"),
    ("SELECT ntile(4) OVER (ORDER BY dt) AS n FROM bank", "ordered_window"),
    ("SELECT row_number() OVER (ORDER BY abs(id)) AS n FROM bank", "ordered_window"),
    ("SELECT row_number() OVER (ORDER BY x) AS n FROM floats", "ordered_window"),
    (
        "SELECT sum(amt) OVER (ORDER BY memo ROWS UNBOUNDED PRECEDING) AS n FROM bank",
        "ordered_window",
    ),
    (
        "SELECT row_number() OVER (ORDER BY b.id) AS n FROM bank b JOIN ledger l ON b.dt = l.dt",
        "ordered_window",
    ),
    (
        "SELECT row_number() OVER (ORDER BY b.id) AS n FROM bank b FULL JOIN ledger l USING (id)",
        "ordered_window",
    ),
    (
        "SELECT row_number() OVER (ORDER BY b.id) AS n FROM ledger l LEFT JOIN bank b ON b.id = l.id",
        "ordered_window",
    ),
    (
        ("SELECT row_number() OVER (ORDER BY b.id) AS n FROM bank b JOIN "
        "(SELECT memo::INTEGER AS id FROM ledger) l ON b.id = l.id"),
        "ordered_window",
    ),
    (
        ("SELECT row_number() OVER (ORDER BY id) AS n "
        "FROM (SELECT id FROM bank UNION ALL SELECT id FROM ledger) t JOIN floats USING (id)"),
        "ordered_window",
    ),
    ("SELECT row_number() OVER (ORDER BY sum(amt)) AS n FROM bank GROUP BY memo", "ordered_window"),
    (("WITH t AS (SELECT memo FROM bank) SELECT lead(t.memo) OVER (ORDER BY t.memo) AS n, 1 AS o "
     "FROM t JOIN bank ON true"), "ordered_window"),
    (
        "SELECT list(b.id ORDER BY l.id) AS n FROM bank b JOIN ledger l ON b.dt = l.dt",
        "ordered_aggregate",
    ),
    ("SELECT string_agg(memo, ',' ORDER BY dt) AS n FROM bank", "ordered_aggregate"),
    ("SELECT arg_max(memo, amt ORDER BY amt) AS n FROM bank", "ordered_aggregate"),
    ("SELECT sum(x ORDER BY id) AS n FROM floats", "ordered_aggregate"),
    (
        ("SELECT id FROM bank WHERE id IN (SELECT max(id) FROM ledger GROUP BY memo "
        "HAVING list(amt ORDER BY dt)[1] > 0)"),
        "ordered_aggregate",
    ),
    (
        "SELECT sum(amt) AS n FROM (SELECT amt, memo FROM bank ORDER BY memo LIMIT 3) t",
        "ordered_limit",
    ),
    (
        "SELECT sum(amt) AS n FROM (SELECT amt, memo FROM bank ORDER BY amt OFFSET 3) t",
        "ordered_limit",
    ),
    (
        "SELECT sum(amt) AS n FROM (SELECT DISTINCT ON (memo) memo, amt FROM bank ORDER BY memo) t",
        "ordered_limit",
    ),
    (
        ("WITH t AS (SELECT memo, sum(amt) AS s FROM bank GROUP BY memo ORDER BY s LIMIT 3) "
        "SELECT sum(s) AS n FROM t"),
        "ordered_limit",
    ),
    (
        ("SELECT count(*) AS n FROM (SELECT id, amt FROM bank UNION ALL SELECT id, amt FROM ledger "
        "ORDER BY 2 LIMIT 3) t"),
        "ordered_limit",
    ),
    ("SELECT id, (SELECT l.amt FROM ledger l ORDER BY l.dt LIMIT 1) AS n FROM bank",
     "ordered_limit"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "rewrite"), TIED, ids=[sql for sql, _ in TIED])
def test_an_order_with_ties_is_continued_until_nothing_is_open(sql, rewrite, validate):
    found = validate(sql)
    assert found.rewrites == (rewrite,)
    assert found.verdict.standing is Standing.REWRITTEN
    assert validate(found.executed).rewrites == ()
    assert validate(found.countercheck).rewrites == ()
    assert found.countercheck != found.executed


TOLD = [
    "SELECT row_number() OVER (ORDER BY memo, id) AS n FROM bank",
    "SELECT row_number() OVER (PARTITION BY id ORDER BY memo) AS n FROM bank",
    "SELECT rank() OVER (ORDER BY memo) AS n, dense_rank() OVER (ORDER BY memo) AS m FROM bank",
    "SELECT sum(amt) OVER (ORDER BY memo) AS n, count(*) OVER (PARTITION BY memo) AS m FROM bank",
    "SELECT row_number() OVER (ORDER BY id, x) AS n FROM floats",
    "SELECT lag(amt) OVER (ORDER BY b.id) AS n FROM (SELECT id, amt FROM bank) b",
    "SELECT lag(amt) OVER w AS n FROM bank WINDOW w AS (ORDER BY id)",
    "SELECT row_number() OVER (ORDER BY b.id, l.id) AS n FROM bank b JOIN ledger l ON b.dt = l.dt",
    "SELECT row_number() OVER (ORDER BY b.id) AS n FROM bank b JOIN ledger l ON b.id = l.id",
    "SELECT row_number() OVER (ORDER BY b.id) AS n FROM bank b LEFT JOIN ledger l ON b.id = l.id",
    "SELECT row_number() OVER (ORDER BY id) AS n FROM bank b JOIN ledger l USING (id)",
    "SELECT row_number() OVER (ORDER BY b.id) AS n FROM bank b, ledger l WHERE l.id = 5",
    "SELECT row_number() OVER (ORDER BY b.id) AS n FROM bank b, (SELECT max(id) AS m FROM ledger) t",
    (
        "SELECT row_number() OVER (ORDER BY b.id) AS n FROM bank b "
        "JOIN (SELECT id, sum(amt) AS s FROM ledger GROUP BY id) l ON b.id = l.id"
    ),
    "SELECT row_number() OVER (ORDER BY b.id) AS n FROM bank b SEMI JOIN ledger l ON b.dt = l.dt",
    "SELECT row_number() OVER (ORDER BY memo) AS n FROM bank GROUP BY memo",
    "SELECT memo, row_number() OVER (ORDER BY sum(amt), memo) AS n FROM bank GROUP BY memo",
    "SELECT row_number() OVER (ORDER BY id) AS n FROM (SELECT DISTINCT id FROM bank) t",
    (
        "SELECT row_number() OVER (ORDER BY id) AS n "
        "FROM (SELECT id FROM bank UNION ALL SELECT id FROM ledger) t"
    ),
    "SELECT list(b.id ORDER BY b.id) AS n FROM bank b JOIN ledger l ON b.dt = l.dt",
    "SELECT string_agg(memo, ',' ORDER BY id) AS n FROM bank GROUP BY dt",
    "SELECT dt, string_agg(memo, ',' ORDER BY amt, id) AS n FROM bank GROUP BY dt",
    "SELECT sum(amt) AS n FROM (SELECT amt, id FROM bank ORDER BY amt, id LIMIT 3) t",
    "SELECT sum(amt) AS n FROM (SELECT amt FROM bank ORDER BY amt LIMIT 3) t",
    "SELECT sum(amt) AS n FROM (SELECT amt, memo FROM bank ORDER BY ALL LIMIT 3) t",
    "SELECT sum(amt) AS n FROM (SELECT DISTINCT ON (memo) memo, amt FROM bank ORDER BY memo, id) t",
    (
        "SELECT sum(s) AS n FROM (SELECT memo, sum(amt) AS s FROM bank GROUP BY memo "
        "ORDER BY s, memo LIMIT 3) t"
    ),
    "SELECT max(amt) AS n FROM bank ORDER BY n LIMIT 1",
    "SELECT memo, amt FROM bank ORDER BY memo LIMIT 3",
]


@pytest.mark.parametrize("sql", TOLD)
def test_an_order_without_ties_stays_as_it_is(sql, validate):
    found = validate(sql)
    assert set(found.rewrites) <= {"total_order"}
    assert found.verdict.standing is Standing.FUNCTION or " LIMIT 3" in sql


KINDS = {"k": "INTEGER", "v": "INTEGER"}
JOINS = ["INNER", "LEFT", "RIGHT", "FULL"]


@given(
    join=st.sampled_from(JOINS),
    sides=st.sampled_from(list(itertools.product("kv", "kv"))),
    order=st.sets(st.sampled_from([(0, "k"), (0, "v"), (1, "k"), (1, "v")])),
    left=st.dictionaries(st.sampled_from([0, 1, 2, None]), st.sampled_from([0, 1, None])),
    right=st.dictionaries(st.sampled_from([0, 1, 2, None]), st.sampled_from([0, 1, None])),
)
def test_rows_that_are_said_to_be_told_apart_are(join, sides, order, left, right):
    """Against the engine: two tables with a unique k, joined on any pair of columns.

    Rows alike in all columns may stay alike in the order: nobody can tell them apart.
    """
    one, other = sides
    block = Block([Keyed(KINDS, (frozenset("k"),), "a"), Keyed(KINDS, (frozenset("k"),), "b")])
    condition = {
        "class": "COMPARISON",
        "type": "COMPARE_EQUAL",
        "left": {"class": "COLUMN_REF", "column_names": ["a", one]},
        "right": {"class": "COLUMN_REF", "column_names": ["b", other]},
    }
    if join != "INNER":
        block.extend({0}, {1}, join, block.equal(condition, set(), [{0}, {1}]))
    block.equate(condition, {0}, {1}, join)
    if not block.total(order):
        return
    named = ", ".join(f"{'ab'[at]}.{name}" for at, name in sorted(order)) or "1"
    with duckdb.connect() as engine:
        for name, rows in (("a", left), ("b", right)):
            engine.execute(f"CREATE TABLE {name} (k INTEGER, v INTEGER)")
            for row in rows.items():
                engine.execute(f"INSERT INTO {name} VALUES (?, ?)", list(row))
        told = engine.execute(
            f"SELECT count(DISTINCT row(a.k, a.v, b.k, b.v)), count(DISTINCT row({named})) "
            f"FROM a {join} JOIN b ON a.{one} = b.{other}"
        ).fetchone()
    assert told[0] == told[1]
