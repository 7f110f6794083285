"""Read one printed numeral: which marks group, which one is the decimal mark, or why unclear.

Source: notes on number extraction. English conventions; a numeral that another convention would
read as another value is flagged, never decided in silence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Final

SEPARATOR: Final = "a mark may separate groups or decimals"
SPACE: Final = "a space may separate groups or two numbers"
GROUPING: Final = "the digits are not grouped in a known way"
SCRIPT: Final = "the digits are of another script"
TOO_LONG: Final = "it has more digits than can be kept"
LEADING_ZERO: Final = "it begins with a zero, as an identifier does"

DIGITS_MAX: Final = 38
EXPONENT_MAX: Final = 30
EXACT: Final = Context(prec=120)
_INVISIBLE: Final = "\u200b\u200c\u200d\u2060\u00ad"
_D: Final = rf"\d(?:[{_INVISIBLE}]*\d)*"
_SPACES: Final = " \u00a0\u2009\u202f"
_Z: Final = rf"[{_INVISIBLE}]*"
NUMERAL: Final = re.compile(
    rf"(?:(?<!\d)\d{{1,3}}(?:[{_SPACES}]\d{{3}})+(?!\d)(?:[.,]\d+)?"
    rf"|{_D}(?:{_Z}[.,'\u2019]{_Z}{_D})*"
    rf"|(?<![\w.,])[.,]\d+)"
    rf"(?:[eE][+-]?\d{{1,3}}(?!\w))?"
)
_SPLIT: Final = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Numeral:
    """What a printed numeral says.

    value: None when no reading is safe to name; places: digits after the decimal mark as
    printed; ambiguous: why it is not certain, None when it is. grouped: it has a mark at all.
    """

    value: Decimal | None
    places: int
    ambiguous: str | None
    grouped: bool


def read_numeral(printed: str) -> Numeral:
    """The value of a match of NUMERAL."""
    text = re.sub(rf"[{_INVISIBLE}]", "", printed)
    if not text.isascii() and any(char.isdigit() and not char.isascii() for char in text):
        return Numeral(None, 0, SCRIPT, grouped=False)
    mantissa, _, power = text.partition("e" if "e" in text else "E")
    plain = _plain(mantissa)
    if plain.value is None:
        return plain
    if power:
        if abs(int(power)) > EXPONENT_MAX:
            return Numeral(None, 0, TOO_LONG, grouped=True)
        scaled = plain.value.scaleb(int(power), EXACT)
        return Numeral(scaled, max(0, plain.places - int(power)), plain.ambiguous, grouped=True)
    return plain


def _plain(text: str) -> Numeral:
    pieces = _SPLIT.split(text)
    groups, marks = pieces[1::2], [mark for mark in pieces[2:-1:2] if mark]
    if pieces[0]:  # begins with its decimal mark
        flag = None if pieces[0] == "." else SEPARATOR
        return _numeral(["0"], groups[0], flag)
    if sum(map(len, groups)) > DIGITS_MAX:
        return Numeral(None, 0, TOO_LONG, grouped=bool(marks))
    if not marks:
        flag = LEADING_ZERO if len(text) > 1 and text[0] == "0" else None
        return Numeral(Decimal(text), 0, flag, grouped=False)
    if len(set(marks)) == 1:
        return _one_mark(groups, marks[0])
    decimal, grouping = marks[-1], set(marks[:-1])
    if decimal not in ".," or len(grouping) > 1 or decimal in grouping:
        return Numeral(None, 0, GROUPING, grouped=True)
    mark = marks[0]
    if not _grouped(groups[:-1], mark):
        return Numeral(None, 0, GROUPING, grouped=True)
    return _numeral(groups[:-1], groups[-1], SPACE if mark == " " else None)


def _one_mark(groups: list[str], mark: str) -> Numeral:
    """Every mark is the same: groups, or one decimal mark."""
    three = _grouped(groups, mark)
    if len(groups) == 2 and mark == ".":
        doubtful = three and groups[0] != "0"
        return _numeral(groups[:1], groups[1], SEPARATOR if doubtful else None)
    short = len(groups[1]) < 3 or (three and groups[0].startswith("0"))
    if len(groups) == 2 and mark == "," and short:
        return _numeral(groups[:1], groups[1], SEPARATOR)
    if not three:
        return Numeral(None, 0, GROUPING, grouped=True)
    flag = {" ": SPACE, ".": SEPARATOR}.get(mark)
    return _numeral(groups, "", flag)


def _grouped(groups: list[str], mark: str) -> bool:
    """Groups of three after a first of one to three; with a comma also the Indian 2-2-3."""
    if len(groups) == 1:
        return True
    if all(len(group) == 3 for group in groups[1:]):
        return 1 <= len(groups[0]) <= 3
    return (
        mark == ","
        and len(groups[0]) <= 2
        and len(groups[-1]) == 3
        and all(len(group) == 2 for group in groups[1:-1])
    )


def _numeral(groups: list[str], decimals: str, ambiguous: str | None) -> Numeral:
    digits = "".join(groups)
    value = Decimal(f"{digits}.{decimals}" if decimals else digits)
    return Numeral(value, len(decimals), ambiguous, grouped=True)
