"""Dates and times as people write them: their form, the order of a whole column, ISO text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone

DAYS_FIRST_MAX = 12
FRACTION_DIGITS_MAX = 6
TWO_DIGIT_PIVOT = 69
COMPACT_YEARS = ("19000101", "20991231")

_CLOCK = (
    r"(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:\.(?P<f>[0-9]+))?)?"
    r"(?: ?(?P<z>Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?))?"
)
_MOMENT = re.compile(
    r"(?:(?P<Y>[0-9]{4})(?P<ysep>[-/.])(?P<m>[0-9]{1,2})(?P=ysep)(?P<d>[0-9]{1,2})"
    r"|(?P<a>[0-9]{1,2})(?P<sep>[-/.])(?P<b>[0-9]{1,2})(?P=sep)(?P<Y2>[0-9]{4}))"
    rf"(?:(?:T| +){_CLOCK})?"
)
_COMPACT = re.compile(r"(?P<Y>[0-9]{4})(?P<m>[0-9]{2})(?P<d>[0-9]{2})")
_TWO_DIGIT_YEAR = re.compile(r"[0-9]{1,2}([-/.])[0-9]{1,2}\1[0-9]{2}")
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_CODES = {
    "Y": "(?P<Y>[0-9]{4})",
    "y": "(?P<y>[0-9]{2})",
    "m": "(?P<m>[0-9]{1,2})",
    "d": "(?P<d>[0-9]{1,2})",
    "b": "(?P<b>[A-Za-z]{3})",
    "B": "(?P<B>[A-Za-z]+)",
    "H": "(?P<H>[0-9]{1,2})",
    "M": "(?P<M>[0-9]{2})",
    "S": "(?P<S>[0-9]{2})",
    "f": "(?P<f>[0-9]{1,6})",
    "z": "(?P<z>Z|UTC|[+-][0-9]{2}:?[0-9]{2})",
    "%": "%",
}


@dataclass(frozen=True, slots=True)
class MomentForm:
    """One way of writing a date or a time.

    separator: between the parts of the date. year_first, timed, zoned: what is there.
    fraction: digits of the fraction of a second.
    """

    separator: str
    year_first: bool
    timed: bool
    zoned: bool
    fraction: int


@dataclass(frozen=True, slots=True)
class Order:
    """The order of day and month in a column, and why."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class OrderUnknown:
    """Why no order could be chosen: values that contradict each other, or an example."""

    conflict: bool
    examples: tuple[str, ...]


def read_moment_form(text: str) -> MomentForm | None:
    """The form of a trimmed text that is one date or time, else None; digits may be masked."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    return MomentForm(
        separator=found["ysep"] or found["sep"],
        year_first=found["Y"] is not None,
        timed=found["H"] is not None,
        zoned=found["z"] is not None,
        fraction=len(found["f"] or ""),
    )


def has_two_digit_year(text: str) -> bool:
    """Whether a text looks like a date whose century is not written."""
    return _TWO_DIGIT_YEAR.fullmatch(text) is not None


def is_compact_date(text: str) -> bool:
    """Whether a text is YYYYMMDD, a day of the years 1900 to 2099."""
    found = _COMPACT.fullmatch(text)
    low, high = COMPACT_YEARS
    return found is not None and low <= text <= high and _day(found, order="") is not None


def decide_order(values: Iterable[str], *, locate: Callable[[str], str]) -> Order | OrderUnknown:
    """The order that every distinct value of a day-month-year column allows.

    locate gives "line 3" of a value. A point between the parts is day first by convention.
    """
    first: dict[str, str] = {}
    example, pointed = "", True
    for value in values:
        found = _MOMENT.fullmatch(value)
        if found is None or found["a"] is None:
            continue
        example = example or value
        pointed = pointed and found["sep"] == "."
        if int(found["a"]) > DAYS_FIRST_MAX:
            first.setdefault("day first", value)
        elif int(found["b"]) > DAYS_FIRST_MAX:
            first.setdefault("month first", value)
    if len(first) > 1:
        return OrderUnknown(conflict=True, examples=(first["day first"], first["month first"]))
    for order, value in first.items():
        return Order(order, f"{locate(value)}: {value} can only be {order}")
    if pointed:
        return Order("day first", "dates with points are day first by convention")
    return OrderUnknown(conflict=False, examples=(example,))


class IsoMoment:
    """Turns a value into ISO text of a date, a local time or a time in UTC; None if it cannot.

    kind: DATE, TIMESTAMP or TIMESTAMPTZ. order: of day and month, "" when none was needed.
    pattern: of a declared format.
    """

    __slots__ = ("_kind", "_order", "_pattern", "_widen")

    def __init__(
        self, kind: str, *, order: str, pattern: re.Pattern[str] | None, widen: bool
    ) -> None:
        """widen: read a date as its midnight and midnight as its date, as a declared type may."""
        self._kind = kind
        self._order = order
        self._pattern = pattern
        self._widen = widen

    def __call__(self, text: str) -> str | None:
        if self._pattern is not None:
            found = self._pattern.fullmatch(text)
        else:
            found = _MOMENT.fullmatch(text) or (_COMPACT.fullmatch(text) if self._widen else None)
        if found is None:
            return None
        day = _day(found, order=self._order)
        return None if day is None else self._moment(day, found.groupdict())

    def _moment(self, day: date, parts: dict[str, str | None]) -> str | None:
        timed = parts.get("H") is not None
        if timed != (self._kind != "DATE") and not self._widen:
            return None
        clock = _clock(day, parts)
        if clock is None:
            return None
        zone = parts.get("z")
        if self._kind == "TIMESTAMPTZ":
            return _in_utc(clock, zone) if zone else None
        if zone:
            return None
        if self._kind == "DATE":
            midnight = (clock.hour, clock.minute, clock.second, clock.microsecond) == (0, 0, 0, 0)
            return day.isoformat() if midnight else None
        return clock.isoformat(sep=" ")


def compile_format(text: str) -> re.Pattern[str] | str:
    """The pattern of a declared format, or what is wrong with it."""
    pieces, seen, index = [], set[str](), 0
    while index < len(text):
        if text[index] != "%":
            pieces.append(re.escape(text[index]))
            index += 1
            continue
        code = text[index + 1 : index + 2]
        if code not in _CODES:
            return f"%{code} is not read"
        if code in seen and code != "%":
            return f"%{code} stands twice"
        seen.add(code)
        pieces.append(_CODES[code])
        index += 2
    if not (seen & {"Y", "y"} and seen & {"m", "b", "B"} and "d" in seen):
        return "it needs a year, a month and a day"
    return re.compile("".join(pieces))


def _day(found: re.Match[str], *, order: str) -> date | None:
    parts = found.groupdict()
    year = parts.get("Y") or parts.get("Y2")
    day, month = parts.get("d"), parts.get("m") or _month_number(parts)
    if parts.get("a") is not None:
        if order not in ("day first", "month first"):
            return None
        day, month = parts["a"], parts["b"]
        if order == "month first":
            day, month = month, day
    if year is None and parts.get("y") is not None:
        short = int(parts["y"] or 0)
        year = str(short + (2000 if short < TWO_DIGIT_PIVOT else 1900))
    if year is None or month is None or day is None:
        return None
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def _month_number(parts: dict[str, str | None]) -> str | None:
    short, full = parts.get("b"), parts.get("B")
    if parts.get("a") is not None:
        return None
    for number, month in enumerate(_MONTHS, start=1):
        if (short and month[:3] == short.lower()) or (full and month == full.lower()):
            return str(number)
    return None


def _clock(day: date, parts: dict[str, str | None]) -> datetime | None:
    fraction = parts.get("f") or ""
    if len(fraction) > FRACTION_DIGITS_MAX:
        return None
    try:
        return datetime(  # noqa: DTZ001 - a local time stays local; a zone is applied later
            day.year,
            day.month,
            day.day,
            int(parts.get("H") or 0),
            int(parts.get("M") or 0),
            int(parts.get("S") or 0),
            int(fraction.ljust(FRACTION_DIGITS_MAX, "0")),
        )
    except ValueError:
        return None


def _in_utc(clock: datetime, zone: str) -> str | None:
    if zone in ("Z", "UTC"):
        return f"{clock.isoformat(sep=' ')}Z"
    minutes = int(zone[1:3]) * 60 + int(zone.replace(":", "")[3:5] or 0)
    offset = timedelta(minutes=-minutes if zone[0] == "-" else minutes)
    try:
        moment = clock.replace(tzinfo=timezone(offset)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return f"{moment.replace(tzinfo=None).isoformat(sep=' ')}Z"
