"""What the gate says: places, text rules, what it admits, and that nothing else makes ValidatedSql."""

from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieout.executor.sql import functions
from tieout.executor.sql.refusal import Text
from tieout.executor.sql.text import check_text, tokens
from tieout.executor.sql.validate import SqlRefused, ValidatedSql

ADMITTED = [
    "SELECT id, amt FROM bank WHERE amt > 10 ORDER BY id",
    "SELECT memo, count(*) AS n, sum(amt) AS total FROM bank GROUP BY memo ORDER BY memo",
    "SELECT b.id, b.amt - l.amt AS diff FROM bank b FULL OUTER JOIN ledger l ON b.id = l.id",
    "WITH x AS (SELECT id, rank() OVER (ORDER BY dt, id) AS r FROM bank) SELECT id FROM x WHERE r = 1",
    "SELECT decimal_division(sum(amt)::DECIMAL(18,2), 3.0, 2) AS third FROM bank",
    "SELECT CAST(ln(amt) AS DECIMAL(38,12)) AS l FROM bank",
    "SELECT string_agg(memo, ',' ORDER BY memo) AS s, list(id ORDER BY id) AS l FROM bank",
    "SELECT id FROM bank EXCEPT SELECT id FROM ledger",
    "SELECT * EXCLUDE (memo) FROM bank ORDER BY ALL",
    "SELECT id, unnest([1, 2]) AS u FROM bank",
    "SELECT extract(year FROM dt) AS y, dt + INTERVAL 1 MONTH AS next FROM bank",
    "SELECT 45 * 12 AS product",
    "FROM bank SELECT id WHERE memo LIKE 'caf\u00e9%'",
    "SELECT id FROM bank WHERE amt BETWEEN id AND acct_key OR id NOT IN (SELECT id FROM ledger)",
    "SELECT list_sort(list_distinct([3, 1])) AS l",
    "SELECT id FROM bank -- a note\n ORDER BY id /* and one more */ LIMIT 3;",
    "SELECT sum(x ORDER BY id, x) AS s FROM floats",
    "PIVOT bank ON memo IN ('x', 'y') USING sum(amt) GROUP BY acct_key",
]


@pytest.mark.parametrize("sql", ADMITTED)
def test_admitted_unchanged_unless_a_rewrite_is_named(sql, validate):
    found = validate(sql)
    assert found.asked == sql
    assert (found.executed == sql) == (found.rewrites == ())
    assert found.columns
    assert [o.name for o in found.origins] == [name for name, _ in found.columns]


@pytest.mark.parametrize(
    ("sql", "code", "line", "column"),
    [
        ("SELECT id,\n       nope\nFROM bank", "sql.unknown_column", 2, 8),
        ("SELECT id\nFROM secret", "sql.unknown_table", 2, 6),
        ("SELECT '\u00e9\u20ac' AS a, now() AS b", "sql.clock", 1, 19),
        (
            "SELECT x FROM (SELECT COLUMNS('id') FROM bank\nORDER BY dt LIMIT 3) t(x)",
            "sql.unordered_limit",
            2,
            19,
        ),
        ("SELEC 1", "sql.parse", 1, 1),
        ("SELECT id FROM bank; SELECT 1", "sql.two_statements", 1, 20),
        ("SELECT id\u200b FROM bank", "sql.non_ascii", 1, 10),
    ],
)
def test_a_refusal_names_the_place(sql, code, line, column, validate):
    with pytest.raises(SqlRefused) as caught:
        validate(sql)
    found = (caught.value.code, caught.value.line, caught.value.column)
    assert found == (code, line, column)


def test_an_unknown_table_names_those_that_are_granted(validate):
    with pytest.raises(SqlRefused) as caught:
        validate("SELECT * FROM banks")
    assert "bank, floats, ledger, step1" in caught.value.remedy


def test_types_and_tables_of_the_result(validate):
    found = validate("SELECT id, sum(amt) AS total FROM bank GROUP BY id")
    assert found.columns == (("id", "INTEGER"), ("total", "DECIMAL(38,2)"))
    assert found.tables == ("bank",)
    assert found.functions == ("sum",)
    assert found.ordered is False


def test_hidden_columns_are_not_in_a_star(validate):
    assert "__row" not in dict(validate("SELECT * FROM bank").columns)


def test_nothing_else_makes_a_validated_query(validate):
    found = validate("SELECT id FROM bank")
    with pytest.raises(AssertionError):
        ValidatedSql(object(), "DROP TABLE bank", found._finding)
    with pytest.raises(AttributeError):
        found.asked = "x"
    with pytest.raises(TypeError):
        pickle.dumps(found)


def test_a_long_text_and_deep_brackets_are_refused(validate):
    with pytest.raises(SqlRefused) as caught:
        validate("SELECT 1 AS a" + " " * 40_000)
    assert caught.value.code == "sql.too_long"
    with pytest.raises(SqlRefused) as caught:
        validate("SELECT " + "(" * 200 + "1" + ")" * 200 + " AS a")
    assert caught.value.code == "sql.too_complex"


def test_every_function_of_the_engine_is_classed():
    import duckdb

    engine = duckdb.connect()
    rows = engine.execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()
    engine.close()
    unknown = {n for (n,) in rows if n.lower() not in functions.classes()}
    assert {n for n in unknown if not n.startswith(("collate_", "icu_collate_"))} == set()
    assert not any(functions.is_open(n) for n in unknown)


def test_no_open_function_is_volatile_or_calls_what_is_denied():
    """The engine's own word on its functions: clock, chance and state are all denied."""
    import duckdb

    with duckdb.connect() as engine:
        rows = engine.execute(
            "SELECT lower(function_name), function_type, stability, macro_definition "
            "FROM duckdb_functions()"
        ).fetchall()
    assert {
        n for n, _kind, how, _text in rows if how == "VOLATILE" and functions.is_open(n)
    } == set()
    calling = set()
    for name, kind, _how, text in rows:
        if text and kind == "macro" and functions.is_open(name):
            called = {word.lower() for word in re.findall(r"(\w+)\"?\(", text)}
            calling |= {(name, c) for c in called if c in functions.classes()}
    assert len(calling) > 50
    assert {(n, c) for n, c in calling if not functions.is_open(c)} <= {
        ("generate_subscripts", "unnest"),
        ("regexp_split_to_table", "unnest"),
    }


@given(st.text(max_size=60))
def test_the_lexer_never_fails_and_covers_the_text_in_order(sql):
    found = list(tokens(sql))
    assert all(sql[t.start : t.end] == t.text for t in found)
    assert all(a.end <= b.start for a, b in zip(found, found[1:], strict=False))


@given(st.text(max_size=60))
def test_text_rules_only_refuse(sql):
    try:
        check_text(sql, chars_max=40)
    except SqlRefused as refused:
        assert refused.line is None or Text(sql).position(0) <= (refused.line, refused.column)
