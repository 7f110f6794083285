"""The month end: any seed closes, one cent moves what it must, the store may be S3."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from end_to_end.small import TOTALS, answer, figure, make, plan, questions, sql, steps, tieout
from support.s3server import s3_server

from tieout.planner.batch import BatchResult
from tieout.workspace import open_workspace

FIXTURES = Path(__file__).parents[2] / "fixtures"
# One close beside the committed one in every CI run, the others in the full counts.
SEEDS = (7, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 40_000)))
CENT = Decimal("0.01")


def ran(folder: Path) -> tuple[BatchResult, dict[str, dict[str, Any]]]:
    """Run the questions of a workspace: the result, and each report by question."""
    with open_workspace(folder) as workspace:
        workspace.create()
        result = workspace.run(folder / "questions.toml")
        assert workspace.verify().holds
    return result, {d.report.question.id: d.report.document() for d in result.delivered}


def figures(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f["name"]: f for f in report["figures"]}


def moved(path: Path, row: int, column: str) -> str:
    """Add one cent to a cell of a file; the first cell of its row."""
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    place = rows[0].index(column)
    rows[row][place] = str(Decimal(rows[row][place]) + CENT)
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)
    return rows[row][0]


def test_one_cent_moves_the_figure_and_the_rows_that_explain_it(tmp_path):
    """A small tie-out: before the cent one row differs, after it another one does too."""
    folder = make(tmp_path / "w")
    differ = sql(
        "differ",
        "SELECT b.line_id, b.amount - g.amount AS apart FROM bank AS b JOIN gl AS g"
        " ON substr(g.line_id, 2) = substr(b.line_id, 2) WHERE b.amount <> g.amount",
        key=["line_id"],
    )
    first = answer(
        "{t} {a}", t=figure("tie", "difference"), a=figure("differ", "apart", {"line_id": "B3"})
    )
    (folder / "tie.json").write_text(plan(steps(*TOTALS, differ), first))
    (folder / "questions.toml").write_text(questions(("tie", "tie.json", ["bank", "gl"])))
    _, before = ran(folder)
    assert moved(folder / "bank.csv", 1, "amount") == "B1"
    _, after = ran(folder)
    old, new = figures(before["tie"]), figures(after["tie"])
    assert (old["t"]["value"], new["t"]["value"]) == ("0.01", "0.02")
    assert (old["a"]["value"], new["a"]["value"]) == ("0.01", "0.01")
    assert old["t"]["address"] != new["t"]["address"]
    shown = tieout(folder, "show", f"{new['a']['address']}", "--json").document
    assert [row["row"] for row in shown["table"]["first_rows"]] == ["line_id=B1", "line_id=B3"]
    shown = tieout(folder, "show", f"{old['a']['address']}", "--json").document
    assert [row["row"] for row in shown["table"]["first_rows"]] == ["line_id=B3"]


@pytest.mark.slow
def test_one_cent_moved_in_the_close_moves_the_figures_and_the_row_keys(tmp_path):
    folder = tmp_path / "close"
    shutil.copytree(FIXTURES / "close", folder)
    head, *asked = (folder / "questions.toml").read_text().split("[[question]]")
    wanted = [part for part in asked if '"ar-control"' in part or '"find-the-cent"' in part]
    (folder / "questions.toml").write_text("[[question]]".join([head, *wanted]))
    _, before = ran(folder)
    old = figures(before["find-the-cent"])
    with (folder / "control.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    other = next(
        n
        for n, row in enumerate(rows, start=1)
        if row["invoice_no"] not in ("", old["invoice"]["value"])
        and row["posted"] <= "2026-06-30"
        and any(
            r["invoice_no"] == row["invoice_no"] and r["open_base"] not in ("", "0.00")
            for r in receivables(folder)
        )
    )
    moved(folder / "control.csv", other, "amount")
    result, after = ran(folder)
    assert not result.holds
    # The two cents cancel in the total, and the rows below it name both invoices.
    was = figures(before["ar-control"])["difference"]
    now = figures(after["ar-control"])["difference"]
    assert (was["value"], now["value"]) == ("-0.01", "0.00")
    assert was["address"] != now["address"]
    keys = {old["invoice"]["row"], f"invoice_no={rows[other - 1]['invoice_no']}"}
    assert len(keys) == 2
    with open_workspace(folder) as workspace:
        differences = next(
            s["address"]
            for s in after["find-the-cent"]["steps"]
            if s["subject"].endswith("/differences")
        )
        drill = workspace.drill()
        table = drill.table(drill.resolve(differences))
        assert {table.row_key(n) for n in range(table.rows)} == keys
        assert workspace.replay(result.run).agrees


def receivables(folder: Path) -> list[dict[str, str]]:
    with (folder / "receivables.csv").open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_another_close_ties_out_with_the_same_plans(tmp_path, seed):
    made = [
        sys.executable,
        str(FIXTURES / "make.py"),
        "--seed",
        str(seed),
        "--out",
        str(tmp_path / "made"),
    ]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    (folder,) = {path.parent for path in (tmp_path / "made").rglob("bank.csv")}
    if not (folder / "plans").is_dir():
        shutil.copytree(FIXTURES / "close" / "plans", folder / "plans")
    assert (folder / "bank.csv").read_bytes() != (FIXTURES / "close" / "bank.csv").read_bytes()
    for committed in (FIXTURES / "close" / "plans").iterdir():
        assert (folder / "plans" / committed.name).read_bytes() == committed.read_bytes()
    result, reports = ran(folder)
    broken = [
        (name, e["name"], e["expected"], e["found"])
        for name, report in reports.items()
        for e in report["expectations"]
        if not e["holds"]
    ]
    assert broken == []
    assert result.complete


@pytest.mark.slow
def test_the_whole_demo_with_its_evidence_in_s3(tmp_path):
    folder = tmp_path / "close"
    shutil.copytree(FIXTURES / "close", folder)
    catalog = (folder / "tieout.toml").read_text()
    (folder / "tieout.toml").write_text(catalog.replace('".tieout/store"', '"s3://evidence/close"'))
    with s3_server() as server:
        reach = server.environment()
        assert tieout(folder, "init", **reach).code == 0
        done = tieout(folder, "run", "questions.toml", "--json", **reach)
        assert done.code == 0, done.err
        assert all(q["status"].startswith("answered") for q in done.document["questions"])
        replayed = tieout(folder, "replay", "--json", **reach)
        assert replayed.code == 0, replayed.err
        assert replayed.document["agrees"] is True
        verified = tieout(folder, "verify", "--json", **reach)
        assert verified.code == 0, verified.out
        assert verified.document["objects"] > 300
        shown = tieout(folder, "show", "find-the-cent/invoice", "--json", **reach)
        assert shown.document["source_rows"]
        with server.client() as client:
            listed = client.list_objects_v2(Bucket="evidence", Prefix="close/", MaxKeys=3)
            key = listed["Contents"][-1]["Key"]
            client.put_object(Bucket="evidence", Key=key, Body=b"something else")
        broken = tieout(folder, "verify", "--json", **reach)
        assert broken.code == 1
        assert broken.document["findings"]
    gone = tieout(folder, "run", "questions.toml", "--json", **reach)
    assert gone.code == 5, gone.err
    assert gone.error["place"]
    assert not (folder / ".tieout" / "store").exists()


@pytest.mark.slow
def test_a_small_run_with_its_evidence_in_s3(tmp_path):
    folder = make(tmp_path / "w")
    catalog = (folder / "tieout.toml").read_text()
    text = catalog.replace('name = "small"', 'name = "small"\nstore = "s3://evidence/small"')
    (folder / "tieout.toml").write_text(text)
    with s3_server() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment().items():
            patch.setenv(name, value)
        with open_workspace(folder) as workspace:
            workspace.create()
            result = workspace.run(folder / "questions.toml")
            assert result.complete
            assert workspace.store.location == "s3://evidence/small"
            assert workspace.replay(result.run).agrees
            assert workspace.verify().holds
            rows = [e.row for e in workspace.log().of_trace(result.run)]
        versions = {r.deterministic_output.version for r in rows if r.deterministic_output}
        assert versions - {""}  # the bucket is versioned: rows name the version they mean
    assert not (folder / ".tieout" / "store").exists()
