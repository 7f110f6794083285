"""Find a quoted passage in a text: exactly, or with only its typography folded, and only once.

Source: notes on quotes. Signs, digits, separators, currency, case and punctuation are never
folded; a passage is never repaired or guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tieout.executor.errors import ExecutorError
from tieout.executor.number_marks import YEAR
from tieout.executor.numbers import CONTEXT_CHARACTERS, FIGURES, NumberToken, find_numbers

QUOTE_CHARACTERS_MAX: Final = 4000
OCCURRENCES_MAX: Final = 10_000
_YEAR: Final = re.compile(YEAR)
_AFTER_AN_ADDRESS: Final = ".,;:!?)]}>\"'\u201d\u2019"
_DELETED: Final = frozenset(
    "\u00ad\u061c\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_PLAIN: Final = {
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'",
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"',
    "\u2010": "-", "\u2011": "-", "\u2212": "-", "\ufe63": "-",
    "\u2026": "...",
    "\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl",
    "\ufb05": "st", "\ufb06": "st",
}  # fmt: skip
# Full-width letters and harmless punctuation; digits, signs, separators and currency stay.
_FULL_WIDTH: Final = {
    chr(ord(char) + 0xFEE0): char
    for char in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!?:;"
}
# Scripts written without spaces: a word begins anywhere, so the boundary rule is off.
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)


@dataclass(frozen=True, slots=True)
class Span:
    """A found passage T[start:end], code points. status: exact, or only typography differs."""

    start: int
    end: int
    status: Literal["exact", "folded"]


@dataclass(frozen=True, slots=True)
class _Folded:
    """A text with its typography folded; character i stands for T[starts[i]:ends[i]]."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def locate(
    text: str,
    quote: str,
    *,
    occurrence: int | None = None,
    prefix: str | None = None,
    suffix: str | None = None,
) -> Span:
    """The one place of a quote in a text.

    occurrence: from 1, in order, among the places that prefix and suffix leave. prefix, suffix:
    what stands directly before and after it, white space apart.
    Raises ExecutorError `quote.empty`, `quote.too_long`, `quote.not_found`, `quote.ambiguous`,
    `quote.boundary`, `quote.occurrence`.
    """
    if not quote.strip() or not fold(quote).text.strip():
        raise ExecutorError(
            "quote.empty",
            "the quote is empty",
            remedy="Quote the words of the document that state the fact.",
        )
    if len(quote) > QUOTE_CHARACTERS_MAX:
        raise ExecutorError(
            "quote.too_long",
            f"the quote has {len(quote)} characters of at most {QUOTE_CHARACTERS_MAX}",
            remedy="Quote only the sentence that states the fact.",
        )
    places = [Span(start, start + len(quote), "exact") for start in _occurrences(text, quote)]
    if not places:
        places = list(_folded_places(text, quote))
    if not places:
        raise ExecutorError(
            "quote.not_found",
            f"the text does not hold the quote {quote[:160]!r}",
            remedy="Copy the passage from an excerpt, character for character.",
        )
    whole = [place for place in places if not cut_at(text, place.start, place.end)]
    if not whole:
        raise ExecutorError(
            "quote.boundary",
            f"the quote {quote[:160]!r} {cut_at(text, places[0].start, places[0].end)}",
            place=f"offset {places[0].start}",
            remedy="Quote whole words, and figures with their sign, scale and per cent sign.",
        )
    kept = [place for place in whole if _fits(text, place, prefix=prefix, suffix=suffix)]
    return _choose(kept, quote=quote, occurrence=occurrence, narrowed=len(kept) < len(whole))


def fold(text: str) -> _Folded:
    """Fold typography only: spaces, hyphens, quotation marks, ligatures, composed letters."""
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []

    def put(shown: str, start: int, end: int) -> None:
        parts.append(shown)
        starts.extend([start] * len(shown))
        ends.extend([end] * len(shown))

    at = 0
    while at < len(text):
        char = text[at]
        if char.isspace():
            end = _while(text, at, str.isspace)
            put(" ", at, end)
        elif char in _DELETED:
            end = at + 1
        else:
            end = _while(text, at + 1, _is_mark)
            put(_fold_cluster(text, at, end), at, end)
        at = end
    return _Folded("".join(parts), starts, ends)


def cut_at(text: str, start: int, end: int) -> str:
    """How T[start:end] cuts a word or a figure in two, or ""."""
    if _inside_word(text, start):
        return "starts inside a word or number"
    if _inside_word(text, end):
        return "ends inside a word or number"
    low, high = max(0, start - CONTEXT_CHARACTERS), min(len(text), end + CONTEXT_CHARACTERS)
    for token in find_numbers(text[low:high]):
        first, last = (at + low for at in _whole(token))
        what = "figure" if token.kind in FIGURES else token.kind
        if first < start < last and not _rest_of_date(token, text[start:last]):
            return f"starts inside the {what} {text[first:last]!r}"
        if first < end < last and not (token.kind == "date" and text[end - 1].isalpha()):
            return f"ends inside the {what} {text[first:last]!r}"
    return ""


def _whole(token: NumberToken) -> tuple[int, int]:
    """What of a token a quote must take whole or leave.

    15 cut from 2026-01-15 would be read as a number that the text does not state. Outside stay
    the word before a label ("Table 3"), letters of a script without spaces beside an identifier,
    and what only ends a sentence after an address.
    """
    if token.kind in FIGURES:
        return token.core
    text = token.text
    first, last = 0, len(text)
    if token.kind == "label":
        first = next((at for at, char in enumerate(text) if char.isnumeric()), 0)
    if token.kind == "identifier":
        last = len(text.rstrip(_AFTER_AN_ADDRESS))
        while first < last and _UNSPACED.match(text[first]):
            first += 1
        while first < last and _UNSPACED.match(text[last - 1]):
            last -= 1
    return token.start + first, token.start + last


def _rest_of_date(token: NumberToken, rest: str) -> bool:
    """Whether a date goes on with its month or year in words: no number is left that is none."""
    if token.kind != "date" or token.text[-len(rest) - 1] not in " \n\u00a0":
        return False
    return rest[0].isalpha() or _YEAR.fullmatch(rest) is not None


def _occurrences(text: str, quote: str) -> Iterator[int]:
    at = text.find(quote)
    count = 0
    while at >= 0:
        count += 1
        if count > OCCURRENCES_MAX:
            raise ExecutorError(
                "quote.ambiguous",
                f"the quote {quote[:80]!r} stands more than {OCCURRENCES_MAX} times in the text",
                remedy="Quote a longer passage.",
            )
        yield at
        at = text.find(quote, at + 1)


def _folded_places(text: str, quote: str) -> Iterator[Span]:
    wanted = fold(quote).text.strip(" ")
    folded = fold(text)
    for first in _occurrences(folded.text, wanted):
        last = first + len(wanted) - 1
        starts_within = first > 0 and folded.starts[first - 1] == folded.starts[first]
        ends_within = last + 1 < len(folded.text) and folded.ends[last + 1] == folded.ends[last]
        if not starts_within and not ends_within:
            yield Span(folded.starts[first], folded.ends[last], "folded")


def _fold_cluster(text: str, start: int, end: int) -> str:
    char = text[start]
    if end > start + 1:
        return unicodedata.normalize("NFC", text[start:end])
    if char == "\u2013":  # an en dash beside a digit is a range or a minus
        beside = text[start - 1 : start] + text[end : end + 1]
        return char if any(near.isdigit() for near in beside) else "-"
    if char in _PLAIN:
        return _PLAIN[char]
    return _FULL_WIDTH.get(char) or unicodedata.normalize("NFC", char)


def _is_mark(char: str) -> bool:
    return unicodedata.combining(char) != 0


def _while(text: str, at: int, holds: Callable[[str], bool]) -> int:
    while at < len(text) and holds(text[at]):
        at += 1
    return at


def _inside_word(text: str, at: int) -> bool:
    """No word may be cut: a letter or digit on both sides, or a mark that belongs to the left."""
    if at <= 0 or at >= len(text):
        return False
    left, right = text[at - 1], text[at]
    if _is_mark(right):
        return True
    while _is_mark(left) and at > 1:
        at -= 1
        left = text[at - 1]
    if _UNSPACED.match(left) or _UNSPACED.match(right):
        return left.isdecimal() and right.isdecimal()
    return left.isalnum() and right.isalnum()


def _fits(text: str, place: Span, *, prefix: str | None, suffix: str | None) -> bool:
    if prefix is not None:
        before = fold(text[max(0, place.start - QUOTE_CHARACTERS_MAX) : place.start]).text
        if not before.rstrip(" ").endswith(fold(prefix).text.strip(" ")):
            return False
    if suffix is not None:
        after = fold(text[place.end : place.end + QUOTE_CHARACTERS_MAX]).text
        return after.lstrip(" ").startswith(fold(suffix).text.strip(" "))
    return True


def _choose(kept: list[Span], *, quote: str, occurrence: int | None, narrowed: bool) -> Span:
    if not kept:
        raise ExecutorError(
            "quote.not_found",
            f"the quote {quote[:160]!r} never stands beside the prefix or suffix given",
            remedy="Leave prefix and suffix out, or copy them from beside the passage.",
        )
    if occurrence is not None:
        if not 1 <= occurrence <= len(kept):
            raise ExecutorError(
                "quote.occurrence",
                f"there is no occurrence {occurrence} of {quote[:120]!r}, only {len(kept)}",
                remedy=f"Give an occurrence from 1 to {len(kept)}.",
            )
        return kept[occurrence - 1]
    if len(kept) > 1:
        still = " even so" if narrowed else ""
        raise ExecutorError(
            "quote.ambiguous",
            f"the quote {quote[:160]!r} stands {len(kept)} times in the text{still}",
            place="offsets " + ", ".join(str(place.start) for place in kept[:10]),
            remedy=f"Quote a longer passage, or give an occurrence from 1 to {len(kept)}.",
        )
    return kept[0]
