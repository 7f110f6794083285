"""Extraction: one quoted fact with its exact place, or a refusal that says why."""

from __future__ import annotations

import base64
import json
import os
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieout.artifacts.text import snapshot_text
from tieout.executor.errors import ExecutorError
from tieout.executor.extract import ExtractSpec, extract
from tieout.executor.numbers import FIGURES, find_numbers
from tieout.executor.search import Document

SHARED = os.environ.get("TIEOUT_SHARED")
JAPAN = "On 1 October 2024 the population of Japan stood at 123,802,000 people. Alone: 34.5%."
GERMANY = "Germany had 83.6 million people; its debt was €2,509,000,000.50 in 2024."


def document(name: str, text: str) -> Document:
    return Document(name, f"blake3:{'1' * 64}", f"blake3:{'2' * 64}", text, None)


DOCUMENTS = [document("japan", JAPAN), document("germany", GERMANY)]


def spec(quote: str, **change: object) -> ExtractSpec:
    fields = {"near": None, "as_": "number", "occurrence": None, "unit": None} | change
    return ExtractSpec(quote=quote, **fields)  # type: ignore[arg-type]


def refusal(wanted: ExtractSpec, documents: list[Document] = DOCUMENTS) -> ExecutorError:
    with pytest.raises(ExecutorError) as caught:
        extract(wanted, documents)
    return caught.value


def test_one_row_with_the_exact_place() -> None:
    quote = "population of Japan stood at 123,802,000 people"
    table = extract(spec(quote, near="Population of Japan", unit="people"), DOCUMENTS)
    assert table.column_names == [
        "document", "raw", "text", "start", "end", "quote", "value", "printed",
        "number_start", "number_end", "unit", "scale", "status",
    ]  # fmt: skip
    (row,) = table.to_pylist()
    assert JAPAN[row["start"] : row["end"]] == row["quote"] == quote
    assert JAPAN[row["number_start"] : row["number_end"]] == row["printed"] == "123,802,000"
    assert row["value"] == Decimal(123802000)
    assert table.schema.field("value").type == pa.decimal128(38, 0)
    assert (row["document"], row["status"], row["unit"]) == ("japan", "exact", None)
    assert (row["raw"], row["text"]) == (DOCUMENTS[0].raw, DOCUMENTS[0].address)


@pytest.mark.parametrize(
    ("quote", "value", "places", "unit", "scale"),
    [
        ("had 83.6 million people", "83600000", 0, None, "million"),
        ("debt was €2,509,000,000.50", "2509000000.50", 2, "EUR", None),
        ("Alone: 34.5%", "34.5", 1, "%", None),
    ],
)
def test_values_are_exact_decimals(
    quote: str, value: str, places: int, unit: str | None, scale: str | None
) -> None:
    table = extract(spec(quote), DOCUMENTS)
    (row,) = table.to_pylist()
    assert table.schema.field("value").type == pa.decimal128(38, places)
    assert (row["value"], row["unit"], row["scale"]) == (Decimal(value), unit, scale)


def test_text_is_taken_as_it_stands() -> None:
    table = extract(spec("population of\u00a0Japan", as_="text"), DOCUMENTS)
    (row,) = table.to_pylist()
    assert row["value"] == row["printed"] == row["quote"] == "population of Japan"
    assert (row["status"], row["number_start"], row["number_end"]) == ("folded", None, None)
    assert [str(t) for t in table.schema.types] == [
        "string", "string", "string", "int64", "int64", "string", "string", "string",
        "int64", "int64", "string", "string", "string",
    ]  # fmt: skip


REFUSED = {
    "forged figure": (spec("population of Japan stood at 131,802,000 people"), "quote.not_found"),
    "forged word": (spec("population of Japan fell to 123,802,000 people"), "quote.not_found"),
    "part of a figure": (spec("23,802,000 people"), "quote.boundary"),
    "per cent cut off": (spec("Alone: 34.5"), "quote.boundary"),
    "scale cut off": (spec("Germany had 83.6"), "quote.boundary"),
    "both documents": (spec("2024"), "quote.ambiguous"),
    "twice in one": (spec("o"), "quote.boundary"),
    "empty": (spec(" "), "quote.empty"),
    "a bare year": (spec("in 2024."), "number.only_year"),
    "no number": (spec("the population of Japan"), "number.none"),
    "several": (spec("123,802,000 people. Alone: 34.5%"), "number.several"),
    "keyword": (spec("had 83.6 million people", near="Japan"), "number.keyword_missing"),
    "keyword of a text": (
        spec("its debt was", near="Japan", as_="text"),
        "number.keyword_missing",
    ),
    "unit": (spec("debt was €2,509,000,000.50", unit="USD"), "number.unit_mismatch"),
    "kind": (spec("its debt", as_="date"), "extract.kind"),
    "occurrence": (spec("its debt", occurrence=2), "quote.occurrence"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_refusals(name: str) -> None:
    wanted, code = REFUSED[name]
    error = refusal(wanted)
    assert error.code == code
    assert error.remedy


def test_two_documents_are_named_and_one_given_twice_is_one() -> None:
    both = [document("b", "it was 5 then"), document("a", "it was 5 then")]
    error = refusal(spec("was 5"), both)
    assert error.code == "quote.ambiguous"
    assert "'a', 'b'" in error.message
    assert extract(spec("was 5"), [both[0], both[0]]).num_rows == 1
    assert refusal(spec("was 5"), []).code == "extract.no_documents"


def test_two_places_in_one_document_need_an_occurrence() -> None:
    twice = [document("a", "it was 5; it was 7"), document("b", "nothing")]
    error = refusal(spec("it was"), twice)
    assert (error.code, error.place.partition(":")[0]) == ("quote.ambiguous", "a")
    table = extract(spec("it was", as_="text", occurrence=2), twice)
    assert table.column("start").to_pylist() == [10]


def test_a_document_that_holds_only_a_longer_word_does_not_count() -> None:
    documents = [document("a", "the 12.5 million"), document("b", "the 5 million")]
    assert extract(spec("5 million"), documents).column("document").to_pylist() == ["b"]


def test_numbers_beyond_the_decimal_type_are_refused() -> None:
    digits = "9" * 38
    assert extract(spec(digits), [document("a", digits)]).column("value").to_pylist() == [
        Decimal(digits)
    ]
    error = refusal(spec(digits + " million"), [document("a", digits + " million")])
    assert error.code == "number.too_large"


@given(st.text(max_size=80), st.data())
def test_only_our_error_leaves(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    quote = text[start : data.draw(st.integers(start, len(text)))]
    near = data.draw(st.sampled_from([None, "a", "(", quote[:3]]))
    as_ = data.draw(st.sampled_from(["number", "text"]))
    try:
        table = extract(spec(quote, near=near, as_=as_), [document("a", text)])
    except ExecutorError as error:
        assert error.code.partition(".")[0] in {"quote", "number"}
    else:
        (row,) = table.to_pylist()
        assert text[row["start"] : row["end"]] == row["quote"]


WILD = {
    "15-list-in-table-cell": "text",
    "16-tail-text-after-inline": "text",
    "18-meta-charset-latin1": "text",
    "19-no-http-charset": "text",
    "21-footnote-glued-to-figure": "number",
    "22-price-cents-in-sup": "number",
    "23-hidden-sort-key": "number",
    "24-space-grouped-thousands": "refused",
    "26-group-and-three-decimals": "number",
    "28-leading-comma-decimal": "refused",
    "29-nbsp-grouping": "number",
    "30-bad-grouping-is-error": "refused",
    "31-point-in-comma-locale": "number",
    "32-numbers-are-not-dates": "number",
    "33-id-is-not-a-year": "number",
}


@pytest.mark.skipif(SHARED is None, reason="TIEOUT_SHARED is not set")
@pytest.mark.parametrize("name", list(WILD))
def test_cases_from_the_wild(name: str) -> None:
    path = Path(SHARED or "") / "cases" / "text" / name / "case.json"
    case = json.loads(path.read_text(encoding="utf-8"))
    given_, expect = case["input"], case["expect"]
    text = given_.get("text", "")
    if "html" in given_ or "raw_b64" in given_:
        raw = (
            base64.b64decode(given_["raw_b64"]) if "raw_b64" in given_ else given_["html"].encode()
        )
        snapshot = snapshot_text(raw, media="text/html", charset=given_.get("http_charset"))
        text = snapshot.text
        if "encoding" in expect:
            assert snapshot.encoding == expect["encoding"]
        if "hidden_text_kept_apart" in expect:
            assert "7001857600000000000" in snapshot.hidden
    at = 0
    for part in expect.get("contains", []):
        at = text.index(part, at)
    assert "\ufffd" not in text
    figures = [token for token in find_numbers(text) if token.kind in FIGURES]
    certain = [t.value for t in figures if t.ambiguous is None and t.value is not None]
    values = [Decimal(value) for value in expect.get("values", [])]
    optional = [Decimal(value) for value in expect.get("optional", [])]
    assert not set(certain) & {Decimal(value) for value in expect.get("not_values", [])}
    assert set(certain) <= {*values, *optional} or WILD[name] == "text"
    if WILD[name] == "number" and values:
        assert set(values) <= {token.value for token in figures}
    if WILD[name] == "refused":
        assert not certain
