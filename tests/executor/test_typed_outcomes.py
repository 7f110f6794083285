"""Division by zero, overflow, NaN and infinity: an expression, and the typed outcome it has."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from tieout.artifacts.address import Address
from tieout.executor.engine import Engine, EngineLimits, TableBytes
from tieout.executor.errors import ExecutorError
from tieout.executor.result_values import check_finite
from tieout.executor.sql.validate import GrantedColumn, GrantedTable

COLUMNS = {"id": "INTEGER", "z": "INTEGER", "a": "DECIMAL(18,2)", "h": "HUGEINT", "x": "DOUBLE"}
TABLES = {
    "t": GrantedTable("t", tuple(GrantedColumn(c, kind) for c, kind in COLUMNS.items()), ("id",))
}
MANY = "9" * 38

RAISES = {
    "sql.division_by_zero": [
        *("1 / 0", "1 / z", "a / z", "a / 0.0", "1.5 / z", "sum(a) / sum(z)", "0 / 0"),
        *("1 // 0", "1 // z", "a // z", "1.5 // 0", "x // 0", "1 % 0", "1 % z", "a % z"),
        *("mod(1, 0)", "mod(1.5, 0)", "divide(1, 0)", "divide(a, z)", "decimal_division(a, z, 4)"),
        *(
            "sum(a) / sum(z)",
            "a / (z * 5)",
            "CASE WHEN 1 / z > 0 THEN 1 ELSE 0 END",
            "least(1 / z, 5)",
        ),
        "coalesce(1 / z, 0)",
    ],
    "sql.overflow": [
        *("2147483647::INT * 2", "9223372036854775807 + id", "abs((-9223372036854775807 - id))"),
        *(f"{MANY}::DECIMAL(38,0) + 1", f"{MANY}::DECIMAL(38,0) * 10"),
        *(f"{'9' * 30}::DECIMAL(38,0) / 1.5", "(id + 1000)::TINYINT"),
        *(f"sum({MANY}::DECIMAL(38,0)) + 1", "a * 9999999999999999.99::DECIMAL(18,2)"),
    ],
    "sql.out_of_range": [
        *("factorial(40)", "DATE '5881580-07-10' + id", "make_date(2026, 13, 1)"),
        "DATE '2026-01-01' + INTERVAL 999999 YEAR",
    ],
    "sql.not_finite": ["(0e0 / 0)::INTEGER", "(1e308 * 10)::DECIMAL(10,2)"],
    "sql.conversion": [
        *("CAST('x' AS INTEGER)", "300::TINYINT", "1e20::INTEGER", "1e40::DECIMAL(38,2)"),
        "12345.67::DECIMAL(4,2)",
        *("'2026-02-30'::DATE", "'nan'::DOUBLE::INTEGER"),
    ],
    "sql.not_a_number": [
        *("sqrt(-1)", "0e0 / 0", "'nan'::DOUBLE", "fmod(1, 0)", "x % 0", "(x - x) / (x - x)"),
        *("1e308 * 10 - 1e308 * 10", "greatest('nan'::DOUBLE, 1)", "regr_slope(x, 1)"),
    ],
    "sql.infinity": [
        *("x / 0", "-x / z", "fdiv(1, 0)", "1e308 * 10", "round(1e308 * 10, 2)", "a::DOUBLE / z"),
        *("sum(x * 1e308) * 2", "'-infinity'::DOUBLE", "product(1e300 * 10) * 1e300"),
        "avg(a) / sum(z)",
    ],
}
"""Code to expressions."""

VALUES = {
    **dict.fromkeys(
        [
            *("a / nullif(z, 0)", "1 / nullif(z, 0)", "decimal_division(a, nullif(z, 0), 4)"),
            *("a / NULL::INTEGER", "NULL::INTEGER / a", "NULL::INTEGER % 0"),
        ]
    ),
    **dict.fromkeys(["TRY(1 // z)", "TRY(a / z)", "TRY_CAST('x' AS INTEGER)"]),
    **dict.fromkeys(["sum(a) FILTER (WHERE false)", "avg(a) FILTER (WHERE false)"]),
    **dict.fromkeys(["stddev_samp(x)", "skewness(x)", "regr_r2(x, 5)", "list_extract([1, 2], 5)"]),
    **dict.fromkeys(
        [
            *("date_diff('day', DATE 'infinity', DATE '2026-01-01')", "last_day(DATE 'infinity')"),
            "year(DATE 'infinity')",
        ]
    ),
    "count(a) FILTER (WHERE false)": 0,
    "gcd(0, 0)": 0,
    "1 / (x / 0)": 0.0,
    "least(x / 0, 5)": 5.0,
    "x / 0 > 5": True,
}
"""Expressions that give a value: NULL where the text itself asks for it (nullif, TRY, TRY_CAST), of
no rows or too few by the rules of SQL, and of infinite dates by the engine's; and what infinities
of the model's own floats become before they reach a result, which no one sees."""


@pytest.fixture(scope="module")
def engine():
    with Engine(cache=None, limits=EngineLimits(seconds_max=10)) as running:
        yield running


@pytest.fixture(scope="module")
def outcome(engine):
    """Validate, run and check one expression as a step does; its value."""
    rows = pa.table(
        {
            "id": pa.array([1], pa.int32()),
            "z": pa.array([0], pa.int32()),
            "a": pa.array([1], pa.decimal128(18, 2)),
            "h": pa.array([1], pa.decimal128(38, 0)),
            "x": pa.array([1.5], pa.float64()),
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    payload = sink.getvalue()
    tables = {"t": TableBytes(Address.of(payload), lambda: payload)}

    def run(expression):
        validated = engine.validate(f"SELECT {expression} AS n FROM t", TABLES)
        table = engine.run(validated, tables).table
        check_finite(table)
        return table.column("n").to_pylist()[0]

    return run


@pytest.mark.parametrize(
    ("expression", "code"), [(text, code) for code, texts in RAISES.items() for text in texts]
)
def test_an_outcome_is_typed(expression, code, outcome):
    with pytest.raises(ExecutorError) as caught:
        outcome(expression)
    assert caught.value.code == code
    assert caught.value.remedy
    assert MANY not in caught.value.message


@pytest.mark.parametrize(("expression", "value"), VALUES.items())
def test_a_value_is_the_one_stated(expression, value, outcome):
    assert outcome(expression) == value


def test_a_message_has_the_column_and_how_many_and_no_value():
    table = pa.table({"ok": [1.5, None], "share of é": [float("nan"), float("-inf")]})
    with pytest.raises(ExecutorError) as caught:
        check_finite(table)
    assert caught.value.message == "column 'share of é' has values that are not a number: 1"
    assert caught.value.code == "sql.not_a_number"


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_values_in_any_chunk_are_found(kind):
    chunks = pa.chunked_array([pa.array([1, None], kind), pa.array([float("inf")], kind)])
    with pytest.raises(ExecutorError) as caught:
        check_finite(pa.table({"x": chunks}))
    assert caught.value.code == "sql.infinity"
    check_finite(pa.table({"x": chunks.slice(0, 2), "n": pa.array([1, 2])}))
    check_finite(pa.table({"x": pa.array([], kind)}))
