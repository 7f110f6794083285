"""What a model may ask, and nothing else; each refusal says where."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieout.executor.grammar import STEPS_PER_TURN_MAX, AnswerTurn, StepsTurn, parse_turn
from tieout.executor.observation import refusal_text
from tieout.executor.plan_text import PlanRefused
from tieout.ledger.row import Outcome, Position, Status

SQL = {"do": "sql", "id": "a", "sql": "SELECT 1 AS x"}
FIGURE = {"step": "a", "column": "x"}


def steps(*wanted: object) -> str:
    return json.dumps({"steps": list(wanted)})


def answer(**more: object) -> str:
    return json.dumps({"answer": {"prose": "x", **more}})


def test_steps_and_what_was_written_of_each():
    text = '{ "steps": [ {"do":"sql", "id":"a", "sql":"SELECT 1 AS x"},\n  {"id":"h","do":"search","source":"n","query":"q"} ] }'
    parsed = parse_turn(text)
    assert isinstance(parsed.turn, StepsTurn)
    assert [s.id for s in parsed.turn.steps] == ["a", "h"]
    assert parsed.asked == (
        '{"do":"sql", "id":"a", "sql":"SELECT 1 AS x"}',
        '{"id":"h","do":"search","source":"n","query":"q"}',
    )


def test_an_answer_in_both_forms():
    maps = answer(
        figures={"f": {**FIGURE, "row": {"k": "v", "n": None}}}, quotes={"q": {"step": "a"}}
    )
    lists = answer(
        figures=[
            {
                "name": "f",
                **FIGURE,
                "row": [{"column": "k", "value": "v"}, {"column": "n", "value": None}],
            }
        ],
        quotes=[{"name": "q", "step": "a"}],
    )
    one, other = parse_turn(maps).turn, parse_turn(lists).turn
    assert isinstance(one, AnswerTurn)
    assert one == other


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        ("[]", "plan.shape", "[]"),
        ("{}", "plan.shape", "{}"),
        ('{"steps": [], "answer": {}}', "plan.shape", "{"),
        ('{"tools": []}', "plan.shape", "[]"),
        (steps(), "plan.field", "[]"),
        (steps(*[SQL | {"id": f"s{n}"} for n in range(STEPS_PER_TURN_MAX + 1)]), "plan.field", "["),
        (steps("SELECT 1"), "plan.field", '"SELECT 1"'),
        (steps({"id": "a"}), "plan.field", '{"id"'),
        (steps(SQL | {"do": "shell"}), "plan.field", '{"do"'),
        (steps(SQL | {"do": "fetch"}), "plan.field", '{"do"'),
        (steps(SQL | {"id": "A"}), "plan.field", '"A"'),
        (steps(SQL | {"id": "a\n"}), "plan.field", '"a\\n"'),
        (steps(SQL | {"id": "a" * 41}), "plan.field", '"aaaa'),
        (steps(SQL | {"sql": ""}), "plan.field", '""'),
        (steps(SQL | {"sql": 1}), "plan.field", "1"),
        (steps(SQL | {"limit": 5}), "plan.unknown_field", "5"),
        (steps(SQL, SQL), "plan.repeated_id", '"a", "sql"'),
        (
            steps({"do": "search", "id": "h", "source": "n", "query": "q", "limit": 51}),
            "plan.field",
            "51",
        ),
        (
            steps({"do": "search", "id": "h", "source": "n", "query": "q", "limit": True}),
            "plan.field",
            "true",
        ),
        (steps({"do": "search", "id": "h", "source": "n"}), "plan.field", '{"do"'),
        (
            steps({"do": "extract", "id": "e", "from": "h", "quote": "x", "as": "date"}),
            "plan.field",
            '"date"',
        ),
        (answer(prose=""), "plan.field", '""'),
        (answer(figures={"1f": FIGURE}), "plan.field", "{"),
        (answer(figures={"f": {"step": "a"}}), "plan.field", '{"step"'),
        (answer(figures={"f": FIGURE | {"value": 5}}), "plan.unknown_field", "5"),
        (answer(figures=[FIGURE]), "plan.field", "["),
        (answer(figures=[{"name": "f", **FIGURE}, {"name": "f", **FIGURE}]), "plan.field", "["),
        (answer(figures={"f": FIGURE | {"display": {"places": 19}}}), "plan.field", "19"),
        (answer(figures={"f": FIGURE | {"display": {"style": "money"}}}), "plan.field", '"money"'),
        (answer(figures={"f": FIGURE | {"display": {"currency": "gbp"}}}), "plan.field", '"gbp"'),
        (answer(figures={"f": FIGURE | {"row": [{"column": "k"}]}}), "plan.field", "["),
    ],
)
def test_what_is_refused_and_where(text, code, at):
    with pytest.raises(PlanRefused) as caught:
        parse_turn(text)
    error = caught.value
    assert error.code == code, error
    assert error.line == 1
    assert text[error.column - 1 :].startswith(at), (error.column, text[error.column - 1 :][:30])
    assert error.remedy


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = ["sql", "key", "why", "source", "query", "limit", "from", "quote", "near", "as", "unit", "x"]
STEP = st.fixed_dictionaries(
    {"do": st.sampled_from(["sql", "search", "extract"]) | JSON, "id": st.just("a") | JSON},
    optional=dict.fromkeys(KEYS, JSON),
)
TURN = (
    st.fixed_dictionaries({"steps": st.lists(STEP, max_size=3) | JSON})
    | st.fixed_dictionaries(
        {
            "answer": st.fixed_dictionaries(
                {"prose": JSON}, optional={"figures": JSON, "quotes": JSON}
            )
        }
    )
    | JSON
)


@given(TURN)
def test_whatever_a_model_sends_is_read_or_refused_and_can_be_recorded(document):
    try:
        parsed = parse_turn(json.dumps(document))
    except PlanRefused as error:
        refusal_text(error, step="plan", line=error.line, column=error.column)
        Outcome(
            Status.REFUSED, error.code, error.message[:2_000], Position(error.line, error.column)
        )
        return
    assert parsed.asked
