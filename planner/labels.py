"""How far a value can be traced: the weakest of what flowed into it.

Source: DESIGN §7. Until taint is followed value by value, a literal that may flow into a column
counts for the whole column: a label is never better than it can be shown to be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

from tieout.executor.number_affixes import NAME
from tieout.executor.number_marks import YEAR
from tieout.executor.numbers import FIGURES, NumberToken, find_numbers
from tieout.executor.sql.validate import ColumnOrigin
from tieout.ledger.citation import Label, Reason, weakest

CONVENTIONS: Final = frozenset(
    Decimal(number)
    for number in (0, 1, 4, 7, 12, 24, 60, 100, 365, 1_000, 10_000, 1_000_000, 1_000_000_000)
)
"""Constants that need no source: identity, quarters, week, months, hours, minutes, per cent,
days, and the scales thousand, basis points, million, billion. Their negatives count too."""


Reading: TypeAlias = tuple[Decimal, str, str | None, str | None, str | None]
"""What a number says: value, kind, unit, scale word, and why the reading is not certain."""

_ENDS_OF_DAY: Final = ("23:59:59.999999", "23:59:59.999999+00")
"""The moment that a clock shows under an as_of: the end of that day."""

_PLAIN: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
"""A number as anyone would write it: no leading zeros, plus sign, exponent, space, separator."""

_SPAN: Final = re.compile(
    rf"({_PLAIN.pattern}) (?:day|week|month|quarter|year)s?", re.IGNORECASE | re.ASCII
)
"""A length of time in one unit of the calendar, as INTERVAL takes it."""


@dataclass(frozen=True, slots=True)
class QuestionNumbers:
    """The numbers that stand in a question.

    values: of all of them, for the literals of a plan. readings: with kind, unit and scale.
    names: what has no value of its own, as printed: dates, times, identifiers. numbered: what
    follows a word that says what it numbers, "1010" of "account 1010". as_of: the question's date,
    which the clock of its queries shows; "" without one.
    """

    values: frozenset[Decimal]
    readings: frozenset[Reading]
    names: frozenset[str]
    numbered: frozenset[str]
    as_of: str = ""

    @classmethod
    def of(cls, text: str, as_of: str = "") -> QuestionNumbers:
        """Read the numbers of a question."""
        tokens = find_numbers(text)
        return cls(
            values=frozenset(t.value for t in tokens if t.value is not None),
            readings=frozenset(r for t in tokens if (r := _reading(t)) is not None),
            names=frozenset(name for t in tokens for name in _names(t)),
            numbered=frozenset(_last_word(t) for t in tokens if t.kind == "label"),
            as_of=as_of,
        )

    def holds(self, token: NumberToken) -> bool:
        """Whether a number of the prose stands in the question with the same unit and scale.

        45 of "45 times" is 45 alone, and neither 45%, GBP 45, 45 kg, 45 million nor 4.5e1.
        """
        reading = _reading(token)
        if reading is not None and reading in self.readings:
            return True
        numbered = token.kind == "label" or token.text.isdecimal()
        if numbered and _last_word(token) in self.numbered:
            return True
        named = token.kind not in FIGURES or token.value is None
        return named and _printed(token) in self.names


def _reading(token: NumberToken) -> Reading | None:
    if token.value is None or _EXPONENT.search(token.text):
        return None
    unit = None if token.unit == "times" else token.unit
    scale = None if token.scale is None else token.scale.casefold()
    doubt = None if token.ambiguous == NAME else token.ambiguous
    return token.value, token.kind, unit, scale, doubt


def _printed(token: NumberToken) -> str:
    return " ".join(token.text.split()).casefold()


def _last_word(token: NumberToken) -> str:
    return token.text.split()[-1].casefold()


def _names(token: NumberToken) -> tuple[str, ...]:
    """A date is also its month and year, and its year: what follows of it, and no day alone."""
    valued = token.kind in FIGURES and token.value is not None
    if valued or token.kind == "label":
        return ()
    words = _printed(token).split()
    whole = " ".join(words)
    if token.kind != "date":
        return (whole,)
    years = tuple(_YEAR.findall(whole))
    return (*(" ".join(words[at:]) for at in range(len(words))), *years)


_EXPONENT: Final = re.compile(r"\d[eE][+-]?\d")
_YEAR: Final = re.compile(rf"(?<!\d){YEAR}(?!\d)")


def literal_label(literal: str, question: QuestionNumbers) -> Label:
    """The label of a literal in a plan: stands in the question, is a convention, or neither.

    The as_of date is the question's own, also as the moment that a clock shows.

    Only a number in its plain spelling is one of either: '007', '+7' and '7 ' spell something
    else as a text, and a literal in quotes was a part of a longer text ('4' || '5').
    """
    if question.as_of and literal in {
        question.as_of,
        *(f"{question.as_of} {end}" for end in _ENDS_OF_DAY),
    }:
        return Label.QUESTION
    if not _PLAIN.fullmatch(literal):
        return Label.UNSOURCED
    value = Decimal(literal)
    if value in question.values or abs(value) in question.values:
        return Label.QUESTION
    return Label.CONVENTION if abs(value) in CONVENTIONS else Label.UNSOURCED


def _span_label(literal: str, question: QuestionNumbers) -> Label:
    """As `literal_label`; of a span of the calendar ('1 month') its number decides."""
    span = _SPAN.fullmatch(literal)
    return literal_label(literal if span is None else span[1], question)


def column_label(
    origin: ColumnOrigin, question: QuestionNumbers, *, kind: str = "VARCHAR"
) -> tuple[Label, Reason | None]:
    """The label of a column's values, and the reason if it is unsourced.

    kind: the column's type. In a text a span of time may be the text itself, typed by the plan.
    """
    label_of = literal_label if kind == "VARCHAR" else _span_label
    labels = [label_of(literal, question) for literal in origin.literals]
    if origin.rooted:
        labels.append(Label.SOURCED)
    elif Label.QUESTION not in labels:
        # Constants made of conventions alone could spell any number.
        return Label.UNSOURCED, Reason.LITERAL
    label = weakest(labels)
    return label, Reason.LITERAL if label is Label.UNSOURCED else None
