"""The clock as the question's as_of: each reading of it by its literal, or refused."""

from __future__ import annotations

import datetime as dt

import pytest

from tieout.executor.sql import session
from tieout.executor.sql.examine import examine
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.validate import GrantedColumn, GrantedTable, validate

AS_OF = "2026-06-30"
DAY = f"CAST('{AS_OF}' AS DATE)"
MOMENT = f"CAST('{AS_OF} 23:59:59.999999+00' AS TIMESTAMPTZ)"
LOCAL = f"CAST('{AS_OF} 23:59:59.999999' AS TIMESTAMP)"
COLUMNS = {"id": "INTEGER", "d": "DATE", "today": "DATE"}
TABLES = {
    "t": GrantedTable("t", tuple(GrantedColumn(c, kind) for c, kind in COLUMNS.items()), ("id",)),
    "u": GrantedTable("u", (GrantedColumn("current_date", "DATE"),)),
}


@pytest.fixture(scope="module")
def engine():
    running = session.connect()
    session.declare(running, "t", COLUMNS)
    session.declare(running, "u", {"current_date": "DATE"})
    running.execute("INSERT INTO t VALUES (1, DATE '2026-03-31', DATE '1999-01-01')")
    session.lock(running, memory_bytes=1 << 30)
    yield running
    running.close()


@pytest.fixture(scope="module")
def gate(engine):
    def admitted(sql, as_of=AS_OF, tables=("t",)):
        granted = {name: TABLES[name] for name in tables}
        return validate(
            sql, granted, examine=lambda q, t: examine(engine, q, t, chars_max=999, as_of=as_of)
        )

    return admitted


READINGS = {
    "current_date": DAY,
    "CURRENT_DATE": DAY,
    '"current_date"': DAY,
    "current_date()": DAY,
    "today()": DAY,
    "Today ( )": DAY,
    "now()": MOMENT,
    '"now"()': MOMENT,
    "current_timestamp": MOMENT,
    "get_current_timestamp()": MOMENT,
    "transaction_timestamp()": MOMENT,
    "localtimestamp": LOCAL,
    "current_localtimestamp()": LOCAL,
    "age(d)": f"age({DAY}, d)",
    "age(/* ) */ d::TIMESTAMP)": f"age({DAY}, /* ) */ d::TIMESTAMP)",
    "current_date - 30": f"{DAY} - 30",
    "current_timestamp::DATE": f"{MOMENT}::DATE",
    "date_diff('day', d, current_date)": f"date_diff('day', d, {DAY})",
    "year(current_date) - year(now())": f"year({DAY}) - year({MOMENT})",
    "CASE WHEN d < current_date THEN today END": f"CASE WHEN d < {DAY} THEN today END",
}
"""What reads the clock, and what runs instead."""


@pytest.mark.parametrize(("asked", "runs"), READINGS.items())
def test_a_reading_of_the_clock_is_the_as_of(asked, runs, gate, engine):
    found = gate(f"SELECT 'é', {asked} AS n FROM t")
    assert found.executed == f"SELECT 'é', {runs} AS n FROM t"
    assert found.rewrites == ("as_of",)
    first = found.verdict.reasons[0]
    assert (first.name, first.line) == ("clock", 1)
    assert engine.cursor().execute(found.executed).fetchall()


@pytest.mark.parametrize("asked", READINGS)
def test_without_an_as_of_it_is_refused(asked, gate):
    with pytest.raises(SqlRefused) as caught:
        gate(f"SELECT {asked} AS n FROM t", as_of=None)
    assert caught.value.code == "sql.clock"


def test_the_value_is_the_day_and_the_column_keeps_its_name(gate, engine):
    found = gate("SELECT current_date, age(d) AS a FROM t WHERE d <= now()")
    assert [name for name, _kind in found.columns] == ["current_date", "a"]
    ((day, age),) = engine.cursor().execute(found.executed).fetchall()
    assert day == dt.date(2026, 6, 30)
    assert age == dt.timedelta(days=90)  # the engine's interval is two months and 30 days


def test_the_date_flows_as_a_literal(gate):
    (origin,) = gate("SELECT current_date - d AS n FROM t").origins
    assert origin.literals == (AS_OF,)


def test_places_are_those_of_the_text_as_asked(gate):
    with pytest.raises(SqlRefused) as caught:
        gate("SELECT now() AS n,\n today() AS m, nope FROM t")
    assert (caught.value.code, caught.value.line, caught.value.column) == (
        "sql.unknown_column",
        2,
        16,
    )


REFUSED = {
    "SELECT current_time AS n": "sql.clock",
    "SELECT localtime AS n": "sql.clock",
    "SELECT get_current_time() AS n": "sql.clock",
    "SELECT ago(INTERVAL 1 DAY) AS n": "sql.clock",
    "SELECT main.now() AS n": "sql.function",
    "SELECT current_date FROM (SELECT 1 AS current_date)": "sql.clock",
    "WITH c(current_date) AS (SELECT 3) SELECT current_date FROM c": "sql.clock",
    "SELECT random() AS n, now() AS m": "sql.random",
}


@pytest.mark.parametrize(("sql", "code"), REFUSED.items())
def test_what_has_no_date_or_is_another_name_is_refused(sql, code, gate):
    with pytest.raises(SqlRefused) as caught:
        gate(sql)
    assert caught.value.code == code


def test_a_granted_column_of_that_name_is_the_column(gate):
    sql = 'SELECT u.current_date FROM u WHERE "current_date" IS NOT NULL'
    assert gate(sql, tables=("t", "u")).executed == sql


@pytest.mark.parametrize("word", ["now", "today", "tomorrow", "yesterday"])
def test_a_word_for_a_day_is_no_date_to_the_engine(word, gate, engine):
    """PostgreSQL reads the clock there; this engine takes no such text, and it is refused."""
    with pytest.raises(SqlRefused, match=f"the text '{word}' cannot be converted to DATE"):
        gate(f"SELECT '{word}'::DATE AS n")
    with pytest.raises(Exception, match="invalid date"):
        engine.cursor().execute(f"SELECT '{word}'::DATE AS n")


@pytest.mark.parametrize("as_of", ["2026-02-30", "yesterday", "", "2026-06-30'); --"])
def test_an_as_of_that_is_no_date_is_refused(as_of, gate):
    with pytest.raises(SqlRefused) as caught:
        gate("SELECT now() AS n", as_of=as_of)
    assert caught.value.code == "sql.clock"
