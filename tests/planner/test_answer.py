"""Drafts to answers: each placeholder filled from one cell or passage, or said why not."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds import copied, failed, money, notes, recorder, step, world

from tieout.executor.grammar import AnswerDraft, AnswerTurn, parse_turn
from tieout.executor.sql.validate import ColumnOrigin
from tieout.executor.world import World
from tieout.ledger.citation import AnswerStatus, Flag
from tieout.planner.answer import fill, row_text

QUESTION = "What is the balance of account 1010?"
PAGE = "On 30 June the bay had 12,345 people. The bay had rain."
OTHER = "The bay had rain."


@pytest.fixture(scope="module")
def known():
    keeper = recorder()
    totals = step(
        keeper,
        "totals",
        {
            "account": ["1010", "1020", "1030"],
            "total": money("41200.17", "-3.00", None),
            "since": pa.array([1, 2, 3], pa.date32()),
            "number": pa.array([1, 2, 2], pa.int64()),
        },
        key=("account",),
    )
    one = step(keeper, "one", {"x": money("5.00")}, complete=False)
    rate = step(
        keeper,
        "rate",
        {"r": pa.array([float("nan")], pa.float64()), "s": money("1.00")},
        origins={
            "r": ColumnOrigin("r", (), (("bank", "amount"),), "divide", inexact=True),
            "s": ColumnOrigin("s", ("123456",), (), "expression", inexact=False),
        },
    )
    quoted = step(
        keeper,
        "people",
        {
            "document": ["a.txt"], "raw": ["blake3:" + "1" * 64], "text": ["blake3:" + "2" * 64],
            "start": pa.array([3], pa.int64()), "end": pa.array([12], pa.int64()), "quote": ["12,345 people"],
            "value": money("12345.00"),
        },
        verb="extract",
    )  # fmt: skip
    lost = failed(keeper, "lost", "sql.clock")
    return world(keeper, totals, one, rate, quoted, lost, documents={"a.txt": PAGE, "b.txt": OTHER})


def draft(prose: str, figures: dict | None = None, quotes: dict | None = None) -> AnswerDraft:
    return AnswerDraft.model_validate(
        {"prose": prose, "figures": figures or {}, "quotes": quotes or {}}
    )


def problem(known, figures: dict | None = None, quotes: dict | None = None) -> tuple[str, str]:
    answer, problems = fill(draft("It is {a}.", figures, quotes), known, QUESTION)
    assert answer.status is AnswerStatus.FAILED
    (found,) = problems
    assert found.where == "a"
    assert answer.prose == "It is [a: nothing to show]."
    assert answer.problems == (f"{found.code}: a: {found.message}",)
    return found.code, found.message


def test_a_cell_by_its_key(known):
    figure = {"step": "totals", "row": {"account": "1010"}, "column": "total"}
    answer, problems = fill(draft("It is {a}.", {"a": figure}), known, QUESTION)
    assert problems == ()
    assert answer.prose == "It is 41,200.17."
    (filled,) = answer.figures
    assert (filled.value, filled.type, str(filled.label)) == (
        "41200.17",
        "DECIMAL(18,2)",
        "sourced",
    )
    assert filled.citation.row == "account=1010"
    assert filled.citation.text.endswith("#account=1010:total")
    assert answer.status is AnswerStatus.ANSWERED


@pytest.mark.parametrize(
    "row",
    [
        {"ACCOUNT": "1010"}, {"total": "41200.17"}, {"total": Decimal("41200.170")}, {"number": 1},
        {"since": "1970-01-02"}, {"total": "4.120017E4"}, {"number": "1", "account": "1010"},
    ],
)  # fmt: skip
def test_a_row_is_found_by_any_columns_that_name_just_one(known, row):
    answer, problems = fill(
        draft("{a}", {"a": {"step": "totals", "row": row, "column": "total"}}), known, QUESTION
    )
    assert problems == ()
    assert answer.figures[0].citation.row == "account=1010"


def test_a_null_finds_its_row_and_is_never_a_number(known):
    figure = {"step": "totals", "row": {"total": None}, "column": "total", "display": {"places": 2}}
    answer, problems = fill(draft("{a}", {"a": figure}), known, QUESTION)
    assert problems == ()
    assert answer.prose == "(no value)"
    assert "no_value" in answer.figures[0].flags
    assert answer.numbers == ()


@pytest.mark.parametrize(
    ("figure", "code"),
    [
        ({"step": "nothing", "column": "x"}, "answer.unknown_step"),
        ({"step": "lost", "column": "x"}, "answer.step_failed"),
        ({"step": "totals", "row": {"account": "1010"}, "column": "sum"}, "answer.unknown_column"),
        ({"step": "totals", "row": {"konto": "1010"}, "column": "total"}, "answer.unknown_column"),
        ({"step": "totals", "row": {"account": "9999"}, "column": "total"}, "answer.no_row"),
        ({"step": "totals", "row": {"account": "01010"}, "column": "total"}, "answer.no_row"),
        ({"step": "totals", "row": {"total": "41200.171"}, "column": "total"}, "answer.no_row"),
        ({"step": "totals", "row": {"total": "NaN"}, "column": "total"}, "answer.no_row"),
        ({"step": "totals", "row": {"total": "sNaN"}, "column": "total"}, "answer.no_row"),
        ({"step": "totals", "row": {"account": True}, "column": "total"}, "answer.no_row"),
        ({"step": "totals", "row": {"number": 2}, "column": "total"}, "answer.several_rows"),
        ({"step": "totals", "column": "total"}, "answer.several_rows"),
        ({"step": "totals", "row": {"account": "1010"}, "column": "account"}, "answer.display"),
        (
            {"step": "one", "column": "x", "display": {"style": "currency"}},
            "answer.display",
        ),
        ({"step": "one", "column": "x", "display": {"style": "date"}}, "answer.display"),
    ],
)
def test_what_cannot_be_filled(known, figure, code):
    found, message = problem(known, {"a": figure})
    assert found == code
    assert message


def test_flags_and_labels_come_with_the_cell(known):
    figures = {
        "a": {"step": "one", "column": "x"},
        "b": {"step": "rate", "column": "r"},
        "c": {"step": "rate", "column": "s"},
    }
    answer, problems = fill(draft("{a} {b} {c}", figures), known, QUESTION)
    assert problems == ()
    told = {
        f.name: (str(f.label), f.reason and str(f.reason), {str(x) for x in f.flags})
        for f in answer.figures
    }
    assert told == {
        "a": ("sourced", None, {"partial"}),
        "b": ("sourced", None, {"computed", "inexact", "no_value"}),
        "c": ("unsourced", "literal", {"computed"}),
    }
    assert answer.prose == "5.00 (no value: not a number) 1.00"
    assert answer.status is AnswerStatus.UNSOURCED


def test_a_quotient_is_shown_as_a_reader_expects_and_a_copy_of_it_too(known):
    keeper = recorder()
    mean = pa.array([Decimal("4790.457777777778")], pa.decimal128(38, 12))
    divided = ColumnOrigin("m", (), (("bank", "amount"),), "decimal_average", inexact=False)
    made = step(keeper, "mean", {"m": mean}, origins={"m": divided})
    copy = step(keeper, "copy", {"m": mean}, origins={"m": copied("mean", "m")})
    source = step(keeper, "source", {"m": mean}, origins={"m": copied("bank", "m")})
    gbp = {"style": "currency", "currency": "GBP"}
    figures = {
        name: {"step": name, "column": "m", "display": gbp} for name in ("mean", "copy", "source")
    }
    scene = world(keeper, made, copy, source)
    answer, problems = fill(draft("{mean} {copy} {source}", figures), scene, QUESTION)
    assert problems == ()
    assert answer.prose == "GBP 4,790.46 GBP 4,790.46 GBP 4,790.457777777778"
    rounded = [Flag.ROUNDED in figure.flags for figure in answer.figures]
    assert rounded == [True, True, False]
    assert {figure.value for figure in answer.figures} == {"4790.457777777778"}


def test_only_the_column_that_tied_is_flagged(known):
    keeper = recorder()
    made = replace(step(keeper, "s", {"k": ["fee"], "n": [3]}), tied=frozenset({"k"}))
    figures = {
        "k": {"step": "s", "column": "k", "display": {"style": "text"}},
        "n": {"step": "s", "column": "n"},
    }
    answer, _ = fill(draft("{k} {n}", figures), world(keeper, made), QUESTION)
    assert [Flag.TIED in figure.flags for figure in answer.figures] == [True, False]


@pytest.mark.parametrize(
    ("quote", "said"),
    [
        ({"source": "notes", "quote": "had 12,345 people"}, ""),
        ({"source": "notes", "document": "b.txt", "quote": "The bay had rain."}, ""),
        ({"step": "people"}, ""),
        ({"source": "notes", "quote": "had 99,999 people"}, "answer.quote"),
        ({"source": "notes", "quote": "The bay had rain."}, "answer.quote"),
        ({"source": "notes", "document": "c.txt", "quote": "rain"}, "answer.quote"),
        ({"source": "bank", "quote": "rain"}, "answer.quote"),
        ({"quote": "rain"}, "answer.quote"),
        ({"step": "people", "quote": "rain"}, "answer.quote"),
        ({"step": "totals"}, "answer.quote"),
        ({"step": "nothing"}, "answer.unknown_step"),
    ],
)
def test_quotes(known, quote, said):
    answer, problems = fill(draft("It says {a}", quotes={"a": quote}), known, QUESTION)
    assert [p.code for p in problems] == ([said] if said else [])
    if not said:
        ((_, span),) = answer.quotes
        assert answer.prose == f"It says {span.quote}"
        assert all(str(n.label) == "sourced" for n in answer.numbers)
    if quote.get("source") == "notes" and not said:
        text = PAGE if span.document_name == "a.txt" else OTHER
        assert text[span.start : span.end] == span.quote == quote["quote"]


def test_a_name_that_is_both_figure_and_quote(known):
    figures = {"a": {"step": "one", "column": "x"}}
    _, problems = fill(draft("{a}", figures, {"a": {"step": "people"}}), known, QUESTION)
    assert [p.code for p in problems] == ["answer.repeated_name"]


def test_a_placeholder_without_a_figure_is_told_once(known):
    answer, problems = fill(draft("{a} and {a} and {B2} { a} {}"), known, QUESTION)
    assert [(p.code, p.where) for p in problems] == [
        ("answer.unknown_placeholder", "a"),
        ("answer.unknown_placeholder", "B2"),
    ]
    assert answer.prose.endswith("{ a} {}")


def test_numbers_of_the_question_and_typed_ones(known):
    answer, _ = fill(
        draft("Account 1010 has 17 and 12,345.00; 1010 it is, not account 1011."), known, QUESTION
    )
    told = {
        n.text: (str(n.label), n.reason and str(n.reason), len(n.candidates))
        for n in answer.numbers
    }
    assert told["Account 1010"] == told["1010"] == ("question", None, 0)
    assert told["account 1011"] == ("unsourced", "uncited", 0)
    assert told["17"] == ("unsourced", "uncited", 0)
    assert told["12,345.00"] == ("unsourced", "uncited", 1)


@pytest.mark.parametrize(
    ("as_of", "found"), [("2026-06-29", False), ("2026-06-30", True), (None, True)]
)
def test_a_document_published_later_does_not_exist(as_of, found):
    keeper = recorder()
    source = notes(keeper, {"a.txt": PAGE}, {"a.txt": "2026-06-30"})
    known = World(keeper.store, {"notes": source}, as_of)
    quotes = {"a": {"source": "notes", "quote": "had 12,345 people"}}
    _, problems = fill(draft("{a}", quotes=quotes), known, QUESTION)
    assert (problems == ()) is found


VALUES = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.decimals(allow_nan=True)
)


@given(VALUES, st.sampled_from(["DECIMAL(18,2)", "BIGINT", "VARCHAR", "DATE", "BOOLEAN", "DOUBLE"]))
def test_any_value_that_a_plan_may_give_is_looked_up_without_a_leak(value, kind):
    text = row_text(value, kind)
    assert text is None or isinstance(text, str)
    assert (text is None) == (value is None)


@given(st.text(alphabet="{}ab1 %-.,0k$()", max_size=40))
def test_any_prose_is_filled_without_a_leak(prose):
    keeper = recorder()
    known = world(
        keeper, step(keeper, "one", {"x": money("5.00")}, origins={"x": copied("bank", "x")})
    )
    if not prose:
        return
    answer, _ = fill(draft(prose, {"a": {"step": "one", "column": "x"}}), known, QUESTION)
    for number in answer.numbers:
        assert answer.prose[number.start : number.end] == number.text
        whole = number.text in ("5.00", "(5.00)")
        assert str(number.label) != "sourced" or (whole and number.figure == "a"), answer.prose


def test_both_forms_of_the_maps_are_one(known):
    listed = (
        '{"answer": {"prose": "{a}", "figures": [{"name": "a", "step": "totals", "column": "total",'
        ' "row": [{"column": "account", "value": "1010"}]}]}}'
    )
    turn = parse_turn(listed).turn
    assert isinstance(turn, AnswerTurn)
    answer, problems = fill(turn.answer, known, QUESTION)
    assert problems == ()
    assert answer.prose == "41,200.17"
