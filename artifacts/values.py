"""Types and the text of single values, and the keys that name rows (docs/FORMAT.md §3, §5)."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

import pyarrow as pa

from tieout.artifacts.errors import ArtifactError

Cell: TypeAlias = (
    None | bool | int | float | Decimal | str | bytes | dt.date | dt.datetime | dt.time
)

_NAMES: Final = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date32[day]": "DATE",
    "time64[us]": "TIME",
    "timestamp[us]": "TIMESTAMP",
    "timestamp[us, tz=UTC]": "TIMESTAMPTZ",
    "string": "VARCHAR",
    "binary": "BLOB",
}
INTEGERS: Final = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
)
FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def type_of(kind: Any) -> Any:
    """The canonical Arrow type for this one, or None when a table cannot hold it."""
    types = pa.types
    if types.is_dictionary(kind):
        return type_of(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= 38 else None
    if types.is_date(kind):
        return pa.date32()
    if types.is_time64(kind) or types.is_time32(kind):
        return pa.time64("us")
    if types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    return kind if str(kind) in _NAMES else None


def type_name(kind: Any) -> str:
    """The canonical name of a canonical Arrow type."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return _NAMES[str(kind)]


def decimal_scale(name: str) -> int | None:
    """Digits after the point of a DECIMAL type name; None for other types."""
    match = _DECIMAL.fullmatch(name)
    return int(match.group(2)) if match else None


def is_numeric(name: str) -> bool:
    """Whether a type name stands for numbers."""
    return name in INTEGERS or name in FLOATS or decimal_scale(name) is not None


def cell_text(value: Cell, kind: str) -> str | None:
    """The text of a value of this type (docs/FORMAT.md §5); None for null."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return repr(value) if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat()
        return text + "Z" if kind == "TIMESTAMPTZ" else text
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def row_key(key: Sequence[str], row: Mapping[str, str | None], position: int) -> str:
    """The text that names a row: `a=1&b=x`, `!a` for null, or the position from 1.

    row: the texts of the key columns. position: counted from 0.
    """
    if not key:
        return str(position + 1)
    return "&".join(_part(name, row[name]) for name in key)


def _part(name: str, text: str | None) -> str:
    plain = quote(name, safe="-._~")
    return f"!{plain}" if text is None else f"{plain}={quote(text, safe='-._~')}"


def parse_row_key(text: str) -> int | dict[str, str | None]:
    """A position (from 0) or the texts of the key columns.

    Raises ArtifactError row_key.malformed.
    """
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text) - 1
    parts: dict[str, str | None] = {}
    for part in text.split("&"):
        name, equals, value = part.partition("=")
        if part.startswith("!") and not equals:
            parts[unquote(part[1:])] = None
        elif equals and name:
            parts[unquote(name)] = unquote(value)
        else:
            raise ArtifactError(
                "row_key.malformed",
                f"{text[:80]!r} does not name a row",
                remedy="A row is NAME=VALUE&…, !NAME for null, or its position from 1.",
            )
    return parts


def cell_reference(address: str, row: str, column: str) -> str:
    """`ADDRESS#ROWKEY:COLUMN`, the citation of a cell as text."""
    return f"{address}#{row}:{quote(column, safe='-._~')}"


def parse_cell_reference(text: str) -> tuple[str, str, str]:
    """(address, row key, column) of a cell's citation; raises ArtifactError cell.malformed."""
    address, hash_mark, rest = text.partition("#")
    row, colon, column = rest.rpartition(":")
    if not hash_mark or not colon or not row or not column:
        raise ArtifactError(
            "cell.malformed",
            f"{text[:120]!r} is not the citation of a cell",
            remedy="A cell is ADDRESS#ROWKEY:COLUMN.",
        )
    return address, row, unquote(column)
