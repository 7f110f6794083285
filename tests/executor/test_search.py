"""Search: the same bytes, scores and order everywhere; excerpts are exact; staleness is an error."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tieout.artifacts.address import Address
from tieout.executor.errors import ExecutorError
from tieout.executor.search import (
    EXCERPT_CHARACTERS,
    SCHEMA,
    Document,
    build_index,
    inverse_frequency,
    search,
    tokenize,
)

SHARED = os.environ.get("TIEOUT_SHARED")


def document(name: str, text: str, published: str | None = None) -> Document:
    address = str(Address.of(text.encode("utf-8", "replace")))
    return Document(name, address, address, text, published)


def found(
    documents: list[Document], query: str, *, limit: int = 10, as_of: str | None = None
) -> list[dict[str, object]]:
    manifest, index = build_index(documents)
    by_name = {each.name: each for each in documents}
    table = search(index, manifest, by_name, query, limit=limit, as_of=as_of)
    assert table.schema.equals(SCHEMA)
    rows = table.to_pylist()
    for row in rows:
        assert row["excerpt"] == by_name[row["document"]].text[row["start"] : row["end"]]
        assert row["score"] > 0
    return rows


def names(rows: list[dict[str, object]]) -> list[object]:
    return [row["document"] for row in rows]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Net Sales, 2024", ["net", "sales", "2024"]),
        ("paid 1,234.50 in", ["paid", "1,234.50", "in"]),
        ("1. item, 2. item", ["1", "item", "2", "item"]),
        ("Stra\u00dfe CAFE\u0301", ["strasse", "caf\u00e9"]),
        ("東京都 人", ["東京", "京都", "人"]),
        ("5年で12kg", ["5", "年で", "12kg"]),
        ("snake_case", ["snake", "case"]),
        ("... --- _", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    terms = list(tokenize(text))
    assert [term.word for term in terms] == words
    assert all(0 <= term.start < term.end <= len(text) for term in terms)


def test_ties_are_broken_by_name_and_pages_agree() -> None:
    documents = [document(str(number), "listpack") for number in (5, 3, 7, 1, 0, 2, 6, 4)]
    whole = found(documents, "listpack", limit=8)
    assert names(whole) == sorted(names(whole), key=str)
    assert len({row["score"] for row in whole}) == 1
    for limit in range(1, 8):
        assert found(documents, "listpack", limit=limit) == whole[:limit]
    assert [row["rank"] for row in whole] == list(range(1, 9))


def test_a_word_in_most_documents_still_counts_for_them() -> None:
    documents = [
        document("doc1", "database lorem"),
        document("doc2", "database ipsum"),
        document("doc3", "database ipsum"),
    ]
    assert names(found(documents, "database ipsum")) == ["doc2", "doc3", "doc1"]


def test_no_hit_is_an_empty_table() -> None:
    assert found([document("a", "alpha")], "omega") == []
    assert found([], "omega") == []


def test_an_index_over_another_manifest_is_stale() -> None:
    old = [document("1", "alpha report"), document("2", "beta report")]
    new = [*old, document("3", "gamma report")]
    manifest, _ = build_index(new)
    _, index = build_index(old)
    with pytest.raises(ExecutorError, match="not over the current manifest") as caught:
        search(index, manifest, {d.name: d for d in new}, "gamma", limit=5, as_of=None)
    assert caught.value.code == "search.stale_index"
    assert names(found(new, "gamma")) == ["3"]


def test_a_document_that_changed_under_the_index_is_stale() -> None:
    manifest, index = build_index([document("1", "alpha")])
    for changed in ({"1": document("1", "alpha beta")}, {}):
        with pytest.raises(ExecutorError) as caught:
            search(index, manifest, changed, "alpha", limit=5, as_of=None)
        assert caught.value.code == "search.stale_index"


def test_as_of_hides_later_documents_and_keeps_old_scores() -> None:
    old = [document("a", "rate rise", "2024-01-01"), document("b", "rate", "2024-03-01")]
    later = [document("c", "rate rate rise", "2024-04-01"), document("d", "rate rise", None)]
    before = found(old, "rate rise")
    assert found(old + later, "rate rise", as_of="2024-03-01") == before
    assert names(found(old + later, "rate rise", as_of="2024-04-01")) != names(before)
    assert found(old + later, "rate", as_of="2023-12-31") == []
    assert "d" in names(found(old + later, "rate"))


REQUESTS = {
    "no words": ({"query": "... !"}, "search.empty_query"),
    "too long": ({"query": "x" * 2000}, "search.query_too_long"),
    "no limit": ({"limit": 0}, "search.limit"),
    "high limit": ({"limit": 1000}, "search.limit"),
    "not a date": ({"as_of": "June"}, "search.as_of"),
    "other date form": ({"as_of": "20240101"}, "search.as_of"),
}


@pytest.mark.parametrize("name", list(REQUESTS))
def test_requests_out_of_bounds(name: str) -> None:
    change, code = REQUESTS[name]
    documents = [document("a", "alpha")]
    manifest, index = build_index(documents)
    request = {"query": "alpha", "limit": 5, "as_of": None} | change
    with pytest.raises(ExecutorError) as caught:
        search(
            index,
            manifest,
            {"a": documents[0]},
            str(request["query"]),
            limit=int(str(request["limit"])),
            as_of=request["as_of"],  # type: ignore[arg-type]
        )
    assert caught.value.code == code


@pytest.mark.parametrize("part", ["index", "manifest"])
def test_damaged_indexes_are_our_error(part: str) -> None:
    manifest, index = build_index([document("a", "alpha")])
    for damaged in (b"", b"[]", b"{}", manifest if part == "index" else index, b"\xff"):
        pair = (damaged, manifest) if part == "index" else (index, damaged)
        with pytest.raises(ExecutorError) as caught:
            search(*pair, {}, "alpha", limit=5, as_of=None)
        assert caught.value.code == "search.index_malformed"


@pytest.mark.parametrize(
    "documents",
    [
        [document("a", "x"), document("a", "y")],
        [document("", "x")],
        [document("a\udcff", "x")],
    ],
)
def test_names_must_be_names(documents: list[Document]) -> None:
    with pytest.raises(ExecutorError) as caught:
        build_index(documents)
    assert caught.value.code == "search.document_name"


def test_a_date_of_publication_is_a_date() -> None:
    with pytest.raises(ExecutorError) as caught:
        build_index([document("a", "x", "June 2024")])
    assert caught.value.code == "search.published"


def test_the_bytes_are_fixed() -> None:
    manifest, index = build_index(
        [document("b", "rate 1,5 rate", "2024-01-01"), document("a", "\U0001d7d8 東京 rate")]
    )
    assert json.loads(index)["manifest"] == str(Address.of(manifest))
    assert str(Address.of(index)) == INDEX_ADDRESS
    assert [entry["name"] for entry in json.loads(manifest)["documents"]] == ["a", "b"]
    assert [entry["length"] for entry in json.loads(manifest)["documents"]] == [3, 3]


INDEX_ADDRESS = "blake3:464e0a186b619ce1a7d320bee0364d26124d32c5904d7b7dff2ba97a96f89807"
PROGRAM = """
import random, sys
from tieout.artifacts.address import Address
from tieout.executor.search import Document, build_index, search
words = [f"w{n}" for n in range(60)] + ["東京都", "1,234", "Straße"]
draw = random.Random(7)
docs = [
    Document(f"d{n:03}", f"blake3:{n:064x}", f"blake3:{n:064x}",
             " ".join(draw.choice(words) for _ in range(40)), None)
    for n in range(50)
]
random.Random(int(sys.argv[1])).shuffle(docs)
manifest, index = build_index(docs)
table = search(index, manifest, {d.name: d for d in docs}, "w1 w2 東京 1,234 strasse",
               limit=20, as_of=None)
print(Address.of(manifest), Address.of(index), table.to_pylist())
"""


def test_the_same_bytes_under_any_hash_seed_and_order() -> None:
    outputs = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo", "LC_ALL": "C"}
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, seed],
            env=environment,
            capture_output=True,
            check=True,
            timeout=60,
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1


WORDS = st.lists(st.sampled_from("alpha beta gamma delta 東京 1,234 rate".split()), max_size=30)  # noqa: SIM905


@settings(max_examples=60)
@given(st.lists(WORDS, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_scores_follow_the_formula_and_order_of_insertion_does_not_matter(
    texts: list[list[str]], shuffle: random.Random
) -> None:
    documents = [document(f"d{at}", " ".join(words)) for at, words in enumerate(texts)]
    rows = found(documents, "alpha 1,234")
    shuffled = documents[:]
    shuffle.shuffle(shuffled)
    assert found(shuffled, "alpha 1,234") == rows
    lengths = [len(list(tokenize(each.text))) for each in documents]
    average = sum(lengths) / len(lengths)
    for row in rows:
        at = int(str(row["document"])[1:])
        expected = 0.0
        for word in ("alpha", "1,234"):
            holding = sum(word in words for words in texts)
            count = texts[at].count(word)
            idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            norm = 1.2 * (0.25 + 0.75 * lengths[at] / average)
            expected += idf * count * 2.2 / (count + norm)
        assert abs(int(str(row["score"])) / 2**20 - expected) < 1e-4 * (1 + expected)


def test_the_inverse_frequency_is_exact() -> None:
    assert inverse_frequency(1, 1) == math.floor(2**20 * math.log(4 / 3))
    assert [inverse_frequency(10, n) for n in (10, 9)] == [
        math.floor(2**20 * math.log(22 / 21)),
        math.floor(2**20 * math.log(22 / 19)),
    ]
    assert inverse_frequency(10**9, 10**9) >= 0


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["needle", "hay", "x" * 700, "stack.", "\n", "9,5"]), max_size=400))
def test_excerpts_are_whole_words_around_the_best_passage(words: list[str]) -> None:
    text = " ".join(words)
    for row in found([document("a", text)], "needle stack"):
        start, end = int(str(row["start"])), int(str(row["end"]))
        assert 0 < end - start <= EXCERPT_CHARACTERS
        assert start == 0 or text[start - 1].isspace()
        assert end == len(text) or text[end].isspace()
        assert not text[start].isspace()
        assert not text[end - 1].isspace()
        assert "needle" in text[start:end] or "stack" in text[start:end]


def test_the_excerpt_is_where_the_words_meet() -> None:
    text = "rate " + "hay " * 400 + "the rate of rise was 5" + " hay" * 400
    (row,) = found([document("a", text)], "rate rise")
    assert "the rate of rise was 5" in str(row["excerpt"])


@pytest.mark.skipif(SHARED is None, reason="TIEOUT_SHARED is not set")
@pytest.mark.parametrize(
    "name", ["39-index-stale-after-insert", "40-bm25-common-term-order", "42-page-of-ties"]
)
def test_cases_from_the_wild(name: str) -> None:
    path = Path(SHARED or "") / "cases" / "text" / name / "case.json"
    case = json.loads(path.read_text(encoding="utf-8"))
    given_, expect = case["input"], case["expect"]
    documents = [document(key, text) for key, text in given_["docs"].items()]
    if "add_after_index" in given_:
        more = [document(key, text) for key, text in given_["add_after_index"].items()]
        assert names(found(documents + more, given_["query"])) == expect["result"]
        manifest, index = build_index(documents)[0], build_index(documents + more)[1]
        with pytest.raises(ExecutorError, match=r"index is not over the current manifest"):
            search(index, manifest, {}, given_["query"], limit=5, as_of=None)
    elif "limits" in given_:
        short, whole = (found(documents, given_["query"], limit=n) for n in given_["limits"])
        assert whole[: len(short)] == short
    else:
        assert names(found(documents, given_["query"]))[:2] == expect["first_two"]
