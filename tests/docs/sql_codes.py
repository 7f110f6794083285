"""For each code an SQL step can end with: a query that does, and the same one repaired.

The queries run over `bank` (id, amt, memo, dt, ccy), which has a row with a zero, one with a text
that is no number, and a declared domain of ccy and range of dt.
"""

from __future__ import annotations

LONG = "SELECT " + "1 + " * 9_000 + "1 AS n"
PIVOTED = "(PIVOT bank ON ccy IN ('GBP') USING sum(amt)) AS p"
DEEP = "SELECT " + "(" * 150 + "1" + ")" * 150 + " AS n"

GATE = {
    "sql.asof_ties": (
        "SELECT a.id FROM bank AS a ASOF JOIN bank AS b ON a.dt >= b.dt",
        "SELECT a.id FROM bank AS a ASOF JOIN (SELECT DISTINCT dt FROM bank) AS b ON a.dt >= b.dt",
    ),
    "sql.bind": ("SELECT sum(memo) AS s FROM bank", "SELECT sum(amt) AS s FROM bank"),
    "sql.catalog": (
        "SELECT current_user AS u FROM bank",
        "SELECT memo AS u FROM bank",
    ),
    "sql.clock": (
        "SELECT id FROM bank WHERE dt < today()",
        "SELECT id FROM bank WHERE dt < DATE '2026-06-30'",
    ),
    "sql.collation": (
        "SELECT id FROM bank WHERE memo COLLATE nocase = 'rent'",
        "SELECT id FROM bank WHERE lower(memo) = 'rent'",
    ),
    "sql.construct": (
        "SELECT a.id FROM bank AS a POSITIONAL JOIN bank AS b",
        "SELECT a.id FROM bank AS a JOIN bank AS b ON a.id = b.id",
    ),
    "sql.control_character": ("SELECT id\x07 FROM bank", "SELECT id FROM bank"),
    "sql.conversion": (
        "SELECT id FROM bank WHERE dt > '30/06/2026'",
        "SELECT id FROM bank WHERE dt > DATE '2026-06-29'",
    ),
    "sql.empty": ("-- nothing", "SELECT id FROM bank"),
    "sql.file_access": ("SELECT * FROM 'bank.csv'", "SELECT * FROM bank"),
    "sql.function": (
        "SELECT list_distinct([id]) AS l FROM bank",
        "SELECT list_sort(list_distinct([id])) AS l FROM bank",
    ),
    "sql.libm": (
        "SELECT ln(id) AS l FROM bank",
        "SELECT CAST(ln(id) AS DECIMAL(38,12)) AS l FROM bank",
    ),
    "sql.non_ascii": (
        "SELECT id\u00a0FROM bank",
        "SELECT id FROM bank WHERE memo = '\u00a0'",
    ),
    "sql.not_a_query": ("EXPLAIN SELECT id FROM bank", "SELECT id FROM bank"),
    "sql.outside_range": (
        "SELECT id FROM bank WHERE dt = DATE '2027-01-01'",
        "SELECT id FROM bank WHERE dt = DATE '2026-01-01'",
    ),
    "sql.parameter": (
        "SELECT id FROM bank WHERE amt > ?",
        "SELECT id FROM bank WHERE amt > 10",
    ),
    "sql.parse": ("SELECT id FROM bank WHERE", "SELECT id FROM bank WHERE id > 1"),
    "sql.parsers_disagree": ("SELECT 1e308+1e308 AS n", "SELECT 1e308 + 1e308 AS n"),
    "sql.qualified_table": ("SELECT id FROM main.bank", "SELECT id FROM bank"),
    "sql.random": ("SELECT random() AS r FROM bank", "SELECT id AS r FROM bank"),
    "sql.range": (
        "SELECT * FROM range(1000000000000) AS r(n)",
        "SELECT * FROM range(0, 10) AS r(n)",
    ),
    "sql.reserved_name": ("SELECT id AS __id FROM bank", "SELECT id AS i FROM bank"),
    "sql.rowid": ("SELECT rowid FROM bank", "SELECT id FROM bank"),
    "sql.sample": (
        "SELECT id FROM bank TABLESAMPLE 10 PERCENT",
        "SELECT id FROM bank WHERE id < 3",
    ),
    "sql.setting": ("SET threads = 1", "SELECT id FROM bank"),
    "sql.shadowed_table": (
        "WITH bank AS (SELECT 1 AS id) SELECT id FROM bank",
        "WITH one AS (SELECT 1 AS id) SELECT id FROM one",
    ),
    "sql.too_complex": (DEEP, "SELECT 1 AS n"),
    "sql.too_long": (LONG, "SELECT 9001 AS n"),
    "sql.two_statements": ("SELECT 1 AS a; SELECT 2 AS b", "SELECT 1 AS a"),
    "sql.type": (
        "SELECT CAST(memo AS BIGNUM) AS b FROM bank",
        "SELECT TRY_CAST(memo AS BIGINT) AS b FROM bank",
    ),
    "sql.unknown_column": ("SELECT amount FROM bank", "SELECT amt FROM bank"),
    "sql.unknown_table": ("SELECT id FROM banks", "SELECT id FROM bank"),
    "sql.unknown_value": (
        "SELECT id FROM bank WHERE ccy = 'GBX'",
        "SELECT id FROM bank WHERE ccy = 'GBP'",
    ),
    "sql.write": ("DELETE FROM bank", "SELECT id FROM bank WHERE amt > 0"),
    "sql.equal_values": (
        "SELECT max(sqrt(id))::VARCHAR AS s FROM bank",
        "SELECT max(sqrt(id)::DECIMAL(38,9))::VARCHAR AS s FROM bank",
    ),
    "sql.float_sum": (
        "SELECT list_sum(list(sqrt(id))) AS s FROM bank",
        "SELECT sum(sqrt(id)::DECIMAL(38,9)) AS s FROM bank",
    ),
    "sql.unordered_aggregate": (
        "SELECT (SELECT first(b.memo)) AS m FROM bank AS b",
        "SELECT first(memo) AS m FROM bank",
    ),
    "sql.unordered_limit": (
        "SELECT x FROM (SELECT COLUMNS('id') FROM bank ORDER BY dt LIMIT 3) AS t(x)",
        "SELECT x FROM (SELECT COLUMNS('id') FROM bank ORDER BY id LIMIT 3) AS t(x)",
    ),
    "sql.unordered_window": (
        f"SELECT row_number() OVER () AS n FROM {PIVOTED}",
        "SELECT row_number() OVER () AS n FROM bank",
    ),
    "sql.window_ties": (
        f"SELECT row_number() OVER (ORDER BY memo) AS n FROM {PIVOTED}",
        f"SELECT rank() OVER (ORDER BY memo) AS n FROM {PIVOTED}",
    ),
}
"""Codes of the gate: nothing runs."""

NO_EXAMPLE = frozenset({"sql.order_form"})
"""An order is put in instead, in every form that we know; the code stays for others."""

RUN = {
    "sql.conversion": (
        "SELECT CAST(memo AS INTEGER) AS n FROM bank",
        "SELECT TRY_CAST(memo AS INTEGER) AS n FROM bank",
    ),
    "sql.division_by_zero": (
        "SELECT decimal_division(amt, id - 1, 2) AS q FROM bank",
        "SELECT decimal_division(amt, nullif(id - 1, 0), 2) AS q FROM bank",
    ),
    "sql.overflow": (
        "SELECT id * 9223372036854775807 AS n FROM bank",
        "SELECT id::DECIMAL(19,0) * 9223372036854775807 AS n FROM bank",
    ),
    "sql.out_of_range": (
        "SELECT factorial((id + 40)::INTEGER) AS n FROM bank",
        "SELECT factorial((id + 4)::INTEGER) AS n FROM bank",
    ),
    "sql.not_finite": (
        "SELECT (id * 1e308 * 10)::INTEGER AS n FROM bank",
        "SELECT (id * 1e3 * 10)::INTEGER AS n FROM bank",
    ),
    "sql.several_rows": (
        "SELECT (SELECT amt FROM bank) AS a",
        "SELECT (SELECT max(amt) FROM bank) AS a",
    ),
    "sql.value": (
        "SELECT strptime(memo, '%Y') AS y FROM bank",
        "SELECT try_strptime(memo, '%Y') AS y FROM bank",
    ),
    "limit.seconds": (
        "SELECT count(*) AS n FROM range(1000000) AS a(x), range(1000000) AS b(y) WHERE x * y = 3",
        "SELECT count(*) AS n FROM range(1000) AS a(x), range(1000) AS b(y) WHERE x * y = 3",
    ),
    "limit.memory": (
        "SELECT list(x ORDER BY x) AS l FROM range(1000000) AS a(x), range(1000) AS b(y)",
        "SELECT count(*) AS l FROM range(1000) AS a(x)",
    ),
    "limit.bytes": (
        "SELECT repeat(memo, 40000) AS m FROM bank, range(400) AS r(n)",
        "SELECT memo AS m FROM bank",
    ),
}
"""Codes of a run: the query was admitted."""

STEP = {
    "limit.cell": ("SELECT repeat('x', 2000) AS x", (), "SELECT repeat('x', 20) AS x", ()),
    "limit.rows": (
        "SELECT n FROM range(0, 2000) AS r(n)",
        (),
        "SELECT n FROM range(0, 20) AS r(n)",
        (),
    ),
    "result.key_missing": ("SELECT id FROM bank", ("nr",), "SELECT id AS nr FROM bank", ("nr",)),
    "result.key_not_unique": (
        "SELECT id, dt FROM bank",
        ("dt",),
        "SELECT id, dt FROM bank",
        ("id",),
    ),
    "result.key_repeated": ("SELECT id FROM bank", ("id", "id"), "SELECT id FROM bank", ("id",)),
    "result.type": (
        "SELECT INTERVAL 1 DAY AS i",
        (),
        "SELECT CAST(INTERVAL 1 DAY AS VARCHAR) AS i",
        (),
    ),
    "sql.infinity": ("SELECT 1e308 * 10 AS x", (), "SELECT 1e307 * 10 AS x", ()),
    "sql.not_a_number": ("SELECT sqrt(-1) AS x", (), "SELECT sqrt(1) AS x", ()),
    "step.dependency_failed": ("SELECT n FROM broken", (), "SELECT id AS n FROM bank", ()),
    "step.name_taken": ("SELECT id FROM bank", (), "SELECT id FROM bank", ()),
    "step.no_results": ("SELECT id FROM bank WHERE id > 99", (), "SELECT id FROM bank", ()),
}
"""Codes of the step around the query: text and key, and both repaired. `broken` is a step that
failed; for the name, the step is called as the table."""
REASONS = {
    "limit.cell": "One text of the result is longer than it may be.",
    "limit.rows": "There are more rows than are stored; those that are, are kept as partial.",
    "result.key_missing": "A key column is not among the columns of the result.",
    "result.key_not_unique": "Two rows of the result have the same key.",
    "result.key_repeated": "The key names a column twice.",
    "result.type": "A column of the result has a type that cannot be kept.",
    "sql.infinity": "A binary floating point number of the result is infinite.",
    "sql.not_a_number": "A binary floating point number of the result is not a number.",
    "step.dependency_failed": "It reads a step that has no result.",
    "step.name_taken": "The step's id names a source or an earlier step.",
    "step.no_results": "No row satisfies it; the empty result is kept and can be cited.",
}
WAYS_OUT = {
    "limit.cell": "Select shorter texts; limits.cell_bytes_max is the bound.",
    "limit.rows": "Aggregate, or narrow it with WHERE; limits.rows_stored_max is the bound.",
    "result.key_missing": "Name columns of the result as its key.",
    "result.key_not_unique": "Choose key columns that are unique, or leave the key out.",
    "result.key_repeated": "Name each key column once.",
    "result.type": "Cast it to a number, DECIMAL, DATE, TIMESTAMP, BOOLEAN or VARCHAR.",
    "sql.infinity": (
        "Divide by nullif(x, 0), leave such rows out, or cast to DECIMAL before it grows."
    ),
    "sql.not_a_number": (
        "Leave the rows out whose values have no such result, or divide by nullif(x, 0)."
    ),
    "step.dependency_failed": "Repair the step that is named first.",
    "step.name_taken": "Give the step another id.",
    "step.no_results": "Loosen WHERE, if there should be rows.",
}
MACHINE = {
    "engine.crashed": (
        "The engine's worker ended without an answer.",
        "Run the step again; if it ends so again, write the query another way.",
    ),
    "engine.other_build": (
        "Another version of the engine is installed than the one results are promised on.",
        "Install the version that is named.",
    ),
    "engine.other_parser": (
        "A compiled sqlglot is installed, which the second gate cannot use.",
        "Uninstall sqlglotc.",
    ),
    "engine.unavailable": (
        "The engine cannot be started.",
        "Run tieout doctor; reinstall with the run extra if duckdb is missing.",
    ),
}
"""No query ends with these but through the machine; engine.* of FAILURES too."""
NOT_OF_SQL = frozenset({"step.no_documents", "step.not_a_search", "step.unknown_source"})
"""Codes of searches and extractions."""
