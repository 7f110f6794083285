"""Literals over several steps: what an earlier step hid is still named in the last one."""

from __future__ import annotations

import pytest

from tieout.executor.sql import session
from tieout.executor.sql.examine import examine
from tieout.executor.sql.validate import GrantedColumn, GrantedTable, ValidatedSql, validate
from tieout.ledger.citation import Label
from tieout.planner.labels import QuestionNumbers, column_label

ASKED = QuestionNumbers.of("How many are there of the 45?")


def chain(granted: dict[str, GrantedTable], *steps: str) -> ValidatedSql:
    """The last of several queries; each sees the results before it as a, b, c."""
    tables = dict(granted)
    for name, sql in zip("abcd", steps, strict=False):
        engine = session.connect()
        for table in tables.values():
            session.declare(engine, table.name, {c.name: c.type for c in table.columns})
        session.lock(engine, memory_bytes=1 << 30)
        found = validate(
            sql, tables, examine=lambda q, t, e=engine: examine(e, q, t, chars_max=32_768)
        )
        engine.close()
        origins = {o.name: o for o in found.origins}
        columns = tuple(GrantedColumn(n, kind, origins[n]) for n, kind in found.columns)
        tables[name] = GrantedTable(name, columns, (), found.rows)
    return found


INVENTED = [
    ["SELECT range AS n FROM range(123456)", "SELECT count(*) AS n FROM a"],
    ["SELECT id FROM bank ORDER BY id LIMIT 42", "SELECT count(*) AS n FROM a"],
    ["SELECT id FROM bank ORDER BY id LIMIT 42", "SELECT sum(b.amt) AS n FROM bank b, a"],
    ["SELECT id FROM bank ORDER BY id OFFSET 42", "SELECT count(*) AS n FROM a"],
    ["SELECT id FROM bank ORDER BY id LIMIT 1", "SELECT count(*) AS n FROM a"],
    ["SELECT * FROM (VALUES (1), (7), (1)) v(k)", "SELECT count(*) AS n FROM a"],
    ["SELECT * FROM (VALUES (2), (3)) v(k)", "SELECT sum(amt) AS n FROM bank CROSS JOIN a"],
    ["SELECT sum(amt) AS t FROM bank", "SELECT count(*) AS n FROM a", "SELECT n + n AS m FROM b"],
    ["SELECT CAST(NULL IS NULL AS INTEGER) AS one", "SELECT one + one + one AS n FROM a"],
    ["SELECT CAST(id IS NULL AS INTEGER) AS o FROM bank", "SELECT max(o) AS n FROM a"],
    ["SELECT id IS NULL AS o FROM bank", "SELECT max(o)::INT AS n FROM a"],
    ["SELECT 7 * 7 * 12 AS x", "SELECT x FROM a"],
    ["SELECT 7 * 7 * 12 AS x", "SELECT x FROM a", "SELECT x + 0 AS y FROM b"],
    [
        "SELECT row_number() OVER (ORDER BY b.id, l.id) AS n FROM bank b, ledger l",
        "SELECT max(n) AS m FROM a WHERE n <= 98765",
    ],
    ["SELECT unnest(range(id)) AS n FROM bank", "SELECT n FROM a WHERE n = 98765"],
    ["SELECT CAST(amt AS DECIMAL(38,30)) AS d FROM bank", "SELECT length(d::VARCHAR) AS n FROM a"],
    ["SELECT id::VARCHAR AS d FROM bank", "SELECT length(d) AS n FROM a"],
    ["SELECT '7' AS s FROM bank", "SELECT (s || s)::INT AS n FROM a"],
    ["SELECT 7 AS s FROM bank", "SELECT concat(s, s)::INT AS n FROM a"],
    ["SELECT id % 9 AS g FROM bank GROUP BY 1", "SELECT count(*) AS n FROM a"],
    ["SELECT memo FROM bank GROUP BY CUBE (memo, id)", "SELECT count(*) AS n FROM a"],
]


@pytest.mark.parametrize("steps", INVENTED, ids=[" ; ".join(s) for s in INVENTED])
def test_an_invented_number_is_unsourced(steps, granted):
    (origin,) = chain(granted, *steps).origins
    assert column_label(origin, ASKED)[0] is Label.UNSOURCED


HONEST = [
    (["SELECT count(*) AS n FROM bank", "SELECT n FROM a"], Label.SOURCED),
    (["SELECT id FROM bank WHERE amt > 99", "SELECT count(*) AS n FROM a"], Label.SOURCED),
    (["SELECT id FROM bank ORDER BY amt LIMIT 1", "SELECT id FROM a"], Label.SOURCED),
    (
        [
            "SELECT id FROM bank ORDER BY amt LIMIT 1",
            "SELECT count(*) AS n FROM ledger l JOIN a ON a.id = l.id",
        ],
        Label.SOURCED,
    ),
    (
        ["SELECT sum(amt) AS t FROM bank", "SELECT sum(amt) AS t FROM ledger",
         "SELECT a.t - b.t AS n FROM a CROSS JOIN b"],
        Label.SOURCED,
    ),
    (["SELECT memo, sum(amt) AS t FROM bank GROUP BY memo", "SELECT count(*) AS n FROM a"],
     Label.SOURCED),
    (["SELECT 45 * 12 AS n", "SELECT n FROM a"], Label.CONVENTION),
    (["SELECT 45 AS k", "SELECT sum(amt) AS n FROM bank, a WHERE amt > a.k"], Label.QUESTION),
    (["SELECT sum(amt) * 100 AS n FROM bank", "SELECT n FROM a"], Label.CONVENTION),
    (["SELECT NULL::DECIMAL(18,2) AS n, amt FROM bank", "SELECT coalesce(n, amt) AS n FROM a"],
     Label.SOURCED),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "label"), HONEST, ids=[" ; ".join(s) for s, _ in HONEST])
def test_honest_work_keeps_its_label(steps, label, granted):
    (origin,) = chain(granted, *steps).origins
    assert column_label(origin, ASKED)[0] is label


def test_sources_are_direct_and_roots_are_snapshots(granted):
    (origin,) = chain(
        granted,
        "SELECT id, amt AS x FROM bank",
        "SELECT x + id AS y FROM a",
        "SELECT y FROM b",
    ).origins
    assert origin.sources == (("b", "y"),)
    assert origin.roots == (("bank", "amt"), ("bank", "id"))
    assert origin.operation == ""


def test_rows_keep_their_conditions(granted):
    found = chain(
        granted, "SELECT id FROM bank WHERE amt > 99", "SELECT count(*) AS n FROM a WHERE id < 5"
    )
    assert found.origins[0].conditions == ("99", "5")
    assert found.origins[0].roots == (("bank", "*"),)


def test_a_float_of_an_earlier_step_stays_a_flag(granted):
    (origin,) = chain(
        granted, "SELECT avg(id::HUGEINT)::DECIMAL(18,2) AS n FROM bank", "SELECT n * 2 AS m FROM a"
    ).origins
    assert origin.inexact


def test_a_quotient_of_an_earlier_step_times_a_wide_sum_is_flagged(granted):
    """The quotient has 18 places; nothing is left of them in a product of 36 digits."""
    made = "SELECT sum(amt) / sum(amt) AS share, sum(amt) AS total FROM bank"
    whole = chain(granted, made, "SELECT share * total AS n, total AS t, share * 100 AS p FROM a")
    assert [origin.inexact for origin in whole.origins] == [True, False, False]


def test_rows_that_grouping_sets_of_an_earlier_step_repeat_are_told(granted):
    (origin,) = chain(
        granted,
        "SELECT id, amt FROM bank GROUP BY GROUPING SETS ((id, amt), (id, amt))",
        "SELECT sum(amt) AS n FROM a",
    ).origins
    assert {"grouping", "2"} <= set(origin.literals)
    assert origin.operation == "sum over grouping sets"
