"""Take one quoted fact out of a set of documents, as a table of one row with its exact place.

Source: DESIGN §6 and §10, notes on quotes and number extraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

import pyarrow as pa

from tieout.executor.errors import ExecutorError
from tieout.executor.numbers import NumberToken, has_words, read_number
from tieout.executor.numerals import EXACT
from tieout.executor.quotes import Span, locate
from tieout.executor.search import Document

DECIMAL_DIGITS: Final = 38
_NO_QUOTE: Final = frozenset({"quote.empty", "quote.too_long"})


@dataclass(frozen=True, slots=True)
class ExtractSpec:
    """What to extract.

    quote: the passage, verbatim. near: words that must stand in it, or None. as_: a number or the
    text itself. occurrence: which place within the one document that holds it, from 1. unit: the
    unit the number must have, or None.
    """

    quote: str
    near: str | None
    as_: Literal["number", "text"]
    occurrence: int | None
    unit: str | None


def extract(spec: ExtractSpec, documents: Sequence[Document]) -> pa.Table:
    """One row: document, raw, text, start, end, quote, value, printed, number_start, number_end,
    unit, scale, status. Offsets are code points of T; value is DECIMAL(38, s) or string.

    Raises ExecutorError of `quote.*` and `number.*`, `extract.kind`, `extract.no_documents`.
    """
    if spec.as_ not in ("number", "text"):
        raise ExecutorError(
            "extract.kind",
            f"nothing can be extracted as {str(spec.as_)[:40]!r}",
            remedy='Extract as "number" or as "text".',
        )
    if not documents:
        raise ExecutorError(
            "extract.no_documents",
            "there is no document to extract from",
            remedy="Search with other words first; an empty result holds no passage.",
        )
    document, span = _find(spec, documents)
    quote = document.text[span.start : span.end]
    if spec.as_ == "text":
        _require_near(spec, document, span)
        return _row(document, span, pa.array([quote], pa.string()), None)
    token = read_number(
        document.text, start=span.start, end=span.end, near=spec.near, unit=spec.unit
    )
    return _row(document, span, _decimal(token), token)


def _find(spec: ExtractSpec, documents: Sequence[Document]) -> tuple[Document, Span]:
    """The one document that holds the quote, and where."""
    found: list[tuple[Document, Span]] = []
    unclear: list[ExecutorError] = []
    cut: list[ExecutorError] = []
    holders: set[str] = set()
    for document in {document.name: document for document in documents}.values():
        try:
            span = locate(document.text, spec.quote, occurrence=spec.occurrence)
        except ExecutorError as error:
            if error.code in _NO_QUOTE:
                raise
            if error.code == "quote.boundary":  # it holds other words, not the quote
                cut.append(_placed(error, document))
            elif error.code != "quote.not_found":
                unclear.append(_placed(error, document))
                holders.add(document.name)
        else:
            found.append((document, span))
            holders.add(document.name)
    if len(holders) > 1:
        listed = ", ".join(repr(name) for name in sorted(holders)[:10])
        raise ExecutorError(
            "quote.ambiguous",
            f"the quote {spec.quote[:160]!r} stands in {len(holders)} documents: {listed}",
            remedy="Quote a longer passage, one that only the intended document holds.",
        )
    if not found:
        raise (unclear or cut or [_nowhere(spec, documents)])[0]
    return found[0]


def _placed(error: ExecutorError, document: Document) -> ExecutorError:
    place = f"{document.name}: {error.place}" if error.place else document.name
    placed = ExecutorError(
        error.code, error.message, place=place, remedy=error.remedy, exit_code=error.exit_code
    )
    placed.__cause__ = error
    return placed


def _nowhere(spec: ExtractSpec, documents: Sequence[Document]) -> ExecutorError:
    return ExecutorError(
        "quote.not_found",
        f"none of {len(documents)} documents holds the quote {spec.quote[:160]!r}",
        remedy="Copy the passage from an excerpt, character for character.",
    )


def _require_near(spec: ExtractSpec, document: Document, span: Span) -> None:
    if spec.near is None:
        return
    quote = document.text[span.start : span.end]
    if not has_words(quote, spec.near):
        raise ExecutorError(
            "number.keyword_missing",
            f"{spec.near[:80]!r} does not stand in the quoted passage {quote[:120]!r}",
            remedy="Quote a passage that holds the keyword.",
        )


def _decimal(token: NumberToken) -> pa.Array:
    value = token.value
    if value is None:
        raise AssertionError("a number that was read has a value")
    digits = value.as_tuple().digits
    exponent = value.adjusted() - len(digits) + 1
    scale = max(0, -exponent)
    if max(len(digits) + max(0, exponent), scale) > DECIMAL_DIGITS:
        raise ExecutorError(
            "number.too_large",
            f"{token.text!r} needs more than {DECIMAL_DIGITS} digits",
            remedy="Extract it as text.",
        )
    exact = value.quantize(Decimal((0, (1,), -scale)), context=EXACT)
    return pa.array([exact], pa.decimal128(DECIMAL_DIGITS, scale))


def _row(document: Document, span: Span, value: pa.Array, token: NumberToken | None) -> pa.Table:
    quote = document.text[span.start : span.end]
    cells = {
        "document": document.name,
        "raw": document.raw,
        "text": document.address,
        "start": span.start,
        "end": span.end,
        "quote": quote,
        "value": value,
        "printed": quote if token is None else token.text,
        "number_start": None if token is None else token.start,
        "number_end": None if token is None else token.end,
        "unit": None if token is None else token.unit,
        "scale": None if token is None else token.scale,
        "status": span.status,
    }
    arrays = []
    for name, cell in cells.items():
        if isinstance(cell, pa.Array):
            arrays.append(cell)
            continue
        kind = pa.int64() if name in _WHOLE else pa.string()
        arrays.append(pa.array([cell], kind))
    return pa.Table.from_arrays(arrays, names=list(cells))


_WHOLE: Final = frozenset({"start", "end", "number_start", "number_end"})
