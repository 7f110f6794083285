"""One engine for all tests of the gate, and the tables that they grant."""

from __future__ import annotations

import pytest

from tieout.executor.engine import Engine, EngineLimits
from tieout.executor.sql import session
from tieout.executor.sql.examine import examine
from tieout.executor.sql.validate import ColumnOrigin, GrantedColumn, GrantedTable
from tieout.executor.sql.validate import validate as gate

COLUMNS = {
    "id": "INTEGER",
    "amt": "DECIMAL(18,2)",
    "memo": "VARCHAR",
    "dt": "DATE",
    "acct_key": "INTEGER",
}


def table(name: str) -> GrantedTable:
    columns = [GrantedColumn(c, kind) for c, kind in COLUMNS.items()]
    return GrantedTable(name, (*columns, GrantedColumn("__row", "BIGINT")), ("id",))


@pytest.fixture(scope="session")
def granted():
    total = ColumnOrigin("total", ("777",), (("bank", "amt"),), "add", inexact=False)
    earlier = GrantedTable("step1", (GrantedColumn("total", "DECIMAL(18,2)", total),))
    floats = GrantedTable("floats", (GrantedColumn("id", "INTEGER"), GrantedColumn("x", "DOUBLE")))
    return {"bank": table("bank"), "ledger": table("ledger"), "step1": earlier, "floats": floats}


@pytest.fixture(scope="session")
def engine():
    """The whole engine: a fork server, one bounded child per request."""
    with Engine(cache=None, limits=EngineLimits(seconds_max=2)) as running:
        yield running


@pytest.fixture(scope="session")
def validate(granted):
    """The same gate on one locked engine in this process: 5 ms a query, no bounds."""
    inside = session.connect()
    for name, table in granted.items():
        session.declare(inside, name, {c.name: c.type for c in table.columns})
    session.lock(inside, memory_bytes=1 << 30)
    yield lambda sql: gate(
        sql, granted, examine=lambda q, t: examine(inside, q, t, chars_max=32_768)
    )
    inside.close()
