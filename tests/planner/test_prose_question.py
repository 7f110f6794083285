"""Numbers of the question in the prose, and columns that no source states."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tieout.artifacts.table import canonical
from tieout.executor.numbers import find_numbers
from tieout.executor.text_origins import text_origins
from tieout.ledger.citation import Label, Reason
from tieout.planner.labels import QuestionNumbers, column_label

ASKED = QuestionNumbers.of(
    "On 30 June 2026, what is 45 times 12, or 4.5 million, of account 1010 in INV-7, EUR 80, 7% and 20 kg?"
)


@pytest.mark.parametrize(
    "text",
    ["45", "45.0", "45 times", "12", "4.5 million", "1010", "account 1010", "Account 1010", "INV-7", "inv-7",
     "EUR 80", "80 EUR", "7%", "7 per cent", "20 kg", "30 June 2026", "June 2026", "2026"],
)  # fmt: skip
def test_the_questions_own(text):
    (token,) = find_numbers(f"so {text}, then")
    assert ASKED.holds(token)


@pytest.mark.parametrize(
    "text",
    ["46", "45%", "GBP 12", "£45", "45 bps", "45 kg", "4.5e1", "45 million", "-45", "(45)", "45 dozen", "45 CR",
     "4.5", "4.5 bn", "1010 kg", "GBP 1010", "1010%", "minus 1010", "INV-8", "80", "GBP 80", "7", "20", "99 kg",
     "30", "30 kg", "2026 kg", "GBP 2026", "2027", "30 May 2026", "7 pp"],
)  # fmt: skip
def test_another_unit_or_scale_is_another_number(text):
    (token,) = find_numbers(f"so {text}, then")
    assert not ASKED.holds(token)


def test_offsets_and_ranks_cite_nothing():
    table = canonical(
        pa.table({"rank": [1], "score": [2], "document": ["a"], "value": [3], "number_start": [4]})
    )
    origins = text_origins(table, "news")
    told = {name: column_label(origin, ASKED) for name, origin in origins.items()}
    made = (Label.UNSOURCED, Reason.LITERAL)
    said = (Label.SOURCED, None)
    assert told == {
        "rank": made, "score": made, "number_start": made, "document": said, "value": said
    }  # fmt: skip
