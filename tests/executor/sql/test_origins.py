"""Literals: none that may flow into a value is missed, whatever way it is hidden."""

from __future__ import annotations

import pytest

from tieout.executor.sql.validate import SqlRefused

BIG = "123456"
HIDDEN = [
    "SELECT 123456 AS total",
    "SELECT 123456 AS total FROM bank",
    "SELECT sum(1) AS n FROM range(123456)",
    "SELECT count(*) AS n FROM range(123456)",
    "SELECT count(*) AS n FROM generate_series(1, 123456) t(i)",
    "SELECT i FROM range(200000) t(i) WHERE i = 123456",
    "SELECT length(repeat('x', 123456)) AS n",
    "SELECT length(repeat('x', 123456)) AS n FROM bank",
    "SELECT CASE WHEN true THEN 123456 END AS n FROM bank",
    "SELECT CASE WHEN amt > 0 THEN id ELSE 123456 END AS n FROM bank",
    "SELECT CASE WHEN amt > 0 AND 123456 > 1 THEN id END AS n FROM bank",
    "SELECT if(amt > 0, 123456, 0) AS n FROM bank",
    "SELECT (SELECT 123456) AS n FROM bank",
    "SELECT * FROM (VALUES (123456)) v(n)",
    "VALUES (123456)",
    "WITH c AS (SELECT 123456 AS k) SELECT k AS n FROM c",
    "WITH c AS (SELECT 123456 AS k) SELECT sum(amt * k) AS n FROM bank, c",
    "WITH c(k) AS (SELECT 123456), d AS (SELECT k + 1 AS m FROM c) SELECT m AS n FROM d",
    "SELECT count(*) AS n FROM (SELECT * FROM bank ORDER BY id LIMIT 123456) t",
    "SELECT count(*) AS n FROM (SELECT * FROM bank ORDER BY id OFFSET 123456) t",
    "WITH t AS (SELECT * FROM bank ORDER BY id LIMIT 123456) SELECT sum(amt) AS n FROM t",
    "SELECT '123456'::INT AS n",
    "SELECT CAST('123456' AS INTEGER) + id * 0 AS n FROM bank",
    "SELECT bank.amt * 0 + 123456 AS n FROM bank",
    "SELECT coalesce(amt, 123456) AS n FROM bank",
    "SELECT ifnull(NULL, 123456) AS n FROM bank",
    "SELECT unnest([1, 123456]) AS n",
    "SELECT unnest([1, 123456]) AS n FROM bank",
    "SELECT amt AS n FROM bank UNION ALL SELECT 123456",
    "SELECT 123456 AS n UNION SELECT id FROM bank",
    "SELECT sum(amt) AS n FROM bank JOIN (VALUES (123456)) v(id) USING (id)",
    "SELECT max(v.k) AS n FROM bank JOIN (VALUES (1, 123456)) v(id, k) ON v.id = bank.id",
    "SELECT (SELECT max(l.amt) + 123456 FROM ledger l WHERE l.id = b.id) AS n FROM bank b",
    "SELECT lag(id, 123456) OVER (ORDER BY id) AS n FROM bank",
    "SELECT lag(id, 1, 123456) OVER (ORDER BY id) AS n FROM bank",
    "SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN 123456 PRECEDING AND CURRENT ROW) AS n FROM bank",
    "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t WHERE i < 123456) SELECT i FROM t",
    "SELECT u.i AS n FROM bank b, unnest(range(b.id)) u(i) WHERE u.i = 123456",
    "SELECT i AS n FROM (SELECT unnest(range(id)) AS i FROM bank) t WHERE i = 123456",
    "SELECT (VALUES (123456)) AS n FROM bank",
    "SELECT 3 + (SELECT sum(k) FROM (SELECT id * 123456 AS k FROM ledger) l) AS n FROM bank",
    "SELECT list_reduce([id], lambda a, b: a + b, 123456) AS n FROM bank",
    "SELECT [x + 123456 for x in [id]][1] AS n FROM bank",
    "SELECT sum(n) AS n FROM (SELECT * FROM (SELECT 123456 AS n) t CROSS JOIN bank) q",
    "SELECT t.n FROM bank NATURAL JOIN (SELECT id, 123456 AS n FROM ledger) t",
    "SELECT b.* FROM (SELECT id, 123456 AS n FROM bank) b JOIN ledger l USING (id)",
    "SELECT bank.id, n FROM bank RIGHT JOIN (SELECT 123456 AS n, 1 AS id) t USING (id)",
    "WITH a AS (WITH b AS (SELECT 123456 AS n) SELECT n FROM b) SELECT n FROM a",
    "SELECT struct_pack(v := 123456)['v'] AS n FROM bank",
    "SELECT try_cast('123456' AS INTEGER) AS n FROM bank",
    "SELECT date_diff('day', DATE '2026-01-01', dt) + 123456 AS n FROM bank",
    "SELECT max(CASE id WHEN 1 THEN 123456 END) AS n FROM bank",
    "SELECT first_value(123456) OVER (ORDER BY id) AS n FROM bank",
    "SELECT arg_max(123456, id ORDER BY id) AS n FROM bank",
    "SELECT list_sum([123456]) AS n FROM bank",
    "SELECT len(list_filter([1, 123456], lambda q: q > 1)) AS n FROM bank",
    "SELECT list_transform([id], lambda q: q + 123456)[1] AS n FROM bank",
    "SELECT {'a': 123456}.a AS n FROM bank",
    "SELECT greatest(id, 123456) AS n FROM bank",
    "SELECT nullif(123456, id) AS n FROM bank",
    "SELECT (id < 123456)::INT AS n FROM bank",
    "SELECT round(123456, 0) AS n FROM bank",
    "SELECT max(t.a) AS n FROM (SELECT 123456 AS a, id FROM bank) t",
    "SELECT n FROM (SELECT id AS n FROM bank INTERSECT SELECT 123456) t",
    "SELECT x + 0 AS n FROM (SELECT 123456 AS x FROM bank) t",
    "SELECT 123456 AS a, a + 1 AS n FROM bank",
    "SELECT * REPLACE (123456 AS id) FROM bank",
    "SELECT count(*) FILTER (WHERE 123456 > 1) AS n FROM bank",
    "SELECT sum(x) AS n FROM (SELECT unnest(range(123456)) AS x FROM bank) t",
    "PIVOT (SELECT id, 123456 AS v, memo FROM bank) ON memo IN ('a') USING sum(v) GROUP BY id",
    "SELECT b.id, l.n FROM bank b, LATERAL (SELECT b.id + 123456 AS n) l",
    "SELECT string_agg('123456', '' ORDER BY id) AS n FROM bank",
    "SELECT strftime(dt, '123456') AS n FROM bank",
    "SELECT sum(k) AS n FROM ledger CROSS JOIN (SELECT 123456 AS k UNION ALL SELECT NULL) t",
    "SELECT (SELECT l.k FROM (SELECT 123456 AS k) l) AS n FROM bank",
    "SELECT EXISTS (SELECT 1 FROM bank ORDER BY id LIMIT 123456)::INT AS n FROM bank",
    "SELECT a.n FROM (SELECT id AS n FROM bank UNION BY NAME SELECT 123456 AS n) a",
    "FROM (SELECT 123456 AS n) t",
    "TABLE bank UNION ALL SELECT 123456, 1, 'a', DATE '2026-01-01', 2",
    "SELECT id FROM bank QUALIFY row_number() OVER (ORDER BY id) = 123456",
    "SELECT row_number() OVER (ORDER BY id) AS n FROM bank QUALIFY n = 123456",
    (
        "SELECT n FROM (SELECT row_number() OVER (ORDER BY b.id, l.id) AS n FROM bank b, ledger l) t "
        "WHERE n + 0 = 123456"
    ),
    (
        "SELECT max(n) AS n FROM (SELECT dense_rank() OVER (ORDER BY id) AS n FROM bank) t "
        "WHERE n <= 123456"
    ),
    "SELECT n FROM (SELECT count(*) OVER (ORDER BY id) AS n FROM bank) t WHERE n IN (123456)",
    "SELECT n FROM (SELECT sum(1) OVER (ORDER BY id) AS n FROM bank) t WHERE n = 123456",
    "SELECT nullif(n, 123456) AS n FROM (SELECT ntile(9) OVER (ORDER BY id) AS n FROM bank) t",
    (
        "SELECT CASE WHEN n = 123456 THEN n END AS n "
        "FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) t"
    ),
    (
        "SELECT count(*) FILTER (WHERE n <= 123456) AS n "
        "FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) t"
    ),
    (
        "SELECT t.n FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) t "
        "JOIN ledger l ON t.n = 123456"
    ),
    (
        "SELECT b.id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM bank) b "
        "JOIN (SELECT 123456 AS n FROM ledger) v USING (n)"
    ),
    (
        "SELECT n FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) b "
        "WHERE EXISTS (SELECT 1 FROM ledger l WHERE b.n = 123456)"
    ),
    (
        "SELECT n FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) b "
        "WHERE n IN (SELECT 123456 FROM ledger)"
    ),
    "SELECT count(*) AS n FROM (SELECT id % 123456 AS g FROM bank GROUP BY g) t",
    "SELECT count(*) AS n FROM (SELECT DISTINCT id % 123456 AS g FROM bank) t",
    "SELECT count(*) AS n FROM (SELECT id % 123456 AS g FROM bank UNION SELECT id FROM ledger) t",
    "SELECT sum(amt) AS n FROM bank, (SELECT id FROM ledger ORDER BY id LIMIT 123456) l",
    "SELECT n FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) t ORDER BY abs(n - 123456) LIMIT 1",
    "SELECT n FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) t ORDER BY n LIMIT 1 OFFSET 123456",
    "SELECT max(n) AS n FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) t GROUP BY n <= 123456",
    "SELECT count(*) AS n FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) t GROUP BY n // 123456",
    "SELECT max(n) OVER (PARTITION BY n <= 123456) AS n FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) t",
    "SELECT first_value(n) OVER (ORDER BY n = 123456, n) AS n FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) t",
    "SELECT DISTINCT ON (n = 123456) n FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) t ORDER BY n",
    "SELECT n FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) t UNION SELECT n FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) u ORDER BY n = 123456 LIMIT 1",
    "SELECT n FROM (SELECT (SELECT count(*) FROM ledger l WHERE l.id <= b.id) AS n FROM bank b) t WHERE n = 123456",
    "SELECT b.id, count(*) AS n FROM bank b JOIN bank c ON c.id <= b.id GROUP BY b.id HAVING count(*) = 123456",
    "SELECT len(list_filter([id], lambda x: x > 0)) AS n FROM bank WHERE len(list_filter([id], lambda x: x < id)) = 123456",
    "SELECT n <= 123456 AS g, max(n) AS n FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) t GROUP BY g",
    "SELECT max(n) AS n FROM (SELECT n, n <= 123456 AS g FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) t) u GROUP BY g",
    "SELECT max(n) AS n FROM (SELECT n, abs(n - 123456) AS d FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM bank) t ORDER BY d, n LIMIT 1) u",
    "SELECT round(amt, -123456) AS n FROM bank",
    "SELECT length(CAST(CAST(id AS VARCHAR(123456)) AS VARCHAR)) AS n FROM bank",
]


@pytest.mark.parametrize("sql", HIDDEN)
def test_a_hidden_literal_is_named(sql, validate):
    origins = validate(sql).origins
    blamed = origins[-1] if origins[-1].name == "n" else origins[0]
    assert any(BIG in text for text in blamed.literals), origins


CLEAN = [
    "SELECT sum(amt) AS n FROM bank WHERE id > 123456",
    "SELECT memo, sum(amt) AS n FROM bank GROUP BY memo HAVING count(*) > 123456",
    "SELECT sum(CASE WHEN amt > 123456 THEN amt END) AS n FROM bank",
    "SELECT sum(amt) FILTER (WHERE amt > 123456) AS n FROM bank",
    "SELECT round(amt, 1) AS n FROM bank WHERE memo IN ('123456')",
    "SELECT id FROM bank ORDER BY amt * 123456, id LIMIT 123456",
    "SELECT b.id FROM bank b JOIN ledger l ON b.id = l.id AND l.amt > 123456",
    "SELECT decimal_division(amt, id, 4) AS n FROM bank",
    "SELECT amt::DECIMAL(38,9) AS n FROM bank",
    "SELECT date_trunc('month', dt) AS n FROM bank",
    "SELECT id FROM bank QUALIFY row_number() OVER (PARTITION BY memo ORDER BY id) > 1",
    "SELECT id FROM bank QUALIFY row_number() OVER (PARTITION BY memo ORDER BY id) = 1",
    (
        "SELECT count(*) AS n FROM (SELECT row_number() OVER (PARTITION BY memo ORDER BY id) AS k "
        "FROM bank) t WHERE k > 1"
    ),
    "SELECT row_number() OVER (ORDER BY id) AS n FROM bank WHERE amt > 123456",
    "SELECT sum(b.amt) AS n FROM bank b JOIN ledger l ON true WHERE 1 = 1",
    "SELECT count_if(amt > 123456) AS n FROM bank",
    "SELECT CAST(CAST(sum(amt) AS DECIMAL(38,6)) AS DECIMAL(18,2)) AS n FROM bank",
    "SELECT sum(CAST(amt AS DECIMAL(38,6))) * max(id) AS n FROM bank",
    "SELECT amt IS NULL AS n, amt < id AS m FROM bank WHERE id = 1",
    "SELECT length(memo) AS n FROM bank",
    "SELECT max(amt) AS n FROM bank GROUP BY amt > 123456",
    "SELECT amt FROM bank ORDER BY abs(amt - 123456), id LIMIT 1",
    "SELECT b.id FROM bank b JOIN ledger l USING (id) GROUP BY b.id HAVING count(*) > 1",
    "SELECT id FROM bank b WHERE (SELECT count(*) FROM ledger l WHERE l.id = b.id) = 0",
    "SELECT sum(amt) AS n FROM bank CROSS JOIN (SELECT max(id) AS m FROM ledger) t",
    "SELECT memo, sum(amt) AS n FROM bank GROUP BY ROLLUP (memo)",
    "SELECT nullif(amt, 123456) AS n FROM bank",
    "SELECT id FROM bank WHERE id IN (SELECT id FROM ledger WHERE amt = 123456)",
]


@pytest.mark.parametrize("sql", CLEAN)
def test_choosing_rows_and_stating_precision_is_not_a_value(sql, validate):
    found = validate(sql)
    assert [o.literals for o in found.origins] == [()] * len(found.columns)


def test_a_constant_of_the_engine_is_named_as_a_literal(validate):
    (origin,) = validate("SELECT pi()::DECIMAL(9,6) + 0 * amt AS n FROM bank").origins
    assert "pi()" in origin.literals


def test_literals_of_earlier_steps_come_along(validate):
    (origin,) = validate("SELECT sum(total) AS n FROM step1").origins
    assert origin.literals == ("777",)
    assert origin.sources == (("step1", "total"),)
    (origin,) = validate("SELECT s.total AS n FROM (SELECT * FROM step1) s").origins
    assert (origin.literals, origin.operation) == (("777",), "")


def test_sources_and_operations(validate):
    found = validate(
        "WITH t AS (SELECT id, sum(amt) AS total FROM bank GROUP BY id) "
        "SELECT t.id, t.total, t.total - l.amt AS diff, l.memo || 'x' AS m, count(*) AS c "
        "FROM t JOIN ledger l ON l.id = t.id GROUP BY ALL"
    )
    shown = {o.name: (o.operation, o.sources) for o in found.origins}
    assert shown == {
        "id": ("", (("bank", "id"),)),
        "total": ("sum", (("bank", "amt"),)),
        "diff": ("subtract", (("bank", "amt"), ("ledger", "amt"))),
        "m": ("concat", (("ledger", "memo"),)),
        "c": ("count over a join", (("bank", "*"), ("ledger", "*"))),
    }


def test_binary_floating_point_is_flagged(validate):
    found = validate("SELECT avg(id::HUGEINT) AS a, sqrt(sum(id)) AS b, id FROM bank GROUP BY id")
    assert [o.inexact for o in found.origins] == [True, True, False]
    exact = validate("SELECT avg(amt) AS a, sum(id) / count(*) AS b FROM bank")
    assert [o.inexact for o in exact.origins] == [False, False]
    hidden = validate("SELECT CAST(avg(id::HUGEINT) AS DECIMAL(18,2)) AS a FROM bank")
    assert [o.inexact for o in hidden.origins] == [True]


def test_what_is_not_understood_blames_everything(validate):
    found = validate("SELECT COLUMNS('i.*'), 7 AS seven FROM bank WHERE id > 9")
    assert all({"7", "9"} <= set(o.literals) for o in found.origins)
    assert {"7", "9"} <= set(found.rows.literals)
    assert all(("bank", "amt") in o.sources for o in found.origins)


MARKED = [
    ("SELECT (id = id)::INT AS n FROM bank", "boolean"),
    ("SELECT length(concat(id IS NULL)) AS n FROM bank", "boolean"),
    ("SELECT CASE WHEN amt > 0 THEN id = id ELSE id END AS n FROM bank", "boolean"),
    ("SELECT id FROM bank UNION ALL SELECT id = id FROM ledger", "boolean"),
    ("SELECT max(amt IS NULL)::INT AS n FROM bank", "boolean"),
    ("SELECT CAST(NULL IS NULL AS INTEGER) AS n FROM bank", "constant"),
    ("SELECT true AS n, id FROM bank", "true"),
    ("SELECT id / bank.id AS n FROM bank", "both sides the same"),
    ("SELECT decimal_division(amt, AMT, 2) AS n FROM bank", "both sides the same"),
    ("SELECT amt + amt AS n FROM bank", "both sides the same"),
    ("SELECT sign(amt) AS n FROM bank", "sign()"),
    ("SELECT era(dt) AS n FROM bank", "era()"),
    ("SELECT grouping(memo) AS n FROM bank GROUP BY CUBE (memo)", "grouping"),
    ("SELECT count(*) AS n FROM (SELECT memo FROM bank GROUP BY CUBE (memo, id)) t", "grouping"),
    ("SELECT count(*) AS n FROM (SELECT sum(amt) AS s FROM bank) t", "one row"),
    ("SELECT count(s) AS n FROM (SELECT sum(amt) AS s FROM bank) t", "one row"),
    ("SELECT count(*) AS n", "one row"),
    ("SELECT len([id, id, id]) AS n FROM bank", "list of 3"),
    ("SELECT length(md5(memo)) AS n FROM bank", "width of md5"),
    ("SELECT length(id::VARCHAR) AS n FROM bank", "width of varchar"),
    ("SELECT length(CAST(CAST(count(*) AS DECIMAL(38,30)) AS VARCHAR)) AS n FROM bank", "30"),
    ("SELECT length(decimal_division(amt, id, 9)::VARCHAR) AS n FROM bank", "9"),
    ("SELECT date_trunc('millennium', dt) AS n FROM bank", "millennium"),
    ("SELECT date_diff('microsecond', dt, dt) AS n FROM bank", "microsecond"),
    ("SELECT ('7' || '7')::INT AS n FROM bank", "'7'"),
    ("SELECT concat(7, 7)::INT AS n FROM bank", "'7'"),
    ("SELECT repeat('1', 7)::INT AS n FROM bank", "'7'"),
]


@pytest.mark.parametrize(("sql", "mark"), MARKED)
def test_what_stands_for_a_literal_is_marked(sql, mark, validate):
    first = validate(sql).origins[0]
    assert mark in {text if mark[0] == "'" else text.strip("'") for text in first.literals}


REFUSED = [
    ('SELECT struct_keys(struct_pack("123456" := id)) AS n FROM bank', "sql.function"),
    ("SELECT struct_keys(b) AS n FROM bank b", "sql.function"),
    ("SELECT json_keys(to_json(b)) AS n FROM bank b", "sql.function"),
    ("SELECT to_json(b) AS n FROM bank b", "sql.function"),
    ("SELECT json_object('a', id) AS n FROM bank b", "sql.function"),
    ('SELECT CAST(row(id) AS STRUCT("123456" INTEGER)) AS n FROM bank', "sql.type"),
    ("SELECT b::VARCHAR AS n FROM bank b", "sql.type"),
    ("SELECT concat(b) AS n FROM bank b", "sql.type"),
    ("SELECT b || '' AS n FROM bank b", "sql.type"),
    ("SELECT length([id]::VARCHAR) AS n FROM bank", "sql.type"),
    ("SELECT map {'a': id}::VARCHAR AS n FROM bank", "sql.type"),
    ("SELECT len(CAST([id] AS INTEGER[78])) AS n FROM bank", "sql.type"),
    ("SELECT array_value(id, id) AS n FROM bank", "sql.function"),
    ("SELECT n FROM (UNPIVOT bank ON id, acct_key INTO NAME n VALUE v)", "sql.construct"),
    ("SELECT geomean(x) AS n FROM floats", "sql.float_sum"),
    ("SELECT list_sum([x]) AS n FROM floats", "sql.float_sum"),
]


@pytest.mark.parametrize(("sql", "code"), REFUSED)
def test_names_that_would_be_values_are_refused(sql, code, validate):
    with pytest.raises(SqlRefused) as caught:
        validate(sql)
    assert code == caught.value.code
    assert caught.value.remedy


def test_a_sum_over_repeated_rows_says_so(validate):
    joined = "SELECT sum(b.amt) AS n, max(b.amt) AS m FROM bank b CROSS JOIN ledger l"
    assert [o.operation for o in validate(joined).origins] == ["sum over a join", "max"]
    twice = "SELECT sum(amt) AS n FROM (SELECT amt FROM bank UNION ALL SELECT amt FROM bank) t"
    assert validate(twice).origins[0].operation == "sum over a union"
    one = "SELECT sum(b.amt) AS n FROM bank b, (SELECT max(id) AS m FROM ledger) t"
    assert validate(one).origins[0].operation == "sum"


def test_conditions_stand_beside_the_value(validate):
    found = validate(
        "SELECT count(*) FILTER (WHERE memo <= '000042') AS n, sum(amt) AS t FROM bank "
        "WHERE amt BETWEEN 3 AND 9"
    )
    assert [o.conditions for o in found.origins] == [("000042", "3", "9"), ("3", "9")]
    assert [o.literals for o in found.origins] == [(), ()]
    assert found.rows.conditions == ("3", "9")
