"""Calls of one SELECT that give back rows: of one row, or parallel; seen on random tables."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tieout.executor.sql import functions, session
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.ties_aggregates import LISTS
from tieout.executor.sql.ties_rows import KEEPS_ONE
from tieout.executor.sql.ties_windows import WALKS
from tieout.executor.sql.vocabulary import ORDERED_GROUPS

OTHERS = {"mode", "variant_group_array"} | {f"list_{n}" for n in ("any_value", "first", "last")}
OTHERS |= {"list_mode", "list_string_agg"}
"""mode gives back no row; the rest walks a list."""


def test_each_aggregate_that_depends_on_the_order_of_rows_is_of_a_kind():
    known = {
        name
        for name, entries in functions.classes().items()
        if {e.group for e in entries} & ORDERED_GROUPS
    }
    assert known == KEEPS_ONE | LISTS | OTHERS
    assert KEEPS_ONE.isdisjoint(LISTS)


COLUMNS = {"id": "INTEGER", "amt": "DECIMAL(18,2)", "memo": "VARCHAR", "dt": "DATE"}
COLUMNS |= {"acct_key": "INTEGER"}
FLOATS = {"id": "INTEGER", "x": "DOUBLE"}


@pytest.fixture(scope="module")
def engine():
    """An engine whose tables a test fills by itself."""
    made = session.connect()
    made.execute("SET threads=2")
    for name, columns in (("bank", COLUMNS), ("ledger", COLUMNS), ("floats", FLOATS)):
        session.declare(made, name, columns)
    session.lock(made, memory_bytes=1 << 30)
    yield made
    made.close()


def fill(engine, seed: int, rows: int) -> None:
    """Rows without NULL, which some of the calls skip; ties in all but the key."""
    chosen = random.Random(seed)
    days = ("2026-01-01", "2026-01-02")
    for name in ("bank", "ledger", "floats"):
        engine.execute(f"DELETE FROM {name}")
        for key in chosen.sample(range(rows * 2), rows):
            row = [key, chosen.choice([1, 2]), chosen.choice("abc"), chosen.choice(days), key % 2]
            if name == "floats":
                row = [chosen.choice([1, 2]), chosen.choice([0.5, 1.5])]
            marks = ", ".join("?" for _ in row)
            engine.execute(f"INSERT INTO {name} VALUES ({marks})", row)


@dataclass(frozen=True)
class Source:
    """A FROM, its columns, and how a block over it is grouped or its windows are partitioned."""

    text: str
    columns: tuple[str, ...]
    groups: tuple[str, ...] = ("",)


OF_BANK = ("b.id", "b.amt", "b.memo", "b.dt", "b.acct_key")
GROUPS = ("", "b.dt", "b.memo, b.acct_key")
SOURCES = [
    Source("bank b", OF_BANK, GROUPS),
    Source("bank b JOIN ledger l ON b.dt = l.dt", (*OF_BANK[:3], "l.id", "l.memo"), GROUPS),
    Source("bank b LEFT JOIN ledger l USING (id)", (*OF_BANK[1:], "l.amt"), GROUPS),
    Source("bank b FULL JOIN ledger l ON b.id = l.id", ("b.id", "b.memo", "l.id", "l.memo")),
    Source("floats f", ("f.id", "f.x"), ("", "f.id")),
    Source("(SELECT memo, dt, upper(memo) || amt AS u FROM bank) t", ("t.u", "memo", "t.dt")),
    Source("(SELECT COLUMNS('id|memo|amt') FROM bank) t", ("id", "memo", "amt"), ("", "amt")),
    Source("bank b, LATERAL (SELECT l.id FROM ledger l WHERE l.dt = b.dt) u", ("u.id", "b.memo")),
    Source("(VALUES (1, 2), (1, 3), (2, 2)) AS v(z, w)", ("z", "v.w"), ("", "v.z")),
]
ONE = ["first({})", "last({})", "any_value({})", "arbitrary({})", "arg_max({}, {by})"]
ONE += ["max_by({}, {by})", "arg_min({}, {by})", "arg_max({}, {by}, 2)", "arg_max_null({}, {by})"]
MANY = ["list({})", "array_agg({})"]
ORDERS = ["", " ORDER BY {by}", " ORDER BY {by} DESC"]


@st.composite
def blocks(draw) -> tuple[str, str, list[str]]:
    """A query whose columns are one kind of call over several columns; its FROM, and these."""
    source = draw(st.sampled_from(SOURCES))
    given_ = draw(st.lists(st.sampled_from(source.columns), min_size=2, max_size=3, unique=True))
    by = draw(st.sampled_from(source.columns))
    call = draw(st.sampled_from([*ONE, *MANY]))
    order = draw(st.sampled_from(ORDERS)).format(by=by)
    group = draw(st.sampled_from(source.groups))
    over, end = "", f" GROUP BY {group}" if group else ""
    if draw(st.booleans()) and source.text.startswith(("bank b", "floats")):
        frame = draw(st.sampled_from(["", f"ORDER BY {by}", f"ORDER BY {by} ROWS 1 PRECEDING"]))
        over, end = f" OVER ({f'PARTITION BY {group} ' * bool(group)}{frame})", ""
        order = ""
    calls = [call.format(c, by=by)[:-1] + order + f"){over} AS c{n}" for n, c in enumerate(given_)]
    return f"SELECT {', '.join(calls)} FROM {source.text}{end}", source.text, given_


NOT_ADMITTED = {"sql.window_ties", "sql.unordered_window", "sql.bind", "sql.parsers_disagree"}


def rows_of(value: tuple[object, ...]) -> list[tuple[object, ...]]:
    """The rows that one row of calls gives back: lists of one length are parallel."""
    if not all(isinstance(cell, list) for cell in value):
        return [value]
    return list(zip(*value, strict=True))


def made_up(engine, sql: str, source: str, columns: list[str]) -> set[tuple[object, ...]]:
    """Rows that calls give back and FROM does not have."""
    there = set(engine.execute(f"SELECT {', '.join(columns)} FROM {source}").fetchall())
    given_ = {row for value in engine.execute(sql).fetchall() for row in rows_of(value)}
    return given_ - there - {(None,) * len(columns)}


@settings(max_examples=120, deadline=None)
@given(block=blocks(), seed=st.integers(0, 2**32), rows=st.integers(0, 7))
def test_what_calls_of_one_block_give_back_is_rows_of_from(block, seed, rows, engine, validate):
    sql, source, columns = block
    try:
        found = validate(sql)
    except SqlRefused as refused:
        assert refused.code in NOT_ADMITTED
        return
    skips_null = any(f in sql for f in ("any_value", "max(", "min(", "_by(", "arg"))
    fill(engine, seed, rows)
    if skips_null and ("LEFT" in source or "FULL" in source):
        return
    for text in filter(None, (found.executed, found.countercheck)):
        assert made_up(engine, text, source, columns) == set()


BY_ARGUMENTS = [
    ("first(memo ORDER BY memo) AS a, first(id ORDER BY id) AS b", "bank", ["memo", "id"]),
    ("list(memo ORDER BY memo) AS a, list(id ORDER BY id) AS b", "bank", ["memo", "id"]),
    (
        "arg_max(memo, dt ORDER BY memo) AS a, arg_max(id, dt ORDER BY id) AS b",
        "bank",
        ["memo", "id"],
    ),
]


@pytest.mark.parametrize(("calls", "source", "columns"), BY_ARGUMENTS)
def test_by_their_own_arguments_they_would_give_rows_that_never_were(
    calls, source, columns, engine
):
    """So that the property above can fail."""
    seen = set()
    for seed in range(8):
        fill(engine, seed, 6)
        seen |= made_up(engine, f"SELECT {calls} FROM {source}", source, columns)
    assert seen


def refusal(validate, sql: str) -> SqlRefused:
    with pytest.raises(SqlRefused) as caught:
        validate(sql)
    return caught.value


DISTINCT = "SELECT any_value(DISTINCT memo){0} AS a, any_value(DISTINCT amt){0} AS b FROM bank"


@pytest.mark.parametrize("over", ["", " OVER (PARTITION BY dt)", " OVER (ORDER BY dt)"])
def test_distinct_values_come_from_no_one_row_and_the_way_out_is_admitted(over, validate):
    sql = DISTINCT.format(over)
    assert "Leave DISTINCT out" in refusal(validate, sql).remedy
    assert validate(sql.replace("DISTINCT ", "")).rewrites
    assert validate(sql.split(", any_value")[0] + " FROM bank").rewrites


def test_columns_by_a_star_where_from_is_not_known_are_refused_and_the_way_out_is_admitted(
    validate,
):
    sql = "SELECT list({}) AS a, first(memo) AS b FROM (SELECT COLUMNS('id|memo') FROM bank) t"
    assert "Name the columns" in refusal(validate, sql.format("COLUMNS('id')")).remedy
    assert validate(sql.format("id")).rewrites == ("ordered_aggregate",)


OUTSIDE = [
    "SELECT (SELECT {0}(b.memo)) AS n FROM bank b",
    "SELECT (SELECT {0}(memo)) AS n FROM bank",
    "SELECT (SELECT {0}(b.memo) FROM (SELECT 1 AS one) t) AS n FROM bank b",
    "SELECT (SELECT {0}(b.memo ORDER BY b.dt)) AS n FROM bank b GROUP BY acct_key",
    "SELECT (SELECT {0}(COLUMNS(t.*))) AS n FROM (SELECT memo FROM bank) t",
    "SELECT (SELECT {0}(list_transform([b.memo], lambda y: y || 'x'))) AS n FROM bank b",
]


@pytest.mark.parametrize("name", ["first", "list", "any_value", "mode"])
@pytest.mark.parametrize("sql", OUTSIDE)
def test_a_call_over_the_rows_of_a_query_around_it_is_refused(sql, name, validate):
    """The engine reads it as an aggregate of that query, whatever stands between."""
    refused = refusal(validate, sql.format(name))
    assert refused.code == "sql.unordered_aggregate"
    assert "outside the subquery" in refused.remedy


def test_a_call_over_the_rows_of_a_query_around_it_may_be_in_the_order_of_its_own_argument(
    validate,
):
    assert validate("SELECT (SELECT list(b.memo ORDER BY b.memo)) AS n FROM bank b").rewrites == ()
    summed = validate("SELECT (SELECT sum(f.x)) AS n FROM floats f")
    assert summed.rewrites == ("ordered_sum",)


def test_walking_windows_take_no_part():
    assert WALKS.isdisjoint(KEEPS_ONE | LISTS)
