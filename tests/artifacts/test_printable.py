"""Foreign text cannot draw lines, hide itself or steer a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from tieout.artifacts.printable import GUTTER, is_unsafe, lines, one_line, page


@given(st.text())
def test_a_line_is_one_line_and_holds_nothing_unsafe(text):
    shown = one_line(text)
    assert not any(is_unsafe(c) for c in shown)
    assert len(shown.splitlines()) <= 1


@given(st.lists(st.text(), min_size=1))
def test_a_page_has_as_many_lines_as_rows(rows):
    assert page(rows).count("\n") == len(rows) - 1


def test_what_hides_or_steers_is_shown_by_number():
    assert (
        one_line("a\x1b[2J\nb\u202e1\u200b\ufeff\ufe0f")
        == "a\\u{1B}[2J\\u{A}b\\u{202E}1\\u{200B}\\u{FEFF}\\u{FE0F}"
    )
    assert lines("x\n  fake = 5  sourced") == [GUTTER + "x", GUTTER + "  fake = 5  sourced"]
    assert one_line("Müller & Söhne €5 東京 ½") == "Müller & Söhne €5 東京 ½"
    assert one_line("x" * 50, chars_max=10) == "x" * 10 + "… (50 characters)"
