"""SIGKILL between every two steps of a run: what the model saw is recorded, and nothing is broken."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from end_to_end.small import (
    ANSWER,
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

    def run(self, nth: int, when: str) -> tuple[int, int]:
        """Run over a file that changed since; killed at the nth call. (calls, wait status)."""
        self.runs += 1
        (self.folder / "bank.csv").write_text(f"{BANK}X{self.runs},2026-06-30,1.00\n")
        self.program.stdin.write(f"{nth} {when}\n")
        self.program.stdin.flush()
        calls, status = self.program.stdout.readline().split()
        return int(calls), int(status)

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


def killed_at(crashing: Crashing, points: list[tuple[int, str]]) -> list[str]:
    """Kill a run at each point, check after each; the traces that were begun."""
    traces = []
    for nth, when in points:
        before = len(crashing.server.requests)
        calls, status = crashing.run(nth, when)
        assert (calls, status) == (0, int(signal.SIGKILL)), (nth, when)
        traces.append(crashing.check(before))
    return traces


def still_works(crashing: Crashing, killed: list[str]) -> None:
    """A whole run after the killed ones; the killed ones replay as far as they came."""
    _, status = crashing.run(0, "never")
    assert status == 0
    crashing.check(0)
    with open_workspace(crashing.folder) as workspace:
        opened = {e.row.trace_id for e in workspace.log().entries() if e.row.kind is Kind.RUN}
        whole = workspace.replay("latest")
        assert whole.agrees
        assert whole.questions == 2
        assert whole.finished
        for trace in sorted(set(killed) & opened):
            cut = workspace.replay(trace)
            assert cut.comparison.differences == (), trace
            assert not cut.finished
            assert not cut.agrees
            assert exit_of_replay(cut) == 3


def test_a_run_that_is_killed_here_and_there(crashing):
    calls, status = crashing.run(0, "never")
    assert status == 0
    assert calls > 40
    points = [(nth, "after" if nth % 2 else "before") for nth in range(3, calls, calls // 5)]
    still_works(crashing, killed_at(crashing, points)[-2:])


@pytest.mark.slow
def test_a_run_that_is_killed_between_every_two_steps(crashing):
    calls, status = crashing.run(0, "never")
    assert status == 0
    points = [(nth, when) for nth in range(1, calls + 1) for when in ("before", "after")]
    # The very last point is after the batch's own row: the run is whole, only its end is not told.
    killed = killed_at(crashing, points)
    still_works(crashing, killed[:-1])


def test_the_plan_file_of_a_question_that_was_not_reached_is_kept(crashing):
    """ANSWER and its plan stand in the store though the kill came before the second question."""
    crashing.run(0, "never")
    (trace,) = killed_at(crashing, [(30, "after")])
    plan = (crashing.folder / "tie.json").read_bytes()
    assert ANSWER.encode() in plan
    with open_workspace(crashing.folder) as workspace:
        assert workspace.store.get(Address.of(plan)) == plan
        assert not any(e.row.subject == "tie" for e in workspace.log().of_trace(trace))
