"""The display rule between a stored value and the figure in the prose.

Source: DESIGN §6, §7. Exact decimal arithmetic; ties as stated; no value is never a number.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Final

from tieout.artifacts.values import FLOATS, decimal_scale, is_numeric
from tieout.executor.grammar import Display
from tieout.planner.prose_characters import visible

# A binary float can have 309 digits before the point; more are never rounded away here.
_EXACT: Final = Context(prec=400)
_ROUNDING: Final = {"half-up": ROUND_HALF_UP, "half-even": ROUND_HALF_EVEN}
_NUMBERS: Final = frozenset({"number", "currency", "percent"})
_DATES: Final = frozenset({"DATE", "TIMESTAMP", "TIMESTAMPTZ"})
COMPUTED_PLACES: Final = 12
"""From so many places on, those of a computed value are of the division, not of the data."""
_PLACES: Final = {"currency": 2, "percent": 2}
"""What a reader of accounts expects where a plan gives no places."""
NOT_FINITE: Final = frozenset({"NaN", "Infinity", "-Infinity"})


def misfit(display: Display, kind: str) -> str | None:
    """Why a value of this type cannot be shown in this style and which style can, or None."""
    if display.style in _NUMBERS and not is_numeric(kind):
        fits = "date" if kind in _DATES else "text"
        return f"style {display.style} needs a number, the column is {kind}; give style {fits}"
    if display.style == "date" and kind not in _DATES:
        fits = "number" if is_numeric(kind) else "text"
        return f"style date needs a date, the column is {kind}; give style {fits}"
    if display.style == "currency" and display.currency is None:
        return "style currency needs a currency; give its three letters"
    return None


def shown(value: str | None, display: Display, *, long: bool = False) -> str:
    """The figure as it stands in the prose. value: the text of the cell, None for null.

    long: it has digits that only a computation gave it (`is_long`): without `places` a currency
    or percentage then has two, and another number no zeros at its end. A text's characters that a
    reader could not see stand there as their escapes.
    """
    if value is None:
        return "(no value)"
    if value in NOT_FINITE and display.style in _NUMBERS:
        return f"(no value: {'not a number' if value == 'NaN' else 'infinite'})"
    if display.style == "text":
        return visible(value)
    if display.style == "date":
        return value[:10]
    number = _rounded(Decimal(value), display, long=long)
    grouped = f"{number:,f}"
    if display.style == "currency":
        return f"{display.currency} {grouped}"
    return f"{grouped}%" if display.style == "percent" else grouped


def is_rounded(value: str | None, display: Display, *, long: bool = False) -> bool:
    """Whether `shown` cuts digits off that are not zero. value, long: as for `shown`."""
    if value is None or value in NOT_FINITE or display.style not in _NUMBERS:
        return False
    return _rounded(Decimal(value), display, long=long) != Decimal(value)


def is_long(kind: str, *, computed: bool) -> bool:
    """Whether a column's values have the digits of a quotient, average or float."""
    scale = decimal_scale(kind)
    return computed and (kind in FLOATS or (scale is not None and scale >= COMPUTED_PLACES))


def types_unit(display: Display) -> bool:
    """Whether the plan says the currency or per cent: no data is read that backs it."""
    return display.style in {"currency", "percent"}


def _rounded(number: Decimal, display: Display, *, long: bool) -> Decimal:
    places = display.places
    if places is None and long:
        places = _PLACES.get(display.style)
        number = _without_zeros(number) if places is None else number
    if places is None:
        return abs(number) if number == 0 else number
    rounded = number.quantize(
        Decimal(1).scaleb(-places), rounding=_ROUNDING[display.rounding], context=_EXACT
    )
    # -0.00 would read as a loss.
    return abs(rounded) if rounded == 0 else rounded


def _without_zeros(number: Decimal) -> Decimal:
    """Without zeros after the last digit behind the point; never with an exponent."""
    short = number.normalize(_EXACT)
    exponent = short.as_tuple().exponent
    whole = isinstance(exponent, int) and exponent > 0
    return short.quantize(Decimal(1), context=_EXACT) if whole else short
