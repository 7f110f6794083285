"""Values of declared domains and ranges, and of literals compared with them, as exact values.

A text becomes a value only where the engine would surely read it so; in doubt there is no value,
and nothing is said of the literal.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Final, TypeAlias

Value: TypeAlias = "Decimal | dt.datetime | str"

_EXACT: Final = Context(prec=200)
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_INTEGERS: Final = frozenset(
    {
        *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    }
)
_SPELLINGS: Final = {
    "INT": "INTEGER",
    "INT4": "INTEGER",
    "INT8": "BIGINT",
    "LONG": "BIGINT",
    "TEXT": "VARCHAR",
    "STRING": "VARCHAR",
    "DATETIME": "TIMESTAMP",
}
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?", re.ASCII)
_INTEGER_DIGITS: Final = 38


@dataclass(frozen=True, slots=True)
class Kind:
    """A type as far as values need it. family: text, number, date or moment; digits, scale: of
    a number."""

    family: str
    digits: int = _INTEGER_DIGITS
    scale: int = 0

    @property
    def step(self) -> Decimal | dt.timedelta | None:
        """The distance between neighbours; None where there is none."""
        if self.family == "number":
            return Decimal(1).scaleb(-self.scale)
        if self.family == "date":
            return dt.timedelta(days=1)
        return dt.timedelta(microseconds=1) if self.family == "moment" else None

    @property
    def ordered(self) -> bool:
        """Whether a range of it can be declared."""
        return self.step is not None


def kind_of(type_text: str) -> Kind | None:
    """The kind of a type of the engine or of a cast; None for a type that has no kind here."""
    name = type_text.upper().replace(" ", "")
    name = _SPELLINGS.get(name, name)
    sized = _DECIMAL.fullmatch(name)
    if sized:
        return Kind("number", int(sized[1]), int(sized[2]))
    if name in _INTEGERS:
        return Kind("number")
    family = {"VARCHAR": "text", "DATE": "date", "TIMESTAMP": "moment"}.get(name)
    return Kind(family) if family else None


def read(text: str, kind: Kind) -> Value | None:
    """The value that a text has when it is cast to a type of this kind."""
    if kind.family == "text":
        return text
    if kind.family == "number":
        number = _number(text.strip())
        return None if number is None else rounded(number, kind)
    moment = _moment(text.strip())
    if moment is None or kind.family == "moment":
        return moment
    return moment if _DATE.fullmatch(text.strip()) else None


def _number(text: str) -> Decimal | None:
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _moment(text: str) -> dt.datetime | None:
    if not (_DATE.fullmatch(text) or _MOMENT.fullmatch(text)):
        return None
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        return None


def _midnight(moment: dt.datetime) -> dt.datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def rounded(number: Decimal, kind: Kind, rounding: str = ROUND_HALF_UP) -> Decimal | None:
    """A number at the scale of a kind, as a cast makes it; None where it has too many digits."""
    found = number.quantize(Decimal(1).scaleb(-kind.scale), rounding, _EXACT)
    return found if abs(found) < Decimal(10) ** (kind.digits - kind.scale) else None


def cast(value: Value, source: Kind, target: Kind) -> Value | None:
    """A value of one kind cast to another; None where that is not known to be exact."""
    if isinstance(value, Decimal) and target.family == "number":
        return rounded(value, target)
    if isinstance(value, dt.datetime) and target.family in ("date", "moment"):
        return _midnight(value) if target.family == "date" else value
    if target.family == "text" and source.family in ("text", "number", "date"):
        return shown(value, source)
    return read(value, target) if isinstance(value, str) else None


def shown(value: Value, kind: Kind) -> str:
    """The text of a value of this kind, as the engine writes it."""
    if isinstance(value, dt.datetime):
        if kind.family == "date":
            return value.date().isoformat()
        return value.isoformat(" ")
    return format(value, "f") if isinstance(value, Decimal) else value


def moved(value: Value, kind: Kind, steps: int) -> Value | None:
    """The value so many steps away; None where there is none."""
    step = kind.step
    if isinstance(value, Decimal) and isinstance(step, Decimal):
        return _EXACT.add(value, steps * step)
    if isinstance(value, dt.datetime) and isinstance(step, dt.timedelta):
        try:
            return value + steps * step
        except OverflowError:
            return None
    return None


def outward(value: Value, kind: Kind, *, up: bool) -> Value | None:
    """The value as a literal of this kind, or the next one above (up) or below that can be one."""
    if isinstance(value, Decimal):
        return rounded(value, kind, ROUND_CEILING if up else ROUND_FLOOR)
    if isinstance(value, dt.datetime) and kind.family == "date":
        day = _midnight(value)
        return moved(day, kind, 1) if up and day != value else day
    return value


def below(one: Value, other: Value) -> bool:
    """Whether one value comes before the other; values of different families never do."""
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return one < other
    if isinstance(one, dt.datetime) and isinstance(other, dt.datetime):
        return one < other
    return False
