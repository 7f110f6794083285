"""The countercheck turns every order that was added, in whichever round."""

from __future__ import annotations

import pytest

from tieout.executor.sql.edits import Edit
from tieout.executor.sql.orders_texts import TURNED, Ordering
from tieout.executor.sql.refusal import SqlRefused, Text
from tieout.executor.sql.turned import countercheck_of

ROUNDS = {
    "SELECT string_agg(memo || (SELECT first(memo) FROM ledger), ',') AS v FROM bank": 4,
    "SELECT list(amt + (SELECT first(l.id) FROM ledger l)) AS v FROM bank": 4,
    "SELECT string_agg(memo || (SELECT first(memo) FROM ledger), ',' ORDER BY dt) AS v FROM bank": 4,
    "SELECT arg_max(memo, (SELECT any_value(id) FROM ledger) + amt) AS v FROM bank": 2,
    "SELECT row_number() OVER (ORDER BY dt) AS n FROM bank": 1,
}
"""Texts, and how many orders are added to them at least."""


@pytest.mark.parametrize(("sql", "orders_min"), ROUNDS.items())
def test_every_added_order_is_turned_round(sql, orders_min, validate):
    found = validate(sql)
    assert TURNED not in found.executed
    assert found.countercheck.replace(TURNED, "") == found.executed
    added = found.executed.count("ORDER BY") - sql.count("ORDER BY")
    assert found.countercheck.count(TURNED) >= orders_min >= added


def test_a_text_without_orders_that_choose_has_no_countercheck(validate):
    assert validate("SELECT memo FROM bank ORDER BY memo").countercheck == ""
    assert countercheck_of(Text("SELECT 1")) == ""


def put(sql: str, after: str, *columns: str) -> Edit:
    at = sql.index(after) + len(after)
    return Ordering(columns).put(at, "ordered_aggregate", after=False)


def test_an_order_that_is_continued_stays_turned_and_one_written_anew_is_found_again():
    sql = "SELECT first(a) FROM t"
    first = Text(sql).edited([put(sql, "first(a", "a")])
    at = first.sql.index(")")
    second = first.edited([Ordering(("b",)).put(at, "ordered_aggregate", after=True)])
    assert countercheck_of(second) == f"SELECT first(a ORDER BY a{TURNED}, b{TURNED}) FROM t"
    whole = second.sql[7 : second.sql.index(" FROM")]
    third = second.edited([Edit(7, 7 + len(whole), f"({whole})", "ordered_window", f"({whole})")])
    assert countercheck_of(third) == f"SELECT (first(a ORDER BY a{TURNED}, b{TURNED})) FROM t"


def test_an_order_that_is_lost_is_no_countercheck_that_found_nothing():
    sql = "SELECT first(a) FROM t"
    first = Text(sql).edited([put(sql, "first(a", "a")])
    lost = first.edited([Edit(7, first.sql.index(" FROM"), "last(b)", "ordered_window")])
    with pytest.raises(SqlRefused) as refused:
        countercheck_of(lost)
    assert refused.value.code == "sql.too_complex"
