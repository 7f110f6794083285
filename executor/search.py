"""Rank text documents for a query by integer BM25: the same scores and order on any machine.

Source: notes on search. Nothing here is a float: the inverse document frequency is a correctly
rounded Decimal logarithm, all else whole numbers. Statistics are those of the documents that the
question may see, so a later document cannot move an older ranking.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from typing import Annotated, Final, Literal, TypeVar

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tieout.artifacts.address import Address
from tieout.executor.errors import ExecutorError, Exit

MANIFEST_FORMAT: Final = "tieout-text-manifest/1"
INDEX_FORMAT: Final = "tieout-text-index/1"
MANIFEST_MEDIA: Final = "application/vnd.tieout.text-manifest+json"
INDEX_MEDIA: Final = "application/vnd.tieout.text-index+json"
LIMIT_MAX: Final = 100
QUERY_CHARACTERS_MAX: Final = 1000
EXCERPT_CHARACTERS: Final = 600
TOKENS: Final = "nfc-casefold words, printed numbers, cjk bigrams/1"

# BM25 with k1 = 1.2 and b = 0.75, times 10**6; see the notes for the derivation.
_K_FLAT: Final = 300_000
_K_LENGTH: Final = 900_000
_K1_PLUS_1: Final = 2200 * 1000
_UNIT: Final = 10**6
_IDF_ONE: Final = 1 << 20
_DECIMAL: Final = Context(prec=50)

_CJK: Final = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS: Final = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f"
_TOKEN: Final = re.compile(
    rf"(?P<cjk>[{_CJK}]+)"
    rf"|(?P<number>\d+(?:[.,'\u2019\u00a0\u2009\u202f]\d+)+(?![^\W_{_CJK}]))"
    rf"|(?P<word>(?:(?![{_CJK}])[^\W_][{_MARKS}]*)+)"
)

SCHEMA: Final = pa.schema(
    [
        pa.field("rank", pa.int64(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("raw", pa.string(), nullable=False),
        pa.field("score", pa.int64(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
        pa.field("excerpt", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Document:
    """One text document of a source.

    name: unique in the source. address: of the text artifact T. raw: of the captured bytes.
    published: ISO date, None when not known. Addresses are written "blake3:<hex>".
    """

    name: str
    address: str
    raw: str
    text: str
    published: str | None


@dataclass(frozen=True, slots=True)
class Term:
    """A token of a text at code points [start, end)."""

    start: int
    end: int
    word: str


class _Listed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    address: str
    length: Annotated[int, Field(ge=0)]
    name: str
    published: str | None
    raw: str


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    documents: list[_Listed]
    format: Literal["tieout-text-manifest/1"]


class _Index(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    format: Literal["tieout-text-index/1"]
    manifest: str
    stemmer: Literal["none"]
    terms: list[tuple[str, list[tuple[int, int]]]]
    tokens: str


_Parsed = TypeVar("_Parsed", _Manifest, _Index)


def tokenize(text: str) -> Iterator[Term]:
    """Words and digit runs (NFC, case folded), numbers as printed, bigrams of CJK runs."""
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        if match.lastgroup != "cjk" or end - start == 1:
            yield Term(start, end, unicodedata.normalize("NFC", match.group()).casefold())
            continue
        for at in range(start, end - 1):
            yield Term(at, at + 2, unicodedata.normalize("NFC", text[at : at + 2]))


def build_index(documents: Sequence[Document]) -> tuple[bytes, bytes]:
    """The manifest and the index of a set of documents, both canonical JSON.

    The order in which documents are given does not matter. The index names the manifest by its
    address. Raises ExecutorError `search.document_name`, `search.published`.
    """
    ordered = sorted(documents, key=lambda document: document.name)
    _check_documents(ordered)
    postings: dict[str, list[tuple[int, int]]] = {}
    listed = []
    for ordinal, document in enumerate(ordered):
        counts = Counter(term.word for term in tokenize(document.text))
        for word, count in counts.items():
            postings.setdefault(word, []).append((ordinal, count))
        listed.append(
            {
                "address": document.address,
                "length": counts.total(),
                "name": document.name,
                "published": document.published,
                "raw": document.raw,
            }
        )
    manifest = _canonical({"documents": listed, "format": MANIFEST_FORMAT})
    index = _canonical(
        {
            "format": INDEX_FORMAT,
            "manifest": str(Address.of(manifest)),
            "stemmer": "none",
            "terms": sorted(postings.items()),
            "tokens": TOKENS,
        }
    )
    return manifest, index


def search(
    index: bytes,
    manifest: bytes,
    documents: Mapping[str, Document],
    query: str,
    *,
    limit: int,
    as_of: str | None,
) -> pa.Table:
    """The best `limit` documents for a query, best first, ties by name; schema `SCHEMA`.

    documents: by name, at least those of the manifest that may be shown. as_of: ISO date; only
    documents known to be published by then count, also in the statistics. Zero hits is an empty
    table. start, end: the excerpt is T[start:end], the best passage, whole words.
    Raises ExecutorError `search.stale_index`, `search.index_malformed`, `search.empty_query`,
    `search.query_too_long`, `search.limit`, `search.as_of`.
    """
    _check_request(query, limit=limit, as_of=as_of)
    words = sorted({term.word for term in tokenize(query)})
    listed, parsed = _opened(index, manifest)
    visible = {
        ordinal: entry
        for ordinal, entry in enumerate(listed)
        if as_of is None or (entry.published is not None and entry.published <= as_of)
    }
    scores, weights = _scores(parsed, visible, words)
    best = sorted(scores, key=lambda ordinal: (-scores[ordinal], listed[ordinal].name))[:limit]
    rows = []
    for rank, ordinal in enumerate(best, start=1):
        document = _document(documents, listed[ordinal])
        start, end = _passage(document.text, weights)
        rows.append(
            {
                "rank": rank,
                "document": document.name,
                "text": document.address,
                "raw": document.raw,
                "score": scores[ordinal],
                "start": start,
                "end": end,
                "excerpt": document.text[start:end],
            }
        )
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _opened(index: bytes, manifest: bytes) -> tuple[list[_Listed], _Index]:
    """Both documents, once it is certain that they belong together."""
    listed = _parse(_Manifest, manifest).documents
    parsed = _parse(_Index, index)
    if parsed.manifest != str(Address.of(manifest)):
        raise _stale("the index is not over the current manifest")
    if parsed.tokens != TOKENS:
        raise _stale(f"the index was cut into words by another rule: {parsed.tokens[:80]!r}")
    return listed, parsed


def _scores(
    index: _Index, visible: Mapping[int, _Listed], words: Iterable[str]
) -> tuple[dict[int, int], dict[str, int]]:
    """Scores by document ordinal, and the weight of each query word among these documents."""
    count = len(visible)
    total = sum(entry.length for entry in visible.values())
    postings = dict(index.terms)
    scores: dict[int, int] = {}
    weights: dict[str, int] = {}
    for word in words:
        found = [(at, tf) for at, tf in postings.get(word, ()) if at in visible]
        if not found:
            continue
        weights[word] = idf = inverse_frequency(count, len(found))
        for at, tf in found:
            k_length = _K_FLAT + _K_LENGTH * visible[at].length * count // total
            gain = idf * tf * _K1_PLUS_1 // (tf * _UNIT + k_length)
            scores[at] = scores.get(at, 0) + gain
    return scores, weights


def inverse_frequency(documents: int, holding: int) -> int:
    """floor(2**20 * ln(1 + (N - df + 0.5) / (df + 0.5))), always positive."""
    ratio = _DECIMAL.divide(Decimal(2 * documents + 2), Decimal(2 * holding + 1))
    return int(_DECIMAL.multiply(_DECIMAL.ln(ratio), Decimal(_IDF_ONE)))


def _passage(text: str, weights: Mapping[str, int]) -> tuple[int, int]:
    """The window with the most weight of distinct words; then the most words, tightest, first."""
    hits = [term for term in tokenize(text) if term.word in weights]
    best: tuple[int, int, int, int] | None = None
    span = (0, 0)
    inside: Counter[str] = Counter()
    weight = last = 0
    for first, hit in enumerate(hits):
        while last < len(hits) and hits[last].end - hit.start <= EXCERPT_CHARACTERS:
            weight += 0 if inside[hits[last].word] else weights[hits[last].word]
            inside[hits[last].word] += 1
            last += 1
        if last == first:  # one word longer than an excerpt
            last += 1
            inside[hit.word] += 1
            weight = weights[hit.word]
        end = hits[last - 1].end
        rank = (weight, last - first, hit.start - end, -hit.start)
        if best is None or rank > best:
            best, span = rank, (hit.start, end)
        inside[hit.word] -= 1
        weight -= 0 if inside[hit.word] else weights[hit.word]
    return _widen(text, *span)


def _widen(text: str, start: int, end: int) -> tuple[int, int]:
    """Add words on both sides up to the length of an excerpt, never part of one."""
    spare = max(0, EXCERPT_CHARACTERS - (end - start))
    low = max(0, start - spare // 2)
    high = min(len(text), low + (end - start) + spare)
    low = max(0, min(low, high - EXCERPT_CHARACTERS)) if high == len(text) else low
    low = min(low, start)
    while 0 < low < start and not text[low - 1].isspace():
        low += 1
    while end < high < len(text) and not text[high].isspace():
        high -= 1
    while low < start and text[low].isspace():
        low += 1
    while high > end and text[high - 1].isspace():
        high -= 1
    return low, high


def _document(documents: Mapping[str, Document], entry: _Listed) -> Document:
    document = documents.get(entry.name)
    if document is None or (document.address, document.raw) != (entry.address, entry.raw):
        raise _stale(f"document {entry.name!r} is not the one that was indexed")
    return document


def _check_documents(ordered: Sequence[Document]) -> None:
    seen: set[str] = set()
    for document in ordered:
        if not document.name or document.name in seen or not _encodable(document.name):
            raise ExecutorError(
                "search.document_name",
                f"the document name {document.name[:80]!a} is empty, not Unicode or given twice",
                remedy="Give each document of a source a name of its own.",
            )
        seen.add(document.name)
        if document.published is not None and not _is_date(document.published):
            raise ExecutorError(
                "search.published",
                f"{document.published[:40]!a} is not a date of publication",
                place=document.name,
                remedy="Write it as YYYY-MM-DD, or leave it out.",
            )


def _check_request(query: str, *, limit: int, as_of: str | None) -> None:
    if len(query) > QUERY_CHARACTERS_MAX:
        raise ExecutorError(
            "search.query_too_long",
            f"the query has {len(query)} characters of at most {QUERY_CHARACTERS_MAX}",
            remedy="Search for a few words.",
        )
    if next(tokenize(query), None) is None:
        raise ExecutorError(
            "search.empty_query",
            f"the query {query[:80]!r} holds no word and no number",
            remedy="Search for words or figures that the documents would hold.",
        )
    if not 1 <= limit <= LIMIT_MAX:
        raise ExecutorError(
            "search.limit",
            f"a limit of {limit} is not between 1 and {LIMIT_MAX}",
            remedy="Ask for fewer documents, or narrow the query.",
        )
    if as_of is not None and not _is_date(as_of):
        raise ExecutorError(
            "search.as_of",
            f"{as_of[:40]!a} is not a date",
            remedy="Write as_of as YYYY-MM-DD.",
        )


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _canonical(document: object) -> bytes:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8")


def _parse(model: type[_Parsed], payload: bytes) -> _Parsed:
    try:
        return model.model_validate_json(payload)
    except ValidationError as error:
        raise ExecutorError(
            "search.index_malformed",
            "the text index or its manifest is not what this version writes",
            remedy="Snapshot the source again to rebuild its index.",
            exit_code=Exit.OTHER_FORMAT,
        ) from error


def _stale(why: str) -> ExecutorError:
    return ExecutorError(
        "search.stale_index",
        why,
        remedy="Snapshot the source again: its index is built over the documents pinned then.",
    )
