"""What people and programs are told of a step whose text did not run as it was asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from end_to_end.small import answer, figure, make, sql, steps

from tieout.cli import start
from tieout.executor.how_it_ran import how_it_ran, how_it_ran_lines

BANK = "line_id,kind,amount\nB1,fee,5.00\nB2,rent,5.00\nB3,fee,1.00\n"
ASKED = "SELECT avg(amount) AS a,\n  arg_max(kind, amount) AS k, count(*) AS n FROM bank"
PLAN = [
    steps(
        sql("mean", ASKED),
        sql("plain", "SELECT sum(amount) AS s FROM bank"),
        sql("none", "SELECT max(amount) AS m FROM bank WHERE amount > 9"),
        sql("later", "SELECT k FROM mean"),
    ),
    answer(
        "Mean {a}, of {k}, {n} lines, {s}, {m}, {l}.",
        a=figure("mean", "a", places=2),
        k=figure("mean", "k", style="text"),
        n=figure("mean", "n"),
        s=figure("plain", "s"),
        m=figure("none", "m"),
        l=figure("later", "k", style="text"),
    ),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make(tmp_path_factory.mktemp("ran") / "w", bank=BANK)
    turns = [json.loads(turn) for turn in PLAN]
    (folder / "plan.json").write_text(json.dumps({"turns": turns}))
    assert start(["init", str(folder)]) == 0
    assert start(["ask", "Mean?", "-w", str(folder), "--plan", str(folder / "plan.json")]) == 0
    return folder


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert start(list(arguments)) == 0
    return capsys.readouterr().out


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    found = json.loads(told(capsys, *arguments, "--json"))
    assert isinstance(found, dict)
    return found


def question(capsys: pytest.CaptureFixture[str]) -> str:
    (only,) = document(capsys, "show")["questions"]
    return str(only["id"])


def test_a_report_names_rewrites_reasons_standing_and_ties(here, capsys):
    name = question(capsys)
    report = document(capsys, "show", name)
    mean, plain, _none, later = report["steps"]
    assert mean["standing"] == "function_of_data_as_rewritten"
    assert {r["name"] for r in mean["rewrites"]} == {"exact_average", "ordered_aggregate"}
    assert [(r["name"], r["line"]) for r in mean["reasons"]] == [
        ("inexact_average", 1),
        ("unordered_aggregate", 2),
    ]
    assert (mean["ties"], mean["tied"]) == ("decided", ["k"])
    assert (plain["standing"], plain["rewrites"], plain["ties"]) == ("function_of_data", [], "")
    assert (later["ties"], later["tied"]) == ("", ["k"])
    flags = {f["name"]: "tied" in f["flags"] for f in report["figures"]}
    assert flags == {"a": False, "k": True, "n": False, "s": False, "m": False, "l": True}
    text = told(capsys, "show", name)
    assert f"how {name}/t1/mean ran" in text
    assert f"how {name}/t1/plain ran" not in text
    assert "standing  function_of_data_as_rewritten" in text
    assert "rewrite   exact_average at 1:8" in text
    assert "reason    inexact_average at 1:8: " in text
    assert "ties      rows tie, and an added order chose: k" in text
    assert "ties      rows of an earlier step tie: k" in text


def test_a_figure_shows_what_was_asked_and_what_ran(here, capsys):
    name = question(capsys)
    made_by = document(capsys, "show", f"{name}/a")["made_by"]
    assert made_by["asked_sql"] == ASKED
    assert "decimal_average(" in made_by["executed_sql"]
    text = told(capsys, "show", f"{name}/a")
    lines = [line.strip() for line in text.splitlines()]
    assert "asked     │ SELECT avg(amount) AS a," in lines
    assert any(line.startswith("ran       │ SELECT decimal_average(") for line in lines)
    assert made_by["executed"] in text
    address = document(capsys, "show", f"{name}/a")["figure"]["address"]
    table = document(capsys, "show", address)
    assert table["step"] == made_by
    assert "ran       │ SELECT decimal_average(" in told(capsys, "show", address)
    cell = told(capsys, "show", f"{address}#1:a")
    assert "ran       │ SELECT decimal_average(" in cell
    plain = told(capsys, "show", f"{name}/s")
    assert "asked  " not in plain
    assert "SELECT" in plain


def test_no_value_is_said_as_sql_says_it(here, capsys):
    text = told(capsys, "show", f"{question(capsys)}/m")
    assert "value     NULL (DECIMAL" in text
    assert "None" not in text


def test_a_step_without_sql_has_the_same_members_empty():
    empty = how_it_ran({})
    assert empty == {"standing": None, "reasons": [], "rewrites": [], "ties": "", "tied": []}
    assert how_it_ran_lines(empty) == []
    assert how_it_ran_lines({**empty, "ties": "unchecked"})[0].startswith("ties      not known")
