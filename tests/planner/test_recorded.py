"""Replay of recorded replies: same requests, same replies, nobody asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from support import messages_server as server_side
from support.messages_server import Answer, MessagesServer
from support.prompts import prompt

from tieout.planner.claude import ClaudeModel
from tieout.planner.errors import Exit, PlannerError
from tieout.planner.model import Reply, RequestBytes
from tieout.planner.recorded import RecordedModel, recorded_reply
from tieout.planner.written import WrittenModel

PROMPT = prompt(system="s", user="u")


def looked_up(replies: Mapping[bytes, Reply], prepare_with: WrittenModel | ClaudeModel):
    return RecordedModel(lambda request: replies.get(request.payload), prepare_with=prepare_with)


def claude(base_url: str | None) -> ClaudeModel:
    return ClaudeModel(
        "m", base_url=base_url, max_tokens=9, timeout_s=5.0, retries=0, schema={"type": "object"}
    )


def test_requests_are_rebuilt_by_the_model_of_the_past_run() -> None:
    past = claude(None)
    assert looked_up({}, past).prepare(PROMPT) == past.prepare(PROMPT)
    written = WrittenModel(b'{"turns": [{}]}', place="p")
    assert looked_up({}, written).prepare(PROMPT) == written.prepare(PROMPT)


def test_the_recorded_reply_comes_back_for_its_request_only() -> None:
    past = WrittenModel(b'{"turns": [{"a": 1}, {"b": 2}]}', place="p")
    requests = [past.prepare(prompt("s", user)) for user in ("one", "two")]
    replies = {request.payload: past.ask(request) for request in requests}
    model = looked_up(replies, past)
    for request in reversed(requests):
        assert model.ask(request) is replies[request.payload]


def test_equal_requests_can_keep_their_own_replies() -> None:
    past = WrittenModel(b'{"turns": [{"a": 1}, {"b": 2}]}', place="p")
    request = past.prepare(PROMPT)
    stored = iter([past.ask(request), past.ask(request)])
    model = RecordedModel(lambda _: next(stored, None), prepare_with=past)
    assert [model.ask(request).text, model.ask(request).text] == ['{"a": 1}', '{"b": 2}']
    with pytest.raises(PlannerError):
        model.ask(request)


def test_a_request_that_was_never_made_means_the_replay_differs() -> None:
    with pytest.raises(PlannerError) as caught:
        looked_up({}, claude(None)).ask(RequestBytes(b"{}", "application/json"))
    assert caught.value.code == "recorded.missing"
    assert caught.value.exit_code is Exit.DOES_NOT_HOLD
    assert caught.value.remedy


@pytest.mark.parametrize(
    "behaviour",
    [
        server_side.text('{"answer": {}}'),
        server_side.refusal(),
        server_side.truncated('{"st'),
        server_side.context_exceeded(),
        server_side.bad_request("prompt is too long: 9 > 8"),
        server_side.malformed(),
        server_side.malformed(b""),
    ],
)
def test_a_reply_is_rebuilt_from_its_bytes_as_it_was(
    behaviour: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789")
    with MessagesServer([behaviour]) as server:
        model = claude(server.base_url)
        live = model.ask(model.prepare(PROMPT))
    rebuilt = recorded_reply(live.payload, media_type=live.media_type, use=live.use)
    assert rebuilt == replace(live, attempts=())


def test_a_written_turn_and_its_end_are_rebuilt_too() -> None:
    past = WrittenModel(b'{"turns": [{"a": 0.10}]}', place="p")
    for _ in range(2):
        live = past.ask(past.prepare(PROMPT))
        assert recorded_reply(live.payload, media_type=live.media_type, use=live.use) == live
