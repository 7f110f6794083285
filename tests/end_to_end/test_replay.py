"""Replay: results come out again without being read; what differs, is broken or cut off is told."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from end_to_end.small import (
    ANSWER,
    COUNTED,
    FOUND,
    READ,
    TOTALS,
    make,
    questions,
    sql,
    steps,
    tieout,
)
from end_to_end.stage import Played, Stage
from support.messages_server import overloaded

from tieout.artifacts.address import Address
from tieout.artifacts.store import Store
from tieout.executor.engine import Engine, EngineLimits, EngineResult, TableBytes
from tieout.executor.replay import readable
from tieout.executor.sql.validate import ValidatedSql
from tieout.ledger.log import Entry
from tieout.ledger.row import Kind
from tieout.output import exit_of_replay
from tieout.workspace import Workspace, open_workspace

FIXTURES = Path(__file__).parents[2] / "fixtures"
MADE_AGAIN = {
    Kind.SQL,
    Kind.SEARCH,
    Kind.EXTRACT,
    Kind.MODEL_REQUEST,
    Kind.ANSWER,
    Kind.REPORT,
    Kind.REFUSAL,
}


class Reading:
    """A store that notes which addresses are read from it."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.read: set[Address] = set()

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def get(self, address: Address) -> bytes:
        self.read.add(address)
        return self._inner.get(address)

    def open(self, address: Address) -> object:
        self.read.add(address)
        return self._inner.open(address)


class Altered(Engine):
    """An engine that gets one cell wrong: the first of the first result with this column."""

    def __init__(self, column: str, limits: EngineLimits) -> None:
        super().__init__(cache=None, limits=limits)
        self._column = column
        self.altered = 0

    def run(self, validated: ValidatedSql, tables: dict[str, TableBytes]) -> EngineResult:
        result = super().run(validated, tables)
        if self._column not in result.table.column_names or self.altered:
            return result
        self.altered += 1
        place = result.table.column_names.index(self._column)
        old = result.table.column(place)
        values = old.to_pylist()
        values[0] += 1
        table = result.table.set_column(
            place, result.table.field(place), pa.array(values, old.type)
        )
        return EngineResult(table, result.complete)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace with one run of two plan files."""
    folder = make(tmp_path_factory.mktemp("ran") / "w")
    with open_workspace(folder) as workspace:
        workspace.create()
        assert workspace.run(folder / "questions.toml").complete
        yield workspace


@pytest.fixture(scope="module")
def played(stage: Stage) -> Played:
    """A run of a model, with a retry, a refused plan and a failed step."""
    return stage.ask(
        "no plan",
        overloaded(retry_after="0.01"),
        steps(*TOTALS, sql("lost", "SELECT now() AS x")),
        FOUND,
        READ,
        COUNTED,
    )


def made_again(entries: list[Entry]) -> set[Address]:
    """Every artifact that a replay has to make, and so must not read."""
    found: set[Address] = set()
    for entry in entries:
        row = entry.row
        if row.kind in MADE_AGAIN:
            found |= {part.address for part in row.attachments}
            found |= {row.deterministic_output.address} if row.deterministic_output else set()
        if row.kind is Kind.SNAPSHOT:
            found |= {part.address for part in row.attachments if part.role != "raw"}
    return found


def test_a_run_of_plan_files_agrees(ran):
    replayed = ran.replay("latest")
    assert replayed.agrees
    assert exit_of_replay(replayed) == 0
    rows = [e for e in ran.log().of_trace(replayed.run) if e.row.kind is not Kind.SNAPSHOT]
    assert replayed.comparison.compared == len(rows)
    assert replayed.comparison.digests == 5
    assert replayed.comparison.addresses > 60


def test_a_run_of_a_model_agrees_and_asks_nobody(stage, played):
    before = len(stage.server.requests)
    replayed = stage.workspace.replay(played.result.run)
    assert replayed.agrees, replayed
    assert len(stage.server.requests) == before


def test_no_result_is_read(ran, stage, played):
    for workspace, run in ((ran, "latest"), (stage.workspace, played.result.run)):
        entries = list(workspace.log().of_trace(workspace.run_id(run)))
        pinned = [e for e in workspace.log().entries() if e.row.kind is Kind.SNAPSHOT]
        reading = Reading(workspace.store)
        allowed = readable(workspace.store, entries)
        workspace._store = reading
        try:
            assert workspace.replay(run).agrees
        finally:
            workspace._store = reading._inner
        evidence = {
            e.row.deterministic_output.address for e in entries if e.row.kind is Kind.MODEL_REPLY
        }
        assert reading.read == allowed
        assert evidence <= reading.read
        hidden = made_again([*entries, *pinned])
        assert len(hidden) > 30
        # A reply is shown to the model again, so its text may be one of both.
        assert reading.read & hidden == set()


def test_an_executor_that_gets_one_cell_wrong_is_found_at_its_step(ran):
    with Altered("total", ran.engine.limits) as engine:
        replayed = ran.replay("latest", engine=engine)
    assert engine.altered == 1
    assert not replayed.agrees
    assert exit_of_replay(replayed) == 1
    first = replayed.comparison.differences[0]
    assert first.place == "tie/t1/bank_total sql"
    assert {d.what for d in replayed.comparison.differences if d.place == first.place} == {
        "attachment observation",
        "output",
        "content digest",
        "control totals",
    }
    digest = next(d for d in replayed.comparison.differences if d.what == "content digest")
    assert digest.recorded != digest.replayed
    assert replayed.stopped


def test_a_wrong_cell_that_no_later_request_shows_is_found_too(ran):
    """The last step of the last turn before the answer; the difference is in its observation."""
    with Altered("difference", ran.engine.limits) as engine:
        replayed = ran.replay("latest", engine=engine)
    assert exit_of_replay(replayed) == 1
    assert replayed.comparison.differences[0].place == "tie/t1/tie sql"


@pytest.mark.slow
def test_another_build_in_the_row(tmp_path):
    folder = make(tmp_path / "w")
    with open_workspace(folder) as workspace:
        workspace.create()
        engine = workspace.engine
        engine.info = dataclasses.replace(engine.info, build="0000000000")
        assert workspace.run(folder / "questions.toml").complete
    done = tieout(folder, "replay", "--json")
    assert done.code == 12
    assert done.error["code"] == "exit.other_build"
    assert done.document["differences"] == []
    assert not done.document["agrees"]
    assert {o["place"] for o in done.document["other_builds"]} >= {"tie/t1/tie sql"}
    assert "0000000000" in done.document["other_builds"][0]["recorded"]
    assert "another build" in tieout(folder, "replay").out


def test_an_unknown_run(ran):
    done = tieout(ran.catalog.root, "replay", "r-nothing", "--json")
    assert done.code == 4
    assert done.error["code"] == "run.unknown"


def test_a_source_that_changed_since_changes_no_replay(tmp_path):
    folder = make(tmp_path / "w")
    with open_workspace(folder) as workspace:
        workspace.create()
        run = workspace.run(folder / "questions.toml").run
        (folder / "bank.csv").write_text("line_id,booked,amount\nB1,2026-06-01,1.00\n")
        (folder / "tie.json").unlink()
        (folder / "questions.toml").unlink()
        shutil.rmtree(folder / "notes")
        (folder / "tieout.toml").write_text(
            '[workspace]\nname = "other"\n[limits]\nmemory_mib_max = 512\nturns_max = 1\n'
        )
    with open_workspace(folder) as workspace:
        assert workspace.replay(run).agrees


@pytest.mark.slow
@pytest.mark.parametrize("name", ["close", "text"])
def test_the_fixtures_agree(tmp_path, name):
    folder = tmp_path / name
    shutil.copytree(FIXTURES / name, folder)
    with open_workspace(folder) as workspace:
        workspace.create()
        result = workspace.run(folder / "questions.toml")
        assert result.complete
        assert result.holds
        replayed = workspace.replay(result.run)
        assert replayed.agrees
        assert replayed.questions == len(result.delivered)
        assert workspace.verify().holds


@pytest.mark.slow
def test_the_questions_of_the_fixtures_asked_of_a_model_agree(tmp_path):
    """The same plans, written by a model on the loopback server instead of read from files."""
    folder = tmp_path / "text"
    shutil.copytree(FIXTURES / "text", folder)
    names = ["combined", "product", "japan", "share", "forged"]
    turns = []
    for name in names:
        turns += json.loads((folder / "plans" / f"{name}.json").read_text())["turns"]
    asked = (folder / "questions.toml").read_text()
    (folder / "questions.toml").write_text(
        "\n".join(line for line in asked.splitlines() if not line.startswith("plan = "))
    )
    with Stage(folder) as stage:
        stage._script = [json.dumps(turn) for turn in turns]
        result = stage.workspace.run(folder / "questions.toml")
        assert result.complete
        assert result.holds
        assert stage.workspace.replay(result.run).agrees
        assert stage.workspace.verify().holds


def test_a_refused_question_replays(tmp_path):
    folder = make(tmp_path / "w")
    (folder / "bad.json").write_text('{"turns": [{"steps": []}, {"tools": 1}, ' + ANSWER + "]}")
    (folder / "questions.toml").write_text(questions(("bad", "bad.json", ["bank"])))
    with open_workspace(folder) as workspace:
        workspace.create()
        result = workspace.run(folder / "questions.toml")
        assert not result.complete
        assert workspace.replay(result.run).agrees
