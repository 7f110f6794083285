"""Strict reading of replies: what is let through, what is refused, and where."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieout.planner.errors import PlannerError
from tieout.planner.model import ReplyOutcome
from tieout.planner.replies import (
    NESTING_MAX,
    PLAN_CHARS_MAX,
    JsonSubject,
    plan_text,
    read_json,
    read_message,
)

PLAN = '{"steps": [{"do": "sql", "id": "a", "sql": "SELECT 0.10"}]}'


def refused(reply: str) -> PlannerError:
    with pytest.raises(PlannerError) as caught:
        plan_text(reply)
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize(
    "reply",
    [
        PLAN,
        f"\n\t {PLAN}\r\n",
        f"```json\n{PLAN}\n```",
        f"\n```json  \r\n  {PLAN}\r\n```\n",
        f"```json\n{PLAN}```",
    ],
)
def test_white_space_and_one_fence_are_taken_off(reply: str) -> None:
    assert plan_text(reply) == PLAN


@pytest.mark.parametrize("backticks", ["`", "```", "```json\n"])
def test_a_fence_inside_a_string_is_text(backticks: str) -> None:
    plan = json.dumps({"why": f"{backticks} x ```"})
    assert plan_text(plan) == plan
    assert plan_text(f"```json\n{plan}\n```") == plan


@pytest.mark.parametrize(
    ("reply", "code", "line", "column"),
    [
        ("", "reply.empty", 1, 1),
        (" \n ", "reply.empty", 2, 2),
        ("```json\n```", "reply.empty", 2, 1),
        ("Here is the plan:\n{}", "reply.not_json", 1, 1),
        ("{}\n\nI hope this helps", "reply.not_json", 3, 1),
        ("{} {}", "reply.not_json", 1, 4),
        ("{}\n```", "reply.not_json", 2, 1),
        ("```json\n{}", "reply.not_json", 1, 1),
        ("```json\n{}\n``` done", "reply.not_json", 1, 1),
        ("```json\n{}\n```\n```json\n{}\n```", "reply.not_json", 3, 1),
        ("```\n{}\n```", "reply.not_json", 1, 1),
        ("```python\n{}\n```", "reply.not_json", 1, 1),
        ('{"a": 1,\n "b": }', "reply.not_json", 2, 7),
        ('```json\n{"a": 1,\n "b": }\n```', "reply.not_json", 3, 7),
        ('{"NaN": "NaN",\n "a": NaN}', "reply.not_json", 2, 7),
        ('{"a": -Infinity}', "reply.not_json", 1, 7),
        ('{"a": ' + "9" * 5000 + "}", "reply.not_json", 1, 7),
        ('{"a": 0.' + "9" * 5000 + "}", "reply.not_json", 1, 7),
        ('{"a": "x\ny"}', "reply.not_json", 1, 9),
        ("{'a': 1}", "reply.not_json", 1, 2),
        ("\ufeff{}", "reply.not_json", 1, 1),
        ("\u00a0{}", "reply.not_json", 1, 1),
        ('{"a": 1,\n "b": {"c": 1}, "a": 2}', "reply.repeated_key", 2, 17),
        ('{"a": [{"b": 1, "\\u0062": 2}]}', "reply.repeated_key", 1, 17),
        ('{"a": "\\ud800"}', "reply.not_text", 1, 7),
        ('{"\\udfff": 1}', "reply.not_text", 1, 2),
        ("[" * 65 + "]" * 65, "reply.too_deep", 1, 65),
        ("[" * 100_000 + "]" * 100_000, "reply.too_deep", 1, 1),
        ("[" + " " * PLAN_CHARS_MAX + "]", "reply.too_long", 1, 1),
    ],
)
def test_anything_else_is_refused_with_its_place(
    reply: str, code: str, line: int, column: int
) -> None:
    error = refused(reply)
    assert (error.code, error.place) == (code, f"the reply, line {line}, column {column}")


def test_what_is_no_duplicate_is_let_through() -> None:
    plan = '{"a": {"a": ["a", "a", {"a": "b"}], "b": "a"}, "b": {"a": 1}, "": "", "c": "\\ud83d\\ude00"}'
    assert plan_text(plan) == plan
    deep = "[" * NESTING_MAX + "]" * NESTING_MAX
    assert plan_text(deep) == deep


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values, st.booleans(), st.sampled_from([None, 1]), st.booleans())
def test_every_json_document_is_given_back_character_for_character(
    value: object, ascii_only: bool, indent: int | None, fenced: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    reply = f"```json\n{text}\n```" if fenced else text
    assert plan_text(reply) == text
    subject = JsonSubject("t", "here", "Look.", PLAN_CHARS_MAX)
    assert read_json(text, subject=subject) == json.loads(text)


@given(st.dictionaries(st.text(), json_values, min_size=1, max_size=4), st.data())
def test_any_key_written_a_second_time_is_found(value: dict[str, object], data) -> None:
    key = data.draw(st.sampled_from(sorted(value)))
    text = json.dumps(value)[:-1] + f", {json.dumps(key)}: 0}}"
    assert refused(text).code == "reply.repeated_key"


@given(st.text(alphabet='{}[]",:\\ntu01.-eE \n`js', max_size=40))
def test_what_is_refused_is_never_a_leaked_exception(reply: str) -> None:
    try:
        plan = plan_text(reply)
    except PlannerError as error:
        assert error.code.startswith("reply.")
    else:
        json.loads(plan)


@given(st.binary(max_size=60))
def test_any_bytes_at_all_are_a_message(payload: bytes) -> None:
    assert read_message(payload).outcome is ReplyOutcome.ERROR


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, (None, None)),
        ({}, (None, None)),
        ({"input_tokens": 3, "output_tokens": 0}, (3, 0)),
        (
            {"input_tokens": 3, "cache_creation_input_tokens": 4, "cache_read_input_tokens": 5},
            (12, None),
        ),
        ({"input_tokens": True, "output_tokens": -1}, (None, None)),
        ({"input_tokens": 1.5, "output_tokens": "9"}, (None, None)),
        ({"input_tokens": 10**300}, (None, None)),
    ],
)
def test_only_counts_are_counted(usage: object, tokens: tuple[int | None, int | None]) -> None:
    content = [{"type": "text", "text": "x"}]
    document = {"content": content, "stop_reason": "end_turn", "usage": usage}
    read = read_message(json.dumps(document).encode())
    assert read.outcome is ReplyOutcome.COMPLETE
    assert (read.input_tokens, read.output_tokens) == tokens


@pytest.mark.parametrize(
    "document",
    [
        {"stop_reason": "end_turn"},
        {"stop_reason": "end_turn", "content": "x"},
        {"stop_reason": "end_turn", "content": ["x"]},
        {"stop_reason": "end_turn", "content": [{"type": "text", "text": 1}]},
        {"stop_reason": "end_turn", "content": [{"type": ["text"], "text": "x"}]},
        {"stop_reason": None, "content": [{"type": "text", "text": "x"}]},
        {"stop_reason": ["end_turn"], "content": [{"type": "text", "text": "x"}]},
        {"error": {"type": 1, "message": None, "details": []}},
        {"error": {}},
    ],
)
def test_a_reply_of_another_shape_is_an_error_with_a_reason(document: dict[str, object]) -> None:
    read = read_message(json.dumps(document).encode())
    assert read.outcome is ReplyOutcome.ERROR
    assert read.detail


def test_a_refused_or_cut_off_text_is_kept_but_not_called_complete() -> None:
    content = [{"type": "text", "text": PLAN}]
    for reason, outcome in (
        ("refusal", ReplyOutcome.REFUSAL),
        ("max_tokens", ReplyOutcome.MAX_TOKENS),
        ("model_context_window_exceeded", ReplyOutcome.CONTEXT_EXCEEDED),
    ):
        read = read_message(json.dumps({"content": content, "stop_reason": reason}).encode())
        assert (read.outcome, read.text, read.stop_reason) == (outcome, PLAN, reason)


def test_llama_cpp_says_a_full_context_by_its_error_type() -> None:
    error = {"code": 400, "type": "exceed_context_size_error", "message": "request exceeds"}
    read = read_message(json.dumps({"error": error}).encode())
    assert read.outcome is ReplyOutcome.CONTEXT_EXCEEDED
