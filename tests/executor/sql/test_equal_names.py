"""Columns of a result that have one name: told apart, ordered by place, traced each by itself."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tieout.artifacts.table import canonical
from tieout.executor.engine import TableBytes
from tieout.executor.sql.validate import GrantedColumn, GrantedTable

NAMES = [
    ("SELECT b.id, l.id FROM bank b JOIN ledger l ON b.id = l.id", ("id", "id_1")),
    ("SELECT id, ID, id AS id_1 FROM bank", ("id", "id_2", "id_1")),
    ("SELECT id, amt AS id, memo AS id FROM bank", ("id", "id_1", "id_2")),
]


@pytest.mark.parametrize(("sql", "names"), NAMES)
def test_equal_names_are_told_apart(sql, names, validate):
    found = validate(sql)
    assert tuple(name for name, _kind in found.columns) == names
    assert tuple(origin.name for origin in found.origins) == names
    assert found.executed == sql


def test_each_keeps_its_own_origin(validate):
    typed = validate("SELECT amt AS k, 777 AS k FROM bank").origins
    assert [(o.name, o.literals, o.sources) for o in typed] == [
        ("k", (), (("bank", "amt"),)),
        ("k_1", ("777",), ()),
    ]


@pytest.mark.parametrize(
    ("sql", "executed"),
    [
        # A name that two columns have orders by one of them only, whichever the engine takes.
        ("SELECT memo AS k, amt AS k FROM bank ORDER BY k LIMIT 2", "ORDER BY k, 1, 2 LIMIT 2"),
        ("SELECT id AS k, amt AS k FROM bank ORDER BY k", "ORDER BY k, 1, 2"),
        ("SELECT memo AS k, amt AS k FROM bank ORDER BY 1, 2", "ORDER BY 1, 2"),
    ],
)
def test_an_order_by_such_a_name_is_not_total(sql, executed, validate):
    assert validate(sql).executed.endswith(executed)


def test_a_column_of_from_does_not_pass_for_the_one_told_apart(engine):
    """id_1 is a column of FROM here, and the second id of the result goes by another name."""
    wide = GrantedTable("wide", tuple(GrantedColumn(c, "INTEGER") for c in ("id", "v", "id_1")))
    found = engine.validate("SELECT id, v AS id FROM wide ORDER BY id, id_1", {"wide": wide})
    assert found.executed.endswith("ORDER BY id, id_1, 1, 2")


def test_they_are_run_under_those_names(engine):
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "v": pa.array([20, 10], pa.int32())})
    table = canonical(rows, key=("id",))
    granted = {
        "t": GrantedTable(
            "t", (GrantedColumn("id", "INTEGER"), GrantedColumn("v", "INTEGER")), ("id",)
        )
    }
    validated = engine.validate("SELECT id AS k, v AS k FROM t ORDER BY 2", granted)
    given = {"t": TableBytes(table.address, lambda: table.payload)}
    assert engine.run(validated, given).table.to_pydict() == {"k": [2, 1], "k_1": [10, 20]}
