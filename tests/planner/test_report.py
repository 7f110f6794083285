"""What an author expects against what the cell holds, and how the report says it."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from support.worlds import recorder, step, world

from tieout.executor.grammar import AnswerDraft
from tieout.planner.answer import fill
from tieout.planner.questions import Question
from tieout.planner.report import Report, make_report, report_text

CELLS = {
    "account": ["00004218"],
    "mean": pa.array([Decimal("4790.457777777778")], pa.decimal128(38, 12)),
    "count": pa.array([5], pa.int64()),
    "share": pa.array([0.5], pa.float64()),
    "word": ["NaN"],
    "nothing": pa.array([None], pa.int64()),
}
STYLES = {
    "account": {"style": "text"},
    "word": {"style": "text"},
    "mean": {"style": "currency", "currency": "GBP", "places": 2},
}


def report(**expect: str) -> Report:
    keeper = recorder()
    scene = world(keeper, step(keeper, "s", CELLS))
    figures = {
        name: {"step": "s", "column": name, "display": STYLES.get(name, {})} for name in CELLS
    }
    prose = " ".join(f"{{{name}}}" for name in CELLS)
    draft = AnswerDraft.model_validate({"prose": prose, "figures": figures})
    answer, problems = fill(draft, scene, "?")
    assert problems == ()
    question = Question("q", "?", (), None, "", "", expect, {})
    return make_report(question, answer, template=prose, world=scene, receipts=[])


@pytest.mark.parametrize(
    ("name", "expected", "holds"),
    [
        ("account", "00004218", True),
        ("account", "4218", False),
        ("account", "4218.0", False),
        ("word", "NaN", True),
        ("count", "5", True),
        ("count", "5.00", True),
        ("count", "05", True),
        ("count", "6", False),
        ("count", "five", False),
        ("share", "0.50", True),
        ("mean", "4790.457777777778", True),
        ("mean", "4790.46", False),
        ("nothing", "0", False),
        ("nothing", "", False),
    ],
)
def test_a_text_is_compared_as_text_and_a_number_as_number(name, expected, holds):
    (found,) = report(**{name: expected}).expectations
    assert found.holds is holds


def test_the_cell_is_compared_and_both_are_said():
    text = report_text(report(mean="4790.46", account="4218", nothing="0"))
    assert (
        "  DOES NOT TIE: mean value expected 4790.46, "
        "the cell holds 4790.457777777778, shown as GBP 4,790.46\n"
    ) in text
    assert "  DOES NOT TIE: account value expected 4218, found 00004218\n" in text
    assert "  DOES NOT TIE: nothing value expected 0, found nothing\n" in text
    assert "\n  ties: count value expected 5.0, found 5\n" in report_text(report(count="5.0"))
