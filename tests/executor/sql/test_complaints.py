"""What a refusal says of a text that does not parse or bind: code, place, and a way out that helps."""

from __future__ import annotations

import re

import pytest

from tieout.executor.sql.dialects import CLOCKS, INSTEAD, instead
from tieout.executor.sql.functions import is_open
from tieout.executor.sql.validate import GrantedColumn, GrantedTable, SqlRefused

LONG = "id, amt, memo, dt, id + 1 AS a_column_with_a_long_name, id + 2 AS another_with_a_long_name"


def refused(validate, sql: str) -> SqlRefused:
    with pytest.raises(SqlRefused) as caught:
        validate(sql)
    return caught.value


def place(sql: str, found: SqlRefused) -> str:
    """The text from the place of a refusal on."""
    assert found.line is not None
    assert found.column is not None
    return sql.split("\n")[found.line - 1][found.column - 1 :]


@pytest.mark.parametrize(
    ("sql", "at", "way_out"),
    [
        (f"SELECT TOP 10 {LONG} FROM bank", "10 id", "LIMIT 10"),
        (f"SELECT {LONG} FROM bank WHERE id = 1 ANDD amt > 3", "ANDD", "AND instead of ANDD"),
        (f"SELECT {LONG} FROM bank GROUP BY ALL HAVIN id > 1", "HAVIN", "HAVING instead of HAVIN"),
        (f"SELECT {LONG}, dt,, memo FROM bank", ", memo", "one of the two commas"),
        (f"SELECT {LONG} FROM (SELECT FROM bank)", "SELECT FROM", "Correct the syntax"),
        (f"DECLARE @d DATE; SELECT {LONG} FROM bank", "DECLARE", "no variables"),
        (f"SELECT {LONG} FROM bank LIMIT 1, 2", ", 2", "LIMIT 2 OFFSET 1"),
        (f"SELECT {LONG}\nFROM bank WHERE memo = 'rent", "'rent", "Close the quotes"),
        (f"SELECT '\u00e9\u20ac' AS e, {LONG} FROM bank WHERE )", ")", "Correct the syntax"),
    ],
)
def test_a_parse_error_has_its_place_however_long_the_line(sql, at, way_out, validate):
    found = refused(validate, sql)
    assert (found.code, place(sql, found).startswith(at)) == ("sql.parse", True)
    assert way_out in found.remedy


@pytest.mark.parametrize(
    ("sql", "code", "at", "way_out"),
    [
        ("SELECT id FROM bank JOIN floats USING (nope)", "unknown_column", "nope", "memo"),
        ("SELECT b.meno FROM bank b", "unknown_column", "b.meno", "first: memo"),
        ("SELECT amot FROM bank", "unknown_column", "amot", "Columns of bank, nearest first: amt"),
        ("SELECT * EXCLUDE (nope) FROM bank", "unknown_column", "nope", "memo"),
        ('SELECT id FROM bank WHERE memo = "rent"', "unknown_column", '"rent"', "quotes: 'rent'"),
        ("SELECT datediff(day, dt, dt) AS d FROM bank", "unknown_column", "day", "text: 'day'"),
        (
            "SELECT id FROM bank WHERE EXISTS (SELECT 1 FROM floats WHERE floats.ref = id)",
            "unknown_column",
            "floats.ref",
            "Columns of floats, nearest first: id, x.",
        ),
        ("WITH c AS (SELECT id AS k FROM bank) SELECT j FROM c", "unknown_column", "j", ": k."),
        ("WITH c AS (SELECT id AS k FROM bank) SELECT c.j FROM c", "unknown_column", "c.j", ": k."),
        ("SELECT s.n FROM (SELECT id FROM bank) AS s", "unknown_column", "s.n", "first: id."),
        ("SELECT id FROM bank WHERE id = (SELECT max(y) FROM floats)", "unknown_column", "y", "x"),
        ("SELECT id FROM bank LIMIT id", "unknown_column", "id", "a number here"),
        ("SELECT id FROM bank WHERE ROWNUM < 3", "unknown_column", "ROWNUM", "LIMIT"),
        ("VALUES (1, 2) UNION VALUES (1)", "bind", "UNION", "same number"),
        ("SELECT id FROM bank GROUP BY 7", "bind", "GROUP", "number of one"),
        (
            'SELECT "B b".id AS a FROM bank AS "B b" JOIN floats AS "B b" ON true',
            "bind",
            "floats",
            "AS",
        ),
        ("SELECT CASE WHEN id = 1 THEN dt ELSE 3 END AS c FROM bank", "bind", "CASE", "one type"),
        ("SELECT [id] FROM [bank]", "parse", "[bank]", "double quotes"),
        ("SELECT id FROM bank WITH (NOLOCK)", "parse", "WITH", "hints"),
        ("SELECT CONVERT(VARCHAR(10), dt, 103) AS x FROM bank", "parse", ", dt", "strftime"),
        (
            "SELECT GROUP_CONCAT(memo SEPARATOR ',') AS g FROM bank",
            "parse",
            "SEPARATOR",
            "string_agg",
        ),
        ("SELECT b.id FROM bank b, floats f WHERE b.id = f.id(+)", "parse", ")", "LEFT JOIN"),
        ("SELECT n FROM (SELECT id AS nn FROM bank) AS s", "unknown_column", "n FROM", "nn"),
        ("SELECT id FROM bank WHERE floats.x = 3", "unknown_table", "floats.x", "bank"),
        ("SELECT x.y.z.w FROM bank", "unknown_table", "x.y.z.w", "bank"),
        ("SELECT b.id AS a FROM bank b JOIN floats b ON true", "bind", "floats b", "with AS"),
        ("SELECT id FROM bank UNION SELECT id, x FROM floats", "bind", "id, x", "same number"),
        ("SELECT id FROM bank UNION ALL SELECT * FROM floats", "bind", "*", "same number"),
        ("SELECT id FROM bank UNION SELECT id FROM floats ORDER BY amt", "bind", "amt", "result"),
        ("SELECT count(*) AS n, memo FROM bank", "bind", "memo", "GROUP BY"),
        ("SELECT id FROM bank, floats", "bind", "id", "in front"),
        ("SELECT id FROM bank WHERE sum(amt) > 3", "bind", "sum", "HAVING"),
        ("SELECT sum(memo) AS s FROM bank", "bind", "sum", "Cast"),
        ("PIVOT bank ON memo USING sum(amt)", "construct", "PIVOT", "IN ('x', 'y')"),
        (
            "SELECT * FROM (PIVOT bank ON memo USING sum(amt))",
            "construct",
            "PIVOT",
            "IN ('x', 'y')",
        ),
        ("SELECT * FROM bank UNPIVOT (v FOR k IN (id))", "construct", "UNPIVOT", "UNION ALL"),
        ("SELECT `id` FROM bank", "parsers_disagree", "`id`", "double quotes"),
        ("WITH a AS (SELECT 1 AS x), SELECT x FROM a", "parsers_disagree", ", SELECT", "comma out"),
        ("SELECT 1e308+1e308 AS n", "parsers_disagree", "AS", "plainer"),
        ("SELECT id FROM bank WHERE memo = \u201crent\u201d", "non_ascii", "\u201c", "straight"),
        ("SELECT id FROM bank WHERE memo = \u2018rent\u2019", "non_ascii", "\u2018", "straight"),
        ("SELECT GETDATE() AS d FROM bank", "clock", "GETDATE", "--as-of"),
        ("SELECT SYSDATE AS d FROM bank", "clock", "SYSDATE", "--as-of"),
        ("SELECT id FROM bank WHERE dt < today()", "clock", "today", "--as-of"),
        ("SELECT NVL(memo, '') AS m FROM bank", "function", "NVL", "coalesce(x, y)"),
        ("SELECT DATEADD(day, 1, dt) AS d FROM bank", "function", "DATEADD", "INTERVAL 1 DAY"),
    ],
)
def test_a_refusal_has_a_code_a_place_and_a_way_out_that_helps(sql, code, at, way_out, validate):
    found = refused(validate, sql)
    assert (found.code, place(sql, found)[: len(at)]) == (f"sql.{code}", at)
    assert way_out in found.remedy
    assert "memory.main" not in found.message + found.remedy


def test_a_row_of_columns_is_listed_up_to_twenty(engine):
    columns = tuple(GrantedColumn(f"c{n:02}", "INTEGER") for n in range(30))
    with pytest.raises(SqlRefused) as caught:
        engine.validate("SELECT c7 FROM wide", {"wide": GrantedTable("wide", columns, ("c00",))})
    assert "nearest first: c07, c17, c27" in caught.value.remedy
    assert caught.value.remedy.count("c") - caught.value.remedy.count("Columns") <= 23
    assert caught.value.remedy.endswith("and 10 more.")


KINDS = ("DATE '2026-06-30'", "1.50::DECIMAL(18,2)", "'ab'", "true")
MORE = {"b": ("1.50::DECIMAL(18,2)", "DATE '2026-06-30'"), "a": KINDS, "x": KINDS}


@pytest.mark.parametrize("way_out", sorted(set(INSTEAD.values())))
def test_what_is_proposed_instead_is_admitted(way_out, validate):
    """With x, a, b and c of some types: each expression that stands in the way out."""
    body = way_out.removeprefix("Write ").removesuffix(".")
    body = re.sub(r", (which gives NULL|with the unit as a text)$", "", body)
    if body.startswith("LIMIT "):
        assert validate(f"SELECT id FROM bank {body.removesuffix(' at the end of the query')}")
        return
    for proposed in re.split(r", or ", body):
        admitted = []
        for a in KINDS:
            for x in KINDS:
                sql = (
                    f"SELECT {proposed} AS v FROM (SELECT {x} AS x, {a} AS a, {a} AS y, "
                    f"{x} AS b, {x} AS c) AS t"
                )
                try:
                    admitted.append(validate(sql))
                except SqlRefused:
                    continue
        assert admitted, proposed


def test_only_what_this_engine_has_not_is_explained_and_in_lower_case():
    names = {*INSTEAD, *CLOCKS}
    assert {n for n in names if is_open(n) or n != n.lower()} == set()
    assert instead("GetDate") == instead("getdate") != ""
    assert instead("sum") == ""
