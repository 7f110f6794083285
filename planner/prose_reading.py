"""Whether a filled figure reads in the finished prose as it reads alone.

It must stand alone: white space or light punctuation around it, and nothing beside it that gives
it a sign, a scale, a unit, more digits or a place in a calculation. Strict on purpose: a figure
that honest prose puts too close to something is labelled altered, never the other way round.
Source: DESIGN §7.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tieout.executor.number_affixes import NAME
from tieout.executor.numbers import FIGURES, RANGE, NumberToken, find_numbers
from tieout.planner.prose_spans import Filled, Span
from tieout.planner.prose_words import (
    alters_after,
    alters_before,
    names_currency_after,
    names_currency_before,
    scales_all,
)

_SPACE: Final = " \n"
_OPENING: Final = "([\"'\u201c\u2018"
_CLOSING: Final = ".,;:!?)]\"'\u201d\u2019"
_QUOTES: Final = "\"'\u201c\u201d\u2018\u2019"
_DASHES: Final = "-\u00ad\u2010\u2011\u2012\u2013\u2212\u02d7\u2043\u2796\ufe58\ufe63\uff0d"
_BEFORE: Final = (
    _DASHES
    + "~\u00ac+\u00b1\u2213\u00d7\u2715*\u00f7/\\^\u221a\u221b\u221c\u2044\u2215\u00b7\u2022"
)
_AFTER: Final = (
    "%\u2030\u2031\uff05\u00b0\u2032\u2033^*/\u00d7\u2715\u00f7\u2044\u2215\u00b7\u221a"
    "\u25cb\u25ef\u26aa"
)
_UNITS: Final = "%\u2030\u2031\uff05\u00b0"
_PUNCTUATION: Final = _SPACE + "()[],;:\"'\u201c\u201d\u2018\u2019"
_BULLETS: Final = "*\u00b7\u2022"
_QUANTITIES: Final = FIGURES | {"year", "numeral", "note"}
_LINE_CHARACTERS: Final = 2_000
_SAME_VALUE: Final = frozenset({"number", "year"})


@dataclass(frozen=True, slots=True)
class Prose:
    """A finished prose and what was filled in. scaled: it says a scale for all of its figures."""

    text: str
    filled: Filled
    alone: dict[str, tuple[NumberToken, ...]]
    scaled: bool

    @classmethod
    def of(cls, text: str, spans: Sequence[Span]) -> Prose:
        """Read each filled piece by itself once."""
        filled = Filled.of(spans)
        pieces = {name: text[start:end] for start, end, name in filled.spans}
        alone = {name: find_numbers(piece) for name, piece in pieces.items()}
        return cls(text, filled, alone, bool(pieces) and scales_all(text))


def owner_of(prose: Prose, token: NumberToken) -> Span | None:
    """The one span that holds all numeric characters of a token, or None."""
    numeric = [at for at, char in enumerate(token.text, start=token.start) if char.isnumeric()]
    spans = prose.filled.touching(token.start, token.end)
    owners = [s for s in spans if numeric and s[0] <= numeric[0] and numeric[-1] < s[1]]
    return owners[0] if len(owners) == 1 else None


def reads_as_filled(
    prose: Prose, token: NumberToken, after: NumberToken | None, owner: Span, *, numeric: bool
) -> bool:
    """Whether a token says in the prose what its filled span says alone.

    after: the next token. numeric: the span shows a value of a numeric type.
    """
    start, end, _ = owner
    alone = _alone(prose, token, owner)
    if alone is None or not _stands_alone(prose.text, start, end):
        return False
    if not _same(prose, token, alone, after):
        return False
    quantity = numeric or token.kind in _QUANTITIES
    rest = prose.text[start : start + alone.start] + prose.text[start + alone.end : end]
    if not quantity or any(char.isalnum() for char in rest):
        return True
    return not (
        prose.scaled
        or alters_before(prose.text, start)
        or alters_after(prose.text, end)
        or _symbol_before(prose, start)
        or _symbol_after(prose, end)
        or _enclosed(prose.text, start, end)
        or _currency_beside(prose, alone, start, end)
    )


def _alone(prose: Prose, token: NumberToken, owner: Span) -> NumberToken | None:
    """The token of the span by itself that has the same first numeric character."""
    first = next(at for at, char in enumerate(token.text) if char.isnumeric())
    at = token.start + first - owner[0]
    return next((t for t in prose.alone[owner[2]] if t.start <= at < t.end), None)


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Space, the end of the prose or light punctuation that a space follows, on both sides."""
    at = start
    while at and text[at - 1] in _OPENING:
        at -= 1
    if at and text[at - 1] not in _SPACE:
        return False
    at = end
    while at < len(text) and text[at] in _CLOSING:
        at += 1
    if at < len(text) and text[at] not in _SPACE:
        return False
    return at == end or text[end] not in _QUOTES or _closes(text, start, text[end])


def _closes(text: str, start: int, mark: str) -> bool:
    """A mark after a figure closes a quotation; else it is feet, inches or minutes."""
    if mark == "\u201d":
        return True
    if mark == '"':
        line = text[max(0, start - _LINE_CHARACTERS) : start].rpartition("\n")[2]
        return line.count('"') % 2 == 1
    return start > 0 and text[start - 1] in "'\u2018"


def _same(prose: Prose, token: NumberToken, alone: NumberToken, after: NumberToken | None) -> bool:
    if token.kind == "label":
        return True  # a word before it says what it numbers: line 7
    if token.kind != alone.kind:
        filled = all(
            char in _SPACE or prose.filled.holds(at)
            for at, char in enumerate(token.text, start=token.start)
        )
        with_currency = token.kind == "money" and alone.kind == "number" and filled
        counted = {token.kind, alone.kind} <= _SAME_VALUE
        if not with_currency and not counted:
            return False
    elif token.kind in {"money", "percent"} and token.unit != alone.unit:
        return False
    if (token.value, token.scale) != (alone.value, alone.scale):
        return False
    if token.ambiguous in {None, NAME, alone.ambiguous}:
        return True
    return token.ambiguous == RANGE and _listed(prose.text, token, after)


def _listed(text: str, token: NumberToken, after: NumberToken | None) -> bool:
    """Two figures joined by a word, of which no scale of the second counts for the first."""
    if after is None or after.scale is not None:
        return False
    return text[token.end : after.start] in {" and ", " or "}


def _symbol_before(prose: Prose, start: int) -> bool:
    """A sign, an operator, a currency or another number, with nothing but marks between."""
    text, at = prose.text, _skipped_back(prose.text, start, _SPACE + _QUOTES)
    if at and text[at - 1].isnumeric():
        grows = text[start].isnumeric() or text[start] in _DASHES + "."
        return grows and "\n\n" not in text[at:start]
    if at and text[at - 1] in _BULLETS and (at == 1 or text[at - 2] == "\n"):
        return False
    if at and text[at - 1] in _BEFORE:
        return True
    far = _skipped_back(text, start, _PUNCTUATION)
    if not far:
        return False
    char = text[far - 1]
    return char in _DASHES or (_is_currency(char) and not prose.filled.holds(far - 1))


def _symbol_after(prose: Prose, end: int) -> bool:
    """What continues the number: a unit, an operator, a trailing minus or more digits."""
    text, at = prose.text, _skipped(prose.text, end, _SPACE + _QUOTES)
    if at == len(text):
        return False
    char = text[at]
    if char.isnumeric():
        return text[end - 1].isnumeric() and "\n\n" not in text[end:at]
    if char in _DASHES and _ends_line(text, at + 1):
        return True
    if char == ":" and at > end and text[_skipped(text, at + 1, _SPACE) :][:1].isnumeric():
        return True
    if char in _AFTER or _typed_group(prose, end):
        return True
    far = _skipped(text, end, _PUNCTUATION)
    if far == len(text):
        return False
    return text[far] in _UNITS or (_is_currency(text[far]) and not prose.filled.holds(far))


def _skipped(text: str, at: int, marks: str) -> int:
    while at < len(text) and text[at] in marks:
        at += 1
    return at


def _skipped_back(text: str, at: int, marks: str) -> int:
    while at and text[at - 1] in marks:
        at -= 1
    return at


def _ends_line(text: str, at: int) -> bool:
    """A dash before prose[at] that no words follow after a space: an accountant's minus."""
    following = text[at : at + 1]
    return following not in {" ", "\u2014"} or text[_skipped(text, at, " ") :][:1] in {"", "\n"}


def _typed_group(prose: Prose, end: int) -> bool:
    """A mark and three typed digits that would go on with the figure: 5, 000."""
    if prose.text[end : end + 1] not in {".", ",", "'", "\u2019"}:
        return False
    at = _skipped(prose.text, end + 1, _SPACE)
    group = prose.text[at : at + 4]
    digits = len(group) - len(group.lstrip("0123456789"))
    return digits == 3 and not prose.filled.holds(at)


def _is_currency(char: str) -> bool:
    return unicodedata.category(char) == "Sc"


def _enclosed(text: str, start: int, end: int) -> bool:
    """Parentheses around nothing but a number are an accountant's minus."""
    start = _skipped_back(text, start, _SPACE + _QUOTES)
    end = _skipped(text, end, _SPACE + _QUOTES)
    return text[start - 1 : start] == "(" and text[end : end + 1] == ")"


def _currency_beside(prose: Prose, alone: NumberToken, start: int, end: int) -> bool:
    """A typed currency where the figure itself shows none, or another one after it."""
    text = prose.text
    after = next((at for at in range(end, min(len(text), end + 4)) if text[at].isalnum()), None)
    if after is not None and not prose.filled.holds(after) and names_currency_after(text, end):
        return True
    if alone.kind == "money":
        return False
    before = next(
        (at for at in range(start - 1, max(-1, start - 5), -1) if text[at].isalnum()), None
    )
    typed = before is not None and not prose.filled.holds(before)
    return typed and names_currency_before(text, start)
