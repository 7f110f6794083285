"""Literals against declared domains and ranges: what is refused, what moves, that rows stay."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tieout.executor.sql import session
from tieout.executor.sql.edits import Edit
from tieout.executor.sql.examine import examine
from tieout.executor.sql.range_cuts import CLAMPED, only_moved
from tieout.executor.sql.validate import GrantedColumn, GrantedTable, SqlRefused
from tieout.executor.sql.validate import validate as gate
from tieout.executor.sql.verdict import Standing

COLUMNS = (
    GrantedColumn("id", "BIGINT", range=("1", "100")),
    GrantedColumn("amt", "DECIMAL(18,2)", range=("-5.00", "1000.00")),
    GrantedColumn("ccy", "VARCHAR", domain=("EUR", "GBP", "USD")),
    GrantedColumn("acct", "VARCHAR", domain=("1010", "02020")),
    GrantedColumn("dt", "DATE", range=("2026-01-01", "2026-06-30")),
    GrantedColumn("ts", "TIMESTAMP", range=("2026-01-01", "2026-06-30 17:00:00")),
    GrantedColumn("since", "DATE", range=("2026-01-01", "")),
    GrantedColumn("rate", "DECIMAL(5,2)", domain=("0.00", "19.00")),
    GrantedColumn("plain", "VARCHAR"),
)
TABLES = {"bank": GrantedTable("bank", COLUMNS, ("id",))}


@pytest.fixture(scope="module")
def held():
    """The gate on one locked engine in this process."""
    inside = session.connect()
    session.declare(inside, "bank", {c.name: c.type for c in COLUMNS})
    session.lock(inside, memory_bytes=1 << 30)
    yield lambda sql: gate(
        sql, TABLES, examine=lambda q, t: examine(inside, q, t, chars_max=32_768)
    )
    inside.close()


def where(condition: str) -> str:
    return f"SELECT id FROM bank WHERE {condition}"


UNKNOWN = [
    ("ccy = 'GBX'", "'GBX'"),
    ("'gbp' = ccy", "'gbp'"),
    ("ccy <> 'X'", "'X'"),
    ("ccy IN ('GBP', 'X')", "'X'"),
    ("ccy NOT IN ('X')", "'X'"),
    ("ccy IS DISTINCT FROM 'X'", "'X'"),
    ("ccy IS NOT DISTINCT FROM 'X'", "'X'"),
    ("NOT (ccy = 'X')", "'X'"),
    ("ccy LIKE 'Z%'", "'Z%'"),
    ("ccy LIKE 'G_'", "'G_'"),
    ("ccy NOT LIKE 'g%'", "'g%'"),
    ("ccy ILIKE '%z%'", "'%z%'"),
    ("ccy::VARCHAR = 'Q'", "'Q'"),
    ("ccy = CAST('Q' AS VARCHAR)", "'Q'"),
    ("acct = 1011", "1011"),
    ("acct::INTEGER = 2021", "2021"),
    ("rate = 7", "7"),
    ("rate = '7.00'", "'7.00'"),
    ("rate::INTEGER = 7", "7"),
    ("rate::VARCHAR = '19'", "'19'"),
    ("CASE ccy WHEN 'X' THEN true ELSE false END", "'X'"),
    ("CASE WHEN ccy = 'X' THEN 1 ELSE 0 END = 1", "'X'"),
    ("(ccy, id) = ('X', 1)", "'X'"),
    ("list_contains(['X'], ccy)", "'X'"),
    ("id > 1 AND (id < 3 OR ccy = 'X')", "'X'"),
    ("EXISTS (SELECT 1 AS one FROM bank AS b WHERE bank.ccy = 'X')", "'X'"),
]


@pytest.mark.parametrize(("condition", "literal"), UNKNOWN, ids=[u[0] for u in UNKNOWN])
def test_a_value_that_the_column_cannot_have_is_refused_where_it_stands(condition, literal, held):
    sql = where(condition)
    with pytest.raises(SqlRefused) as caught:
        held(sql)
    error = caught.value
    assert error.code == "sql.unknown_value"
    assert literal in error.message
    assert error.column == sql.index(literal) + 1
    assert "the nearest first: " in error.remedy


@pytest.mark.parametrize(
    "condition",
    [
        "ccy = 'GBP'",
        "ccy IN ('EUR', 'USD')",
        "ccy LIKE 'G%'",
        "ccy LIKE '_UR'",
        "ccy ILIKE 'g%'",
        "acct = 1010",
        "acct = 2020",  # compared as numbers, as the engine does
        "acct::INTEGER = 2020",
        "rate = 19",
        "rate = 19.0",
        "rate = '19'",
        "rate::VARCHAR = '19.00'",
        "plain = 'anything'",
        "upper(ccy) = 'X'",
        "nullif(ccy, '') IS NOT NULL",
        "ccy > 'A' AND ccy < 'Z'",
        "ccy BETWEEN 'A' AND 'Z'",
        "ccy IS NULL",
        "ccy = plain",
    ],
)
def test_known_values_and_what_is_no_comparison_with_the_column_pass(condition, held):
    assert held(where(condition)).rewrites == ()


@pytest.mark.parametrize(
    "sql",
    [
        "WITH a AS (SELECT ccy AS c, id FROM bank) SELECT id FROM a AS x WHERE x.c = 'X'",
        "SELECT id FROM (SELECT * FROM bank) AS b WHERE ccy = 'X'",
        "SELECT b.id FROM bank AS b JOIN bank AS c ON b.id = c.id AND c.ccy = 'X'",
        "SELECT b.id FROM bank AS b LEFT JOIN bank AS c USING (id) WHERE c.ccy = 'X'",
        "SELECT sum(amt) FILTER (WHERE ccy = 'X') AS s FROM bank",
        "SELECT ccy, count(*) AS n FROM bank GROUP BY ccy HAVING ccy = 'X'",
        "SELECT id, ccy = 'X' AS t FROM bank",
        "SELECT id, if(ccy = 'X', 1, 0) AS t FROM bank",
        "SELECT count_if(ccy = 'X') AS n FROM bank",
        "SELECT id FROM bank UNION SELECT id FROM bank WHERE ccy = 'X'",
        "SELECT (SELECT max(amt) FROM bank WHERE ccy = 'X') AS m",
        "SELECT k FROM (SELECT ccy FROM bank) AS a(k) WHERE k = 'X'",
    ],
)
def test_the_column_is_known_wherever_it_is_only_copied(sql, held):
    with pytest.raises(SqlRefused) as caught:
        held(sql)
    assert caught.value.code == "sql.unknown_value"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM (SELECT lower(ccy) AS ccy, id FROM bank) AS b WHERE ccy = 'gbp'",
        "SELECT id FROM (SELECT coalesce(ccy, 'none') AS c, id FROM bank) AS b WHERE c = 'none'",
        "SELECT id FROM (SELECT if(id = 1, 'x', ccy) AS c, id FROM bank) AS b WHERE c = 'x'",
        "SELECT c FROM (SELECT ccy AS c FROM bank UNION ALL SELECT 'X' AS c) AS b WHERE c = 'X'",
        "SELECT max(ccy) AS m FROM bank HAVING max(ccy) = 'X'",
    ],
)
def test_a_column_that_is_made_anew_is_not_held_to_it(sql, held):
    assert held(sql).rewrites == ()


def test_the_nearest_value_comes_first_and_many_are_counted(held):
    with pytest.raises(SqlRefused) as caught:
        held(where("ccy = 'gpb'"))
    assert caught.value.remedy.endswith("the nearest first: 'GBP', 'EUR', 'USD'.")
    many = GrantedColumn("code", "VARCHAR", domain=tuple(f"C{n:02}" for n in range(50)))
    inside = session.connect()
    session.declare(inside, "t", {"code": "VARCHAR"})
    session.lock(inside, memory_bytes=1 << 30)
    with pytest.raises(SqlRefused) as caught:
        gate(
            "SELECT code FROM t WHERE code = 'C49x'",
            {"t": GrantedTable("t", (many,))},
            examine=lambda q, t: examine(inside, q, t, chars_max=32_768),
        )
    inside.close()
    assert "first: 'C49', " in caught.value.remedy
    assert caught.value.remedy.endswith(" and 30 more.")


@pytest.mark.parametrize(
    "condition",
    ["dt = DATE '2027-01-01'", "dt <> '2025-01-01'", "id = 200", "id IN (1, 101)", "amt = -5.01"],
)
def test_equality_outside_a_range_is_refused(condition, held):
    with pytest.raises(SqlRefused) as caught:
        held(where(condition))
    assert caught.value.code == "sql.outside_range"


MOVED = [
    ("dt < DATE '2027-01-01'", "dt < DATE '2026-07-01'"),
    ("dt <= '2026-07-01'", "dt <= '2026-06-30'"),
    ("dt >= '2025-01-01'", "dt >= '2026-01-01'"),
    ("dt > '2025-01-01'", "dt > '2025-12-31'"),
    ("DATE '2025-01-01' < dt", "DATE '2025-12-31' < dt"),
    ("dt >= '2025-01-01'::DATE", "dt >= '2026-01-01'::DATE"),
    ("dt >= CAST('2025-01-01' AS DATE)", "dt >= CAST('2026-01-01' AS DATE)"),
    ("dt >= DATE '2028-01-01'", "dt >= DATE '2026-07-01'"),
    ("dt < '1999-01-01'", "dt < '2026-01-01'"),
    (
        "dt BETWEEN '2025-01-01' AND '2027-12-31'",
        "dt BETWEEN '2026-01-01' AND '2026-06-30'",
    ),
    (
        "dt NOT BETWEEN '2025-01-01' AND '2026-02-01'",
        "dt NOT BETWEEN '2026-01-01' AND '2026-02-01'",
    ),
    ("dt < TIMESTAMP '2027-01-01 10:00:00'", "dt < TIMESTAMP '2026-07-01 00:00:00'"),
    ("dt::TIMESTAMP < '2027-01-01'", "dt::TIMESTAMP < '2026-06-30 00:00:00.000001'"),
    ("ts < DATE '2027-01-01'", "ts < DATE '2026-07-01'"),
    ("ts > DATE '2025-01-01'", "ts > DATE '2025-12-31'"),
    ("ts <= '2027-01-01 10:00:00'", "ts <= '2026-06-30 17:00:00'"),
    ("ts::DATE <= '2027-01-01'", "ts::DATE <= '2026-06-30'"),
    ("since < '1999-01-01'", "since < '2026-01-01'"),
    ("amt>-500", "amt> -5.01"),
    ("amt > - 500", "amt > -5.01"),
    ("amt>5000", "amt>1000.00"),
    ("amt >= -500.5", "amt >= -5.00"),
    ("amt < 2000", "amt < 1000.01"),
    ("amt < '5000'", "amt < '1000.01'"),
    ("amt <= CAST('2000' AS INTEGER)", "amt <= CAST('1000' AS INTEGER)"),
    ("amt < CAST('2000' AS INTEGER)", "amt < CAST('1001' AS INTEGER)"),
    ("2000 > amt AND amt >= 1", "1000.01 > amt AND amt >= 1"),
    ("amt > 9999 OR amt>-9999", "amt > 1000.00 OR amt> -5.01"),
    ("id < 500", "id < 101"),
    ("id >= -3", "id >= 1"),
    ("id > -3.5", "id > 0.0"),
    ("id <= 1e3 AND id < 999", "id <= 1e3 AND id < 101"),
]


@pytest.mark.parametrize(("asked", "executed"), MOVED, ids=[m[0] for m in MOVED])
def test_a_cut_outside_the_range_moves_to_its_nearest_end(asked, executed, held):
    found = held(where(asked))
    assert found.executed == where(executed)
    assert found.rewrites == ("clamped_range",)
    assert {r.name for r in found.verdict.reasons} == {"outside_range"}
    assert found.verdict.standing is Standing.FUNCTION
    for rewrite in found.verdict.rewrites:
        at = rewrite.column - 1
        assert found.asked[at : at + len(rewrite.removed)] == rewrite.removed


@pytest.mark.parametrize(
    "condition",
    [
        "dt < '2026-07-01'",
        "dt >= '2026-01-01'",
        "dt > '2025-12-31'",
        "ts < DATE '2026-07-01'",
        "since < '2999-01-01'",
        "id < 101",
        "id > 99.5",
        "amt <= 1000",
        "amt > CAST(-5.01 AS DECIMAL(18,2))",
        "dt < DATE '2027-01-01' + INTERVAL 1 DAY",
        "dt + 1 < DATE '2027-01-01'",
        "id < amt",
        "id >= -(3)",
    ],
)
def test_what_lies_in_the_range_or_cannot_be_placed_stays(condition, held):
    assert held(where(condition)).executed == where(condition)


def test_a_clamp_and_an_order_are_both_told(held):
    found = held(where("dt > '2020-01-01'") + " ORDER BY dt")
    assert found.executed == where("dt > '2025-12-31'") + " ORDER BY dt, 1"
    assert found.rewrites == ("clamped_range", "total_order")


@pytest.mark.parametrize("condition", ["dt <= today()", "dt = current_date", "today() > dt"])
def test_the_day_that_the_question_sets_is_no_literal_of_the_query(condition):
    inside = session.connect()
    session.declare(inside, "bank", {c.name: c.type for c in COLUMNS})
    session.lock(inside, memory_bytes=1 << 30)
    found = gate(
        where(condition + " AND dt < '2027-01-01'"),
        TABLES,
        examine=lambda q, t: examine(inside, q, t, chars_max=32_768, as_of="2027-03-01"),
    )
    inside.close()
    assert found.rewrites == ("as_of", "clamped_range")
    assert "2027-03-01" in found.executed
    assert found.executed.endswith("dt < '2026-07-01'")


# --- that no row changes ------------------------------------------------------------------

DAYS = st.dates(dt.date(2025, 11, 1), dt.date(2026, 8, 31))
MOMENTS = st.datetimes(dt.datetime(2025, 12, 1), dt.datetime(2026, 8, 1))
SUMS = st.decimals(-20, 1100, places=2)
LITERALS = {
    "dt": st.one_of(
        DAYS.map(lambda d: f"DATE '{d}'"),
        DAYS.map(lambda d: f"'{d}'"),
        MOMENTS.map(lambda m: f"TIMESTAMP '{m.isoformat(' ', 'microseconds')}'"),
    ),
    "ts": st.one_of(
        DAYS.map(lambda d: f"DATE '{d}'"),
        MOMENTS.map(lambda m: f"'{m.isoformat(' ', 'microseconds')}'"),
    ),
    "ts::DATE": DAYS.map(lambda d: f"'{d}'"),
    "dt::TIMESTAMP": MOMENTS.map(lambda m: f"'{m.isoformat(' ', 'microseconds')}'"),
    "amt": st.one_of(
        SUMS.map(str),
        SUMS.map(lambda d: f"'{d}'"),
        st.integers(-2000, 2000).map(str),
        st.integers(-2000, 2000).map(lambda n: f"CAST('{n}' AS INTEGER)"),
        SUMS.map(lambda d: f"CAST('{d}' AS DECIMAL(10,1))"),
    ),
    "amt::INTEGER": SUMS.map(str),
    "amt::DECIMAL(20,4)": SUMS.map(str),
    "id": st.one_of(st.integers(-20, 130).map(str), SUMS.map(str)),
}
OPERATORS = st.sampled_from(["<", "<=", ">", ">="])


@st.composite
def conditions(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(sorted(LITERALS)))
    literal = LITERALS[column]
    form = draw(st.integers(0, 3))
    if form == 0:
        return f"{column} {draw(OPERATORS)} {draw(literal)}"
    if form == 1:
        return f"{draw(literal)} {draw(OPERATORS)} {column}"
    negated = "NOT " * (form == 3)
    return f"{column} {negated}BETWEEN {draw(literal)} AND {draw(literal)}"


@pytest.fixture(scope="module")
def rows():
    """Rows that reach both ends of each range, each end's neighbours, and NULL."""
    engine = duckdb.connect()
    engine.execute("SET threads = 1")
    engine.execute("CREATE TABLE bank (id BIGINT, amt DECIMAL(18,2), dt DATE, ts TIMESTAMP)")
    ids = [1, 2, 50, 99, 100, None]
    sums = [Decimal(t) for t in ("-5.00", "-4.99", "-0.50", "0", "0.5", "999.99", "1000.00")]
    days = ["2026-01-01", "2026-01-02", "2026-03-31", "2026-06-29", "2026-06-30", None]
    moments = [
        *("2026-01-01 00:00:00", "2026-01-01 00:00:00.000001", "2026-03-31 12:00:00"),
        *("2026-06-30 16:59:59.999999", "2026-06-30 17:00:00", None),
    ]
    for place in range(42):
        engine.execute(
            "INSERT INTO bank VALUES (?, ?, ?, ?)",
            [ids[place % 6], [*sums, None][place % 8], days[place % 6], moments[place % 6]],
        )
    yield engine
    engine.close()


@given(conditions())
@example("amt::INTEGER < 1000.5")
@example("ts < DATE '2026-07-01'")
@example("amt <= CAST('1000.04' AS DECIMAL(10,1))")
def test_no_row_inside_the_range_changes_sides(held, rows, condition):
    found = held(where(condition))
    count = "SELECT count(*) FILTER (WHERE {0}), count(*) FILTER (WHERE NOT ({0})) FROM bank"
    moved = found.executed.removeprefix(where(""))
    wanted, had = (rows.execute(count.format(c)).fetchone() for c in (condition, moved))
    assert wanted == had


def test_clamping_to_the_bound_itself_would_lose_rows(rows):
    """The test above can fail: `<` and the bound, instead of the value behind it, differ."""
    asked = rows.execute("SELECT count(*) FROM bank WHERE id < 500").fetchone()
    assert asked != rows.execute("SELECT count(*) FROM bank WHERE id < 100").fetchone()


# --- the proof ----------------------------------------------------------------------------


def tree(sql: str) -> dict:
    engine = duckdb.connect()
    (text,) = engine.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone()
    engine.close()
    return json.loads(text)["statements"][0]["node"]


BEFORE = "SELECT id FROM bank WHERE id < 500 AND dt > '2020-01-01'"


@pytest.mark.parametrize(
    ("after", "holds"),
    [
        ("SELECT id FROM bank WHERE id < 101 AND dt > '2020-01-01'", True),
        ("SELECT id FROM bank WHERE id < 102 AND dt > '2020-01-01'", False),
        ("SELECT id FROM bank WHERE id <= 101 AND dt > '2020-01-01'", False),
        ("SELECT id FROM bank WHERE id < 101 AND dt > '2021-01-01'", False),
        ("SELECT id FROM bank WHERE id < 101 OR dt > '2020-01-01'", False),
        ("SELECT id FROM bank WHERE id < 101", False),
        (BEFORE, False),
    ],
)
def test_the_proof_allows_the_constant_of_the_edit_and_nothing_else(after, holds):
    at = BEFORE.index("500")
    edits = [Edit(at, at + 3, "101", CLAMPED)]
    assert only_moved(tree(BEFORE), tree(after), BEFORE, edits) is holds
