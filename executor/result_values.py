"""Values of a result that no figure may hold: what is not a number, and infinities."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tieout.executor.errors import ExecutorError, Exit

Arrow: TypeAlias = Any
"""pyarrow is untyped: a pyarrow.Table."""

REMEDIES = {
    "sql.not_a_number": (
        "Leave the rows out whose values have no such result, or divide by nullif(x, 0)."
    ),
    "sql.infinity": (
        "Divide by nullif(x, 0), leave such rows out, or cast to DECIMAL before it grows."
    ),
}
"""Way out by code."""

_WRONG = {"sql.not_a_number": ("not a number", pc.is_nan), "sql.infinity": ("infinite", pc.is_inf)}


def check_finite(table: Arrow) -> None:
    """No number of a result (a pyarrow.Table) is NaN or infinite.

    The engine raises for whole numbers and DECIMAL; in binary floating point a division by zero,
    an overflow and a root of a negative number give a value, that a figure would show.
    Raises ExecutorError sql.not_a_number, sql.infinity: the column and how many, no value.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        if not pa.types.is_floating(field.type):
            continue
        for code, (what, test) in _WRONG.items():
            count = pc.sum(test(column)).as_py() or 0
            if count:
                raise ExecutorError(
                    code,
                    f"column {field.name!r} has values that are {what}: {count}",
                    remedy=REMEDIES[code],
                    exit_code=Exit.INCOMPLETE,
                )
