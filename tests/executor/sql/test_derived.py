"""What runs is derived from what was asked: the told rewrites, round by round, and nothing else."""

from __future__ import annotations

import ast
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.executor.sql.test_rewrites import ADMITTED
from tieout.executor.sql import session
from tieout.executor.sql.examine import examine
from tieout.executor.sql.validate import GrantedColumn, GrantedTable
from tieout.executor.sql.validate import validate as gate
from tieout.executor.sql.verdict import Rewrite, derived

FLAT = [
    "SELECT amt / 3 AS n FROM bank",
    "SELECT avg(amt) AS n, avg(amt / id) AS m FROM bank GROUP BY memo",
    "SELECT memo, sum(amt) / count(*) AS n FROM bank GROUP BY memo ORDER BY n LIMIT 2",
    "SELECT 'é' AS a, avg(amt / 3) AS n FROM bank",
    "SELECT sum(x) AS n FROM floats",
    "SELECT first(memo) AS n, 1.00 / 3.0 / 7.00 AS m\nFROM bank -- all\nLIMIT 1",
]
LETTERS = st.sampled_from("ab")


@pytest.mark.parametrize("case", ADMITTED, ids=lambda case: case.ask)
def test_what_runs_of_each_rewrite_of_the_table(case, validate):
    found = validate(case.ask)
    assert derived(case.ask, found.verdict.rewrites) == found.executed


@pytest.mark.parametrize("sql", FLAT)
def test_what_runs_of_several_kinds_of_rewrite(sql, validate):
    found = validate(sql)
    assert found.executed != sql
    assert derived(sql, found.verdict.rewrites) == found.executed
    lines = sql.split("\n")
    for rewrite in found.verdict.rewrites:
        assert rewrite.column <= len(lines[rewrite.line - 1]) + 1


def nested(chosen: random.Random, depth: int) -> str:
    """Divisions and averages inside each other, so that rewrites take several rounds."""
    if not depth:
        return chosen.choice(["amt", "2.50", "id", "b.amt"])
    one, other = nested(chosen, depth - 1), nested(chosen, chosen.randrange(depth))
    form = chosen.choice(
        ["({} / {})", "{} / {}", "({}/ /* / */{})", "round({} / {}, 2)", "{} + {}"]
    )
    return form.format(one, other)


def test_what_runs_of_nested_quotients(validate):
    rounds = set()
    for seed in range(60):
        chosen = random.Random(seed)
        inner = nested(chosen, chosen.randrange(1, 5))
        outer = chosen.choice(["{} AS n", "sum({}) AS n", "avg({}) AS n", "first({}) AS n"])
        sql = f"SELECT 'é' AS a, {outer.format(inner)} FROM bank b {chosen.choice(['', 'LIMIT 1'])}"
        found = validate(sql)
        assert derived(sql, found.verdict.rewrites) == found.executed
        rounds.add(max((r.round for r in found.verdict.rewrites), default=0))
    assert {1, 2} <= rounds
    assert max(rounds) > 2


@given(st.text(LETTERS, max_size=12), st.randoms(use_true_random=False))
def test_rewrites_that_do_not_fit_derive_nothing(text, chosen):
    at = chosen.randrange(15)
    removed = chosen.choice(["", "a", "bb"])
    rewrite = Rewrite("total_order", removed, "-", 1, 1, round=1, at=at)
    fits = at <= len(text) and text[at:].startswith(removed)
    wanted = text[:at] + "-" + text[at + len(removed) :] if fits else None
    assert derived(text, (rewrite,)) == wanted


def test_rewrites_that_overlap_derive_nothing():
    one = Rewrite("as_of", "ab", "x", 1, 1, round=1, at=0)
    assert derived("abc", (one, replace(one, removed="bc", at=1))) is None
    assert derived("abc", (one, replace(one, removed="xc", round=2))) == "x"


def test_rewrites_at_one_place_stand_as_they_are_listed():
    one = Rewrite("total_order", "", "x", 1, 1, round=1, at=1)
    assert derived("ab", (one, replace(one, inserted="y"))) == "axyb"
    assert derived("ab", (one, replace(one, inserted="y", round=2))) == "ayxb"


@pytest.mark.parametrize("more", ["", " WHERE id > 1"])
def test_a_finding_that_runs_something_else_makes_no_validated_text(more):
    table = GrantedTable("bank", (GrantedColumn("id", "INTEGER"),), ("id",))
    inside = session.connect()
    session.declare(inside, "bank", {"id": "INTEGER"})
    session.lock(inside, memory_bytes=1 << 30)
    asked = "SELECT id FROM bank LIMIT 1"
    finding = examine(inside, asked, {"bank": table}, chars_max=999)
    inside.close()
    forged = replace(finding, executed=finding.executed.replace(" LIMIT", f"{more} LIMIT"))
    untold = replace(finding, verdict=replace(finding.verdict, rewrites=()))
    for wrong in [forged, untold] if more else [untold]:
        with pytest.raises(AssertionError, match="asked"):
            gate(asked, {"bank": table}, examine=lambda _sql, _tables, given=wrong: given)


# The one way to a ValidatedSql


DOORS = {
    "validate.Finding": {"executor/sql/examine.py", "executor/wire.py"},
    "validate.ValidatedSql": {"executor/sql/validate.py"},
    "validate.validate": {"executor/engine.py"},
    "examine.examine": {"executor/worker.py"},
}
"""Who calls each, in all of the source: no type of Python's keeps others out."""
ROOM = "tieout.executor.sql."


def called(path: Path, inside: str) -> set[str]:
    """What a file calls of the modules of the gate, by its own names for it."""
    tree = ast.parse(path.read_text("utf-8"))
    known = {
        name.asname or name.name: f"{node.module.removeprefix(ROOM)}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(ROOM)
        for name in node.names
    }
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    if inside.startswith("executor/sql/"):
        known |= {name: f"{path.stem}.{name}" for name in own}
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = {known.get(func.id, "") for func in calls if isinstance(func, ast.Name)}
    return found | {
        f"{func.value.id}.{func.attr}"
        for func in calls
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)
    }


def test_only_the_engine_and_its_worker_make_a_validated_text(repository: Path):
    doors: dict[str, set[str]] = {name: set() for name in DOORS}
    for room in ("artifacts", "ledger", "executor", "planner", "src/tieout"):
        for path in sorted((repository / room).rglob("*.py")):
            inside = str(path.relative_to(repository))
            for name in called(path, inside) & DOORS.keys():
                doors[name].add(inside)
    assert doors == DOORS
