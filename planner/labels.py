"""How far a value can be traced: the weakest of what flowed into it.

Source: DESIGN §7. Until taint is followed value by value, a literal that may flow into a column
counts for the whole column: a label is never better than it can be shown to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from tieout.executor.numbers import NumberToken, find_numbers
from tieout.executor.sql.validate import ColumnOrigin
from tieout.ledger.citation import Label, Reason, weakest

CONVENTIONS: Final = frozenset(
    Decimal(number)
    for number in (0, 1, 4, 7, 12, 24, 60, 100, 365, 1_000, 10_000, 1_000_000, 1_000_000_000)
)
"""Constants that need no source: identity, quarters, week, months, hours, minutes, per cent,
days, and the scales thousand, basis points, million, billion. Their negatives count too."""


@dataclass(frozen=True, slots=True)
class QuestionNumbers:
    """The numbers that stand in a question: their values, and the names that are no values.

    names: "inv-7" of INV-7, "1010" of "account 1010": without the word before it and case.
    """

    values: frozenset[Decimal]
    names: frozenset[str]

    @classmethod
    def of(cls, text: str) -> QuestionNumbers:
        """Read the numbers of a question."""
        tokens = find_numbers(text)
        return cls(
            values=frozenset(t.value for t in tokens if t.value is not None),
            names=frozenset(_name(t) for t in tokens),
        )

    def holds(self, token: NumberToken) -> bool:
        """Whether a number of the prose stands in the question."""
        if token.value is not None and token.value in self.values:
            return True
        return _name(token) in self.names


def _name(token: NumberToken) -> str:
    """What a number is called by: its text without the word that says what it numbers."""
    return token.text.split()[-1].casefold()


def literal_label(literal: str, question: QuestionNumbers) -> Label:
    """The label of a literal in a plan: stands in the question, is a convention, or neither."""
    try:
        value = Decimal(literal.strip().strip("'\"").replace("_", ""))
    except InvalidOperation:
        return Label.UNSOURCED
    if not value.is_finite():
        return Label.UNSOURCED
    if value in question.values or abs(value) in question.values:
        return Label.QUESTION
    return Label.CONVENTION if abs(value) in CONVENTIONS else Label.UNSOURCED


def column_label(origin: ColumnOrigin, question: QuestionNumbers) -> tuple[Label, Reason | None]:
    """The label of a column's values, and the reason if it is unsourced."""
    labels = [literal_label(literal, question) for literal in origin.literals]
    if origin.sources:
        labels.append(Label.SOURCED)
    elif Label.QUESTION not in labels:
        # Constants made of conventions alone could spell any number.
        return Label.UNSOURCED, Reason.LITERAL
    label = weakest(labels)
    return label, Reason.LITERAL if label is Label.UNSOURCED else None


def overlapping(
    token: NumberToken, filled: Sequence[tuple[int, int, str]]
) -> list[tuple[int, int, str]]:
    """The filled spans (start, end, name) that a token touches."""
    return [span for span in filled if token.start < span[1] and span[0] < token.end]
