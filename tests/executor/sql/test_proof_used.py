"""A rewrite that changes more than it says never runs: the proof is asked, and its answer counts.

The gates admit each wrong text below, and its result has the same columns: only the comparison of
the trees can tell it from a right one. Wrong edits are what no source of needs gives, so one that
gives them once is put in the place of the real one; all that judges the edits is the real thing.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tieout.executor.sql import examine as examination
from tieout.executor.sql import session
from tieout.executor.sql.edits import Edit, apply
from tieout.executor.sql.needs import Need
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.validate import GrantedColumn, GrantedTable, validate

TYPES = {"id": "INTEGER", "amt": "DECIMAL(18,2)", "memo": "VARCHAR", "dt": "DATE", "x": "DOUBLE"}
RANGED = {"id": ("1", "9")}
TABLE = GrantedTable(
    "t",
    tuple(GrantedColumn(n, kind, range=RANGED.get(n, ("", ""))) for n, kind in TYPES.items()),
    ("id",),
)
AS_OF = "2026-06-30"


@pytest.fixture(scope="module")
def engine():
    running = session.connect()
    session.declare(running, "t", TYPES)
    session.lock(running, memory_bytes=1 << 30)
    yield running
    running.close()


@pytest.fixture
def gate(engine):
    def admitted(sql, as_of=None):
        return validate(
            sql,
            {"t": TABLE},
            examine=lambda q, t: examination.examine(engine, q, t, chars_max=999, as_of=as_of),
        )

    return admitted


def edits(sql: str, rewrite: str, *changes: tuple[str, str, str]) -> tuple[Edit, ...]:
    """Each change: behind which words, what goes out there, and what is put in."""
    found = []
    for behind, out, put in changes:
        assert sql.count(behind) == 1, behind
        at = sql.index(behind) + len(behind)
        assert sql.startswith(out, at)
        found.append(Edit(at, at + len(out), put, rewrite))
    return tuple(found)


def needing(reason: str, given: tuple[Edit, ...], *, optional: bool = False) -> Need:
    return Need(reason, "sql.unordered_limit", "told", given[0].start, given, optional=optional)


ORDERS = {
    # Beside the order, something else of the query.
    "a condition": ("SELECT memo FROM t LIMIT 2", ("t", "", " WHERE amt > 0 ORDER BY id")),
    "a limit": ("SELECT memo FROM t LIMIT 2", ("t", " LIMIT 2", " ORDER BY id LIMIT 3")),
    "an offset": ("SELECT memo FROM t LIMIT 2", ("t LIMIT 2", "", " OFFSET 1"), ("t", "", " ORDER BY id")),
    "a distinct": ("SELECT memo FROM t LIMIT 2", ("SELECT", "", " DISTINCT"), ("t", "", " ORDER BY memo")),
    "a column": ("SELECT id AS n FROM t LIMIT 2", ("SELECT ", "id", "id + 1"), ("t", "", " ORDER BY id")),
    "a second table": ("SELECT t.memo FROM t LIMIT 2", ("FROM t", "", ", t AS u ORDER BY t.id, u.id")),
    # The order that was asked.
    "its direction": ("SELECT memo FROM t ORDER BY amt LIMIT 2", ("amt", "", " DESC, id")),
    "its nulls": ("SELECT memo FROM t ORDER BY amt LIMIT 2", ("amt", "", " NULLS FIRST, id")),
    "its place": ("SELECT memo FROM t ORDER BY amt LIMIT 2", ("BY", "", " id,")),
    "its column": ("SELECT memo FROM t ORDER BY amt LIMIT 2", ("BY ", "amt", "dt, id")),
    # An order that was there in the text, not in what was put in.
    "a comment": (
        "SELECT memo FROM t /* ORDER BY id */ LIMIT 2",
        ("FROM t ", "/*", ""),
        ("BY id ", "*/", ""),
    ),
    # Windows and aggregates.
    "a frame": (
        "SELECT id, sum(amt) OVER (ORDER BY dt ROWS 1 PRECEDING) AS n FROM t",
        ("dt", " ROWS 1", ", id ROWS 2"),
    ),
    "a partition": (
        "SELECT id, row_number() OVER (ORDER BY dt) AS n FROM t",
        ("OVER (", "ORDER BY dt", "PARTITION BY memo ORDER BY dt, id"),
    ),
    "a filter": (
        "SELECT string_agg(memo, ',') AS n FROM t",
        ("','", ")", " ORDER BY id) FILTER (WHERE amt > 0)"),
    ),
    "an argument": ("SELECT string_agg(memo, ',') AS n FROM t", ("memo, ", "','", "';' ORDER BY id")),
    "nothing": ("SELECT string_agg(memo, ',') AS n FROM t", ("','", "", " /* ORDER BY id */")),
}  # fmt: skip
NAMES = ("total_order", "ordered_limit", "ordered_window", "ordered_aggregate")


def once(monkeypatch, need: Need) -> None:
    """The first round of the judge asks for this; the rounds after it are the judge's own."""
    real, first = examination.judge, iter([(need,)])
    monkeypatch.setattr(examination, "judge", lambda reading: next(first, None) or real(reading))


def is_refused(gate, sql: str, wrong: str, as_of: str | None = None) -> None:
    with pytest.raises(SqlRefused) as caught:
        gate(sql, as_of)
    (reason,) = caught.value.reasons
    assert (reason.detail, caught.value.message) == ("told", "told"), wrong


@pytest.mark.parametrize("rewrite", NAMES)
@pytest.mark.parametrize("more", ORDERS)
def test_an_order_that_changes_more_is_refused(gate, monkeypatch, more, rewrite):
    sql, *changes = ORDERS[more]
    given = edits(sql, rewrite, *changes)
    assert gate(apply(sql, given)).columns == gate(sql).columns
    once(monkeypatch, needing("unordered_limit", given))
    is_refused(gate, sql, apply(sql, given))


def test_an_order_that_changes_nothing_else_is_not(gate, monkeypatch):
    sql = "SELECT memo FROM t LIMIT 2"
    given = edits(sql, "ordered_limit", ("t", "", " ORDER BY id DESC"))
    once(monkeypatch, needing("unordered_limit", given))
    assert gate(sql).executed == "SELECT memo FROM t ORDER BY id DESC LIMIT 2"


FIRST = ("SELECT ", "", "decimal_division(CAST(")
MIDDLE = ("amt", " / ", " AS DECIMAL(18,2)), CAST(")
LAST = " AS DECIMAL(9,2)), 12)"
EXACT = {
    "an operand": ("SELECT amt / 3 AS n FROM t", FIRST, MIDDLE, ("/ ", "3", f"4{LAST}")),
    "its operands turned": (
        "SELECT amt / id AS n FROM t",
        ("SELECT ", "amt", "decimal_division(CAST(id"),
        MIDDLE,
        ("/ ", "id", f"amt{LAST}"),
    ),
    "a cast that may fail": (
        "SELECT amt / id AS n FROM t",
        ("SELECT ", "", "decimal_division(TRY_CAST("),
        MIDDLE,
        ("/ id", "", LAST),
    ),
    "what is beside it": (
        "SELECT amt / 3 AS n FROM t", FIRST, MIDDLE, ("/ 3", "", f"{LAST} + 1")
    ),
    "another operator": (
        "SELECT amt * 3 AS n FROM t", FIRST, ("amt", " * ", MIDDLE[2]), ("* 3", "", LAST)
    ),
    "another call": (
        "SELECT sum(amt) AS n FROM t",
        ("SELECT ", "sum", "decimal_average"),
        ("sum(", "amt", "CAST(amt AS DECIMAL(18,2))"),
    ),
    "a distinct": (
        "SELECT avg(DISTINCT amt) AS n FROM t",
        ("SELECT ", "avg", "decimal_average"),
        ("avg(", "DISTINCT amt", "CAST(amt AS DECIMAL(18,2))"),
    ),
    "a filter": (
        "SELECT avg(amt) AS n FROM t",
        ("SELECT ", "avg", "decimal_average"),
        ("avg(", "amt)", "CAST(amt AS DECIMAL(18,2))) FILTER (WHERE id > 2)"),
    ),
    "its rows": (
        "SELECT avg(amt) AS n FROM t",
        ("SELECT ", "avg", "decimal_average"),
        ("avg(", "amt", "CAST(amt AS DECIMAL(18,2))"),
        ("FROM t", "", " WHERE id > 2"),
    ),
}  # fmt: skip


def exact(sql: str) -> str:
    return "exact_average" if "(" in sql else "exact_division"


@pytest.mark.parametrize("more", EXACT)
def test_exact_arithmetic_that_changes_more_is_given_up(gate, monkeypatch, more):
    """It is optional: the text stays, and what it leaves inexact says so."""
    sql, *changes = EXACT[more]
    given = edits(sql, exact(sql), *changes)
    assert [n for n, _kind in gate(apply(sql, given)).columns] == ["n"]
    reason = f"in{exact(sql)}"
    once(monkeypatch, needing(reason, given, optional=True))
    found = gate(sql)
    assert apply(sql, given) != found.executed
    assert not any(r.detail == "told" for r in found.verdict.reasons)


@pytest.mark.parametrize("more", EXACT)
def test_where_it_is_not_optional_it_is_refused(gate, monkeypatch, more):
    sql, *changes = EXACT[more]
    given = edits(sql, exact(sql), *changes)
    assert gate(apply(sql, given)).columns
    once(monkeypatch, needing("inexact_average", given))
    is_refused(gate, sql, apply(sql, given))


SUMS = {
    "a filter": ("x", "", " ORDER BY x) FILTER (WHERE (id > 2)"),
    "its argument": ("sum(", "x", "amt::DOUBLE ORDER BY x"),
    "a distinct": ("sum(", "x", "DISTINCT x ORDER BY x"),
}


@pytest.mark.parametrize("more", SUMS)
def test_an_ordered_sum_that_changes_more_is_refused(gate, monkeypatch, more):
    sql = "SELECT sum(x) AS n FROM t"
    given = edits(sql, "ordered_sum", SUMS[more])
    assert gate(apply(sql, given)).columns == (("n", "DOUBLE"),)
    once(monkeypatch, needing("float_accumulation", given))
    is_refused(gate, sql, apply(sql, given))


CLAMPS = {
    "the comparison": ("SELECT id FROM t WHERE id < 20", ("WHERE id ", "< 20", "> 9")),
    "a second condition": ("SELECT id FROM t WHERE id < 20", ("< ", "20", "9 OR TRUE")),
    "the column": ("SELECT id FROM t WHERE id < 20", ("WHERE ", "id < 20", "amt < 9")),
    "a parameter of its type": (
        "SELECT id FROM t WHERE id < 20::DECIMAL(9,2)",
        ("< ", "20::DECIMAL(9,2)", "9::DECIMAL(9,0)"),
    ),
}


@pytest.mark.parametrize("more", CLAMPS)
def test_a_clamp_that_moves_more_than_its_literal_is_refused(gate, monkeypatch, more):
    sql, *changes = CLAMPS[more]
    given = edits(sql, "clamped_range", *changes)
    assert gate(apply(sql, given)).columns == gate(sql).columns
    once(monkeypatch, needing("outside_range", given))
    is_refused(gate, sql, apply(sql, given))


DAY = f"CAST('{AS_OF}' AS DATE)"
CLOCKS = {
    "another day": ("SELECT id FROM t WHERE dt < today()", ("< ", "today()", DAY.replace("30", "29"))),
    "another type": (
        "SELECT id FROM t WHERE dt < today()",
        ("< ", "today()", DAY.replace("DATE", "TIMESTAMP")),
    ),
    "a cast that may fail": ("SELECT id FROM t WHERE dt < today()", ("< ", "today()", f"TRY_{DAY}")),
    "what is beside it": ("SELECT id FROM t WHERE dt < today()", ("dt ", "< today()", f"> {DAY}")),
    "a column": ("SELECT id FROM t WHERE dt < today()", ("WHERE ", "dt < today()", f"{DAY} < {DAY}")),
    "a further condition": ("SELECT id FROM t WHERE dt < today()", ("< ", "today()", f"{DAY} AND id > 2")),
    "another argument": ("SELECT age(dt) AS n FROM t", ("age(", "dt", f"{DAY}, dt + 1")),
    "arguments turned": ("SELECT age(dt) AS n FROM t", ("age(", "dt", f"dt, {DAY}")),
    "what reads no clock": (
        "SELECT id FROM t WHERE dt < make_date(2026, 1, 1)",
        ("< ", "make_date(2026, 1, 1)", DAY),
    ),
    "nothing": ("SELECT id FROM t WHERE id > 2", ("id > ", "", "/* today */ ")),
}  # fmt: skip


@pytest.mark.parametrize("more", CLOCKS)
def test_a_day_for_the_clock_that_changes_more_is_refused(gate, monkeypatch, more):
    sql, *changes = CLOCKS[more]
    given = edits(sql, "as_of", *changes)
    assert gate(apply(sql, given)).columns
    needs = (needing("clock", given),)
    monkeypatch.setattr(examination, "clock_needs", lambda *_given: needs)
    is_refused(gate, sql, apply(sql, given), AS_OF)


def test_a_table_that_only_the_plan_reads_is_refused(gate, monkeypatch):
    """No text is known for which the two differ: the plan is said to read a table more."""
    real, more = examination.check_plan, frozenset({"t", "u"})
    monkeypatch.setattr(
        examination,
        "check_plan",
        lambda *given, **named: replace(real(*given, **named), tables=more),
    )
    with pytest.raises(SqlRefused) as caught:
        gate("SELECT id FROM t")
    assert caught.value.message == "the plan reads a table the text does not name"
