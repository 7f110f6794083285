"""The total order: where it is inserted, when it is not needed, and that it orders."""

from __future__ import annotations

import pytest

CASES = [
    ("SELECT id, memo FROM bank ORDER BY memo", "SELECT id, memo FROM bank ORDER BY memo, 1, 2"),
    (
        "SELECT id, memo FROM bank ORDER BY memo DESC NULLS FIRST LIMIT 3",
        "SELECT id, memo FROM bank ORDER BY memo DESC NULLS FIRST, 1, 2 LIMIT 3",
    ),
    (
        "SELECT id, memo FROM bank UNION SELECT id, memo FROM ledger ORDER BY 1 -- last\n;",
        "SELECT id, memo FROM bank UNION SELECT id, memo FROM ledger ORDER BY 1, 1, 2 -- last\n;",
    ),
    (
        "SELECT id, sum(amt) OVER (ORDER BY id) AS s FROM bank ORDER BY (dt) OFFSET 1",
        "SELECT id, sum(amt) OVER (ORDER BY id) AS s FROM bank ORDER BY (dt), 1, 2 OFFSET 1",
    ),
    (
        "WITH a AS (SELECT id FROM bank ORDER BY id LIMIT 2) SELECT id FROM a ORDER BY 'x' || id",
        "WITH a AS (SELECT id FROM bank ORDER BY id LIMIT 2) SELECT id FROM a ORDER BY 'x' || id, 1",
    ),
    (
        "SELECT id FROM bank ORDER BY memo || '; LIMIT 2'",
        "SELECT id FROM bank ORDER BY memo || '; LIMIT 2', 1",
    ),
    (
        "FROM bank SELECT DISTINCT memo, dt ORDER BY dt",
        "FROM bank SELECT DISTINCT memo, dt ORDER BY dt, 1, 2",
    ),
]


@pytest.mark.parametrize(("asked", "executed"), CASES)
def test_the_order_is_made_total_in_its_place(asked, executed, validate):
    found = validate(asked)
    assert executed == found.executed
    assert found.rewrites == ("total_order",)
    assert found.ordered


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, memo FROM bank ORDER BY ALL",
        "SELECT id, memo FROM bank ORDER BY memo, id",
        "SELECT id AS a, memo FROM bank ORDER BY 2 DESC, A",
        "SELECT id, memo FROM bank ORDER BY id",
        "SELECT id FROM bank",
    ],
)
def test_a_total_order_is_left_alone(sql, validate):
    assert validate(sql).executed == sql
    assert validate(sql).rewrites == ()


@pytest.mark.parametrize(
    ("asked", "executed"),
    [
        (
            "(SELECT dt, memo FROM bank ORDER BY dt)",
            "(SELECT dt, memo FROM bank ORDER BY dt, 1, 2)",
        ),
        (
            "((SELECT id, memo FROM bank ORDER BY memo)) LIMIT 2",
            "((SELECT id, memo FROM bank ORDER BY memo, 1, 2)) LIMIT 2",
        ),
    ],
)
def test_an_order_inside_brackets_is_made_total_there(asked, executed, validate):
    assert validate(asked).executed == executed
