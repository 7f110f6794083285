"""Bounds of a result that the engine does not keep by itself."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tieout.executor.errors import ExecutorError, Exit


def check_cells(table: Any, bytes_max: int) -> None:
    """No single text of a result (a pyarrow.Table) is longer than bytes_max.

    Raises ExecutorError limit.cell: a query could make one cell out of a whole table.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = field.type
        if not (
            pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)
        ):
            continue
        longest = pc.max(pc.binary_length(column)).as_py() or 0
        if longest > bytes_max:
            raise ExecutorError(
                "limit.cell",
                f"a text of column {field.name!r} has {longest} bytes, more than {bytes_max}",
                remedy="Select shorter texts; limits.cell_bytes_max is the bound.",
                exit_code=Exit.INCOMPLETE,
            )
