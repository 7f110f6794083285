"""Numbers as people write them: their parts, the style of a whole column, exact plain text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tieout.executor.ingest.declaration import ColumnDeclaration

SPACES = " \u00a0\u202f\u2009"
APOSTROPHES = "'\u2019"
MINUSES = "-\u2212"
# Trimmed from the ends of a value that is not text.
WHITE = SPACES + "\t\r\n\v\f"
SIDE_MARKS = ("DR", "CR")

_GROUPS = {"": "", ",": ",", ".": r"\.", " ": f"[{SPACES}]", "'": f"[{APOSTROPHES}]"}
_SCIENTIFIC = re.compile(r"[-+]?[0-9]+(?:[.,][0-9]+)?[eE][-+]?[0-9]+")


@dataclass(frozen=True, slots=True)
class Form:
    """One way of writing a number.

    body: digits and separators. sign: "", "plus", "leading minus", "trailing minus",
    "parentheses", "DR" or "CR". currency: the sign, or "".
    """

    body: str
    sign: str
    currency: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What the separators of a body mean; "" where it has none. Lengths are in digits."""

    decimal: str
    grouping: str
    whole: int
    places: int


@dataclass(frozen=True, slots=True)
class Style:
    """How the numbers of one column are written, and what each body then means."""

    decimal: str
    grouping: str
    readings: Mapping[str, Reading]
    reason: str


@dataclass(frozen=True, slots=True)
class Undecided:
    """Bodies that can be read in two ways, or that contradict each other."""

    conflict: bool
    bodies: tuple[str, ...]


def is_scientific(text: str) -> bool:
    """Whether a text is a number in scientific notation."""
    return _SCIENTIFIC.fullmatch(text) is not None


def read_form(text: str, *, side_marks: bool) -> Form | None:
    """The parts of a trimmed text that is one number, else None.

    side_marks: whether a suffix DR or CR is read.
    """
    sign, currency, rest = "", "", text
    for _ in range(4):  # at most currency, sign or parentheses, suffix, and the body alone
        if not rest:
            return None
        step = _peeled(rest, side_marks=side_marks and not sign)
        if step is None:
            break
        kind, what, rest = step
        if kind == "currency":
            if currency:
                return None
            currency = what
        elif sign:
            return None
        else:
            sign = what
    return Form(rest, sign, currency) if readings(rest) else None


def _peeled(text: str, *, side_marks: bool) -> tuple[str, str, str] | None:
    first, last = text[0], text[-1]
    if unicodedata.category(first) == "Sc":
        return "currency", first, text[1:].lstrip(SPACES)
    if unicodedata.category(last) == "Sc":
        return "currency", last, text[:-1].rstrip(SPACES)
    if first == "(" and last == ")":
        return "sign", "parentheses", text[1:-1].strip(SPACES)
    if first in MINUSES:
        return "sign", "leading minus", text[1:].lstrip(SPACES)
    if first == "+":
        return "sign", "plus", text[1:].lstrip(SPACES)
    if last in MINUSES:
        return "sign", "trailing minus", text[:-1].rstrip(SPACES)
    if side_marks and text[-2:].upper() in SIDE_MARKS:
        return "sign", text[-2:].upper(), text[:-2].rstrip(SPACES)
    return None


def _pattern(decimal: str, grouping: str) -> re.Pattern[str]:
    group = _GROUPS[grouping]
    whole = f"[0-9]{{1,3}}(?:{group}[0-9]{{3}})+" if group else "[0-9]+"
    if not decimal:
        return re.compile(f"({whole})()")
    lone = "" if group else "|"
    return re.compile(f"({whole}{lone}){re.escape(decimal)}([0-9]+)")


_STYLES = {(d, g): _pattern(d, g) for d in ("", ".", ",") for g in _GROUPS if not d or d != g}
_CHOICES = tuple((d, g) for d in (".", ",") for g in ("", ",", ".", " ", "'") if d != g)


def readings(body: str) -> tuple[Reading, ...]:
    """Every way to read a body; none when it is not a number."""
    found = []
    for (decimal, grouping), pattern in _STYLES.items():
        match = pattern.fullmatch(body)
        if match is not None:
            whole = sum(c.isdigit() for c in match[1])
            found.append(Reading(decimal, grouping, whole, len(match[2])))
    return tuple(found)


def decide_style(
    bodies: Iterable[str],
    declared: ColumnDeclaration,
    *,
    whole_only: bool,
    begins_with_zero: Callable[[str], str | None],
) -> Style | Undecided:
    """One style for all bodies of a column, or what stands against it.

    whole_only: a declared integer type, under which a lone separator can only group.
    begins_with_zero: where a value with this body begins with 0, which cannot begin groups.
    """
    possible: dict[str, tuple[Reading, ...]] = {}
    reason = ""
    for body in bodies:
        possible[body] = _admitted(readings(body), declared, whole_only=whole_only)
        if len(possible[body]) > 1:
            zero = begins_with_zero(body)
            if zero is not None:
                possible[body] = tuple(r for r in possible[body] if not r.grouping)
                reason = f"{zero} begins with 0, so the separator is the decimal sign"
    fits = [
        choice
        for choice in _CHOICES
        if all(any(_under(r, choice) for r in rs) for rs in possible.values())
    ]
    if not fits:
        return Undecided(conflict=True, bodies=_contradicting(possible))
    chosen = {b: next(r for r in rs if _under(r, fits[0])) for b, rs in possible.items()}
    for fit in fits[1:]:
        for body, options in possible.items():
            if not _under(chosen[body], fit):
                other = next(r for r in options if _under(r, fit))
                if other != chosen[body]:
                    return Undecided(conflict=False, bodies=(body,))
    decimal = next((r.decimal for r in chosen.values() if r.decimal), declared.decimal or "")
    grouping = next((r.grouping for r in chosen.values() if r.grouping), declared.grouping or "")
    return Style(decimal, grouping, chosen, reason)


def _admitted(
    found: tuple[Reading, ...], declared: ColumnDeclaration, *, whole_only: bool
) -> tuple[Reading, ...]:
    kept = tuple(
        r
        for r in found
        if declared.decimal is None or r.decimal in ("", declared.decimal)
        if declared.grouping is None or r.grouping in ("", declared.grouping)
        if not r.grouping or r.grouping != declared.decimal
        if not r.decimal or r.decimal != declared.grouping
    )
    if whole_only and any(not r.decimal for r in kept):
        return tuple(r for r in kept if not r.decimal)
    return kept


def _under(reading: Reading, choice: tuple[str, str]) -> bool:
    decimal, grouping = choice
    return reading.decimal in ("", decimal) and reading.grouping in ("", grouping)


def _contradicting(possible: Mapping[str, tuple[Reading, ...]]) -> tuple[str, ...]:
    """Two bodies that no one style reads, the first such pair; or one that nothing reads."""
    bodies = list(possible)
    for second, body in enumerate(bodies):
        for other in bodies[:second]:
            together = any(
                any(_under(r, choice) for r in possible[other])
                and any(_under(r, choice) for r in possible[body])
                for choice in _CHOICES
            )
            if not together:
                return (other, body)
    return tuple(bodies[:1])


class PlainNumber:
    """Turns a value whose form was admitted into plain text: -1234.56, no sign when positive."""

    __slots__ = ("_decimal", "_negative_mark", "_removed")

    def __init__(self, *, decimal: str, negative_mark: str) -> None:
        """decimal: the column's sign. negative_mark: "DR", "CR" or ""."""
        self._decimal = decimal
        self._negative_mark = negative_mark
        self._removed = re.compile(r"[^0-9.]" if decimal != "," else r"[^0-9,]")

    def __call__(self, text: str) -> str:
        negative = text.strip(WHITE)[-2:].upper() == self._negative_mark or any(
            mark in text for mark in ("-", "\u2212", "(")
        )
        digits = self._removed.sub("", text)
        if self._decimal == ",":
            digits = digits.replace(",", ".")
        elif self._decimal != ".":
            digits = digits.replace(".", "")
        if digits.startswith("."):
            digits = "0" + digits
        return f"-{digits}" if negative else digits


def plain_sizes(plain: str) -> tuple[int, int]:
    """Digits before the point without leading zeros, and after it without trailing zeros."""
    whole, _, places = plain.lstrip("-").partition(".")
    return len(whole.lstrip("0")), len(places.rstrip("0"))
