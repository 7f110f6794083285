"""What an ORDER BY names: a result column before one of FROM; and that it leaves no tie open."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tieout.executor.sql import session
from tieout.executor.sql.refusal import SqlRefused

AS_IT_STANDS = [
    "SELECT id, memo FROM bank ORDER BY id",
    "SELECT id, memo FROM bank ORDER BY id DESC LIMIT 3",
    "SELECT memo FROM bank ORDER BY bank.id",
    "SELECT memo AS m, id AS k FROM bank ORDER BY m, k",
    "SELECT * FROM bank ORDER BY id",
    "SELECT memo, sum(amt) AS s FROM bank GROUP BY memo ORDER BY memo",
    "SELECT b.memo, sum(amt) AS s FROM bank b GROUP BY b.memo ORDER BY memo DESC NULLS FIRST",
    "SELECT year(dt) AS y, memo, sum(amt) AS s FROM bank GROUP BY y, memo ORDER BY memo, y",
    "SELECT b.id, l.memo FROM bank b JOIN ledger l ON b.acct_key = l.id ORDER BY b.id",
    "SELECT DISTINCT memo, id FROM bank ORDER BY id",
    "WITH t AS (SELECT memo, count(*) AS n FROM bank GROUP BY memo) SELECT * FROM t ORDER BY memo",
]


@pytest.mark.parametrize("sql", AS_IT_STANDS)
def test_an_order_by_a_key_of_the_result_is_not_continued(sql, validate):
    found = validate(sql)
    assert (found.executed, found.rewrites) == (sql, ())
    assert found.ordered


SHADOWED = [
    ("SELECT memo AS id, amt FROM bank ORDER BY id", ", 1, 2", ""),
    ("SELECT memo AS id, id AS k FROM bank ORDER BY id", ", 1, 2", " LIMIT 2"),
    ("SELECT id AS x, memo AS id FROM bank ORDER BY id", ", 1, 2", ""),
    ("SELECT memo AS id, amt AS memo FROM bank ORDER BY id, memo", "", ""),
    ("SELECT memo, amt FROM bank ORDER BY 1", ", 1, 2", ""),
    ("SELECT memo AS id, amt AS memo, dt FROM bank ORDER BY id, memo", ", 1, 2, 3", ""),
    ("SELECT upper(memo) AS memo, sum(amt) AS s FROM bank GROUP BY memo ORDER BY memo", ", 1, 2", ""),
    ("SELECT max(dt) AS memo, count(*) AS n FROM bank GROUP BY bank.memo ORDER BY memo", ", 1, 2", " LIMIT 2"),
    ("SELECT l.id AS id, b.memo FROM bank b JOIN ledger l ON b.dt = l.dt ORDER BY id", ", 1, 2", ""),
    ("SELECT b.memo, l.id FROM bank b LEFT JOIN ledger l USING (id) ORDER BY id", ", 1, 2", ""),
    ("SELECT id % 2 AS k, memo FROM bank ORDER BY abs(id)", ", 1, 2", ""),
    ("SELECT memo, sum(amt) AS s FROM bank GROUP BY ROLLUP (memo) ORDER BY memo", ", 1, 2", ""),
    ("SELECT memo FROM bank b FULL JOIN ledger l USING (id, memo) ORDER BY b.id", ", 1", ""),
]  # fmt: skip


@pytest.mark.parametrize(("order", "added", "rest"), SHADOWED)
def test_a_name_of_the_result_hides_one_of_from(order, added, rest, validate):
    assert validate(order + rest).executed == order + added + rest
    inner = f"SELECT count(*) AS n FROM ({order}{{}} LIMIT 2) t"
    assert validate(inner.format("")).executed == inner.format(added)


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT * REPLACE (memo AS id) FROM bank ORDER BY id LIMIT 2",
        "SELECT * RENAME (memo AS id, id AS k) FROM bank ORDER BY id LIMIT 2",
        "SELECT COLUMNS('memo') AS id FROM bank ORDER BY id LIMIT 2",
        "SELECT lower(COLUMNS('memo')) FROM bank ORDER BY memo, id LIMIT 2",
        "SELECT unnest({'a': memo, 'b': id}) FROM bank ORDER BY 1 LIMIT 2",
    ],
)
def test_where_the_names_of_the_result_are_not_known_nothing_is_held_for_told(inner, validate):
    with pytest.raises(SqlRefused) as refused:
        validate(f"SELECT count(*) AS n FROM ({inner}) t")
    assert refused.value.code == "sql.unordered_limit"


def test_a_column_that_columns_names_is_that_of_from(validate):
    sql = "SELECT * FROM (SELECT COLUMNS('id') FROM bank ORDER BY id LIMIT 2) t(x) ORDER BY x"
    assert validate(sql).executed == sql


def test_the_case_of_a_literal_counts(validate):
    sql = "SELECT string_agg(replace(memo, 'a', ''), ',' ORDER BY replace(memo, 'A', '')) AS n FROM bank"
    assert validate(sql).verdict.reasons[0].name == "aggregate_ties"


def test_the_total_of_a_rollup_spans_all_groups(validate):
    found = validate("SELECT memo, string_agg(memo, ',') AS n FROM bank GROUP BY ROLLUP (memo)")
    assert "string_agg(memo, ',' ORDER BY memo)" in found.executed


NAMES = ["id", "memo", "amt", "dt", "k"]
VALUES = ["id", "b.id", "memo", "upper(memo)", "amt", "dt", "id % 2", "b.memo", "-id"]
GROUPED = ["memo", "b.memo", "upper(memo)", "max(dt)", "sum(amt)", "min(id)", "count(*)"]


@st.composite
def queries(draw) -> str:
    """Few names for many things, so that they hide one another."""
    grouped = draw(st.booleans())
    listed = draw(st.lists(st.sampled_from(GROUPED if grouped else VALUES), min_size=1, max_size=3))
    named = draw(st.lists(st.sampled_from(NAMES), min_size=3, max_size=3, unique=True))
    items = ", ".join(
        e if e.isidentifier() and draw(st.booleans()) else f"{e} AS {n}"
        for e, n in zip(listed, named, strict=False)
    )
    orders = draw(
        st.lists(st.sampled_from([*NAMES, "b.id", "b.memo", "1"]), min_size=1, max_size=2)
    )
    group = draw(st.sampled_from(["memo", "b.memo", "ALL", "1", *named])) if grouped else ""
    end = draw(st.sampled_from(["", " LIMIT 2", " LIMIT 3 OFFSET 1"]))
    text = f"SELECT {items} FROM bank b{group and ' GROUP BY ' + group} ORDER BY {', '.join(orders)}{end}"
    return f"SELECT * FROM ({text}) t ORDER BY ALL" if end and draw(st.booleans()) else text


@pytest.fixture(scope="module")
def engine():
    with session.connect() as found:
        yield found


def listed(engine, rows: list[tuple[int, str, int, int]], sql: str) -> list[object]:
    engine.execute(
        "CREATE OR REPLACE TABLE bank (id INTEGER, amt DECIMAL(18,2), memo VARCHAR, dt DATE)"
    )
    for number, memo, amount, day in rows:
        values = [number, amount, memo, f"2026-01-{day:02}"]
        engine.execute("INSERT INTO bank VALUES (?, ?, ?, ?)", values)
    found: list[object] = engine.execute(sql).fetchall()
    return found


@settings(max_examples=150, deadline=None)
@given(sql=queries(), seed=st.integers(0, 2**32))
def test_the_rows_and_their_sequence_do_not_depend_on_the_order_of_insertion(
    sql, seed, engine, validate
):
    try:
        found = validate(sql)
    except SqlRefused:
        return
    order = random.Random(seed)
    rows = [(n, order.choice("aAb"), order.randint(0, 2), order.randint(1, 3)) for n in range(7)]
    results = [listed(engine, order.sample(rows, len(rows)), found.executed) for _ in range(4)]
    assert all(result == results[0] for result in results)
