"""Control totals: the exact sum of a column, fast where Arrow cannot overflow (FORMAT §5)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

# pyarrow ships no types; these names say which of its objects is meant.
ArrowTable: TypeAlias = Any
ArrowArray: TypeAlias = Any

HIDDEN_PREFIX: Final = "__"
SUM_ROWS: Final = 65_536
"""Rows that are summed at a time: what is cast for it stays in a processor's cache."""
DIGITS_MAX: Final = 38
"""Of a decimal128, and so of Arrow's sum of one."""
INTEGER_MAX: Final = (1 << 63) - 1


def control_totals(table: ArrowTable) -> tuple[tuple[str, str], ...]:
    """The exact sum of each visible integer or DECIMAL column, as text (docs/FORMAT.md §5)."""
    totals = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if field.name.startswith(HIDDEN_PREFIX):
            continue
        if pa.types.is_decimal(field.type) or pa.types.is_integer(field.type):
            totals.append((field.name, _exact_sum(column, field.type)))
    return tuple(totals)


def _exact_sum(column: ArrowArray, kind: Any) -> str:
    """The sum by runs of rows: each by Arrow when it cannot overflow, and these by Python."""
    if pa.types.is_integer(kind):
        return str(sum(_sum_of_integers(run, kind) for run in _runs(column)))
    return _placed(sum(_sum_of_decimals(run, kind) for run in _runs(column)), kind.scale)


def _runs(column: ArrowArray) -> Iterator[ArrowArray]:
    for chunk in column.chunks:
        for start in range(0, len(chunk), SUM_ROWS):
            yield chunk.slice(start, SUM_ROWS)


def _sum_of_integers(run: ArrowArray, kind: Any) -> int:
    # Up to 32 bits, SUM_ROWS of them cannot reach 63 bits; wider ones are looked at first.
    if kind.bit_width > 32 and _largest(run) * len(run) > INTEGER_MAX:
        return sum(value for value in run.to_pylist() if value is not None)
    return int(pc.sum(run).as_py() or 0)


def _sum_of_decimals(run: ArrowArray, kind: Any) -> int:
    """The sum as an integer of units of the last digit."""
    safe = len(run) < 10 ** (DIGITS_MAX - kind.precision)
    if not safe and _largest(run) * len(run) >= 10**DIGITS_MAX:
        # Arrow's sum could overflow and Decimal's would round; integers do neither.
        return sum(_unscaled(value) for value in run.to_pylist() if value is not None)
    total = pc.sum(run)
    if total.type.precision < DIGITS_MAX:  # older releases keep the width of the column
        total = pc.sum(run.cast(pa.decimal128(DIGITS_MAX, kind.scale)))
    return 0 if total.as_py() is None else _unscaled(total.as_py())


def _largest(run: ArrowArray) -> int:
    """The largest magnitude of a run, in units of the last digit; 0 when all is null."""
    extent = pc.min_max(run).as_py()
    return max(abs(_unscaled(extent[end] or 0)) for end in ("min", "max"))


def _unscaled(value: Decimal | int) -> int:
    """The integer behind a decimal128, whose text always carries all digits of its scale."""
    return value if isinstance(value, int) else int(format(value, "f").replace(".", ""))


def _placed(unscaled: int, scale: int) -> str:
    """The text of unscaled / 10^scale with exactly `scale` digits after the point."""
    if not scale:
        return str(unscaled)
    sign = "-" if unscaled < 0 else ""
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}"
