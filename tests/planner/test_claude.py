"""The Messages API client against a real server on loopback: bytes, retries, outcomes."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from support import messages_server as server_side
from support.claude_calls import KEY, PLAN, PROMPT, ask, claude, failure, only_our_key
from support.messages_server import Answer, MessagesServer
from support.prompts import prompt

from tieout.planner.attempts import REPLY_BYTES_MAX
from tieout.planner.errors import Exit, PlannerError
from tieout.planner.model import ModelError, ReplyOutcome, RequestBytes, canonical_json

SCHEMA = {"type": "object", "properties": {"steps": {"type": "array"}}}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    only_our_key(monkeypatch, tmp_path)


def test_the_server_receives_exactly_the_prepared_bytes() -> None:
    with MessagesServer([PLAN]) as server:
        model = claude(server.base_url, schema=SCHEMA)
        request = model.prepare(PROMPT)
        model.ask(request)
    (received,) = server.requests
    assert received.body == request.payload
    assert received.headers["Content-Type"] == request.media_type
    assert received.headers["Authorization"] == f"Bearer {KEY}"
    # The reply must arrive as the bytes that are recorded, not compressed.
    assert received.headers["Accept-Encoding"] == "identity"


def test_bytes_that_were_recorded_elsewhere_are_sent_unchanged() -> None:
    with MessagesServer([PLAN]) as server:
        model = claude(server.base_url)
        odd = b'{ "b" : 1 ,\n "a":"\\u00e9" }'
        model.ask(RequestBytes(odd, "application/json"))
    assert server.requests[0].body == odd


def test_a_request_holds_these_keys_and_no_others() -> None:
    request = claude("http://127.0.0.1:1", schema=SCHEMA).prepare(PROMPT)
    document = json.loads(request.payload)
    assert document == {
        "max_tokens": 500,
        "messages": [{"content": PROMPT.user, "role": "user"}],
        "model": "claude-test",
        "output_config": {"format": {"schema": SCHEMA, "type": "json_schema"}},
        "system": PROMPT.system,
    }
    words = request.payload.decode()
    for name in ("tools", "temperature", "top_p", "top_k", "seed", "stream", "thread"):
        assert f'"{name}"' not in words


def test_the_request_is_canonical_and_leaves_out_what_is_not_given() -> None:
    asked = prompt(system="", user="é")
    request = claude(None).prepare(asked)
    content = json.dumps(asked.user, ensure_ascii=False)
    expected = f'{{"max_tokens":500,"messages":[{{"content":{content},"role":"user"}}],"model":"claude-test"}}'
    assert request.payload == expected.encode()
    turned = {"properties": SCHEMA["properties"], "type": "object"}
    assert claude(None, schema=SCHEMA).prepare(PROMPT) == claude(None, schema=turned).prepare(
        PROMPT
    )


def test_a_text_without_a_utf8_form_is_an_error() -> None:
    with pytest.raises(PlannerError) as caught:
        canonical_json({"text": "\udc80"}, subject="the prompt")
    assert caught.value.code == "prompt.not_text"


def test_a_good_reply_comes_back_whole() -> None:
    behaviour = server_side.message(
        [
            {"type": "thinking", "thinking": "secret {", "signature": "x"},
            {"type": "text", "text": PLAN[:5]},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "text", "text": PLAN[5:]},
        ],
        usage={"input_tokens": 5, "cache_read_input_tokens": 30, "output_tokens": 9},
    )
    reply, server = ask(behaviour)
    assert (reply.text, reply.outcome, reply.detail) == (PLAN, ReplyOutcome.COMPLETE, "")
    assert reply.payload == behaviour.body
    assert reply.media_type == "application/json"
    use = reply.use
    assert (use.provider, use.model, use.request_id) == ("claude", server_side.MODEL, "req_1")
    assert (use.stop_reason, use.input_tokens, use.output_tokens) == ("end_turn", 35, 9)
    assert use.sdk.startswith("anthropic/2.")
    assert use.api_version == server.requests[0].headers["anthropic-version"] != ""
    assert use.base_url == server.base_url
    assert [(a.status, a.payload) for a in reply.attempts] == [(200, behaviour.body)]


def test_529_twice_then_success_keeps_all_three_attempts() -> None:
    waits: list[float] = []
    reply, server = ask(server_side.overloaded(), server_side.overloaded(), PLAN, waits=waits)
    assert reply.outcome is ReplyOutcome.COMPLETE
    assert [(a.status, a.request_id) for a in reply.attempts] == [
        (529, "req_1"),
        (529, "req_2"),
        (200, "req_3"),
    ]
    assert reply.attempts[0].payload == server_side.overloaded().body
    assert len({received.body for received in server.requests}) == 1
    assert waits == [0.5, 1.0]


@pytest.mark.parametrize(
    ("asked", "waited"),
    [("7", 7.0), ("0.25", 0.25), ("3600", 60.0), ("-1", 0.5), ("nan", 0.5), ("inf", 0.5),
     ("Wed, 21 Oct 2026 07:28:00 GMT", 0.5)],
)  # fmt: skip
def test_retry_after_is_honoured_within_its_cap(asked: str, waited: float) -> None:
    waits: list[float] = []
    reply, _ = ask(server_side.rate_limited(asked), PLAN, waits=waits)
    assert (reply.outcome, waits) == (ReplyOutcome.COMPLETE, [waited])


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (server_side.overloaded(), "model.overloaded"),
        (server_side.rate_limited(), "model.rate_limited"),
        (server_side.failing(500, "api_error", "oops"), "model.server_error"),
        (Answer(502, b"<html>bad gateway</html>"), "model.server_error"),
        (server_side.reset(), "model.interrupted"),
    ],
)
def test_retries_are_bounded_and_every_attempt_is_in_the_error(
    behaviour: Answer, code: str
) -> None:
    error, server = failure(*[behaviour] * 5, retries=2)
    assert (error.code, error.exit_code) == (code, Exit.ENVIRONMENT)
    assert len(server.requests) == len(error.attempts) == 3
    assert "after 3 attempts" in error.message
    whole = behaviour.body if behaviour.reset_after is None else behaviour.body[:20]
    assert {attempt.payload for attempt in error.attempts} <= {whole, b""}


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (server_side.bad_request(), "model.bad_request"),
        (server_side.unauthorised(), "model.unauthorised"),
        (server_side.failing(402, "billing_error", "pay"), "model.spend_limit"),
        (server_side.failing(403, "permission_error", "no"), "model.forbidden"),
        (server_side.failing(404, "not_found_error", "no such model"), "model.not_found"),
        (server_side.failing(413, "request_too_large", "big"), "model.too_large"),
        (server_side.failing(418, "teapot", "short"), "model.bad_request"),
        (server_side.spend_limited(), "model.spend_limit"),
        (server_side.overloaded(x_should_retry="false"), "model.overloaded"),
        (Answer(307, b"", {"Location": "http://127.0.0.1:9/"}), "model.redirected"),
    ],
)
def test_what_waiting_does_not_mend_is_not_tried_again(behaviour: Answer, code: str) -> None:
    error, server = failure(behaviour, PLAN)
    assert (error.code, error.exit_code) == (code, Exit.ENVIRONMENT)
    assert len(server.requests) == 1
    assert [attempt.payload for attempt in error.attempts] == [behaviour.body]
    assert error.place == server.base_url
    assert error.remedy


def test_the_servers_words_are_in_the_message_without_control_characters() -> None:
    error, _ = failure(server_side.bad_request("max_tokens:\x1b[31m too big" + "x" * 1000))
    assert "max_tokens: [31m too big" in error.message
    assert len(error.message) < 300


@pytest.mark.parametrize(
    ("behaviour", "outcome", "said"),
    [
        (server_side.refusal("not this"), ReplyOutcome.REFUSAL, "cyber: not this"),
        (server_side.truncated('{"steps": ['), ReplyOutcome.MAX_TOKENS, "cut off"),
        (server_side.context_exceeded(PLAN), ReplyOutcome.CONTEXT_EXCEEDED, "context window"),
        (
            server_side.bad_request("prompt is too long: 300000 tokens > 200000 maximum"),
            ReplyOutcome.CONTEXT_EXCEEDED,
            "prompt is too long",
        ),
        (server_side.malformed(), ReplyOutcome.ERROR, "not JSON"),
        (server_side.malformed(b"\xff\xfe"), ReplyOutcome.ERROR, "not UTF-8"),
        (server_side.malformed(b""), ReplyOutcome.ERROR, "not JSON"),
        (server_side.malformed(b"[]"), ReplyOutcome.ERROR, "not a JSON object"),
        (server_side.malformed(b"[" * 100_000), ReplyOutcome.ERROR, "nested"),
        (server_side.malformed(b'{"a":1,"a":2}'), ReplyOutcome.ERROR, "stands twice"),
        (server_side.message([]), ReplyOutcome.ERROR, "no text"),
        (server_side.text(""), ReplyOutcome.ERROR, "no text"),
        (server_side.text("\ud800"), ReplyOutcome.ERROR, "surrogate"),
        (server_side.text(PLAN, stop_reason="tool_use"), ReplyOutcome.ERROR, "tool_use"),
        (server_side.text(PLAN, stop_reason="pause_turn"), ReplyOutcome.ERROR, "pause_turn"),
        (
            server_side.message([{"type": "tool_use", "name": "rm"}]),
            ReplyOutcome.ERROR,
            "content block 1 is not text: tool_use",
        ),
    ],
)
def test_a_reply_that_is_no_plan_is_an_outcome_with_its_bytes(
    behaviour: Answer, outcome: ReplyOutcome, said: str
) -> None:
    reply, server = ask(behaviour)
    assert reply.outcome is outcome
    assert said in reply.detail
    assert reply.payload == behaviour.body
    assert len(server.requests) == len(reply.attempts) == 1


def test_a_connection_reset_in_the_reply_is_tried_again_and_its_part_is_kept() -> None:
    reply, _ = ask(server_side.reset(20), PLAN)
    broken, good = reply.attempts
    assert broken.status in (0, 200)
    assert server_side.reset().body[:20].startswith(broken.payload)
    assert broken.detail
    assert good.status == 200
    assert reply.text == PLAN


def test_no_one_listening_names_the_address() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{held.getsockname()[1]}"
        waits: list[float] = []
        model = claude(base_url, retries=1, waits=waits)
        with pytest.raises(ModelError) as caught:
            model.ask(model.prepare(PROMPT))
    assert caught.value.code == "model.unreachable"
    assert caught.value.place == base_url
    assert caught.value.exit_code is Exit.ENVIRONMENT
    assert [attempt.status for attempt in caught.value.attempts] == [0, 0]
    assert waits == [0.5]


def test_a_server_that_never_answers_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        model = claude(f"http://127.0.0.1:{silent.getsockname()[1]}", retries=0, timeout_s=0.05)
        with pytest.raises(ModelError) as caught:
            model.ask(model.prepare(PROMPT))
    assert caught.value.code == "model.timeout"


def test_a_reply_that_drips_past_the_deadline_is_cut_off() -> None:
    hours = iter(range(0, 100_000, 3600))
    error, _ = failure(PLAN, retries=0, elapsed=lambda: float(next(hours)))
    assert error.code == "model.timeout"
    assert error.attempts[0].status == 200


def test_a_reply_without_end_is_not_read() -> None:
    error, server = failure(server_side.malformed(b"x" * (REPLY_BYTES_MAX + 1)), PLAN)
    assert error.code == "model.reply_too_long"
    assert len(server.requests) == 1


def test_a_behaviour_can_read_the_request_and_answer_it() -> None:
    def model_side(request: dict[str, object]) -> str:
        return json.dumps({"seen": request["system"]})

    reply, _ = ask(model_side)
    assert json.loads(reply.text) == {"seen": PROMPT.system}
