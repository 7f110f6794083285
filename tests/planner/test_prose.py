"""The audit of a finished prose: each number is a figure's own, the question's, or typed."""

from __future__ import annotations

import pytest
from support.worlds import money, recorder, step, world

from tieout.ledger.citation import Figure, Label
from tieout.planner.labels import QuestionNumbers
from tieout.planner.prose import audit_prose


@pytest.fixture(scope="module")
def known():
    keeper = recorder()
    return world(
        keeper,
        step(keeper, "one", {"x": money("41200.17")}),
        step(keeper, "two", {"y": money("41200.17", "3.00"), "n": [7, 8]}),
    )


def figure(shown: str, label: Label = Label.SOURCED) -> Figure:
    return Figure("f", shown, shown, "DECIMAL(18,2)", label, None, (), "one", None)


def audited(
    known, before: str, shown: str, after: str, question: str = ""
) -> list[tuple[str, str, str, str]]:
    """(text, label, reason, figure) of each number where `shown` was filled in by code."""
    span = (len(before), len(before) + len(shown), "f")
    found = audit_prose(
        before + shown + after, [span], {"f": figure(shown)}, known, QuestionNumbers.of(question)
    )
    return [(n.text, str(n.label), str(n.reason or ""), n.figure) for n in found]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("It is ", "."),
        ("It is ", ", and"),
        ("(see ", ")"),
        ("“", "”"),
        ("", ""),
        ("It is: ", "; so"),
        ("Bank: ", " then"),
    ],
)
def test_a_filled_number_among_words_is_the_figures(known, before, after):
    assert audited(known, before, "41,200.17", after) == [("41,200.17", "sourced", "", "f")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "000"), ("-", ""), ("−", ""), ("", "%"), ("", " million"), ("(", ")"), ("", " per cent"), ("1", ""),
        ("0.", ""), ("", "e6"), ("", "k"), ("", " thousand"), ("£", ""), ("", "bn"), ("+", ""), ("", " bps"),
    ],
)  # fmt: skip
def test_typed_characters_that_change_how_it_reads_alter_it(known, before, after):
    found = audited(known, f"It is {before}", "41,200.17", f"{after} now")
    assert found
    assert {(label, reason) for _, label, reason, _ in found} == {("unsourced", "altered")}


def test_typed_numbers(known):
    found = audited(known, "In 3 of 99 it is ", "5", " and 41,200.17.", "Are there 99?")
    assert found == [
        ("3", "unsourced", "uncited", ""),
        ("99", "question", "", ""),
        ("5", "sourced", "", "f"),
        ("41,200.17", "unsourced", "ambiguous", ""),
    ]


def test_candidates_are_told_for_a_reader_and_change_no_label(known):
    (number,) = audit_prose("So 8 it is", [], {}, known, QuestionNumbers.of(""))
    assert (str(number.label), str(number.reason)) == ("unsourced", "uncited")
    (candidate,) = number.candidates
    assert candidate.endswith("#1:n") or ":n" in candidate


def test_a_figure_keeps_its_own_label(known):
    shown = "540"
    found = audit_prose(
        "It is 540.",
        [(6, 9, "f")],
        {"f": figure(shown, Label.QUESTION)},
        known,
        QuestionNumbers.of(""),
    )
    assert [str(n.label) for n in found] == ["question"]


@pytest.mark.parametrize("before", ["Account ", "see invoice ", "line "])
def test_the_word_before_a_filled_name_alters_nothing(known, before):
    ((text, label, reason, name),) = audited(known, before, "1010", " holds it")
    assert text.endswith("1010")
    assert (label, reason, name) == ("sourced", "", "f")


def test_a_typed_digit_before_a_filled_name_alters_it(known):
    found = audited(known, "Account 9", "1010", " holds it")
    assert {(label, reason) for _, label, reason, _ in found} == {("unsourced", "altered")}
