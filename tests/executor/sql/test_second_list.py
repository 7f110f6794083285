"""The second gate's list of functions is its own: opening the first one's opens one gate only."""

from __future__ import annotations

import ast
import json
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest
from support.layers import granted

from tieout.executor.sql import (
    functions,
    second_policy,
    second_vocabulary,
    session,
    tree,
    vocabulary,
)
from tieout.executor.sql.examine import _tree, granted_of
from tieout.executor.sql.functions import FunctionClass
from tieout.executor.sql.refusal import SqlRefused, Text
from tieout.executor.sql.second import read_second
from tieout.executor.sql.tree import check_tree

LINES = Path(__file__).with_name("attacks.jsonl").read_text("utf-8").splitlines()
ATTACKS = {a["id"]: a["sql"] for a in map(json.loads, LINES)}
FIRST = frozenset(
    f"tieout.executor.sql.{name}" for name in ("functions", "plan", "text", "tree", "vocabulary")
)
"""The modules of the other gates."""
STOPPED_MIN = 300
"""Attacks that both parsers stop by themselves."""
OPENED_MIN = 50
"""Attacks that one parser lets pass once its list is opened; with fewer, nothing would be shown."""

REFUSED_MIN = 150
"""Functions of expressions that neither list admits."""


@pytest.fixture(scope="module")
def reader():
    """DuckDB's tree of a text."""
    with session.connect() as engine:
        for name, table in granted().items():
            session.declare(engine, name, {c.name: c.type for c in table.columns})
        session.lock(engine, memory_bytes=1 << 30)
        yield lambda sql: _tree(engine, Text(sql))


def stopped_by_second() -> set[str]:
    """The attacks that sqlglot refuses by its own lists."""
    return {i for i, sql in ATTACKS.items() if _refuses(read_second, Text(sql))}


def stopped_by_tree(reader) -> set[str]:
    """The attacks that DuckDB's tree refuses; a text that DuckDB cannot parse is one."""

    def check(text, allowed):
        check_tree(text, reader(text.sql), allowed)

    return {i for i, sql in ATTACKS.items() if _refuses(check, Text(sql))}


def _refuses(gate, text) -> bool:
    try:
        gate(text, granted_of(granted()))
    except (SqlRefused, duckdb.Error, RecursionError):
        return True
    return False


def tables_of_engine() -> frozenset[str]:
    """The names of all table functions."""
    return frozenset(n for n in functions.classes() if functions.of_name(n, table=True))


@pytest.fixture(scope="module")
def stopped(reader):
    """What both parsers stop as things stand."""
    both = stopped_by_second() & stopped_by_tree(reader)
    assert len(both) >= STOPPED_MIN
    return both


def test_with_all_lists_of_the_first_gate_opened_the_second_stops_the_same(
    stopped, reader, monkeypatch
):
    """An experiment on data: each function is pure, each table function makes rows, no word reads
    clock or session."""
    every = functions.classes()
    allowed = {
        name: tuple(FunctionClass(e.kind, "pure", "allow") for e in entries)
        for name, entries in every.items()
    }
    before = stopped_by_second()
    monkeypatch.setattr(tree, "RANGES", tables_of_engine())
    monkeypatch.setattr(tree, "CLOCK_WORDS", frozenset())
    monkeypatch.setattr(tree, "SESSION_WORDS", frozenset())
    monkeypatch.setattr(functions, "classes", lambda: allowed)
    assert len(stopped - stopped_by_tree(reader)) >= OPENED_MIN
    assert stopped_by_second() == before
    refused = {n for n in every if n.isidentifier() and functions.is_open(n)}
    refused -= second_vocabulary.ADMITTED
    assert len(refused) >= REFUSED_MIN
    for name in refused:
        text = Text(f'SELECT "{name}"(id) AS a FROM bank')
        check_tree(text, reader(text.sql), granted_of(granted()))
        with pytest.raises(SqlRefused):
            read_second(text, granted_of(granted()))


def test_with_all_lists_of_the_second_gate_opened_the_first_stops_the_same(
    stopped, reader, monkeypatch
):
    before = stopped_by_tree(reader)
    monkeypatch.setattr(second_policy, "ADMITTED", frozenset(functions.classes()))
    monkeypatch.setattr(second_policy, "RANGES", tables_of_engine())
    monkeypatch.setattr(second_policy, "CLOCK_WORDS", frozenset())
    monkeypatch.setattr(second_policy, "SESSION_WORDS", frozenset())
    assert len(stopped - stopped_by_second()) >= OPENED_MIN
    assert stopped_by_tree(reader) == before


def test_both_lists_admit_the_same_names():
    """A function is admitted, or taken out, by two edits."""
    first = {name for name in functions.classes() if functions.is_open(name)}
    assert first == second_vocabulary.ADMITTED
    assert second_vocabulary.CALL_CODES.keys() <= functions.classes().keys() - first


def test_the_second_list_is_sorted_and_has_each_name_once():
    folder = files("tieout.executor.sql")
    lines = folder.joinpath("second_functions.txt").read_text("utf-8").splitlines()
    head = [line for line in lines if line.startswith("# ")]
    assert lines == head + sorted(second_vocabulary.ADMITTED)
    assert all(line == line.strip().lower() for line in lines[len(head) :])


def test_both_gates_have_the_same_words_each_its_own():
    words = ("CLOCK_WORDS", "SESSION_WORDS", "RANGES", "AGGREGATES_BY_NAME")
    for word in words:
        assert getattr(second_vocabulary, word) == getattr(vocabulary, word)
        assert getattr(second_vocabulary, word) is not getattr(vocabulary, word)
    readers = {n for n in functions.classes() if "clock_overload" in functions.groups(n)}
    assert readers == second_vocabulary.CLOCK_WITH_ONE
    takers = {
        e for e in second_vocabulary.ADMITTED if "string_named_aggregate" in functions.groups(e)
    }
    assert takers > second_vocabulary.NAMES_AGGREGATE


def test_of_the_first_gate_the_second_takes_limits_and_granted_tables_alone(repository):
    """As docs/layers.md says; `second.py` compares the findings of both, and is apart."""
    taken = set()
    for name in ("second_policy.py", "second_vocabulary.py"):
        parsed = ast.parse((repository / "executor" / "sql" / name).read_text("utf-8"))
        for node in ast.walk(parsed):
            if isinstance(node, ast.ImportFrom) and node.module in FIRST:
                taken |= {alias.name for alias in node.names}
            if isinstance(node, ast.ImportFrom) and node.module == "tieout.executor.sql":
                taken |= {a.name for a in node.names if f"{node.module}.{a.name}" in FIRST}
    assert taken == {"Granted", "CTES_MAX", "CTE_USES_MAX", "RANGE_ROWS_MAX"}
