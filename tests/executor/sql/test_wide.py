"""Tables of very many columns: an order by all of them, and what is said when it is too long."""

from __future__ import annotations

import pytest

from tieout.executor.sql import session
from tieout.executor.sql.examine import MANY_COLUMNS, examine
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.validate import GrantedColumn, GrantedTable, validate

COLUMNS = {f"column_of_a_wide_table_{number}": "DECIMAL(18,2)" for number in range(1_000)}
TABLES = {"wide": GrantedTable("wide", tuple(GrantedColumn(c, k) for c, k in COLUMNS.items()), ())}


@pytest.fixture(scope="module")
def gate():
    running = session.connect()
    session.declare(running, "wide", COLUMNS)
    session.lock(running, memory_bytes=1 << 30)
    yield lambda sql: validate(
        sql, TABLES, examine=lambda q, t: examine(running, q, t, chars_max=32_768)
    )
    running.close()


def test_an_order_by_a_thousand_columns_is_put_in(gate):
    found = gate("SELECT row_number() OVER () AS n FROM wide")
    assert list(COLUMNS)[-1] in found.executed


def test_an_order_that_is_too_long_names_the_cause(gate):
    numbered = ", ".join(f"row_number() OVER () AS n{number}" for number in range(12))
    with pytest.raises(SqlRefused) as caught:
        gate(f"SELECT {numbered} FROM wide")
    assert caught.value.code == "sql.unordered_window"
    assert caught.value.remedy == MANY_COLUMNS
