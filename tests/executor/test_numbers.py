"""Numbers in prose: read right, or refused with the reason, and no digit is left over."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import unicodedata
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieout.executor.errors import ExecutorError
from tieout.executor.numbers import FIGURES, NumberToken, find_numbers, read_number

SHARED = os.environ.get("TIEOUT_SHARED")


def read(text: str, *, near: str | None = None, unit: str | None = None) -> NumberToken:
    return read_number(text, start=0, end=len(text), near=near, unit=unit)


CERTAIN = {
    "fell to 12,345 units": ("12345", "number", None, 0),
    "cost $1,234,567.890 in all": ("1234567.890", "money", "USD", 3),
    "cost $1.2bn": ("1200000000", "money", "USD", 1),
    "cost $12m": ("12000000", "money", "USD", 0),
    "cost USD 7.5 million": ("7500000", "money", "USD", 1),
    "cost 1.2\nmillion euros": ("1200000", "money", "EUR", 1),
    "a $450-million contract": ("450000000", "money", "USD", 0),
    "paid €1.234,56": ("1234.56", "money", "EUR", 2),
    "paid 12\u202f345,67 euros": ("12345.67", "money", "EUR", 2),
    "paid US$7": ("7", "money", "USD", 0),
    "paid ₹2,50,000": ("250000", "money", "INR", 0),
    "raised 12 crore rupees": ("120000000", "money", "INR", 0),
    "was -$12.4bn": ("-12400000000", "money", "USD", 1),
    "was $(12.4)bn": ("-12400000000", "money", "USD", 1),
    "fell to −12.5 °C": ("-12.5", "number", "°C", 1),
    "was –0.3% lower": ("-0.3", "percent", "%", 1),
    "minus 3.2% in all": ("-3.2", "percent", "%", 1),
    "yields 4¾ per cent": ("4.75", "percent", "%", 2),
    "rose 25 basis points": ("25", "percent", "bp", 0),
    "a 0.5 percentage point cut": ("0.5", "percent", "pp", 1),
    "Net loss\t(0.37)\t": ("-0.37", "number", None, 2),
    "Net loss was (1,200) thousand euros": ("-1200000", "money", "EUR", 0),
    "the lake of 1,203 km²": ("1203", "number", "km²", 0),
    "emits 10⁶ tonnes": ("1000000", "number", "tonnes", 0),
    "emits 10^6 tonnes": ("1000000", "number", "tonnes", 0),
    "saw 6.02e3 events": ("6020", "number", None, 0),
    "4,530^1 tonnes": ("4530", "number", None, 0),
    "4,530¹ units": ("4530", "number", None, 0),
    "In 1998, 2000 people came": ("2000", "number", None, 0),
    "On 3 March 2023 it paid £4.75m": ("4750000", "money", "GBP", 2),
    "$.04 diluted": ("0.04", "money", "USD", 2),
    "Headcount was 1.1k": ("1100", "number", None, 1),
    "12\u200b,\u200b345 dollars": ("12345", "money", "USD", 0),
    "a rate of 0.125": ("0.125", "number", None, 3),
    "1'234'567 francs": ("1234567", "number", None, 0),
    "See section 4.2 for the 7 cases": ("7", "number", None, 0),
    "12m tall": ("12", "number", "m", 0),
}


@pytest.mark.parametrize("text", list(CERTAIN))
def test_certain_numbers(text: str) -> None:
    value, kind, unit, places = CERTAIN[text]
    token = read(text)
    assert (token.value, token.kind, token.unit) == (Decimal(value), kind, unit)
    assert token.places == places
    assert token.text == text[token.start : token.end]


REFUSED = {
    "It was in 2024": "number.only_year",
    "the year (2024)": "number.only_year",
    "on 3 March 2023": "number.only_year",
    "in 2019–2023 and FY2024": "number.only_year",
    "2024 revenue rose": "number.only_year",
    "nothing here": "number.none",
    "": "number.none",
    "W6277, ISO-27001, 192.168.0.1": "number.none",
    "See Table 3 and note 12": "number.none",
    "at 14:30": "number.none",
    "the 3rd case": "number.none",
    "call +1 (555) 010-0199": "number.none",
    "Odds of 3:1": "number.none",
    "half a million": "number.none",
    "from 5 to 7 people": "number.several",
    "5\t7": "number.several",
    "about 1.234 people": "number.ambiguous_separator",
    "about 1,5 km": "number.ambiguous_separator",
    "about 12 345 people": "number.ambiguous_separator",
    "nur ,89 €": "number.ambiguous_separator",
    "0,123 of it": "number.ambiguous_separator",
    "1.234.567 people": "number.ambiguous_separator",
    "Sum: 11,11.11": "number.bad_grouping",
    "Sum: 1,2345": "number.bad_grouping",
    "1,23,45 rupees": "number.bad_grouping",
    "$11^99": "number.ambiguous",
    "growth of (3.2%) there": "number.ambiguous",
    "the fee ($12.40) was": "number.ambiguous",
    "Revenue ($ in thousands)\t2,345": "number.ambiguous",
    "worth 12M": "number.ambiguous",
    "12.4m people": "number.ambiguous",
    "£m 12.4": "number.ambiguous",
    "USD m\t12.4": "number.ambiguous",
    "paid USD 5-7m": "number.several",
    "Boeing 737 deliveries": "number.ambiguous",
    "ISO 27001 sites": "number.ambiguous",
    "2 and a half million": "number.ambiguous",
    "5 dozen": "number.ambiguous",
    "1.2 x 10^6 cells": "number.several",
    "±5 points": "number.ambiguous",
    "Result - 5 million": "number.ambiguous",
    "a credit of 100 CR": "number.ambiguous",
    "balance 1,234-": "number.ambiguous",
    "code 00173x and 007": "number.ambiguous",
    "９００ people": "number.ambiguous",
    "1" * 39: "number.ambiguous",
    "$5 EUR": "number.ambiguous",
}


@pytest.mark.parametrize("text", list(REFUSED))
def test_refused_numbers(text: str) -> None:
    with pytest.raises(ExecutorError) as caught:
        read(text)
    assert caught.value.code == REFUSED[text], str(caught.value)


def test_the_keyword_must_stand_in_the_passage_whole() -> None:
    text = "The population of\nJapan is 123 million. Germany has 83 million."
    end = text.index(".")
    assert read_number(text, start=0, end=end, near="Population of Japan").value == 123_000_000
    for near in ("Germany", "Jap", "  "):
        with pytest.raises(ExecutorError) as caught:
            read_number(text, start=0, end=end, near=near)
        assert caught.value.code == "number.keyword_missing"


def test_a_keyword_never_picks_one_of_several() -> None:
    with pytest.raises(ExecutorError, match=r"2 numbers: '5', '7'") as caught:
        read("cats 5, dogs 7", near="cats")
    assert caught.value.code == "number.several"


@pytest.mark.parametrize(
    ("unit", "fine"),
    [("USD", True), ("usd", True), ("EUR", False), ("%", False)],
)
def test_the_unit_must_be_the_printed_one(unit: str, fine: bool) -> None:
    if fine:
        assert read("cost $5", unit=unit).unit == "USD"
        return
    with pytest.raises(ExecutorError) as caught:
        read("cost $5", unit=unit)
    assert caught.value.code == "number.unit_mismatch"


def test_a_unit_may_be_the_word_that_follows() -> None:
    assert read("83,577,140 people.", unit="people").value == 83_577_140
    with pytest.raises(ExecutorError):
        read("83,577,140 people.", unit="peop")


CUTS = {
    "was -3.2% there": "3.2%",
    "was 12.5 million": "12.5",
    "was 12.5% there": "12.5",
    "was 12.5 there": "12",
    "was 1,234 there": "234",
    "was $(12.4)bn": "12.4",
}


@pytest.mark.parametrize("text", list(CUTS))
def test_a_figure_is_never_cut(text: str) -> None:
    start = text.index(CUTS[text])
    with pytest.raises(ExecutorError) as caught:
        read_number(text, start=start, end=start + len(CUTS[text]), near=None)
    assert caught.value.code == "number.boundary"


def test_a_currency_outside_the_passage_is_not_claimed() -> None:
    text = "cost $12.5 million in all"
    token = read_number(text, start=text.index("12"), end=text.index(" in"), near=None)
    assert (token.text, token.value, token.unit) == ("12.5 million", 12_500_000, None)


def test_scale_is_named_with_its_place() -> None:
    token = read("about 1.2 million people")
    assert (token.scale, token.scale_span) == ("million", (10, 17))


NUMERIC = "".join(chr(code) for code in range(0x110000) if chr(code).isnumeric())
PROSE = st.lists(
    st.one_of(
        st.text("0123456789.,-+()$€%'’ \t\n:/^¹²½Qa\u200b\u00a0−–", max_size=6),
        st.sampled_from(["million", "March", "2024", "USD ", " per cent", "km", "No. ", "bn", "m"]),
        st.text(max_size=4),
        st.text(NUMERIC, max_size=4),
    ),
    max_size=12,
).map("".join)


@given(PROSE)
def test_each_digit_belongs_to_exactly_one_token(text: str) -> None:
    tokens = find_numbers(text)
    owner = [0] * len(text)
    for token in tokens:
        assert 0 <= token.start < token.end <= len(text)
        assert token.text == text[token.start : token.end]
        assert (
            token.start <= token.core[0] <= token.core[1] <= token.end
            or token.core[0] < token.core[1]
        )
        for at in range(token.start, token.end):
            owner[at] += 1
    assert all(count <= 1 for count in owner)
    assert all(
        owner[at] == 1
        for at, char in enumerate(text)
        if unicodedata.numeric(char, None) is not None
    )
    assert list(tokens) == sorted(tokens, key=lambda token: token.start)


@given(
    st.decimals(-(10**12), 10**12, places=2),
    st.sampled_from(["{} people", "it was {}.", "{}", "(see {}, here)", "a\t{}\tb"]),
)
def test_printed_money_reads_back(value: Decimal, frame: str) -> None:
    token = read(frame.format(f"${value:,}" if value >= 0 else f"-${-value:,}"))
    assert (token.value, token.kind, token.places) == (value, "money", 2)


@given(PROSE, st.data())
def test_reading_any_span_raises_only_our_error(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    try:
        token = read_number(text, start=start, end=end, near=None)
    except ExecutorError as error:
        assert error.code.startswith("number.")
    else:
        assert token.value is not None
        assert start <= token.start < token.end <= end
        assert token.text == text[token.start : token.end]


@pytest.mark.skipif(SHARED is None, reason="TIEOUT_SHARED is not set")
def test_the_english_cases_are_right_or_refused_never_wrong() -> None:
    right = refused = 0
    path = Path(SHARED or "") / "cases" / "numbers.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case["lang"] not in {"en", "in"}:
            continue
        certain = [
            token
            for token in find_numbers(case["text"])
            if token.kind in FIGURES and token.ambiguous is None and token.value is not None
        ]
        for skip in case["skip"]:
            assert not [t for t in certain if t.start < skip["end"] and t.end > skip["start"]], case
        for expected in case["expect"]:
            start, end = expected["start"], expected["end"]
            hits = [t for t in certain if t.core[0] < end and t.core[1] > start]
            if len(hits) != 1 or "/" in expected["value"]:
                assert len(hits) != 1 or "in" in expected["text"]
                refused += 1
                continue
            if ".." in expected["value"]:
                assert str(hits[0].value) in expected["value"].split(".."), case
                refused += 1
                continue
            assert hits[0].value == Decimal(expected["value"]), case
            right += 1
    assert (right, refused) == (80, 14)


@pytest.mark.parametrize(
    "text",
    [
        "La deuda es 1.234,5 millones de euros",
        "500 Tsd. EUR",
        "3.4 Mio. CHF",
        "5 bilhões",
        "5 miles de euros",
    ],
)
def test_a_scale_word_of_another_language_is_never_passed_over(text):
    with pytest.raises(ExecutorError) as caught:
        read_number(text, start=0, end=len(text), near=None)
    assert caught.value.code == "number.ambiguous"
    assert read_number("12 miles away", start=0, end=13, near=None).value == 12


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("part Ⅷ holds", "Ⅷ"), ("Ⅿ items", "Ⅿ"), ("⑩ items", "⑩"), ("¾ of it", "¾"), ("௰ items", "௰"),
        ("一千二百 items", "一千二百"), ("note ¹² says", "¹²"), ("𝟗 items", "𝟗"), ("٣ items", "٣"),
    ],
)  # fmt: skip
def test_a_numeral_of_any_script_is_found_and_no_value_is_guessed(text: str, printed: str) -> None:
    (token,) = find_numbers(text)
    assert (token.text, token.value) == (printed, None)


def test_scale_words_without_end_are_doubted_and_stay_in_bounds() -> None:
    (token,) = find_numbers("5" + " trillion" * 2_000)
    assert token.ambiguous is not None
    assert token.value == Decimal(5).scaleb(24)


REPEATED = (
    "@", "a@", "a.", "1 ", "9", ".", "-", "(", ",1", "1,", "x", "٠", "1-", "1/", "1:", "1.", "(1)", "-1$1",
    "no ", "page ", "loss (1", "in thousands 1 ", "1 to ", "March ", "²", "½", "1\u200b", "\u200b", "+1", "A1-",
    "5 million ", "1e", "www.", "'", "一", "USD 1 ", " ", "\n", "1 and a half ", "#\n",
)  # fmt: skip
_COUNT = """
import sys
from tieout.executor.numbers import find_numbers
part = sys.argv[1]
text = part * (20_000 // len(part))
for around in (text, text + "5x!", "5" + text):
    find_numbers(around)
"""


@pytest.mark.slow
@pytest.mark.parametrize("part", REPEATED)
def test_repeated_characters_take_no_endless_time(part: str) -> None:
    """The limit is the kernel's: what takes longer is killed and does not end with 0."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))

    done = subprocess.run([sys.executable, "-c", _COUNT, part], preexec_fn=limit, check=False)
    assert done.returncode == 0


def test_the_worst_repetition_known_ends() -> None:
    assert [token.text for token in find_numbers("@" * 20_000 + "1")] == ["1"]
    assert find_numbers("a@" * 10_000) == ()
