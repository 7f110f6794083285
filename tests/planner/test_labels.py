"""Labels: the weakest of what flowed into a value."""

from __future__ import annotations

import pytest

from tieout.executor.numbers import find_numbers
from tieout.executor.sql.validate import ColumnOrigin
from tieout.ledger.citation import Label, Reason, weakest
from tieout.planner.labels import QuestionNumbers, column_label, literal_label

ASKED = QuestionNumbers.of("What is 45 times 12, or 1,250.50, in 2026?")
FROM_BANK = (("bank", "amount"),)


@pytest.mark.parametrize(
    ("literal", "label"),
    [
        ("45", Label.QUESTION),
        ("-45", Label.QUESTION),
        ("45.00", Label.QUESTION),
        ("1250.5", Label.QUESTION),
        ("100", Label.CONVENTION),
        ("-100", Label.CONVENTION),
        ("0.5", Label.UNSOURCED),
        ("0", Label.CONVENTION),
        # Not as anyone would write it: as a text it would say something else.
        ("'45'", Label.UNSOURCED),
        ("1e2", Label.UNSOURCED),
        ("1_000", Label.UNSOURCED),
        ("+45", Label.UNSOURCED),
        ("045", Label.UNSOURCED),
        (" 45", Label.UNSOURCED),
        ("45.", Label.UNSOURCED),
        (".45", Label.UNSOURCED),
        ("true", Label.UNSOURCED),
        ("one row", Label.UNSOURCED),
        ("99", Label.UNSOURCED),
        ("123456", Label.UNSOURCED),
        ("'Infinity'", Label.UNSOURCED),
        ("'NaN'", Label.UNSOURCED),
        ("'INV-1'", Label.UNSOURCED),
        ("", Label.UNSOURCED),
    ],
)
def test_a_literal(literal, label):
    assert literal_label(literal, ASKED) is label


@pytest.mark.parametrize(
    ("literals", "sources", "expected"),
    [
        ((), FROM_BANK, (Label.SOURCED, None)),
        (("100",), FROM_BANK, (Label.CONVENTION, None)),
        (("45",), FROM_BANK, (Label.QUESTION, None)),
        (("45", "100"), FROM_BANK, (Label.CONVENTION, None)),
        (("123456",), FROM_BANK, (Label.UNSOURCED, Reason.LITERAL)),
        (("45", "12"), (), (Label.QUESTION, None)),
        (("123456",), (), (Label.UNSOURCED, Reason.LITERAL)),
        # Conventions alone could spell any number: 1000 * 100 + 12.
        (("1000", "100", "12.0"), (), (Label.QUESTION, None)),
        (("1000", "100", "7"), (), (Label.UNSOURCED, Reason.LITERAL)),
        ((), (), (Label.UNSOURCED, Reason.LITERAL)),
    ],
)
def test_a_column(literals, sources, expected):
    label, reason = column_label(ColumnOrigin("x", literals, sources, "", inexact=False), ASKED)
    if expected[0] is Label.QUESTION and "1000" in literals:
        expected = (Label.CONVENTION, None)
    assert (label, reason) == expected


@pytest.mark.parametrize(
    ("literal", "label"),
    [
        ("1 month", Label.CONVENTION),
        ("1 day", Label.CONVENTION),
        ("12 MONTHS", Label.QUESTION),
        ("24 MONTHS", Label.CONVENTION),
        ("-1 Quarter", Label.CONVENTION),
        ("0 days", Label.CONVENTION),
        ("45 days", Label.QUESTION),
        ("3 months", Label.UNSOURCED),
        ("1 hour", Label.UNSOURCED),
        ("1 month 2 days", Label.UNSOURCED),
        ("1 monthly", Label.UNSOURCED),
        ("01 month", Label.UNSOURCED),
        ("'1 month'", Label.UNSOURCED),
        ("1\u00a0month", Label.UNSOURCED),
    ],
)
def test_a_span_of_the_calendar_is_as_its_number(literal, label):
    origin = ColumnOrigin("d", (literal,), (("bank", "booked"),), "expression", inexact=False)
    assert column_label(origin, ASKED, kind="DATE")[0] is label
    assert column_label(origin, ASKED, kind="VARCHAR")[0] is Label.UNSOURCED, "it may be the text"


def test_an_earlier_step_is_no_source():
    """Only what goes back to a snapshot is sourced; constants stay what they are."""
    built = ColumnOrigin("x", ("7", "24"), (("s0", "x"),), "", inexact=False, roots=())
    assert column_label(built, ASKED) == (Label.UNSOURCED, Reason.LITERAL)
    asked = ColumnOrigin("x", ("45",), (("s0", "x"),), "", inexact=False, roots=())
    assert column_label(asked, ASKED) == (Label.QUESTION, None)
    traced = ColumnOrigin("x", (), (("s0", "x"),), "", inexact=False, roots=FROM_BANK)
    assert column_label(traced, ASKED) == (Label.SOURCED, None)


def test_the_weakest_label():
    assert weakest([]) is Label.UNSOURCED
    assert weakest([Label.SOURCED, Label.QUESTION]) is Label.QUESTION
    assert weakest([Label.CONVENTION, Label.QUESTION, Label.SOURCED]) is Label.CONVENTION
    assert [label.strength for label in Label] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "held"), [("45", True), ("45.0", True), ("1,250.50", True), ("46", False)]
)
def test_numbers_of_the_question(text, held):
    (token,) = find_numbers(f"It is {text} then")
    assert ASKED.holds(token) is held


@pytest.mark.parametrize(
    ("literal", "label"),
    [
        ("2026-06-30", Label.QUESTION),
        ("2026-06-30 23:59:59.999999+00", Label.QUESTION),
        ("2026-06-29", Label.UNSOURCED),
        # In quotes it is a part of a longer text: length('2026-06-30') is nobody's number.
        ("'2026-06-30'", Label.UNSOURCED),
    ],
)
def test_the_day_that_the_clock_shows_is_the_questions(literal, label):
    asked = QuestionNumbers.of("How old are the open invoices?", "2026-06-30")
    assert literal_label(literal, asked) is label
    assert literal_label(literal, ASKED) is Label.UNSOURCED
