"""A program that runs a batch and is killed at a chosen call of put or append.

    python killed.py WORKSPACE BASE_URL

It loads everything once, then forks a run for each line `N before|appended|never` on standard
input: killed before the Nth put or append, or after the Nth append. It answers `CALLS APPENDS
STATUS`: what the run made (0 when it was killed) and its wait status. Nobody else's threads are
forked with it, as they would be out of a test.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import anthropic  # noqa: F401  loaded once, before the forks

from tieout.planner.batch import run_batch  # noqa: F401
from tieout.workspace import open_workspace


class Killing:
    """A store or a log whose nth changing call, counted over both, kills the process."""

    def __init__(self, inner: Any, plan: Plan) -> None:
        self._inner = inner
        self._plan = plan

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("put", "append"):
            return found

        def call(*args: Any, **named: Any) -> Any:
            self._plan.before()
            answer = found(*args, **named)
            if name == "append":
                self._plan.appended()
            return answer

        return call


class Plan:
    """Which call kills. calls: of put and append, appends: of append alone, so far."""

    def __init__(self, nth: int, when: str) -> None:
        self.calls = self.appends = 0
        self._nth, self._when = nth, when

    def before(self) -> None:
        self.calls += 1
        if (self.calls, "before") == (self._nth, self._when):
            os.kill(os.getpid(), signal.SIGKILL)

    def appended(self) -> None:
        self.appends += 1
        if (self.appends, "appended") == (self._nth, self._when):
            os.kill(os.getpid(), signal.SIGKILL)


def run(folder: Path, base_url: str, plan: Plan) -> None:
    with open_workspace(folder, flags={"base_url": base_url}) as workspace:
        log = workspace.log(write=True)
        workspace._store = Killing(workspace.store, plan)
        workspace._log = Killing(log, plan)
        workspace.run(folder / "questions.toml")


def main() -> None:
    folder, base_url = Path(sys.argv[1]), sys.argv[2]
    for line in sys.stdin:
        nth, when = line.split()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            plan = Plan(int(nth), when)
            run(folder, base_url, plan)
            os.write(writer, f"{plan.calls} {plan.appends}".encode())
            os._exit(0)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        told = os.read(reader, 20).decode() or "0 0"
        os.close(reader)
        print(told, status, flush=True)


if __name__ == "__main__":
    main()
