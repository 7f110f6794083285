"""Plan files as a model: turns exactly as written, every fault with its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.prompts import prompt

from tieout.planner.errors import PlannerError
from tieout.planner.model import ReplyOutcome
from tieout.planner.written import TURNS_MAX, WrittenModel, written_reply

PROMPT = prompt(system="s", user="ü")
TWO_TURNS = (
    b'{ "turns" : [\n {"steps": [ {"a": 0.10} ]} ,\t{"answer": {"prose": "\\u00fc [}"}}\n] }\n'
)


def test_each_ask_gives_the_next_turn_exactly_as_written() -> None:
    model = WrittenModel(TWO_TURNS, place="p.json")
    request = model.prepare(PROMPT)
    first, second = model.ask(request), model.ask(request)
    assert first.text == '{"steps": [ {"a": 0.10} ]}'
    assert second.text == '{"answer": {"prose": "\\u00fc [}"}}'
    assert (first.payload, first.outcome) == (first.text.encode(), ReplyOutcome.COMPLETE)
    assert (first.use.provider, first.attempts) == ("written", ())
    assert model.turns == (first.text, second.text)


def test_more_asks_than_turns_are_an_outcome_that_stays() -> None:
    model = WrittenModel(b'{"turns": [{}]}', place="p.json")
    request = model.prepare(PROMPT)
    model.ask(request)
    for _ in range(2):
        reply = model.ask(request)
        assert (reply.outcome, reply.payload, reply.text) == (ReplyOutcome.ERROR, b"", "")
        assert reply.detail == "the plan file has no further turn"


def test_the_prompt_is_prepared_as_canonical_json() -> None:
    request = WrittenModel(TWO_TURNS, place="p.json").prepare(PROMPT)
    assert json.loads(request.payload) == {"system": "s", "user": PROMPT.user}
    assert request.payload.startswith(b'{"system":"s","user":"=== question blake3:')
    assert PROMPT.user.endswith("\nü\n")
    assert request.media_type == "application/json"


@pytest.mark.parametrize(
    ("plan", "code", "place"),
    [
        (b"", "plan.not_json", "p.json, line 1, column 1"),
        (b'{"turns": [\n{"steps": [},\n]}', "plan.not_json", "p.json, line 2, column 12"),
        (b'{"turns": [{}]} x', "plan.not_json", "p.json, line 1, column 17"),
        (b"\xef\xbb\xbf{}", "plan.not_json", "p.json, line 1, column 1"),
        (b'{"turns":\n "\xe4"}', "plan.not_utf8", "p.json, line 2"),
        (b'{"turns": [{}],\n "turns": [{}]}', "plan.repeated_key", "p.json, line 2, column 2"),
        (b'{"turns": [{"a": 1, "a": 2}]}', "plan.repeated_key", "p.json, line 1, column 21"),
        (b'{"turns": [{"a": "\\ud800"}]}', "plan.not_text", "p.json, line 1, column 18"),
        (
            b'{"turns": ' + b"[" * 99 + b"]" * 99 + b"}",
            "plan.too_deep",
            "p.json, line 1, column 74",
        ),
        (b'{"turns": [' + b" " * 4_000_000 + b"]}", "plan.too_long", "p.json, line 1, column 1"),
        (b"[]", "plan.shape", "p.json"),
        (b"{}", "plan.shape", "p.json"),
        (b'{"turns": [{}], "note": 1}', "plan.shape", "p.json"),
        (b'{"Turns": [{}]}', "plan.shape", "p.json"),
        (b'{"turns": []}', "plan.shape", "p.json"),
        (b'{"turns": {}}', "plan.shape", "p.json"),
        (b'{"turns": [{},\n"x"]}', "plan.shape", "p.json, line 2"),
        (b'{"turns": [' + b"{}," * TURNS_MAX + b"{}]}", "plan.shape", "p.json"),
    ],
)
def test_a_malformed_plan_file_is_refused_with_its_place(
    plan: bytes, code: str, place: str
) -> None:
    with pytest.raises(PlannerError) as caught:
        WrittenModel(plan, place="p.json")
    assert (caught.value.code, caught.value.place) == (code, place)
    assert caught.value.remedy
    assert caught.value.exit_code == 4


def test_the_key_may_be_escaped() -> None:
    assert WrittenModel(b'{"\\u0074urns": [{"a": "]"}]}', place="p").turns == ('{"a": "]"}',)


turns = st.lists(
    st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text())),
    min_size=1,
    max_size=5,
)


@given(turns, st.sampled_from([None, 0, 3]), st.booleans())
def test_the_slices_are_the_turns(
    wanted: list[dict[str, object]], indent: int | None, ascii_only: bool
) -> None:
    plan = json.dumps({"turns": wanted}, indent=indent, ensure_ascii=ascii_only).encode()
    model = WrittenModel(plan, place="p.json")
    assert [json.loads(turn) for turn in model.turns] == wanted
    at = 0
    for turn in model.turns:
        at = plan.decode().index(turn, at) + len(turn)


@given(st.binary(max_size=50) | st.text(alphabet='{}[]",:turns \n01', max_size=40).map(str.encode))
def test_no_bytes_leak_another_exception(plan: bytes) -> None:
    try:
        WrittenModel(plan, place="p.json")
    except PlannerError as error:
        assert error.code.startswith("plan.")


def test_stored_bytes_that_are_not_text_are_told() -> None:
    with pytest.raises(PlannerError) as caught:
        written_reply(b"\xff")
    assert caught.value.code == "plan.not_utf8"
