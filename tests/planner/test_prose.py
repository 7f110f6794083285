"""The audit of a finished prose: each number is a figure's own, the question's, or typed."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds import money, recorder, step, world

from tieout.ledger.citation import Figure, Label, NumberInProse
from tieout.planner.labels import QuestionNumbers
from tieout.planner.prose import audit_prose
from tieout.planner.prose_filling import fill_prose

SHOWN = {
    "n": ("41,200.17", "DECIMAL(18,2)"),
    "a": ("12", "BIGINT"),
    "b": ("345", "BIGINT"),
    "neg": ("-3", "BIGINT"),
    "g": ("GBP 5.00", "DECIMAL(18,2)"),
    "h": ("GBP -6.00", "DECIMAL(18,2)"),
    "p": ("67.51%", "DOUBLE"),
    "y": ("2026", "BIGINT"),
    "d": ("2026-06-30", "DATE"),
    "ccy": ("EUR", "VARCHAR"),
    "inv": ("INV-7", "VARCHAR"),
    "acc": ("1010", "VARCHAR"),
    "scale": ("million", "VARCHAR"),
    "sign": ("minus", "VARCHAR"),
    "mark": ("€", "VARCHAR"),
    "empty": ("", "VARCHAR"),
}


@pytest.fixture(scope="module")
def known():
    keeper = recorder()
    return world(
        keeper,
        step(keeper, "one", {"x": money("41200.17")}),
        step(keeper, "two", {"y": money("41200.17", "3.00"), "n": [7, 8]}),
    )


def figure(
    shown: str, label: Label = Label.SOURCED, *, name: str = "f", kind: str = "DECIMAL(18,2)"
) -> Figure:
    return Figure(name, shown, shown, kind, label, None, (), "one", None)


FIGURES = {name: figure(text, name=name, kind=kind) for name, (text, kind) in SHOWN.items()}


def numbers(known, prose: str, question: str = "") -> tuple[NumberInProse, ...]:
    """Of a prose whose placeholders are those of SHOWN."""
    filled = fill_prose(prose, FIGURES, {})
    return audit_prose(filled.text, filled.spans, FIGURES, known, QuestionNumbers.of(question))


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
        ("It is ", "."), ("It is ", ", and"), ("(see ", ")"), ("“", "”"), ("", ""),
        ("It is: ", "; so"), ("Bank: ", " then"),
    ],
)  # fmt: skip
def test_a_filled_number_among_words_is_the_figures(known, before, after):
    assert audited(known, before, "41,200.17", after) == [("41,200.17", "sourced", "", "f")]


@pytest.mark.parametrize(
    "prose",
    [
        "It is {n}, then {a}; and {b}!", "{n} {ccy} at {a}", "EUR: {ccy} {n}", "From {g} to {h}", "{a} and {g}",
        '"{n}", he said', "see [{n}].", "{a}\n\n{b}", "* {n} items", "• {a}: {g}", "On {d} {g} was paid",
        "line {a} of it", "({inv})", "({d})", "{p} of {a}", "{a} times it happened", "over {a} entries, {g} in all",
        "{n}? No.", "item {inv}: {g}", "{a} people (of {b})", "Account {acc} holds {g}.", "the {y} items",
        "less than {n}", "It is negative. {n} items", "{n}. Million people live there", "{n} - a dash",
        "Total — {n} — then", "{g} or {h}", "posted twice {g}", "stands at {g}, a credit.", "in sterling {g}",
        "{a} points", "{a} credit notes", "{a} kg",
    ],
)  # fmt: skip
def test_honest_prose_alters_nothing(known, prose):
    found = numbers(known, prose)
    assert found
    assert {(str(n.label), n.reason) for n in found} == {("sourced", None)}


TOUCHING = [
    "{n}000", "-{n}", "−{n}", "{n}%", "({n})", "1{n}", "0.{n}", "{n}e6", "{n}k", "£{n}", "{n}bn", "+{n}", "{n},{a}",
    "{n}.{a}", "{n},OOO", "{n}_", "{n}·", "{n}/{a}", "{n}-", "**{n}**", "<b>{n}</b>", "&{n}", "{n}&", "{n}‰",
    "{n}\u2007000", "{n}\u00a0000", "{n}\u202f000", "{n}\u200a", "\u00a0{n}", "{a}{b}", "{n}{empty}000", "{empty}-{n}",
    "{a}.5", "12.{a}", "{a}'", '{a}"', "12'{b}", "{a}th", "{a}:{b}", "#{a}", "`{n}`", "{n}’s", "{a}½", "{n}²", "√{n}",
    "x{a}", "{a}x", "～{n}", "{mark}{n}", "{p}age", "{acc}000", "Account 9{acc} holds",
]  # fmt: skip
BESIDE = [
    "{n} OOO", "{n} %", "£ {n}", "{a} {b}", "{a}\n{b}", "{a} 000", "5 {b}", "{a} {neg}", "{a}, 000 items", "- {n}",
    "− {n}", "– {n}", "-\n{n}", "{n} -\nok", "{n} -, ok", "( {n} )", '("{n}")', "√ {n}", "{n} ²", "10^ {a}", "{a} e6",
    "{a} : {b}", "{a} / {b}", "{a} ½", "{n} (%)", "(-) {n}", "{n} ○○○", "{n} 万", "- {y}",
]  # fmt: skip
WORDS = [
    "minus {n}", "minus the {n}", "Minus: {n}", 'minus "{n}"', "negative {n}", "less {n}", "{n} CR", "{n} (CR)",
    "{n} DR", "{n} credit.", "{n} (negative)", "{n} million", "{n}, million", "{n} (million)", "{n}-million",
    "{n} {scale}", "{sign} {n}", "{n} thousand", "{n} bn", "{n} k", "{n} m", "{n} dozen", "{n} gross", "{n} Mio.",
    "{n} Mrd.", "{n} lakh", "{n} crore", "{n} per cent", "{n} percent", "{n} bps", "{n} basis points",
    "{n} times 12", "{n} times a thousand", "{n} × 3", "{n} x 12", "{n} x12", "{n} squared", "{n} cubed",
    "In thousands: {n}", "All in millions.\n{n} is it", "Bank {n} (in thousands)", "{n} EUR", "EUR {n}", "{n} euros",
    "{n} ISK", "ISK {n}", "{n} pounds", "{a} March", "{a} pm", "{g} million", "{g} EUR", "{n} and a half",
    "{a} to {b} million", "hundred and {a}", "twenty {a}", "{n} point five", "{n} mіllion", "{n} ｍｉｌｌｉｏｎ",
    "{n} 𝐦𝐢𝐥𝐥𝐢𝐨𝐧", "{n} mïllion", "{n} тыс", "{acc} million", "{y} million",
]  # fmt: skip


@pytest.mark.parametrize("prose", TOUCHING + BESIDE + WORDS)
@pytest.mark.parametrize("frame", ["{}", "It is {} now", "First {d}.\n{}\nThen {g}."])
def test_what_makes_it_read_as_another_number_alters_it(known, prose, frame):
    found = numbers(known, frame.replace("{}", prose))
    assert "altered" in {str(n.reason) for n in found}
    assert all(n.figure != "n" for n in found)


def test_typed_numbers(known):
    found = audited(known, "In 3 of 99 it is ", "5", " and 41,200.17.", "Are there 99?")
    assert found == [
        ("3", "unsourced", "uncited", ""),
        ("99", "question", "", ""),
        ("5", "sourced", "", "f"),
        ("41,200.17", "unsourced", "ambiguous", ""),
    ]


def test_a_figure_keeps_its_own_label(known):
    found = audit_prose(
        "It is 540.",
        [(6, 9, "f")],
        {"f": figure("540", Label.QUESTION)},
        known,
        QuestionNumbers.of(""),
    )
    assert [str(n.label) for n in found] == ["question"]


@pytest.mark.parametrize("before", ["Account ", "see invoice ", "line "])
def test_the_word_before_a_filled_name_alters_nothing(known, before):
    ((text, label, reason, name),) = audited(known, before, "1010", " holds it")
    assert text.endswith("1010")
    assert (label, reason, name) == ("sourced", "", "f")


def test_numbers_in_a_passage_are_sourced_until_something_continues_them(known):
    def labels(prose: str, passage: str) -> list[str]:
        start = prose.index("{q}")
        span = (start, start + len(passage), "q")
        text = prose.replace("{q}", passage)
        found = audit_prose(text, [span], {}, known, QuestionNumbers.of(""))
        return [str(n.reason or n.label) for n in found]

    assert labels("It says “{q}” there", "had 12,345 people") == ["sourced"]
    assert labels("It says “{q} million” there", "had 12,345") == ["altered"]
    assert labels("It says {q}000 there", "had 12,345") == ["altered"]
    assert labels("It says -{q} there", "5 of 12") == ["altered", "altered"]


@pytest.mark.parametrize("numeral", ["Ⅷ", "Ⅿ", "⑩", "¾", "௰", "一千二百", "²", "٣", "𝟗"])
def test_a_typed_numeral_of_any_script_is_labelled(known, numeral):
    found = numbers(known, f"There are {numeral} of {{a}} left")
    assert [(n.text, str(n.reason)) for n in found] == [(numeral, "uncited"), ("12", "None")]
    held = numbers(known, f"There are {numeral} left", f"Are there {numeral}?")
    assert [str(n.label) for n in held] == ["question"]


NUMERIC = "".join(chr(code) for code in range(0x110000) if chr(code).isnumeric())
TYPED = st.one_of(
    st.text(max_size=6),
    st.text(NUMERIC, max_size=3),
    st.sampled_from(
        [" ", ", ", ".", "-", "(", ")", " million", "minus ", "\n", "%", "£", "3", "000"]
    ),
)


@given(st.lists(st.one_of(TYPED, st.sampled_from([f"{{{name}}}" for name in SHOWN])), max_size=12))
def test_each_numeric_character_has_exactly_one_label(known, pieces):
    filled = fill_prose("".join(pieces), FIGURES, {})
    found = audit_prose(filled.text, filled.spans, FIGURES, known, QuestionNumbers.of(""))
    owners = [0] * len(filled.text)
    for number in found:
        assert number.text == filled.text[number.start : number.end]
        assert (number.label is Label.SOURCED) == (number.figure != "")
        for at in range(number.start, number.end):
            owners[at] += 1
    for at, char in enumerate(filled.text):
        numeric = unicodedata.numeric(char, None) is not None
        assert owners[at] == 1 or (owners[at] == 0 and not numeric)


@given(TYPED, st.sampled_from(["n", "a", "neg"]), TYPED)
def test_a_figure_touched_by_typed_letters_or_digits_is_never_its_own(known, before, name, after):
    filled = fill_prose(f"{before}{{{name}}}{after}", FIGURES, {})
    found = audit_prose(filled.text, filled.spans, FIGURES, known, QuestionNumbers.of(""))
    ((start, end, _),) = filled.spans
    beside = filled.text[:start][-1:] + filled.text[end:][:1]
    if any(char.isalnum() for char in beside):
        assert all(number.figure == "" for number in found)


def test_a_prose_of_nothing_but_placeholders_is_read_once(known):
    found = numbers(known, "{a}; " * 4_000)
    assert len(found) == 4_000
    assert {str(n.label) for n in found} == {"sourced"}
