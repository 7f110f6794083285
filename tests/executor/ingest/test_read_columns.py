"""Each rule for one column: bytes of a small file, the type, the values, the reason."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from tieout.executor.errors import ExecutorError
from tieout.executor.ingest.reading import (
    ColumnDeclaration,
    ColumnReading,
    CsvDeclaration,
    read_csv,
)

D = Decimal


def one_column(values: list[str], declared: ColumnDeclaration | None = None, **file: object):
    """Read a tab file of a line number and the values, so that no value needs a quote."""
    raw = "n\tx\n" + "".join(f"r{n}\t{value}\n" for n, value in enumerate(values))
    columns = {"x": declared} if declared else {}
    return read_csv(
        raw.encode(), CsvDeclaration(delimiter="\t", columns=columns, **file), name="src"
    )


def read_x(values: list[str], declared: ColumnDeclaration | None = None):
    reading = one_column(values, declared)
    return reading.columns[1], reading.table.column("x").to_pylist()


INFERRED = [
    # values, type, read as, words of the reason
    (["1", "-2", "", "+3"], "BIGINT", [1, -2, None, 3], "whole number"),
    (["999999999999999999"], "BIGINT", [10**18 - 1], "whole number"),
    (["1000000000000000000"], "VARCHAR", ["1000000000000000000"], "more than 18 digits"),
    (["0"], "BIGINT", [0], "whole number"),
    (["00123", "123"], "VARCHAR", ["00123", "123"], "line 2: 00123 begins with 0"),
    (["5", "-05"], "VARCHAR", ["5", "-05"], "line 3: -05 begins with 0"),
    (["7.18282E+17", "718281828459045230"], "VARCHAR", None, "damaged id"),
    (["1.5", "2e-3"], "VARCHAR", ["1.5", "2e-3"], "scientific notation"),
    (["1", "2.5"], "DECIMAL(18,1)", [D("1.0"), D("2.5")], "line 3: 2.5 has a decimal point"),
    (["-0.00", "1.10"], "DECIMAL(18,2)", [D("0.00"), D("1.10")], "decimal point"),
    (["0.005"], "DECIMAL(18,3)", [D("0.005")], "begins with 0"),
    ([".50"], "DECIMAL(18,2)", [D("0.50")], "decimal point"),
    (["-.50"], "DECIMAL(18,2)", [D("-0.50")], "decimal point"),
    (["0001.50"], "DECIMAL(18,2)", [D("1.50")], "decimal point"),
    (["12345678901234567.12"], "DECIMAL(38,2)", [D("12345678901234567.12")], "decimal"),
    (["1" * 37 + ".12"], "VARCHAR", None, "more than 38 digits"),
    (["1.234,56", "7,5"], "DECIMAL(18,2)", [D("1234.56"), D("7.50")], "decimal comma"),
    (["1,234.56", "1,234"], "DECIMAL(18,2)", [D("1234.56"), D("1234.00")], "decimal point"),
    (["1.234.567", "1.234"], "BIGINT", [1234567, 1234], "whole number"),
    (["1,234", "12.50"], "DECIMAL(18,2)", [D(1234), D("12.50")], "decimal point"),
    (["1'234.50", "12’345’678.05"], "DECIMAL(18,2)", [D("1234.50"), D("12345678.05")], "point"),
    (["1\u202f234,50", "10\u00a0000,00"], "DECIMAL(18,2)", [D("1234.50"), D(10000)], "comma"),
    (["1 234,567"], "DECIMAL(18,3)", [D("1234.567")], "decimal comma"),
    (["1'234"], "BIGINT", [1234], "whole number"),
    (["123 456", "999 888"], "VARCHAR", ["123 456", "999 888"], "may be a reference"),
    (["12 34.50"], "VARCHAR", ["12 34.50"], "is text"),
    (["1,23,456.00"], "VARCHAR", ["1,23,456.00"], "is text"),
    (["−5.50", "5.50-", "(1.00)"], "DECIMAL(18,2)", [D("-5.5"), D("-5.5"), D(-1)], "point"),
    (["($318.46)", "$+2,750.00", "$(1.00)"], "DECIMAL(18,2)", [D("-318.46"), D(2750), D(-1)], ""),
    (["1.234,56 €", "-€ 2,00", "3,00- €"], "DECIMAL(18,2)", [D("1234.56"), D(-2), D(-3)], ""),
    (["$5.00", "€5.00"], "VARCHAR", ["$5.00", "€5.00"], "more than one currency"),
    (["(-5)"], "VARCHAR", ["(-5)"], "is text"),
    (["--5"], "VARCHAR", ["--5"], "is text"),
    (["5.00 CR"], "VARCHAR", ["5.00 CR"], "is text"),
    (["5.00", "n/a"], "VARCHAR", ["5.00", "n/a"], "line 3: n/a is text"),
    ([" 5.00 ", "\u00a0"], "DECIMAL(18,2)", [D("5.00"), None], "decimal point"),
    ([" a ", "b"], "VARCHAR", [" a ", "b"], "is text"),
    (["", ""], "VARCHAR", [None, None], "no row has a value"),
    (["true", "FALSE", ""], "BOOLEAN", [True, False, None], "true or false"),
    (["True"], "VARCHAR", ["True"], "is text"),
    (["true", "1"], "VARCHAR", ["true", "1"], "more than one kind"),
    (["2026-04-01", ""], "DATE", [date(2026, 4, 1), None], "begins with a year"),
    (["2026/4/1"], "DATE", [date(2026, 4, 1)], "begins with a year"),
    (["2026-02-30"], "VARCHAR", ["2026-02-30"], "is no date"),
    (["0000-01-01"], "VARCHAR", ["0000-01-01"], "is no date"),
    (["2026-04-01", "7"], "VARCHAR", ["2026-04-01", "7"], "more than one kind"),
    (["20260401"], "BIGINT", [20260401], "YYYYMMDD"),
    (["20261401"], "BIGINT", [20261401], "whole number"),
    (["05.04.2026"], "DATE", [date(2026, 4, 5)], "day first by convention"),
    (["04.05.2026", "04.27.2026"], "DATE", [date(2026, 4, 5), date(2026, 4, 27)], "month first"),
    (["05/09/2026", "27/07/2026"], "DATE", [date(2026, 9, 5), date(2026, 7, 27)], "line 3: 27/07"),
    (["5/9/2026", "7/27/2026"], "DATE", [date(2026, 5, 9), date(2026, 7, 27)], "month first"),
    (["05-09-2026", "13-09-2026"], "DATE", [date(2026, 9, 5), date(2026, 9, 13)], "day first"),
    (["00/00/2026"], "VARCHAR", ["00/00/2026"], "is no date"),
    (["32/01/2026"], "VARCHAR", ["32/01/2026"], "is no date"),
    (["27/07/26"], "VARCHAR", ["27/07/26"], "without century"),
    (["27/07/2026", "2026-07-28"], "VARCHAR", None, "more than one way"),
    (
        ["2026-04-01 10:00:00.5", "2026-04-01T10:00:00"],
        "TIMESTAMP",
        [datetime(2026, 4, 1, 10, 0, 0, 500000), datetime(2026, 4, 1, 10)],
        "begins with a year",
    ),
    (["2026-04-01 10:00:00.1234567"], "VARCHAR", None, "finer than a microsecond"),
    (["2026-04-01 24:00:00"], "VARCHAR", None, "is no date"),
    (["2026-04-01 10:00"], "TIMESTAMP", [datetime(2026, 4, 1, 10)], ""),
    (["27/07/2026 09:05"], "TIMESTAMP", [datetime(2026, 7, 27, 9, 5)], "day first"),
    (
        ["2026-04-01 00:30:00 UTC", "2026-04-01T00:30:00Z", "2026-04-01 00:30:00+02:00"],
        "TIMESTAMPTZ",
        [
            datetime(2026, 4, 1, 0, 30, tzinfo=UTC),
            datetime(2026, 4, 1, 0, 30, tzinfo=UTC),
            datetime(2026, 3, 31, 22, 30, tzinfo=UTC),
        ],
        "begins with a year",
    ),
    (["2026-04-01 00:30:00Z", "2026-04-01 00:30:00"], "VARCHAR", None, "more than one way"),
    (["2026-04-01", "2026-04-01 00:30:00"], "VARCHAR", None, "more than one way"),
]


@pytest.mark.parametrize(("values", "type_text", "read", "reason"), INFERRED)
def test_undeclared_column(values, type_text, read, reason):
    column, got = read_x(values)
    assert type_text == column.type
    assert (values if read is None else read) == got
    assert reason in column.reason


def declare(**settings: object) -> ColumnDeclaration:
    return ColumnDeclaration(**settings)


DECLARED = [
    (["1.5", "2.500"], declare(type="decimal(18, 2)"), "DECIMAL(18,2)", [D("1.50"), D("2.50")]),
    (["5", "7.25"], declare(type="DECIMAL"), "DECIMAL(18,2)", [D("5.00"), D("7.25")]),
    (["1" * 20], declare(type="HUGEINT"), "DECIMAL(38,0)", [D("1" * 20)]),
    (["00123", "5.00"], declare(type="BIGINT"), "BIGINT", [123, 5]),
    (["1,234"], declare(type="BIGINT"), "BIGINT", [1234]),
    (["9223372036854775807"], declare(type="BIGINT"), "BIGINT", [2**63 - 1]),
    (["1,234"], declare(decimal="."), "BIGINT", [1234]),
    (["1,234"], declare(decimal=","), "DECIMAL(18,3)", [D("1.234")]),
    (["1.005"], declare(decimal="."), "DECIMAL(18,3)", [D("1.005")]),
    (["1.234"], declare(grouping="."), "BIGINT", [1234]),
    (["1.234"], declare(type="DECIMAL(18,3)", grouping="."), "DECIMAL(18,3)", [D(1234)]),
    (["1.234"], declare(grouping=""), "DECIMAL(18,3)", [D("1.234")]),
    (["5.00 DR", "6.00 CR", "7.00"], declare(negative="DR"), "DECIMAL(18,2)", [D(-5), D(6), D(7)]),
    (["5.00CR"], declare(negative="CR", type="DECIMAL(18,2)"), "DECIMAL(18,2)", [D(-5)]),
    (["123 456,00"], declare(type="DECIMAL(18,2)"), "DECIMAL(18,2)", [D(123456)]),
    (["n/a", "1.50", "-"], declare(empty=("n/a", "-")), "DECIMAL(18,2)", [None, D("1.5"), None]),
    (["n/a", "b"], declare(type="VARCHAR", empty=("n/a",)), "VARCHAR", [None, "b"]),
    (["00123"], declare(type="text"), "VARCHAR", ["00123"]),
    (["20260401"], declare(type="DATE"), "DATE", [date(2026, 4, 1)]),
    (["05/04/2026"], declare(date_order="month first"), "DATE", [date(2026, 5, 4)]),
    (["05/04/2026"], declare(type="DATE", date_order="day first"), "DATE", [date(2026, 4, 5)]),
    (["2026-04-01 00:00:00"], declare(type="DATE"), "DATE", [date(2026, 4, 1)]),
    (["2026-04-01"], declare(type="TIMESTAMP"), "TIMESTAMP", [datetime(2026, 4, 1)]),
    (["01-Apr-26"], declare(format="%d-%b-%y"), "DATE", [date(2026, 4, 1)]),
    (["1 april 1969"], declare(format="%d %B %Y"), "DATE", [date(1969, 4, 1)]),
    (
        ["260401 1015"],
        declare(format="%y%m%d %H%M"),
        "TIMESTAMP",
        [datetime(2026, 4, 1, 10, 15)],
    ),
    (
        ["2026-04-01T10:00:00-0130"],
        declare(type="TIMESTAMP WITH TIME ZONE"),
        "TIMESTAMPTZ",
        [datetime(2026, 4, 1, 11, 30, tzinfo=UTC)],
    ),
    (["TRUE", ""], declare(type="BOOLEAN"), "BOOLEAN", [True, None]),
    (["", ""], declare(type="DECIMAL(18,2)"), "DECIMAL(18,2)", [None, None]),
    (["", ""], declare(type="DATE"), "DATE", [None, None]),
]


@pytest.mark.parametrize(("values", "declared", "type_text", "read"), DECLARED)
def test_declared_column(values, declared, type_text, read):
    column, got = read_x(values, declared)
    assert type_text == column.type
    assert read == got


MISFITS = [
    (["1.50", "1.505"], declare(type="DECIMAL(18,2)")),
    (["1.50", "12345678901234567.00"], declare(type="DECIMAL(18,2)")),
    (["1.50", "abc"], declare(type="DECIMAL(18,2)")),
    (["1.50", "0,500"], declare(type="DECIMAL(18,2)", decimal=".")),
    (["1.50", "-2.50"], declare(type="DECIMAL(18,2)", negative="parentheses")),
    (["1", "9223372036854775808"], declare(type="BIGINT")),
    (["1", "1.50"], declare(type="BIGINT")),
    (["1", "1E+3"], declare(type="BIGINT")),
    (["2026-04-01", "2026-02-30"], declare(type="DATE")),
    (["2026-04-01", "2026-04-01 10:00:00"], declare(type="DATE")),
    (["2026-04-01", "2026-04-01 10:00:00Z"], declare(type="TIMESTAMP")),
    (["2026-04-01 10:00:00Z", "2026-04-01 10:00:00"], declare(type="TIMESTAMPTZ")),
    (["01-Apr-26", "01-Avr-26"], declare(format="%d-%b-%y")),
    (["true", "yes"], declare(type="BOOLEAN")),
]


@pytest.mark.parametrize(("values", "declared"), MISFITS)
def test_misfit_names_line_column_and_value(values, declared):
    with pytest.raises(ExecutorError) as caught:
        one_column(values, declared)
    assert caught.value.code == "csv.value"
    assert caught.value.place == "src, column x, line 3"
    assert values[1] in caught.value.message


@pytest.mark.parametrize(("values", "declared"), MISFITS)
def test_kept_misfit_is_rejected_and_counted(values, declared):
    reading = one_column(values, declared, rejected="keep")
    assert (reading.data_rows, reading.account.rejected) == (1, 1)
    assert [(r.line, r.text) for r in reading.rejects] == [(3, f"r1\t{values[1]}")]
    assert "column x" in reading.rejects[0].reason
    assert reading.table.column("__row").to_pylist() == [1]
    assert reading.records.column("row").to_pylist() == [None, 1, None]


ASKED = [
    (["1,234", "5"], "csv.ambiguous_number", 'decimal = "."'),
    (["1.234"], "csv.ambiguous_number", "[source.src.column.x]"),
    (["12.50", "12,50"], "csv.number_conflict", 'type = "VARCHAR"'),
    (["0,500", "12.50"], "csv.number_conflict", 'type = "VARCHAR"'),
    (
        ["05/09/2026", "08/07/2026"],
        "csv.ambiguous_date",
        '[source.src.column.x] add: date_order = "day',
    ),
    (["05-09-2026"], "csv.ambiguous_date", "date_order"),
    (["27/07/2026", "07/27/2026"], "csv.date_conflict", 'type = "VARCHAR"'),
]


@pytest.mark.parametrize(("values", "code", "remedy"), ASKED)
def test_undecided_column_is_asked_about(values, code, remedy):
    with pytest.raises(ExecutorError) as caught:
        one_column(values)
    assert code == caught.value.code
    assert remedy in caught.value.remedy
    assert "x" in caught.value.message
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("code_free", [["05/09/2026"], ["1,234"]])
def test_an_undecided_column_can_be_kept_as_text(code_free):
    column, got = read_x(code_free, declare(type="VARCHAR"))
    assert (column.type, got) == ("VARCHAR", code_free)


def test_declared_type_still_asks_for_an_undecided_order():
    with pytest.raises(ExecutorError) as caught:
        one_column(["05/09/2026"], declare(type="DATE"))
    assert caught.value.code == "csv.ambiguous_date"


def test_rule_records_every_parameter():
    column, _ = read_x(["($1,318.46)", "2.00-", "-1.00"])
    assert dict(column.rule) == {
        "decimal": ".",
        "grouping": ",",
        "negative": "leading minus, parentheses, trailing minus",
        "currency": "$",
    }
    column, _ = read_x(["01-Apr-26"], declare(format="%d-%b-%y"))
    assert set(column.rule) == {"format", "two_digit_years"}


def test_control_total_is_exact_and_span_is_given():
    column, _ = read_x(["90071992547409931.01", "90071992547409931.03", ""])
    assert (column.control_total, column.nulls) == ("180143985094819862.04", 1)
    column, _ = read_x(["999999999999999999"] * 20)
    assert column.control_total == str(20 * (10**18 - 1))
    column, _ = read_x(["2026-05-01", "2026-04-01"])
    assert (column.earliest, column.latest) == ("2026-04-01", "2026-05-01")
    column, _ = read_x(["2026-05-01 10:00:00Z"])
    assert column.earliest == "2026-05-01T10:00:00Z"
    column, _ = read_x([""], declare(type="DECIMAL(18,2)"))
    assert column.control_total == "0.00"
    assert isinstance(column, ColumnReading)


WRONG_DECLARATIONS = [
    {"columns": {"x": ColumnDeclaration(type="DOUBLE")}},
    {"columns": {"x": ColumnDeclaration(type="DECIMAL(39,2)")}},
    {"columns": {"x": ColumnDeclaration(type="DECIMAL(2,3)")}},
    {"columns": {"x": ColumnDeclaration(decimal=";")}},
    {"columns": {"x": ColumnDeclaration(decimal=",", grouping=",")}},
    {"columns": {"x": ColumnDeclaration(negative="red")}},
    {"columns": {"x": ColumnDeclaration(date_order="dmy")}},
    {"columns": {"x": ColumnDeclaration(format="%Y")}},
    {"columns": {"x": ColumnDeclaration(format="%Y-%m-%d-%Y")}},
    {"columns": {"x": ColumnDeclaration(format="%Y-%m-%d %q")}},
    {"columns": {"x": ColumnDeclaration(format="%Y-%m-%d", date_order="day first")}},
    {"delimiter": ""},
    {"delimiter": ";;"},
    {"delimiter": "\n"},
    {"quote": "ä"},
    {"quote": ",", "delimiter": ","},
    {"wide_rows": "drop"},
    {"rejected": "drop"},
    {"header_line": -1},
    {"footer": ("(",)},
    {"encoding": "utf-7"},
    {"encoding": "no-such"},
]


@pytest.mark.parametrize("settings", WRONG_DECLARATIONS)
def test_declaration_that_cannot_be_followed(settings):
    with pytest.raises(ExecutorError) as caught:
        read_csv(b"x,y\n1,2\n", CsvDeclaration(**settings), name="src")
    assert caught.value.code == "csv.declaration"
    assert caught.value.exit_code == 2
