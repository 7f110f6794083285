"""Column names from header fields: present, distinct, on one line, not reserved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tieout.artifacts.printable import is_unsafe
from tieout.executor.errors import ExecutorError
from tieout.executor.ingest.declaration import ColumnDeclaration, column_table

RESERVED = "__"
COLUMNS_MAX = 4096


def column_names(fields: Sequence[str], *, extra: int, name: str, line: int) -> tuple[str, ...]:
    """One name per header field, then `extra` names for fields that no header names.

    A repeated name gets a number, whatever its case, as the engine's names have none.
    Raises ExecutorError csv.reserved_name and csv.columns (too many).
    """
    if len(fields) + extra > COLUMNS_MAX:
        raise ExecutorError(
            "csv.columns",
            f"the file has more than {COLUMNS_MAX} columns",
            place=f"{name}, line {line}",
            remedy="Check the delimiter; if it is right, split the file.",
        )
    # What cannot be seen cannot be typed in a query either; the header as received keeps it.
    collapsed = [
        " ".join("".join(c for c in field if c.isspace() or not is_unsafe(c)).split())
        for field in fields
    ]
    for field in collapsed:
        if field.startswith(RESERVED):
            raise ExecutorError(
                "csv.reserved_name",
                f"column {field} begins with {RESERVED}, which is kept for columns of our own",
                place=f"{name}, line {line}",
                remedy="Ask the sender for another name; the file is kept as received.",
            )
    received = {field.casefold() for field in collapsed if field}
    used: set[str] = set()
    names = []
    for place, field in enumerate(collapsed, start=1):
        wanted = field or f"column_{place}"
        names.append(_free(wanted, used, received if wanted.casefold() in used else set()))
    names.extend(_free(f"extra_{number}", used, set()) for number in range(1, extra + 1))
    return tuple(names)


def _free(wanted: str, used: set[str], received: set[str]) -> str:
    """`wanted`, or it with the first number that no other column has."""
    chosen, number = wanted, 1
    while chosen.casefold() in used or (number > 1 and chosen.casefold() in received):
        number += 1
        chosen = f"{wanted}_{number}"
    used.add(chosen.casefold())
    return chosen


def check_declared_columns(
    names: Sequence[str], declared: Mapping[str, ColumnDeclaration], *, name: str
) -> None:
    """Refuse a declaration of a column that the file does not have.

    Raises ExecutorError csv.unknown_column.
    """
    for column in declared:
        if column not in names:
            known = ", ".join(names)
            raise ExecutorError(
                "csv.unknown_column",
                f"column {column} is declared, but the file has no such column",
                place=name,
                remedy=f"Correct {column_table(name, column)}; the file has: {known}.",
            )
