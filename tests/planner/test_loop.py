"""The loop of one question over a plan file: every way out is a row, and two runs are the same bytes."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator

import pytest

from tieout.artifacts.memory import MemoryStore
from tieout.executor.clock import SteppingClock
from tieout.executor.engine import Engine, EngineLimits
from tieout.executor.limits import Limits
from tieout.executor.record import Recorder
from tieout.executor.step import Bench
from tieout.executor.world import World
from tieout.ledger.log import MemoryLog
from tieout.ledger.row import Kind, Status
from tieout.planner.choice import written
from tieout.planner.loop import Loop
from tieout.planner.questions import Question
from tieout.planner.report import report_text

PRODUCT = '{"steps": [{"do": "sql", "id": "p", "sql": "SELECT 45 * 12 AS x"}]}'
ANSWER = '{"answer": {"prose": "It is {x}.", "figures": {"x": {"step": "p", "column": "x"}}}}'
WRONG = ANSWER.replace('"column": "x"', '"column": "y"')


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(cache=None, limits=EngineLimits(seconds_max=60)) as engine:
        yield engine


class Run:
    def __init__(
        self, engine: Engine, *turns: str, trace: str = "r-1", year: int = 2026, **limits: int
    ) -> None:
        plan = '{"turns": [' + ", ".join(turns) + "]}"
        question = Question(
            "q",
            "What is 45 times 12?",
            (),
            plan.encode(),
            "q.json",
            "",
            {"x": "540"},
            {"x": "question"},
        )
        store = MemoryStore()
        clock = SteppingClock(dt.datetime(year, 6, 30, tzinfo=dt.UTC))
        self.recorder = Recorder(store, MemoryLog(), clock, trace)
        model, info = written(question)
        bench = Bench(self.recorder, engine, Limits(**limits))
        self.delivered = Loop(question, World(store, {}), bench, model, info).run()
        self.report = self.delivered.report.document()
        self.rows = [entry.row for entry in self.recorder.log.entries()]

    @property
    def kinds(self) -> list[str]:
        return [str(row.kind) for row in self.rows]


def test_every_turn_is_recorded_in_order(engine):
    run = Run(engine, PRODUCT, ANSWER)
    assert run.kinds == [
        "question", "model_request", "model_reply", "sql", "model_request", "model_reply", "answer", "report",
    ]  # fmt: skip
    assert run.report["status"] == "answered"
    assert run.report["prose"] == "It is 540."
    assert run.report["figures"][0]["label"] == "question"
    assert run.delivered.report.holds
    assert [r.subject for r in run.rows if r.kind is Kind.MODEL_REQUEST] == ["q/t1", "q/t2"]


def test_time_and_run_stand_in_no_artifact(engine):
    one = Run(engine, PRODUCT, WRONG, ANSWER)
    other = Run(engine, PRODUCT, WRONG, ANSWER, trace="r-2", year=1999)
    assert list(one.recorder.store.addresses()) == list(other.recorder.store.addresses())
    assert one.delivered.report.payload() == other.delivered.report.payload()


@pytest.mark.parametrize(
    ("turns", "limits", "code"),
    [
        ([PRODUCT], {}, "plan.no_further_turn"),
        ([PRODUCT, ANSWER], {"turns_max": 1}, "limit.turns"),
        ([PRODUCT.replace("]", "," + PRODUCT[11:-2].replace('"p"', '"p2"') + "]"), ANSWER], {"steps_max": 1}, "limit.steps"),
        (["{}", "{}"], {"refusals_max": 1}, "limit.refusals"),
        (["{}"], {"refusals_max": 0}, "limit.refusals"),
        ([PRODUCT, WRONG, WRONG], {"refusals_max": 1}, "answer.not_filled"),
    ],
    ids=["exhausted", "turns", "steps", "refusals", "no refusal at all", "answers"],
)  # fmt: skip
def test_every_way_out_is_an_outcome(engine, turns, limits, code):
    run = Run(engine, *turns, **limits)
    assert (run.report["status"], run.report["code"]) == ("failed", code)
    last = run.rows[-1]
    assert (last.kind, last.outcome.status, last.outcome.code) == (Kind.REPORT, Status.FAILED, code)
    assert run.report["message"]
    assert not run.delivered.report.holds


def test_a_plan_file_that_ends_after_a_refusal_says_which(engine):
    run = Run(engine, '{"steps": [{"do": "sql", "id": "p", "sql": "SELECT FROM x WHERE"}]}')
    (refusal,) = run.report["refusals"]
    assert run.report["code"] == "plan.no_further_turn"
    assert f"after {refusal['code']}: {refusal['message']}" in run.report["message"]
    told = report_text(run.delivered.report)
    assert (
        f"{refusal['outcome']} q/t1/p at line {refusal['line']}, column {refusal['column']} "
        in told
    )
    (way_out,) = run.delivered.report.ways_out
    assert way_out
    assert f"\n    way out: {way_out}\n" in told


def test_a_plan_file_without_an_answer_says_so_once(engine):
    run = Run(engine, PRODUCT)
    assert "none of its turns is an answer" in run.report["prose"]
    assert report_text(run.delivered.report).count("none of its turns") == 1


def test_a_plan_that_is_refused_goes_back_and_is_repaired(engine):
    run = Run(engine, '{"steps": [{"do": "shell"}]}', PRODUCT, WRONG, ANSWER)
    assert run.report["status"] == "answered"
    assert [(r["do"], r["code"]) for r in run.report["refusals"]] == [
        ("plan", "plan.field"),
        ("answer", "answer.unknown_column"),
    ]
    last = [r for r in run.rows if r.kind is Kind.MODEL_REQUEST][-1]
    assert [item.role for item in last.inputs] == [
        "instructions", "catalog", "question", "plan", "refusal", "plan", "observation", "plan", "refusal",
    ]  # fmt: skip
    told = json.loads(run.recorder.store.get(last.inputs[-1].address))
    assert told["problems"][0]["placeholder"] == "x"


def test_an_expectation_that_is_not_met_is_no_failure_of_the_answer(engine):
    run = Run(engine, PRODUCT.replace("12", "13"), ANSWER)
    assert run.report["status"] == "answered_with_unsourced"
    assert [
        (e["what"], e["expected"], e["found"], e["holds"]) for e in run.report["expectations"]
    ] == [
        ("value", "540", "585", False),
        ("label", "question", "unsourced", False),
    ]
