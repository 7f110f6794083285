"""Ranges: how many rows or elements they may make, to the last one."""

from __future__ import annotations

import pytest

from tieout.executor.sql.refusal import SqlRefused

ADMITTED = [
    "range(1000000)",
    "range(1, 1000001)",
    "range(0, 2000000, 2)",
    "range(0, 1999999, 2)",
    "range(5, 1)",
    "generate_series(1, 1000000)",
    "generate_series(0, 999999)",
    "generate_series(0, 1999999, 2)",
    "generate_series(999999, 0, -1)",
]
REFUSED = [
    "range(1000001)",
    "range(0, 2000001, 2)",
    "range(0, -1000001, -1)",
    "generate_series(1000000)",
    "generate_series(1, 1000001)",
    "generate_series(0, 2000000, 2)",
    "range(0, 5, 0)",
    "range(50000000)",
]


@pytest.mark.parametrize("call", ADMITTED)
@pytest.mark.parametrize("sql", ["SELECT n FROM {} AS r(n)", "SELECT unnest({}) AS n"])
def test_as_many_as_are_promised(call, sql, validate):
    assert validate(sql.format(call)).columns


@pytest.mark.parametrize("call", REFUSED)
@pytest.mark.parametrize("sql", ["SELECT n FROM {} AS r(n)", "SELECT unnest({}) AS n"])
def test_and_not_one_more(call, sql, validate):
    with pytest.raises(SqlRefused) as refused:
        validate(sql.format(call))
    assert refused.value.code == "sql.range"


@pytest.mark.parametrize(
    "call", ["len(range(50000000::BIGINT))", "unnest(generate_series(1, CAST(2000000 AS INTEGER)))"]
)
def test_a_cast_does_not_hide_a_literal(call, validate):
    with pytest.raises(SqlRefused) as refused:
        validate(f"SELECT {call} AS n")
    assert refused.value.code == "sql.range"


@pytest.mark.parametrize(
    "call",
    ["range(id)", "range(1, id)", "generate_series(dt, DATE '2026-06-30', INTERVAL 1 MONTH)"],
)
def test_other_elements_are_left_to_the_bound_of_memory(call, validate):
    assert validate(f"SELECT unnest({call}) AS n FROM bank").columns


@pytest.mark.parametrize("call", ["entropy(memo)", "list_entropy(list(memo))"])
def test_an_aggregate_of_logarithms_is_refused_by_every_name(call, validate):
    with pytest.raises(SqlRefused) as refused:
        validate(f"SELECT {call} AS n FROM bank")
    assert refused.value.code == "sql.libm"
