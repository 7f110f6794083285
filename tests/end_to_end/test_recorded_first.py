"""What a model is shown was recorded before: every request is rebuilt from earlier artifacts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from end_to_end.small import ANSWER, COUNTED, FOUND, READ, TOTALS, answer, figure, make, sql, steps
from end_to_end.stage import Played, Stage, segments
from support.messages_server import overloaded

from tieout.artifacts.store import Store
from tieout.executor.record import Receipt, Shown
from tieout.executor.sql.validate import ValidatedSql
from tieout.ledger.log import Entry
from tieout.ledger.row import Kind
from tieout.planner.batch import BatchResult
from tieout.planner.model import Prompt
from tieout.planner.prompt import INSTRUCTIONS_ROLE
from tieout.workspace import open_workspace


def named(entry: Entry) -> set[str]:
    """Every artifact that a row names as its own."""
    row = entry.row
    found = {str(part.address) for part in row.attachments}
    if row.deterministic_output is not None:
        found.add(str(row.deterministic_output.address))
    return found


def rebuilt(store: Store, entry: Entry) -> tuple[str, str]:
    """(system, user) of a request out of the artifacts its row names; own code, not the prompt's."""
    system, user = "", ""
    for item in entry.row.inputs:
        text = store.get(item.address).decode("utf-8")
        if item.role == INSTRUCTIONS_ROLE:
            system += text
        else:
            user += f"=== {item.role} {item.address} ({len(text)} characters)\n{text}\n"
    return system, user


def check(store: Store, entries: Sequence[Entry]) -> int:
    """Every segment of every request is an artifact of an earlier row; the number of requests."""
    earlier: set[str] = set()
    requests = 0
    for entry in entries:
        if entry.row.kind is Kind.MODEL_REQUEST:
            requests += 1
            assert entry.row.inputs
            assert {str(item.address) for item in entry.row.inputs} <= earlier
            output = entry.row.deterministic_output
            assert output is not None
            stored = json.loads(store.get(output.address))
            system, user = rebuilt(store, entry)
            if "messages" in stored:
                again = {
                    **stored,
                    "system": system,
                    "messages": [{"content": user, "role": "user"}],
                }
            else:
                again = {"system": system, "user": user}
            payload = json.dumps(again, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            assert payload.encode() == store.get(output.address)
        earlier |= named(entry)
    return requests


@pytest.fixture(scope="module")
def played(stage: Stage) -> Played:
    """A run with everything in it: refused plans, failed steps, a bad citation, a retry."""
    return stage.ask(
        "not a plan – at all",
        overloaded(retry_after="0.01"),
        steps(TOTALS[0], sql("lost", "SELECT now() AS x"), sql("more", "SELECT x FROM lost")),
        FOUND,
        READ,
        answer("{a}", a=figure("bank_total", "nothing")),
        steps(TOTALS[1], TOTALS[2]),
        ANSWER,
    )


def test_every_request_is_made_of_artifacts_of_earlier_rows(stage, played):
    assert check(stage.workspace.store, played.entries) == 7
    roles = {item.role for e in played.rows(Kind.MODEL_REQUEST) for item in e.row.inputs}
    assert roles == {"instructions", "catalog", "question", "plan", "observation", "refusal"}


def test_what_the_server_received_is_what_was_recorded_before_its_reply(stage, played):
    store = stage.workspace.store
    requests = played.rows(Kind.MODEL_REQUEST)
    replies = played.rows(Kind.MODEL_REPLY)
    bodies = [store.get(e.row.deterministic_output.address) for e in requests]
    received = [request.body for request in played.requests]
    assert received == [bodies[0], bodies[1], *bodies[1:]]  # the second was tried twice
    for asked, answered in zip(requests, replies, strict=True):
        assert asked.index < answered.index
        assert answered.row.inputs[0].address == asked.row.deterministic_output.address


def test_what_is_seen_of_a_step_was_stored_with_its_result(stage, played):
    """An observation is an attachment of the row whose output it tells of."""
    last = played.requests[-1].document
    told = {
        address: json.loads(text) for role, address, text in segments(last) if role == "observation"
    }
    for entry in played.rows(Kind.SQL, Kind.SEARCH, Kind.EXTRACT):
        (seen,) = [p for p in entry.row.attachments if p.role == "observation"]
        document = told.pop(str(seen.address))
        assert document["address"] == str(entry.row.deterministic_output.address)
        assert document["rows"] == entry.row.deterministic_output.row_count
    assert told == {}


def test_plan_files_are_shown_in_the_same_way(tmp_path):
    folder = make(tmp_path / "w")
    with open_workspace(folder) as workspace:
        workspace.create()
        result: BatchResult = workspace.run(folder / "questions.toml")
        assert result.complete
        assert check(workspace.store, tuple(workspace.log().of_trace(result.run))) == 5


@pytest.mark.parametrize("kind", [Receipt, Shown, ValidatedSql])
def test_no_proof_of_recording_or_validation_is_made_by_hand(kind):
    attempts = {
        Receipt: lambda: Receipt(object(), 0, None),
        Shown: lambda: Shown(object(), role="observation", address=None, text="72.50", index=0),
        ValidatedSql: lambda: ValidatedSql(object(), "SELECT 1", None),
    }
    with pytest.raises((AssertionError, TypeError)):
        attempts[kind]()


def test_a_prompt_takes_nothing_but_recorded_texts():
    @dataclass(frozen=True)
    class LooksRecorded:
        role: str = "observation"
        address: str = "blake3:" + "0" * 64
        text: str = "72.50"
        index: int = 0

    with pytest.raises(AssertionError):
        Prompt((LooksRecorded(),))


def test_the_counted_answer_uses_what_was_extracted(stage):
    played = stage.ask(FOUND, READ, COUNTED, sources=["notes"])
    assert check(stage.workspace.store, played.entries) == 3
    assert stage.workspace.verify().holds
