"""questions.toml: strict, with the place of each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieout.artifacts.errors import RoomError
from tieout.planner.questions import load_questions, single_question

KNOWN = frozenset({"bank", "gl"})
Q = '[[question]]\nid = "q"\ntext = "How much?"\nsources = ["bank"]\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "questions.toml"
    path.write_text(text)
    return path


def test_a_whole_file(tmp_path):
    (tmp_path / "p.json").write_bytes(b'{"turns": []}')
    text = (
        "as_of = 2026-06-30\n"
        + Q
        + 'plan = "p.json"\n[question.expect]\nx = "1.00"\n[question.expect_labels]\nx = "sourced"\n'
        + '[[question]]\nid = "r"\ntext = "And?"\nsources = []\nas_of = "2026-07-01"\n'
    )
    file = load_questions(written(tmp_path, text), KNOWN)
    one, two = file.questions
    assert (one.id, one.sources, one.as_of, one.plan) == (
        "q",
        ("bank",),
        "2026-06-30",
        b'{"turns": []}',
    )
    assert (dict(one.expect), dict(one.expect_labels)) == ({"x": "1.00"}, {"x": "sourced"})
    assert (two.as_of, two.plan, two.plan_name) == ("2026-07-01", None, "")
    assert file.payload == text.encode()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "questions.field"),
        ("question = []\n", "questions.field"),
        ("[[question]\n", "questions.not_toml"),
        (Q + "surprise = 1\n", "questions.field"),
        (Q.replace('"q"', '"Q 1"'), "questions.field"),
        (Q.replace('"How much?"', '""'), "questions.field"),
        (Q + Q, "questions.repeated_id"),
        (Q.replace('["bank"]', '["payroll"]'), "questions.unknown_source"),
        (Q + 'as_of = "soon"\n', "questions.as_of"),
        (Q + "as_of = 5\n", "questions.as_of"),
        (Q + 'plan = "nowhere.json"\n', "plan.missing"),
        (Q + '[question.expect_labels]\nx = "good"\n', "questions.label"),
        (Q + "[question.expect]\nx = 1.0\n", "questions.field"),
    ],
)
def test_mistakes(tmp_path, text, code):
    with pytest.raises(RoomError) as caught:
        load_questions(written(tmp_path, text), KNOWN)
    error = caught.value
    assert error.code == code
    assert str(tmp_path) in error.place
    assert error.remedy
    assert error.exit_code == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (Q + Q.replace('"q"', '"Q 1"'), "question 2 ('Q 1').id must be 1 to 80 lower-case letters"),
        (Q + "surprise = 1\n", "question 1 ('q').surprise is not known; known there: id, text,"),
        (Q + '[[question]]\nid = "r"\n', "question 2 ('r').text is missing"),
        (Q + "[question.expect]\nx = 1.0\n", "question 1 ('q').expect.x must be a text in quotes"),
        ("question = []\n", "question must be a list of at least 1"),
    ],
)
def test_a_fault_names_the_question_and_what_is_allowed(tmp_path, text, said):
    with pytest.raises(RoomError) as caught:
        load_questions(written(tmp_path, text), KNOWN)
    assert said in caught.value.message


def test_one_question():
    file = single_question("How much?", sources=("bank",), plan=None, as_of="2026-06-30")
    (one,) = file.questions
    assert (one.id, one.text, one.as_of) == ("ask", "How much?", "2026-06-30")
    with pytest.raises(RoomError) as caught:
        single_question("  ", sources=(), plan=None, as_of="")
    assert caught.value.code == "questions.empty"
    with pytest.raises(RoomError) as caught:
        single_question("x", sources=(), plan=None, as_of="30/06/2026")
    assert caught.value.code == "questions.as_of"
    assert (caught.value.place, caught.value.exit_code) == ("--as-of", 4)
    assert "2026-12-31" in caught.value.remedy
    assert "file" not in caught.value.remedy
