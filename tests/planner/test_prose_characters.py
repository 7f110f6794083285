"""What a reader could not see never hides in an answer."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds import recorder, step, world

from tieout.executor.grammar import AnswerDraft
from tieout.ledger.citation import AnswerStatus
from tieout.planner.answer import fill
from tieout.planner.prose_characters import hidden_at, visible

HIDDEN = {
    "escape": "\x1b", "tab": "\t", "return": "\r", "null": "\0", "next line": "\x85",
    "zero width space": "\u200b", "joiner": "\u200d", "right to left": "\u202e", "isolate": "\u2066",
    "byte order mark": "\ufeff", "soft hyphen": "\u00ad", "tag": "\U000e0031", "variation": "\ufe0f",
    "more variation": "\U000e0100", "filler": "\u3164", "half filler": "\uffa0", "joiner of graphemes": "\u034f",
    "private": "\ue000", "plane of private": "\U0010fffd", "line": "\u2028", "paragraph": "\u2029",
}  # fmt: skip


@pytest.fixture(scope="module")
def known():
    keeper = recorder()
    cells = {"n": [5], "t": ["a\x1b[31m\u202e9\nb"], "mark": ["\u0338x"], "plain": ["Zoë"]}
    bay = step(keeper, "bay", cells)
    pages = {"a.txt": "The bay had\n12\u202e34 people. It rained."}
    return world(keeper, bay, documents=pages)


def filled(known, prose: str, column: str = "n", style: str = "number"):
    display = {"style": style}
    draft = AnswerDraft.model_validate(
        {"prose": prose, "figures": {"a": {"step": "bay", "column": column, "display": display}}}
    )
    return fill(draft, known, "")


@pytest.mark.parametrize("name", list(HIDDEN))
@pytest.mark.parametrize("prose", ["It is {{a}}{} ok", "It is {}{{a}} ok", "It is {{a}}. O{}k"])
def test_hidden_characters_are_sent_back_and_at_the_bound_shown(known, name, prose):
    char = HIDDEN[name]
    answer, problems = filled(known, prose.format(char))
    (problem,) = problems
    assert (problem.code, problem.where) == ("answer.character", "")
    at = prose.format(char).index(char) + 1
    assert f"U+{ord(char):04X} at character {at}" in problem.message
    assert answer.status is AnswerStatus.FAILED
    assert char not in answer.prose
    assert f"\\u{{{ord(char):X}}}" in answer.prose


@pytest.mark.parametrize("mark", ["\u0338", "\u20e0", "\u20dd", "\u0301", "\u035c", "\u0903"])
def test_a_combining_mark_stands_on_a_letter_only(known, mark):
    for prose in (f"It is {{a}}{mark}", f"It is 5{mark}", f"It is {{a}} {mark}", f"{mark}{{a}}"):
        assert [p.code for p in filled(known, prose)[1]] == ["answer.character"]
    answer, problems = filled(known, f"Zoe{mark}{mark} has {{a}}\nof it")
    assert problems == ()
    assert answer.prose == f"Zoe{mark}{mark} has 5\nof it"


def test_many_are_told_in_one_problem(known):
    ((problem),) = filled(known, "\u200b" * 9 + "{a}")[1]
    assert "and 4 more" in problem.message


def test_a_cell_shows_its_hidden_characters_and_keeps_its_value(known):
    answer, problems = filled(known, "It is {a}", "t", "text")
    assert problems == ()
    assert answer.prose == r"It is a\u{1B}[31m\u{202E}9\u{A}b"
    assert answer.figures[0].value == "a\x1b[31m\u202e9\nb"
    assert filled(known, "It is {a}", "mark", "text")[0].prose == r"It is \u{338}x"
    assert filled(known, "It is {a}", "plain", "text")[0].prose == "It is Zoë"


def test_a_passage_shows_them_too_and_may_have_lines(known):
    draft = AnswerDraft.model_validate(
        {
            "prose": "“{q}”",
            "quotes": {"q": {"source": "notes", "quote": "had\n12\u202e34 people"}},
        }
    )
    answer, problems = fill(draft, known, "")
    assert problems == ()
    assert answer.prose == "“had\n12\\u{202E}34 people”"
    assert answer.quotes[0][1].quote == "had\n12\u202e34 people"


def test_the_list_holds_every_character_of_its_categories():
    """Categories of this Python's Unicode; private use and unassigned tags besides."""
    categories = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
    missed = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in categories and not hidden_at(chr(code))
    ]
    assert missed == []


def test_a_lone_surrogate_is_one_of_them():
    assert visible("a\ud800b") == r"a\u{D800}b"


@given(st.text())
def test_what_is_visible_has_nothing_hidden_and_plain_text_stays(text):
    assert hidden_at(visible(text)) == ()
    assert visible(visible(text)) == visible(text)
    if not hidden_at(text):
        assert visible(text) == text
