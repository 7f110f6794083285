"""The display rule between a cell and the figure in the prose."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieout.executor.grammar import Display
from tieout.planner.display import is_long, is_rounded, misfit, shown, types_unit

NUMBERS = st.decimals(
    allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30, places=6
)


@pytest.mark.parametrize(
    ("value", "display", "expected"),
    [
        ("1234567.891", {}, "1,234,567.891"),
        ("1234567.891", {"places": 2}, "1,234,567.89"),
        ("1234.5", {"places": 2, "style": "currency", "currency": "GBP"}, "GBP 1,234.50"),
        ("-0.01", {"places": 2, "style": "currency", "currency": "GBP"}, "GBP -0.01"),
        ("67.5085", {"places": 1, "style": "percent"}, "67.5%"),
        ("0.125", {"places": 2}, "0.13"),
        ("-0.125", {"places": 2}, "-0.13"),
        ("0.125", {"places": 2, "rounding": "half-even"}, "0.12"),
        ("0.135", {"places": 2, "rounding": "half-even"}, "0.14"),
        ("-0.004", {"places": 2}, "0.00"),
        ("-0", {}, "0"),
        ("0.00", {}, "0.00"),
        ("1e308", {"places": 0}, f"{10**308:,}"),
        ("5e-324", {"places": 2}, "0.00"),
        ("2026-06-30T12:00:00", {"style": "date"}, "2026-06-30"),
        ("00012", {"style": "text"}, "00012"),
        (None, {"style": "text"}, "(no value)"),
        (None, {"places": 2}, "(no value)"),
        ("NaN", {"places": 2}, "(no value: not a number)"),
        ("-Infinity", {}, "(no value: infinite)"),
        ("Infinity", {"style": "text"}, "Infinity"),
        ("a\x1b[1m\nb", {"style": "text"}, r"a\u{1B}[1m\u{A}b"),
    ],
)
def test_how_a_value_is_shown(value, display, expected):
    assert shown(value, Display(**display)) == expected


@given(NUMBERS, st.integers(0, 18), st.sampled_from(["half-up", "half-even"]))
def test_what_is_shown_is_within_half_of_the_last_place(number, places, rounding):
    text = shown(str(number), Display(places=places, rounding=rounding))
    back = Decimal(text.replace(",", ""))
    assert abs(back - number) <= Decimal(5).scaleb(-places - 1)
    assert -back.as_tuple().exponent == places
    assert not (back == 0 and text.startswith("-"))


@given(NUMBERS, st.integers(0, 18))
def test_rounded_says_that_the_stored_value_differs(number, places):
    display = Display(places=places, style="percent")
    text = shown(str(number), display).rstrip("%").replace(",", "")
    assert is_rounded(str(number), display) == (Decimal(text) != number)


@pytest.mark.parametrize(
    ("value", "display", "expected"),
    [
        ("1.50", {"places": 2}, False),
        ("1.50", {"places": 1}, False),
        ("1.51", {"places": 1}, True),
        ("0.001", {"places": 2}, True),
        ("1.51", {}, False),
        (None, {"places": 1}, False),
        ("NaN", {"places": 1}, False),
        ("1.51", {"style": "text", "places": 1}, False),
    ],
)
def test_what_is_rounded(value, display, expected):
    assert is_rounded(value, Display(**display)) is expected


@pytest.mark.parametrize(
    ("style", "typed"),
    [("currency", True), ("percent", True), ("number", False), ("text", False), ("date", False)],
)
def test_the_plan_types_a_unit(style, typed):
    assert types_unit(Display(style=style, currency="GBP")) is typed


@given(NUMBERS)
def test_without_places_nothing_is_lost(number):
    assert Decimal(shown(str(number), Display()).replace(",", "")) == number


@pytest.mark.parametrize(
    ("style", "kind", "fits"),
    [
        ("number", "DECIMAL(18,2)", True),
        ("number", "BIGINT", True),
        ("number", "VARCHAR", False),
        ("percent", "DATE", False),
        ("date", "DATE", True),
        ("date", "VARCHAR", False),
        ("text", "DATE", True),
        ("text", "DECIMAL(18,2)", True),
    ],
)
def test_styles_fit_types(style, kind, fits):
    assert (misfit(Display(style=style), kind) is None) == fits


def test_a_currency_is_named():
    assert misfit(Display(style="currency"), "DECIMAL(18,2)") is not None
    assert misfit(Display(style="currency", currency="EUR"), "DECIMAL(18,2)") is None


@pytest.mark.parametrize(
    ("value", "display", "expected", "rounded"),
    [
        ("4790.457777777778", {"style": "currency", "currency": "GBP"}, "GBP 4,790.46", True),
        ("4790.500000000000", {"style": "currency", "currency": "GBP"}, "GBP 4,790.50", False),
        ("33.333333333333", {"style": "percent"}, "33.33%", True),
        ("-0.001000000000", {"style": "percent"}, "0.00%", True),
        ("4790.457777777778", {}, "4,790.457777777778", False),
        ("4790.500000000000", {}, "4,790.5", False),
        ("4700.000000000000", {}, "4,700", False),
        ("0.000000000000", {}, "0", False),
        ("-0.000000000000", {}, "0", False),
        ("4790.457777777778", {"places": 12}, "4,790.457777777778", False),
        ("4790.457777777778", {"places": 3, "style": "percent"}, "4,790.458%", True),
        ("1e25", {}, f"{10**25:,}", False),
        (None, {"style": "percent"}, "(no value)", False),
        ("4790.457777777778", {"style": "text"}, "4790.457777777778", False),
    ],
)
def test_digits_of_a_computation_are_not_all_shown(value, display, expected, rounded):
    found = Display(**display)
    assert shown(value, found, long=True) == expected
    assert is_rounded(value, found, long=True) is rounded


@given(NUMBERS)
def test_a_number_loses_no_digit_but_zeros(number):
    text = shown(str(number), Display(), long=True).replace(",", "")
    assert Decimal(text) == number
    assert "." not in text or not text.endswith(("0", "."))


@pytest.mark.parametrize(
    ("kind", "computed", "expected"),
    [
        ("DECIMAL(38,12)", True, True),
        ("DECIMAL(38,14)", True, True),
        ("DOUBLE", True, True),
        ("DECIMAL(38,12)", False, False),
        ("DOUBLE", False, False),
        ("DECIMAL(18,2)", True, False),
        ("BIGINT", True, False),
        ("VARCHAR", True, False),
    ],
)
def test_which_digits_are_of_a_computation(kind, computed, expected):
    assert is_long(kind, computed=computed) is expected


@pytest.mark.parametrize(
    ("style", "kind", "way_out"),
    [
        ("number", "TIMESTAMP", "style date"),
        ("currency", "DATE", "style date"),
        ("percent", "VARCHAR", "style text"),
        ("date", "VARCHAR", "style text"),
        ("date", "DECIMAL(18,2)", "style number"),
    ],
)
def test_a_misfit_names_the_style_that_fits(style, kind, way_out):
    said = misfit(Display(style=style, currency="GBP"), kind)
    assert said is not None
    assert said.endswith(f"give {way_out}")
    assert misfit(Display(style=way_out.removeprefix("style ")), kind) is None
