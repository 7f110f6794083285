"""One workspace and one loopback server for many tests: a test says how the model behaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from end_to_end.small import QUESTION
from support.messages_server import Answer, Behaviour, MessagesServer, Received, bad_request

from tieout.ledger.log import Entry
from tieout.ledger.row import Kind
from tieout.planner.batch import BatchResult
from tieout.workspace import Workspace, open_workspace

REQUESTS_MAX = 1_000


@dataclass(frozen=True)
class Played:
    """A question that was asked of the server. requests: bodies as the server received them."""

    result: BatchResult
    requests: tuple[Received, ...]
    entries: tuple[Entry, ...]

    @property
    def report(self) -> dict[str, Any]:
        (delivered,) = self.result.delivered
        return delivered.report.document()

    def rows(self, *kinds: Kind) -> list[Entry]:
        return [entry for entry in self.entries if entry.row.kind in kinds]

    def figure(self, name: str) -> dict[str, Any]:
        return next(f for f in self.report["figures"] if f["name"] == name)

    def number(self, text: str) -> dict[str, Any]:
        return next(n for n in self.report["numbers"] if n["text"] == text)


class Stage:
    """A workspace whose model is the server. A context manager."""

    def __init__(self, folder: Path, *, retries: int = 2) -> None:
        self._script: list[Behaviour] = []
        self._fault: BaseException | None = None
        self.server = MessagesServer([self._play] * REQUESTS_MAX)
        self.folder = folder
        self._retries = retries
        self.workspace: Workspace

    def __enter__(self) -> Stage:
        self.server.__enter__()
        flags = {"base_url": self.server.base_url}
        environ = {
            "TIEOUT_RETRIES": str(self._retries),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }
        self.workspace = open_workspace(self.folder, flags=flags, environ=environ)
        self.workspace.create()
        return self

    def __exit__(self, *left: Any) -> None:
        self.workspace.close()
        self.server.__exit__(*left)

    def _play(self, seen: dict[str, Any]) -> str | Answer:
        if not self._script:
            return bad_request("the script has ended")
        behaviour = self._script.pop(0)
        try:
            return behaviour(seen) if callable(behaviour) else behaviour
        except BaseException as fault:
            self._fault = self._fault or fault
            return bad_request(f"the behaviour failed: {fault!r}")

    def ask(
        self,
        *behaviours: Behaviour,
        question: str = QUESTION,
        sources: Sequence[str] = (),
        all_played: bool = True,
    ) -> Played:
        """Ask with a model that behaves so; each behaviour must be asked for."""
        self._script = list(behaviours)
        self._fault = None
        before = len(self.server.requests)
        result = self.workspace.ask(question, sources=sources)
        if self._fault is not None:
            raise self._fault
        assert not (all_played and self._script), (
            f"{len(self._script)} behaviours were not asked for"
        )
        entries = tuple(self.workspace.log().of_trace(result.run))
        return Played(result, tuple(self.server.requests[before:]), entries)


def segments(request: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(role, address, text) of each part of a request's user text, by the lengths it states."""
    (message,) = request["messages"]
    text, found = message["content"], []
    while text:
        head, _, rest = text.partition("\n")
        mark, role, address, length, unit = head.split(" ")
        assert (mark, unit) == ("===", "characters)")
        size = int(length.removeprefix("("))
        found.append((role, address, rest[:size]))
        assert rest[size] == "\n"
        text = rest[size + 1 :]
    return found


def observations(request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What a model may know of its steps: each observation or refusal by the step's id."""
    found = {}
    for role, _, text in segments(request):
        if role in ("observation", "refusal"):
            document = json.loads(text)
            found[document.get("observation") or document["refused"]] = document
    return found


def reading(then: Callable[[dict[str, dict[str, Any]]], str | Answer]) -> Behaviour:
    """A model that reads the observations before it replies."""
    return lambda seen: then(observations(seen))
