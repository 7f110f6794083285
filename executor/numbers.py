"""Find every number-like token of a text and read exactly one number from a span of it.

Source: notes on number extraction. English rules. A token is read as certain, or it says why it is
not (`ambiguous`); of two possible readings none is chosen. Each digit belongs to one token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, Literal

from tieout.executor.errors import ExecutorError
from tieout.executor.number_affixes import Affixes, affixes_of, join_of, name_doubt
from tieout.executor.number_marks import YEAR, find_marks
from tieout.executor.numerals import GROUPING, NUMERAL, SEPARATOR, SPACE, read_numeral

NumberKind = Literal[
    "number", "percent", "money",
    "date", "year", "time", "ordinal", "label", "identifier", "ratio", "note", "numeral",
]  # fmt: skip
FIGURES: Final[frozenset[NumberKind]] = frozenset({"number", "percent", "money"})
CONTEXT_CHARACTERS: Final = 400
_YEAR: Final = re.compile(YEAR)
_COUNTED: Final = re.compile(
    r"\s(?:people|persons?|employees|staff|workers|units|shares|customers|users|members|visitors"
    r"|residents|households|students|patients|votes|ballots|cases|items|rows|pieces|cars|vehicles"
    r"|homes|sites|stores|bugs|jobs|tonnes|tons|litres|barrels|days|hours|miles|times|pumps)\b"
)
_HEADER_SCALE: Final = re.compile(
    r"\bin\s(?:(?:US\s)?[a-z]*\s?)?(?:thousands|millions|billions|'?000s?)\b|'000"
    r"|(?:[$\u20ac\u00a3\u00a5\u20b9]|(?-i:\b[A-Z]{3}))"
    r"\s?(?:m|mn|mm|bn|k|thousands?|millions?|billions?)\b",
    re.IGNORECASE,
)
_KIND_NAMES: Final[dict[str, NumberKind]] = {
    "date": "date", "year": "year", "time": "time", "ordinal": "ordinal", "label": "label",
    "identifier": "identifier", "ratio": "ratio",
}  # fmt: skip
RANGE: Final = "it is one end of a range whose scale or unit stands at the other end"
HEADER_SCALE: Final = "a header on its line gives a scale"


@dataclass(frozen=True, slots=True)
class NumberToken:
    """One number-like token, T[start:end].

    value: exact, scale applied, percent as printed (4.1 for 4.1%); None when no reading is safe.
    unit: currency code or sign, "%", "pp", "bp" or a unit of measure; None when none is printed.
    scale: the scale words as printed, at scale_span. ambiguous: why the value is not certain.
    places: digits after the decimal mark as printed. core: what must not be cut when it is
    quoted: sign, digits, parentheses, scale and per cent sign.
    """

    start: int
    end: int
    text: str
    value: Decimal | None
    kind: NumberKind
    unit: str | None
    scale: str | None
    scale_span: tuple[int, int] | None
    ambiguous: str | None
    places: int
    core: tuple[int, int]


def find_numbers(text: str) -> tuple[NumberToken, ...]:
    """Every number-like token, in order; none overlap.

    Each character that Unicode gives a numeric value stands in exactly one: digits of any
    script, superscripts, fractions, Roman and Chinese numerals.
    """
    owned = bytearray(len(text))
    tokens = []
    for start, end, kind in find_marks(text):
        owned[start:end] = b"\x01" * (end - start)
        tokens.append(_mark(text, start, end, _KIND_NAMES[kind]))
    for match in NUMERAL.finditer(text):
        if any(owned[match.start() : match.end()]):
            continue
        token = _figure(text, match, owned)
        if token is not None:
            owned[token.start : token.end] = b"\x01" * (token.end - token.start)
            tokens.append(token)
    tokens += _left_over(text, owned)
    tokens.sort(key=lambda token: token.start)
    return _joined(text, tokens)


def read_number(
    text: str, *, start: int, end: int, near: str | None, unit: str | None = None
) -> NumberToken:
    """The one number that stands in T[start:end].

    near: words that must stand in the span, any case. unit: the unit it must have.
    Raises ExecutorError `number.keyword_missing`, `number.none`, `number.only_year`,
    `number.several`, `number.boundary`, `number.ambiguous_separator`, `number.bad_grouping`,
    `number.ambiguous`, `number.unit_mismatch`.
    """
    quote = text[start:end]
    if near is not None and not has_words(quote, near):
        raise ExecutorError(
            "number.keyword_missing",
            f"{near[:80]!r} does not stand in the quoted passage {quote[:120]!r}",
            remedy="Quote a passage that holds both the keyword and the figure.",
        )
    low, high = max(0, start - CONTEXT_CHARACTERS), min(len(text), end + CONTEXT_CHARACTERS)
    found = [
        _moved(token, low)
        for token in find_numbers(text[low:high])
        if token.core[0] + low < end and token.core[1] + low > start
    ]
    figures = [token for token in found if token.kind in FIGURES]
    token = _only(figures, found, quote)
    if token.core[0] < start or token.core[1] > end:
        raise ExecutorError(
            "number.boundary",
            f"the passage cuts the figure {token.text!r} in two",
            place=f"offset {token.core[0]} to {token.core[1]}",
            remedy="Quote the whole figure with its sign, scale and per cent sign.",
        )
    if token.value is None or token.ambiguous is not None:
        raise _unclear(token)
    token = _clipped(text, token, start, end)
    if unit is not None and not _has_unit(text, token, unit, end):
        raise ExecutorError(
            "number.unit_mismatch",
            f"{token.text!r} has the unit {token.unit or 'none'}, not {unit[:40]!r}",
            remedy="Ask for the unit that is printed, or quote another figure.",
        )
    return token


def _mark(text: str, start: int, end: int, kind: NumberKind) -> NumberToken:
    printed = text[start:end]
    years = re.findall(rf"(?<!\d){YEAR}(?!\d)", printed)
    value = Decimal(years[0]) if kind == "year" and len(years) == 1 else None
    return NumberToken(
        start, end, printed, value, kind, None, None, None, None, 0, core=(start, end)
    )


def _figure(text: str, match: re.Match[str], owned: bytearray) -> NumberToken | None:
    """The token around a numeral, or None when it is glued to letters (an identifier)."""
    numeral = read_numeral(match.group())
    found = affixes_of(text, match.start(), match.end(), grouped=numeral.grouped)
    if found.glued or any(owned[found.start : found.end]):
        return None
    plain = found.bare and not numeral.grouped
    year = _bare_year(text, match) if plain else None
    if year is not None:
        return year
    ambiguous = numeral.ambiguous or found.ambiguous
    if ambiguous is None and plain:
        counted = _is_counted(text, match)
        ambiguous = name_doubt(text, match.start(), match.end(), counted=counted)
    span = found.scale_span
    line = text[max(0, found.start - CONTEXT_CHARACTERS) : found.start].rpartition("\n")[2]
    if ambiguous is None and span is None and not found.percent and _HEADER_SCALE.search(line):
        ambiguous = HEADER_SCALE
    fraction_places = 0 if found.fraction is None else len(found.fraction) - 2
    return NumberToken(
        start=found.start,
        end=found.end,
        text=text[found.start : found.end],
        value=None if numeral.value is None else found.apply(numeral.value),
        kind=_kind(found),
        unit=found.percent or found.currency or found.unit,
        scale=None if span is None else text[slice(*span)],
        scale_span=span,
        ambiguous=ambiguous,
        places=max(numeral.places, fraction_places),
        core=(found.core_start, found.core_end),
    )


def _kind(found: Affixes) -> NumberKind:
    if found.percent is not None:
        return "percent"
    return "number" if found.currency is None else "money"


def _is_counted(text: str, match: re.Match[str]) -> bool:
    return _COUNTED.match(text, match.end()) is not None


def _bare_year(text: str, match: re.Match[str]) -> NumberToken | None:
    """Four plain digits in the range of years, unless a counted noun follows."""
    if not _YEAR.fullmatch(match.group()) or _is_counted(text, match):
        return None
    return _mark(text, match.start(), match.end(), "year")


def _left_over(text: str, owned: bytearray) -> list[NumberToken]:
    """Numeric characters in no other token: identifiers, note marks, numerals without digits."""
    tokens = []
    at = 0
    while at < len(text):
        if owned[at] or not text[at].isnumeric():
            at += 1
            continue
        start, end = at, at + 1
        kind: NumberKind = "note"
        if text[at].isdecimal() and not (start and text[start - 1] == "^"):
            kind = "identifier"
            while end < len(text) and not owned[end] and text[end].isalnum():
                end += 1
            while start and not owned[start - 1] and text[start - 1].isalnum():
                start -= 1
        else:
            while end < len(text) and not owned[end] and text[end].isnumeric():
                end += 1
            if not text[start:end].isdigit():
                kind = "numeral"
        owned[start:end] = b"\x01" * (end - start)
        tokens.append(_mark(text, start, end, kind))
        at = end
    return tokens


def _joined(text: str, tokens: list[NumberToken]) -> tuple[NumberToken, ...]:
    """Flag the ends of a range that lack what is printed at the other end only."""
    for at in range(len(tokens) - 1):
        first, second = tokens[at], tokens[at + 1]
        if first.kind not in FIGURES or second.kind not in FIGURES:
            continue
        join = join_of(text[first.end : second.start])
        if join is None:
            continue
        lacks_scale = first.scale is None and second.scale is not None
        lacks_unit = first.unit is None and second.unit is not None
        differs = join == "dash" and first.unit is not None and second.unit != first.unit
        if lacks_scale or lacks_unit or differs:
            tokens[at] = replace(first, ambiguous=first.ambiguous or RANGE)
        if differs:
            tokens[at + 1] = replace(second, ambiguous=second.ambiguous or RANGE)
    return tuple(tokens)


def _only(figures: list[NumberToken], found: list[NumberToken], quote: str) -> NumberToken:
    if len(figures) == 1:
        return figures[0]
    if figures:
        listed = ", ".join(repr(token.text) for token in figures)
        raise ExecutorError(
            "number.several",
            f"the passage holds {len(figures)} numbers: {listed[:400]}",
            place=repr(quote[:120]),
            remedy="Quote a shorter passage that holds only one of them.",
        )
    if any(token.kind in {"year", "date"} for token in found):
        raise ExecutorError(
            "number.only_year",
            f"the passage holds a year or a date but no number: {quote[:120]!r}",
            remedy="Quote the passage that states the figure itself.",
        )
    skipped = ", ".join(f"{token.text!r} ({token.kind})" for token in found)
    raise ExecutorError(
        "number.none",
        f"the passage holds no number: {quote[:120]!r}"
        + (f"; these are none: {skipped[:200]}" if skipped else ""),
        remedy="Quote the passage that states the figure in digits.",
    )


def _unclear(token: NumberToken) -> ExecutorError:
    code = {
        SEPARATOR: "number.ambiguous_separator",
        SPACE: "number.ambiguous_separator",
        GROUPING: "number.bad_grouping",
    }.get(token.ambiguous or "", "number.ambiguous")
    return ExecutorError(
        code,
        f"{token.text!r} cannot be read for certain: {token.ambiguous or 'no reading is safe'}",
        place=f"offset {token.start} to {token.end}",
        remedy="Quote another passage that states the figure beyond doubt.",
    )


def _clipped(text: str, token: NumberToken, start: int, end: int) -> NumberToken:
    """Leave out a currency or unit that stands outside the quoted span."""
    if start <= token.start and token.end <= end:
        return token
    low, high = max(start, token.start), min(end, token.end)
    while high > token.core[1] and text[high - 1].isspace():
        high -= 1
    kind: NumberKind = "number" if token.kind == "money" else token.kind
    unit = token.unit if token.kind == "percent" else None
    return replace(token, start=low, end=high, text=text[low:high], kind=kind, unit=unit)


def _moved(token: NumberToken, by: int) -> NumberToken:
    span = token.scale_span
    return replace(
        token,
        start=token.start + by,
        end=token.end + by,
        scale_span=None if span is None else (span[0] + by, span[1] + by),
        core=(token.core[0] + by, token.core[1] + by),
    )


def has_words(quote: str, near: str) -> bool:
    """Whether the words of `near` stand in the quote, in order, whole, in any case."""
    words = near.split()
    if not words:
        return False
    pattern = r"\s+".join(re.escape(word) for word in words)
    return re.search(rf"(?<!\w){pattern}(?!\w)", quote, re.IGNORECASE) is not None


def _has_unit(text: str, token: NumberToken, unit: str, end: int) -> bool:
    wanted = unit.strip().casefold()
    if token.unit is not None:
        return token.unit.casefold() == wanted
    following = text[token.end : end].lstrip()
    return (
        bool(wanted) and re.match(rf"{re.escape(wanted)}(?!\w)", following.casefold()) is not None
    )
