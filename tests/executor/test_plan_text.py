"""Strict JSON with places, against the standard library's reader."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieout.executor.plan_text import DEPTH_MAX, PlanRefused, parse_json

LEAVES = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(max_size=8)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
)


@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_any_json_is_read_as_the_standard_library_reads_it(document, ascii_only, indent):
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    assert parse_json(text).value == document


@given(st.text(alphabet='{}[]":,019eE.-+ \\u\ntrufalsn', max_size=20))
def test_nothing_else_is_read(text):
    try:
        found = parse_json(text).value
    except PlanRefused:
        return
    assert found == json.loads(text, parse_float=Decimal)


@given(DOCUMENTS)
def test_each_value_is_where_it_is_said_to_be(document):
    placed = parse_json(json.dumps(document, indent=2))
    for path in placed.offsets:
        value = placed.value
        for part in path:
            value = value[part]
        assert json.loads(placed.slice(path)) == value


def test_numbers_with_a_point_are_exact():
    assert parse_json("0.1").value == Decimal("0.1")
    assert parse_json("[1e2, -0.50]").value == [Decimal("1e2"), Decimal("-0.50")]
    assert isinstance(parse_json("12").value, int)


@pytest.mark.parametrize(
    ("text", "line", "column", "code"),
    [
        ("", 1, 1, "plan.not_json"),
        ("{", 1, 2, "plan.not_json"),
        ('{"a": 1,}', 1, 9, "plan.not_json"),
        ('{"a" 1}', 1, 6, "plan.not_json"),
        ("{'a': 1}", 1, 2, "plan.not_json"),
        ('{"a": 1}\n{"b": 2}', 2, 1, "plan.not_json"),
        ('{"a": 1,\n "a": 2}', 2, 2, "plan.repeated_key"),
        ('{"a": 1, "\\u0061": 2}', 1, 10, "plan.repeated_key"),
        ('["a\nb"]', 1, 4, "plan.not_json"),
        ('["a', 1, 4, "plan.not_json"),
        ('["\\x"]', 1, 4, "plan.not_json"),
        ('["\\ud800"]', 1, 3, "plan.not_json"),
        ("[NaN]", 1, 2, "plan.not_json"),
        ("[Infinity]", 1, 2, "plan.not_json"),
        ("[01]", 1, 3, "plan.not_json"),
        ("[1٣]", 1, 3, "plan.not_json"),
        ("[+1]", 1, 2, "plan.not_json"),
        ("[1" + "0" * 60 + "]", 1, 43, "plan.not_json"),
        ("[1e9999]", 1, 7, "plan.not_json"),
        ("[" * (DEPTH_MAX + 2), 1, DEPTH_MAX + 2, "plan.not_json"),
        ("[1] // no", 1, 5, "plan.not_json"),
        ("\ufeff{}", 1, 1, "plan.not_json"),
    ],
)
def test_what_is_refused_and_where(text, line, column, code):
    with pytest.raises(PlanRefused) as caught:
        parse_json(text)
    error = caught.value
    assert (error.code, error.line, error.column) == (code, line, column)
    assert error.place == f"line {line}, column {column}"
    assert error.remedy


def test_a_pair_of_surrogate_escapes_is_one_character():
    assert parse_json('"\\ud83d\\ude00"').value == "😀"
