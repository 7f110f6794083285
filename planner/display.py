"""The display rule between a stored value and the figure in the prose.

Source: DESIGN §6, §7. Exact decimal arithmetic; ties as stated; no value is never a number.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Final

from tieout.artifacts.values import is_numeric
from tieout.executor.grammar import Display
from tieout.planner.prose_characters import visible

# A binary float can have 309 digits before the point; more are never rounded away here.
_EXACT: Final = Context(prec=400)
_ROUNDING: Final = {"half-up": ROUND_HALF_UP, "half-even": ROUND_HALF_EVEN}
_NUMBERS: Final = frozenset({"number", "currency", "percent"})
NOT_FINITE: Final = frozenset({"NaN", "Infinity", "-Infinity"})


def misfit(display: Display, kind: str) -> str | None:
    """Why a value of this type cannot be shown in this style, or None."""
    if display.style in _NUMBERS and not is_numeric(kind):
        return f"style {display.style} needs a number, the column is {kind}"
    if display.style == "date" and kind not in {"DATE", "TIMESTAMP", "TIMESTAMPTZ"}:
        return f"style date needs a date, the column is {kind}"
    if display.style == "currency" and display.currency is None:
        return "style currency needs a currency"
    return None


def shown(value: str | None, display: Display) -> str:
    """The figure as it stands in the prose. value: the text of the cell, None for null.

    A text's characters that a reader could not see stand there as their escapes.
    """
    if value is None:
        return "(no value)"
    if value in NOT_FINITE and display.style in _NUMBERS:
        return f"(no value: {'not a number' if value == 'NaN' else 'infinite'})"
    if display.style == "text":
        return visible(value)
    if display.style == "date":
        return value[:10]
    number = _rounded(Decimal(value), display)
    grouped = f"{number:,f}"
    if display.style == "currency":
        return f"{display.currency} {grouped}"
    return f"{grouped}%" if display.style == "percent" else grouped


def is_rounded(value: str | None, display: Display) -> bool:
    """Whether `shown` cuts digits off that are not zero. value: as for `shown`."""
    if value is None or value in NOT_FINITE or display.style not in _NUMBERS:
        return False
    return _rounded(Decimal(value), display) != Decimal(value)


def types_unit(display: Display) -> bool:
    """Whether the plan says the currency or per cent: no data is read that backs it."""
    return display.style in {"currency", "percent"}


def _rounded(number: Decimal, display: Display) -> Decimal:
    places = display.places
    if places is None:
        return abs(number) if number == 0 else number
    rounded = number.quantize(
        Decimal(1).scaleb(-places), rounding=_ROUNDING[display.rounding], context=_EXACT
    )
    # -0.00 would read as a loss.
    return abs(rounded) if rounded == 0 else rounded
