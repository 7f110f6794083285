"""Numbers that nobody typed: constants made of a column alone, and rows that a query repeats."""

from __future__ import annotations

import pytest

MARKED = [
    ("SELECT amt / nullif(amt, 0) AS n FROM bank", "both sides the same"),
    ("SELECT max(coalesce(amt, id) / greatest(amt)) AS n FROM bank", "both sides the same"),
    ("SELECT amt::DOUBLE / -amt AS n FROM bank", "both sides the same"),
    ("SELECT id | ~id AS n FROM bank", "both sides the same"),
    ("SELECT max(xor(id, ~id)) AS n FROM bank", "both sides the same"),
    ("SELECT date_diff('day', dt, bank.dt) AS n FROM bank", "both sides the same"),
    ("SELECT levenshtein(memo, memo) AS n FROM bank", "both sides the same"),
    ("SELECT bit_count(id) AS n FROM bank", "bit_count()"),
]


@pytest.mark.parametrize(("sql", "literal"), MARKED)
def test_what_a_column_makes_of_itself_counts_as_a_literal(sql, literal, validate):
    (origin,) = validate(sql).origins
    assert literal in origin.literals


FACTORS = [
    "SELECT amt * amt AS n FROM bank",
    "SELECT (amt - id) / nullif(amt, 0) AS n FROM bank",
    "SELECT greatest(amt, id) - amt AS n FROM bank",
    "SELECT arg_max(id, id) AS n FROM bank",
    "SELECT coalesce(amt, amt) AS n FROM bank",
]


@pytest.mark.parametrize("sql", FACTORS)
def test_what_may_stand_twice_is_no_literal(sql, validate):
    (origin,) = validate(sql).origins
    assert set(origin.literals) <= {"0"}


SETS = [
    "SELECT sum(c) AS n FROM (SELECT count(*) AS c FROM bank GROUP BY CUBE (id, memo, dt)) t",
    "SELECT sum(a) AS n FROM (SELECT sum(amt) AS a FROM bank GROUP BY GROUPING SETS ((id), (id))) t",
    "WITH t AS (SELECT memo, sum(amt) AS a FROM bank GROUP BY ROLLUP (memo)) SELECT sum(a) AS n FROM t",
    (
        "WITH t AS (SELECT memo, sum(amt) AS a FROM bank GROUP BY ROLLUP (memo)), "
        "u AS (FROM t UNION ALL SELECT memo, amt FROM ledger) SELECT sum(a) AS n FROM u"
    ),
    "SELECT sum(sum(amt)) OVER () AS n FROM bank GROUP BY ROLLUP (memo)",
]


@pytest.mark.parametrize("sql", SETS)
def test_grouping_sets_repeat_rows_and_a_sum_over_them_says_so(sql, validate):
    (origin,) = validate(sql).origins
    assert "grouping" in origin.literals
    assert {"2", "8"} & set(origin.literals)
    assert origin.operation == "sum over grouping sets" or "OVER ()" in sql


def test_grouping_sets_alone_leave_their_figures_as_they_are(validate):
    found = validate("SELECT memo, sum(amt) AS s, max(amt) AS m FROM bank GROUP BY ROLLUP (memo)")
    assert [o.literals for o in found.origins] == [(), (), ()]
    kept = validate(
        "SELECT max(s) AS n FROM (SELECT sum(amt) AS s FROM bank GROUP BY ROLLUP (memo)) t"
    )
    assert kept.origins[0].literals == ()
