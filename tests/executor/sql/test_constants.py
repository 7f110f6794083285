"""Constants that cannot become the type they are compared with or cast to: refused, nothing runs."""

from __future__ import annotations

import duckdb
import pytest

from tieout.executor.engine import TableBytes
from tieout.executor.failures import code_of
from tieout.executor.sql.refusal import WAYS_OUT
from tieout.executor.sql.validate import SqlRefused

REFUSED = [
    ("SELECT id FROM bank WHERE dt > '30/06/2026'", "the text '30/06/2026'", "DATE", 32),
    ("SELECT id FROM bank WHERE 'abc' < dt", "the text 'abc'", "DATE", 27),
    ("SELECT id FROM bank WHERE dt > DATE '2026-06-31'", "the text '2026-06-31'", "DATE", 32),
    ("SELECT id FROM bank WHERE amt > '1,000.00'", "the text '1,000.00'", "DECIMAL(18,2)", 33),
    ("SELECT id FROM bank WHERE dt IN ('2026-01-01', 'x')", "the text 'x'", "DATE", 48),
    ("SELECT id FROM bank WHERE dt BETWEEN '2026-01-01' AND 'y'", "the text 'y'", "DATE", 55),
    ("SELECT id FROM bank WHERE dt NOT BETWEEN 'x' AND 'y'", "the text 'x'", "DATE", 42),
    ("SELECT date_trunc('month', 'abc'::DATE) AS d", "the text 'abc'", "DATE", 28),
    ("SELECT coalesce(dt, 'none') AS d FROM bank", "the text 'none'", "DATE", 21),
    ("SELECT CASE WHEN id = 1 THEN 'x' ELSE amt END AS d FROM bank", "the text 'x'", "DECIMAL", 30),
    ("SELECT lag(dt, 1, 'x') OVER (ORDER BY id) AS d FROM bank", "the text 'x'", "DATE", 19),
    ("SELECT max(dt) AS d FROM bank HAVING max(dt) > 'x'", "the text 'x'", "DATE", 48),
    ("SELECT b.id FROM bank b JOIN ledger l ON b.dt = 'x'", "the text 'x'", "DATE", 49),
    ("SELECT id FROM bank LIMIT 'x'", "the text 'x'", "BIGINT", 27),
    ("SELECT CAST(['1', 'b'] AS INTEGER[]) AS l", "the text 'b'", "INTEGER", 19),
    ("SELECT CAST('a'::VARCHAR AS DATE) AS d", "the text 'a'", "DATE", 13),
    ("SELECT dt + INTERVAL '1 dayy' AS d FROM bank", "the text '1 dayy'", "INTERVAL", 22),
    ("SELECT '2026-01-01 25:00'::TIMESTAMP AS t", "the text '2026-01-01 25:00'", "TIMESTAMP", 8),
    ("SELECT 'maybe'::BOOLEAN AS t", "the text 'maybe'", "BOOLEAN", 8),
    ("SELECT CAST(300 AS TINYINT) AS n", "the number 300", "TINYINT", 13),
    ("SELECT CAST(-300 AS TINYINT) AS n", "the number -300", "TINYINT", 13),
    ("SELECT CAST(300.55 AS DECIMAL(3,2)) AS n", "the number 300.55", "DECIMAL(3,2)", 13),
    (
        "SELECT CAST(12345678901234567890123.55 AS DECIMAL(3,2)) AS n",
        "the number 12345678901234567890123.55",
        "DECIMAL(3,2)",
        13,
    ),
    (
        "SELECT CAST(170141183460469231731687303715884105727 AS BIGINT) AS n",
        "the number 170141183460469231731687303715884105727",
        "BIGINT",
        13,
    ),
]


@pytest.mark.parametrize(("sql", "what", "kind", "column"), REFUSED)
def test_a_constant_that_cannot_be_converted_is_refused_at_its_place(
    sql, what, kind, column, validate
):
    with pytest.raises(SqlRefused) as caught:
        validate(sql)
    assert (caught.value.code, caught.value.column) == ("sql.conversion", column)
    assert caught.value.message.startswith(f"{what} cannot be converted to {kind}")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM bank WHERE dt > '2026-06-30'",
        "SELECT id FROM bank WHERE amt > '1000.00'",
        "SELECT TRY_CAST('abc' AS DATE) AS d",
        "SELECT TRY(CAST('abc' AS DATE)) AS d",
        "SELECT CAST(TRY_CAST('a' AS INTEGER) AS TINYINT) AS n",
        "SELECT CAST(NULL AS DATE) AS d",
        "SELECT CAST('3' AS INTEGER) + CAST(1e3 AS INTEGER) AS n",
        "SELECT id FROM bank WHERE memo = '30/06/2026'",
        "SELECT CAST(['1', '2'] AS INTEGER[]) AS l",
        "SELECT id FROM bank WHERE id IN (" + ", ".join(f"'{n}'" for n in range(450)) + ")",
    ],
)
def test_what_converts_or_is_tried_stays(sql, validate):
    assert validate(sql).asked == sql


def test_the_first_of_several_is_named_wherever_it_stands_in_the_plan(validate):
    listed = ", ".join([*(f"'{n}'" for n in range(450)), "'x'", "'y'"])
    with pytest.raises(SqlRefused, match="the text 'x' cannot"):
        validate(f"SELECT id FROM bank WHERE id IN ({listed})")


@pytest.mark.parametrize(
    ("sql", "form"),
    [
        ("SELECT 'x'::DATE AS d", "DATE 'YYYY-MM-DD'"),
        ("SELECT 'x'::DECIMAL(9,2) AS d", "1000.00"),
        ("SELECT id FROM bank WHERE dt = 3", "DATE 'YYYY-MM-DD'"),
        ("SELECT 300::TINYINT AS d", "DECIMAL(38,2)"),
        ("SELECT 'x'::TIMESTAMP AS d", "TIMESTAMP 'YYYY-MM-DD HH:MM:SS'"),
    ],
)
def test_the_way_out_shows_the_form(sql, form, validate):
    with pytest.raises(SqlRefused) as caught:
        validate(sql)
    assert form in caught.value.remedy


def test_a_long_text_is_cut_and_an_odd_one_stays_one_line(validate):
    with pytest.raises(SqlRefused) as caught:
        validate("SELECT '" + "a\n" * 500 + "'::DATE AS d")
    assert len(caught.value.message) < 120
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ('Casting value "1000.00" to type DECIMAL(5,2) failed: value is out of range!', "overflow"),
        ("Could not cast value 1000 to DECIMAL(5,2)", "overflow"),
        ("Failed to cast decimal value 1000 to type INT8", "overflow"),
        ("Type INT64 with value 128 can't be cast because", "overflow"),
        ("Type DOUBLE with value -nan can't be cast because", "not_finite"),
        ("Type VARCHAR with value 'x' can't be cast to the destination type LIST", "conversion"),
        ("Could not cast value inf to DECIMAL(5,2)", "not_finite"),
        ("Could not convert string 'Casting value ' to INT8", "conversion"),
    ],
)
def test_a_number_too_large_for_a_cast_is_an_overflow_and_no_text(said, code):
    assert code_of(f"Conversion Error: {said}") == f"sql.{code}"


def test_an_overlong_text_is_told_with_its_own_length(engine, granted):
    with pytest.raises(SqlRefused, match="has 40013 characters, over 32768"):
        engine.validate("SELECT 1 AS a" + " " * 40_000, granted)


@pytest.mark.parametrize("end", ["; -- done", ";\n-- done\n", "; /* x */ ;", ";;", " -- done"])
def test_what_stands_behind_the_last_semicolon_is_no_statement(end, engine, granted):
    sql = f"SELECT count(*) AS n FROM (VALUES (1)) AS v(x){end}"
    found = engine.validate(sql, granted)
    assert (found.executed, found.functions) == (sql, ("count",))
    assert engine.run(found, dict[str, TableBytes]()).table.num_rows == 1


@pytest.mark.parametrize("end", ["; SELECT 2", "; x", "; -- a\n SELECT 1"])
def test_a_second_statement_is_still_refused(end, validate):
    with pytest.raises(SqlRefused) as caught:
        validate(f"SELECT 1 AS a{end}")
    assert caught.value.code in ("sql.two_statements", "sql.parse")


def test_functions_are_told_as_they_were_written(validate):
    sql = "SELECT COUNT(*) AS n, any_value(memo) AS m, first(id) AS f FROM bank WHERE id IN (1)"
    assert set(validate(sql).functions) >= {"any_value", "count", "first"}
    assert "count_star" not in validate(sql).functions


def test_the_gate_and_the_run_have_the_code_each_with_its_own_way_out():
    assert "TRY_CAST" not in WAYS_OUT["sql.conversion"]


KINDS = ("TINYINT", "INTEGER", "HUGEINT", "UTINYINT", "DECIMAL(4,2)", "DECIMAL(5,5)", "DOUBLE")
NEAR = (
    *("9.99", "9.995", "-9.995", "99.4", "99.5", "99.994", "99.995", "127", "127.5", "128"),
    *("-128", "-129", "255", "256", "999999999", "2147483647", "2147483648", "0.999994"),
    *("0.999995", "9999999999999999999999999999999999999", "1e3", "1e40"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_near_a_bound_is_refused_exactly_when_a_run_would_fail(kind, validate):
    with duckdb.connect() as fresh:
        for number in NEAR:
            sql = f"SELECT CAST({number} AS {kind}) AS n"
            try:
                fresh.execute(sql).fetchall()
                runs = True
            except duckdb.ConversionException:
                runs = False
            try:
                validate(sql)
                admitted = True
            except SqlRefused as refused:
                assert refused.code == "sql.conversion"
                admitted = False
            assert (number, admitted) == (number, runs)
