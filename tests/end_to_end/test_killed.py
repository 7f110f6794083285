"""SIGKILL between every two steps of a run: what the model saw is recorded, and nothing is broken."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from end_to_end.small import (
    BANK,
    TOTALS,
    answer,
    environment,
    figure,
    make,
    questions,
    sql,
    steps,
)
from support.messages_server import MessagesServer

from tieout.artifacts.address import Address
from tieout.ledger.row import Kind
from tieout.output import exit_of_replay
from tieout.workspace import open_workspace

RUNS_TOGETHER = 8
PROGRAM = Path(__file__).with_name("killed.py")


class Crashing:
    """A workspace in which runs are killed one after the other, and their model."""

    def __init__(self, folder: Path) -> None:
        self.folder = make(folder)
        (folder / "questions.toml").write_text(
            questions(("model", "", ["bank", "gl"]), ("tie", "tie.json", ["bank", "gl"]))
        )
        self.turn = 0
        self.runs = 0
        self.server = MessagesServer([self._reply] * 10_000)

    def __enter__(self) -> Crashing:
        self.server.__enter__()
        with open_workspace(self.folder) as workspace:
            workspace.create()
            workspace.snapshot()
        shutil.copytree(self.folder / ".tieout", self.folder / "pristine")
        self.program = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(self.folder), self.server.base_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(self.folder, ANTHROPIC_API_KEY="x"),
        )
        return self

    def __exit__(self, *left: object) -> None:
        self.program.communicate()
        self.server.__exit__(*left)

    def _reply(self, seen: dict) -> str:
        """A plan with a step that fails, then the answer; which one it is, the prompt says."""
        if "observation" not in seen["messages"][0]["content"]:
            return steps(TOTALS[0], sql("lost", "SELECT now() AS x"))
        return answer("It is {a}.", a=figure("bank_total", "total"))

    def run(self, nth: int, when: str) -> tuple[int, int, int]:
        """Run over a file that changed since; (calls, appends, wait status) of killed.py."""
        self.runs += 1
        (self.folder / "bank.csv").write_text(f"{BANK}X{self.runs},2026-06-30,1.00\n")
        self.program.stdin.write(f"{nth} {when}\n")
        self.program.stdin.flush()
        calls, appends, status = map(int, self.program.stdout.readline().split())
        return calls, appends, status

    def counted(self) -> tuple[int, int]:
        """(calls, appends) of a run that nobody kills."""
        calls, appends, status = self.run(0, "never")
        assert status == 0
        self.begin_anew()
        return calls, appends

    def begin_anew(self) -> None:
        """Back to a workspace without runs."""
        shutil.rmtree(self.folder / ".tieout")
        shutil.copytree(self.folder / "pristine", self.folder / ".tieout")

    def check(self, requests_before: int) -> str:
        """Nothing is broken, and each byte that left was recorded; the trace of the newest row."""
        with open_workspace(self.folder) as workspace:
            report = workspace.verify()
            assert report.holds, [str(finding) for finding in report.findings]
            entries = list(workspace.log().entries())
            recorded = {
                str(e.row.deterministic_output.address)
                for e in entries
                if e.row.kind is Kind.MODEL_REQUEST
            }
            for request in self.server.requests[requests_before:]:
                assert str(Address.of(request.body)) in recorded
            return entries[-1].row.trace_id if entries else ""


@pytest.fixture
def crashing(tmp_path: Path) -> Iterator[Crashing]:
    with Crashing(tmp_path / "w") as crashing:
        yield crashing


def killed_at(crashing: Crashing, points: list[tuple[int, str]]) -> None:
    """Kill a run at each point; after each, nothing is broken and what was seen is recorded."""
    for done, (nth, when) in enumerate(points, start=1):
        before = len(crashing.server.requests)
        assert crashing.run(nth, when) == (0, 0, int(signal.SIGKILL)), (nth, when)
        crashing.check(before)
        if done % RUNS_TOGETHER == 0 or done == len(points):
            still_works(crashing)


def still_works(crashing: Crashing) -> None:
    """A whole run after the killed ones; these replay as far as they came. Then begin anew."""
    assert crashing.run(0, "never")[2] == 0
    crashing.check(len(crashing.server.requests))
    with open_workspace(crashing.folder) as workspace:
        runs = [e.row.trace_id for e in workspace.log().entries() if e.row.kind is Kind.RUN]
        whole = workspace.replay(runs[-1])
        assert whole.agrees
        assert (whole.questions, whole.finished) == (2, True)
        for trace in runs[:-1]:
            cut = workspace.replay(trace)
            assert cut.comparison.differences == (), trace
            assert (cut.finished, cut.agrees, exit_of_replay(cut)) == (False, False, 3)
    crashing.begin_anew()


@pytest.mark.slow
def test_a_run_that_is_killed_here_and_there(crashing):
    calls, appends = crashing.counted()
    assert (calls > 40, appends > 10) == (True, True)
    points = [(nth, "before") for nth in range(5, calls, calls // 3)]
    killed_at(crashing, [*points, (appends // 2, "appended")])


@pytest.mark.soak
def test_a_run_that_is_killed_between_every_two_steps(crashing):
    calls, appends = crashing.counted()
    # After the very last append the run is whole; only its end is not told.
    points = [(nth, "before") for nth in range(1, calls + 1)]
    killed_at(crashing, points + [(nth, "appended") for nth in range(1, appends)])


def test_the_plan_file_of_a_question_that_was_not_reached_is_kept(crashing):
    """The kill comes before the second question, whose plan the run was given."""
    assert crashing.run(30, "before")[2] == int(signal.SIGKILL)
    trace = crashing.check(0)
    plan = (crashing.folder / "tie.json").read_bytes()
    with open_workspace(crashing.folder) as workspace:
        assert workspace.store.get(Address.of(plan)) == plan
        assert not any(e.row.subject == "tie" for e in workspace.log().of_trace(trace))
