"""Orders that are put in: the table of rewrites, and that what runs depends on no order of rows."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tieout.executor.sql import session
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.verdict import REASONS, REWRITES, Standing

MARKS = ("ask", "run", "no ", "why", "by ")


@dataclass(frozen=True)
class Case:
    ask: str
    run: str
    no: str
    why: str
    by: str


def cases() -> list[Case]:
    found = []
    for block in Path(__file__).with_name("rewrites.txt").read_text("utf-8").split("\n\n"):
        told = dict.fromkeys(MARKS, "")
        mark = ""
        for line in block.splitlines():
            if not line.startswith(("#", "--")):
                mark = line[:3] if line[:3] in MARKS else mark
                told[mark] += line[4:] if line[:3] in MARKS else "\n" + line[4:]
        if told["ask"]:
            found.append(Case(*(told[m] for m in MARKS)))
    return found


CASES = cases()
ADMITTED = [case for case in CASES if not case.no]
FLOATS = "floats"
"""Whose rows are added up in the order of their values: EXACT sums have tests of their own."""


@pytest.fixture(scope="module")
def judged(validate):
    """Each text through the gate once."""
    return cache(validate)


def why(reasons) -> str:
    return ", ".join(f"{r.name} {r.line}:{r.column}" for r in reasons)


def test_the_table_has_every_kind_of_reason_and_rewrite_about_orders():
    assert len(CASES) > 115
    named = {
        word for case in CASES for word in case.why.replace(":", " ").replace(",", " ").split()
    }
    orders = {n for n in REASONS if n.startswith(("unordered", "sequence")) or n.endswith("_ties")}
    assert orders <= named
    by = {word for case in CASES for word in case.by.split(", ") if word}
    assert by == {"total_order", "ordered_limit", "ordered_window", "ordered_aggregate"}
    assert by <= set(REWRITES)


@pytest.mark.parametrize("case", ADMITTED, ids=lambda case: case.ask)
def test_what_was_asked_and_what_runs(case, judged):
    found = judged(case.ask)
    assert found.executed == (case.ask if case.run == "=" else case.run)
    assert why(found.verdict.reasons) == case.why
    assert ", ".join(found.rewrites) == case.by
    open_ = {r.name for r in found.verdict.reasons} - {"sequence"}
    assert found.verdict.standing is (Standing.REWRITTEN if open_ else Standing.FUNCTION)
    assert bool(found.countercheck) == bool(open_)


@pytest.mark.parametrize("case", ADMITTED, ids=lambda case: case.ask)
def test_in_what_runs_and_in_its_opposite_nothing_is_open(case, judged):
    found = judged(case.ask)
    for text in filter(None, (found.executed, found.countercheck)):
        again = judged(text)
        assert again.executed == text
        assert again.verdict.reasons == ()


@pytest.mark.parametrize("case", ADMITTED, ids=lambda case: case.ask)
def test_the_rewrites_are_told_at_their_places(case, judged):
    """The told insertions, put into the asked text, give the text that runs."""
    found = judged(case.ask)
    lines = case.ask.splitlines(keepends=True)
    starts = [sum(map(len, lines[:n])) for n in range(len(lines))]
    text, last = "", 0
    for rewrite in found.verdict.rewrites:
        at = starts[rewrite.line - 1] + rewrite.column - 1
        assert case.ask[at : at + len(rewrite.removed)] == rewrite.removed
        text += case.ask[last:at] + rewrite.inserted
        last = at + len(rewrite.removed)
    assert text + case.ask[last:] == found.executed


@pytest.mark.parametrize("case", [c for c in CASES if c.no], ids=lambda case: case.ask)
def test_what_has_no_rewrite_is_refused_with_its_reason(case, judged):
    with pytest.raises(SqlRefused) as caught:
        judged(case.ask)
    assert case.no == caught.value.code
    assert why(caught.value.reasons) == case.why
    assert caught.value.remedy


TYPES = {"id": "INTEGER", "amt": "DECIMAL(18,2)", "memo": "VARCHAR", "dt": "DATE"}
TABLES = {
    "bank": TYPES | {"acct_key": "INTEGER"},
    "ledger": TYPES | {"acct_key": "INTEGER"},
    "floats": {"id": "INTEGER", "x": "DOUBLE"},
}
DAYS = ("2026-01-01", "2026-01-02", None)


def tables_of(chosen: random.Random, rows: int) -> dict[str, list[tuple[object, ...]]]:
    """Tables with many ties: few values in each column but the key."""
    found: dict[str, list[tuple[object, ...]]] = {}
    for name in ("bank", "ledger"):
        keys = chosen.sample(range(rows * 2), rows)
        found[name] = [
            (
                key,
                chosen.choice([1, 2, None]),
                chosen.choice(["a", "b", "B", None]),
                chosen.choice(DAYS),
                chosen.choice([1, 2]),
            )
            for key in keys
        ]
    found["floats"] = [(chosen.choice([1, 2]), chosen.choice([0.5, 1.5])) for _ in range(rows)]
    return found


@pytest.fixture(scope="module")
def engines():
    """One locked engine with one thread, one with two."""
    made = []
    for threads in (1, 2):
        engine = session.connect()
        engine.execute(f"SET threads={threads}")
        for name, columns in TABLES.items():
            session.declare(engine, name, columns)
        session.lock(engine, memory_bytes=1 << 30)
        made.append(engine)
    yield made
    for engine in made:
        engine.close()


def fill(engine, tables) -> None:
    for name, rows in tables.items():
        engine.execute(f"DELETE FROM {name}")
        marks = ", ".join("?" for _ in TABLES[name])
        if rows:
            values = [value for row in rows for value in row]
            engine.execute(
                f"INSERT INTO {name} VALUES " + ", ".join([f"({marks})"] * len(rows)), values
            )


def bag(engine, sql: str) -> Counter[str]:
    return Counter(map(repr, engine.execute(sql).fetchall()))


def moved(tables, order: random.Random):
    return {name: order.sample(rows, len(rows)) for name, rows in tables.items()}


def check_orders(found, engines, chosen, rows):
    """What runs, and its countercheck, give the same rows for each order of insertion."""
    tables = tables_of(chosen, rows)
    results, counter = [], []
    for engine in (*engines, *engines):
        fill(engine, moved(tables, chosen))
        results.append(bag(engine, found.executed))
        counter.append(bag(engine, found.countercheck or found.executed))
    assert all(result == results[0] for result in results)
    assert all(result == counter[0] for result in counter)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), rows=st.integers(0, 9), case=st.sampled_from(ADMITTED))
def test_what_runs_gives_the_same_rows_whatever_the_order_of_insertion(
    seed, rows, case, engines, judged
):
    found = judged(case.ask)
    check_orders(found, engines, random.Random(seed), rows)


SHOWN = ["unordered_limit", "limit_ties", "unordered_window", "window_ties"]
SHOWN += ["unordered_aggregate", "aggregate_ties"]


@pytest.mark.parametrize("reason", SHOWN)
def test_what_was_asked_depends_on_the_order_of_insertion(reason, engines, judged):
    """Without the rewrites the property above fails: for each reason most queries show it."""
    mine = [c for c in ADMITTED if {w.split(" ")[0] for w in c.why.split(", ")} == {reason}]
    executed = {case.ask: judged(case.ask).executed for case in mine}
    asked, run = defaultdict(set), defaultdict(set)
    chosen = random.Random(7)
    for _ in range(6):
        fill(engines[0], moved(tables_of(random.Random(3), 8), chosen))
        for case in mine:
            asked[case.ask].add(tuple(sorted(bag(engines[0], case.ask).items())))
            run[case.ask].add(tuple(sorted(bag(engines[0], executed[case.ask]).items())))
    shown = sum(len(seen) > 1 for seen in asked.values())
    assert {len(seen) for seen in run.values()} == {1}
    assert shown > len(mine) / 2
    assert mine


BIG = 150_000
"""Rows over several row groups, so that two threads take part."""
GROWING = ("ledger", "RANGE", "agg(memo, ',') OVER", "list(memo) OVER", "value(", "PIVOT", "floats")
"""Parts of queries whose work, or results, would grow with the square of the rows."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({c.by for c in ADMITTED if c.by}))
def test_many_rows_on_two_threads_give_the_same_rows(name, judged):
    """One table without joins or correlation: each query of a kind over many row groups."""
    mine = [c for c in ADMITTED if c.by == name and not any(part in c.ask for part in GROWING)]
    mine = [c for c in mine if " bank" in c.ask]
    bags: dict[str, set[int]] = {}
    for threads, order in ((1, "id"), (2, "hash(id)"), (2, "-id")):
        engine = session.connect()
        engine.execute(f"SET threads={threads}")
        engine.execute(
            "CREATE TABLE bank AS SELECT i::INTEGER AS id, (i * 7919 % 5)::DECIMAL(18,2) AS amt, "  # noqa: S608
            "chr(97 + (i * 31 % 3)::INTEGER) AS memo, DATE '2026-01-01' + (i * 17 % 900)::INTEGER AS dt, "
            f"(i % 4)::INTEGER AS acct_key FROM range({BIG}) r(i) ORDER BY {order}, id"
        )
        for case in mine:
            executed = judged(case.ask).executed.rstrip("; ")
            one = engine.execute(
                f"SELECT count(*), bit_xor(md5_number(t::VARCHAR)) FROM ({executed}) t"  # noqa: S608
            ).fetchone()
            bags.setdefault(case.ask, set()).add(hash(one))
        engine.close()
    assert mine
    assert {ask for ask, seen in bags.items() if len(seen) > 1} == set()


SOURCES = [
    "bank b",
    "bank b JOIN ledger l ON b.dt = l.dt",
    "bank b LEFT JOIN ledger l USING (id)",
    "bank b FULL JOIN ledger l USING (id)",
    "ledger l RIGHT JOIN bank b ON b.dt = l.dt AND l.id = 3",
    "bank b JOIN ledger l ON b.id = l.acct_key WHERE l.memo = 'a'",
    "bank b, LATERAL (SELECT max(l.amt) AS m FROM ledger l WHERE l.dt = b.dt) u WHERE u.m = b.id",
    "bank b, LATERAL (SELECT l.id, l.amt + b.amt AS m FROM ledger l WHERE l.dt = b.dt) u",
    "bank b ANTI JOIN ledger l ON b.dt = l.dt",
    "bank b JOIN (SELECT dt, max(amt) AS m FROM ledger GROUP BY dt) l ON b.dt = l.dt",
    "(SELECT * FROM bank ORDER BY dt LIMIT 4) b",
    "(SELECT DISTINCT ON (memo) * FROM bank) b",
    "(SELECT DISTINCT memo, dt, amt FROM bank) b",
    "(SELECT memo, dt, amt FROM bank UNION ALL SELECT memo, dt, amt FROM ledger) b",
    "(SELECT memo, dt, max(amt) AS amt FROM bank GROUP BY memo, dt) b",
    "(SELECT memo, dt, max(amt) AS amt FROM bank GROUP BY ROLLUP (memo, dt)) b",
    "(SELECT *, unnest([1, 2]) AS u FROM bank) b",
]
CALLS = ["row_number()", "lag({})", "lead({}, 2)", "ntile(2)", "rank()", "first_value({})"]
CALLS += ["last_value({})", "nth_value({}, 2)", "list({})", "list(DISTINCT {})", "max({})"]
CALLS += ["count({})", "arg_max({}, b.dt)", "mode({})", "lag({} ORDER BY b.dt)", "any_value({})"]
FRAMES = ["", "ROWS 1 PRECEDING", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES"]
FRAMES += ["GROUPS 1 PRECEDING", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"]
FRAMES += ["ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW"]
ENDS = ["", "LIMIT 2", "ORDER BY 2 LIMIT 3", "ORDER BY n OFFSET 1"]
COLUMNS = ["b.memo", "b.dt", "b.amt"]
ORDERS = ["", "ORDER BY b.memo", "ORDER BY b.dt DESC", "ORDER BY lower(b.memo) NULLS FIRST, b.dt"]
SHAPES = [
    "SELECT b.memo, {call} OVER ({part} {order} {frame}) AS n FROM {source} {end}",
    "SELECT {call} OVER w AS n, rank() OVER w AS r FROM {source} WINDOW w AS ({part} {order}) {end}",
    "SELECT b.dt, {call} OVER ({part} {order}) AS n FROM {source} GROUP BY b.memo, b.dt, b.amt {end}",
    "SELECT b.dt, list({column}) AS l, mode(b.amt) AS n FROM {source} GROUP BY b.dt {end}",
    "SELECT DISTINCT ON (b.memo) b.memo, {call} OVER ({part} {order} {frame}) AS n FROM {source}",
]


@st.composite
def queries(draw) -> str:
    pick = {name: draw(st.sampled_from(found)) for name, found in
            (("call", CALLS), ("frame", FRAMES), ("source", SOURCES), ("end", ENDS),
             ("column", COLUMNS), ("order", ORDERS))}  # fmt: skip
    pick["call"] = pick["call"].format(pick["column"])
    pick["part"] = draw(st.sampled_from(["", "PARTITION BY b.dt", "PARTITION BY b.memo, b.amt"]))
    return draw(st.sampled_from(SHAPES)).format(**pick)


ORDER_CODES = {"sql.window_ties", "sql.unordered_window", "sql.bind", "sql.parsers_disagree"}
ORDER_CODES |= {"sql.unordered_aggregate"}
"""No rewrite: groups of ROLLUP, EXCLUDE by peers of a ROWS frame, a list in the order of a query
inside; some frames do not bind."""


@settings(max_examples=60, deadline=None)
@given(sql=queries(), seed=st.integers(0, 2**32), rows=st.integers(2, 9))
def test_no_admitted_query_depends_on_the_order_of_insertion(sql, seed, rows, engines, validate):
    try:
        found = validate(sql)
    except SqlRefused as refused:
        assert refused.code in ORDER_CODES
        return
    check_orders(found, engines, random.Random(seed), rows)
