"""Reads an encoded row: its bytes, as docs/FORMAT.md has them for row leaves, to texts of §5.

Imports nothing but the standard library, for those who check a row without Arrow. Bytes that no
writer makes (a validity that is neither 0 nor 1, -0.0, text that is not UTF-8, a date outside of
the years 1 to 9999) are refused, so that a row has one encoding only.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Sequence
from typing import Final

LENGTH_BYTES: Final = 4
DECIMAL_BYTES: Final = 16
DECIMAL_DIGITS_MAX: Final = 38
DAY_US: Final = 86_400_000_000
_WIDTHS: Final = {
    "BOOLEAN": 1,
    "TINYINT": 1,
    "SMALLINT": 2,
    "INTEGER": 4,
    "BIGINT": 8,
    "UTINYINT": 1,
    "USMALLINT": 2,
    "UINTEGER": 4,
    "UBIGINT": 8,
    "FLOAT": 4,
    "DOUBLE": 8,
    "DATE": 4,
    "TIME": 8,
    "TIMESTAMP": 8,
    "TIMESTAMPTZ": 8,
}
_FLOATS: Final = {
    "FLOAT": ("<f", bytes.fromhex("0000c07f")),
    "DOUBLE": ("<d", bytes(6) + b"\xf8\x7f"),
}
_SIZED: Final = frozenset({"VARCHAR", "BLOB"})
_DECIMAL: Final = re.compile(r"DECIMAL\(([1-9][0-9]?),(0|[1-9][0-9]?)\)")
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (of TIMESTAMP too, which has no zone)


class Malformed(Exception):
    """Bytes that are not what the format says; the caller names the place."""


def readable(kind: str) -> bool:
    """Whether a text is the canonical name of a type of the closed list."""
    found = _DECIMAL.fullmatch(kind)
    if found is not None:
        precision, scale = int(found[1]), int(found[2])
        return scale <= precision <= DECIMAL_DIGITS_MAX
    return kind in _WIDTHS or kind in _SIZED


def read_row(rows: bytes, place: int, kinds: Sequence[str]) -> tuple[tuple[str | None, ...], int]:
    """The texts of the row that begins at this place, None for null, and the place behind it.

    Raises Malformed.
    """
    texts: list[str | None] = []
    for kind in kinds:
        start, place = _value(rows, place, kind)
        texts.append(None if start is None else _text(rows[start:place], kind))
    return tuple(texts), place


def skip_row(rows: bytes, place: int, kinds: Sequence[str]) -> int:
    """The place behind the row that begins at this place. Raises Malformed."""
    for kind in kinds:
        _, place = _value(rows, place, kind)
    return place


def _value(rows: bytes, place: int, kind: str) -> tuple[int | None, int]:
    """Where the bytes of a value begin, None for null, and the place behind them."""
    valid = rows[place : place + 1]
    place += 1
    if valid == b"\x00":
        return None, place
    if valid != b"\x01":
        raise Malformed("a value is neither there nor null")
    width = _WIDTHS.get(kind, DECIMAL_BYTES)
    if kind in _SIZED:
        width = int.from_bytes(rows[place : place + LENGTH_BYTES], "little")
        place += LENGTH_BYTES
    if len(rows) < place + width:
        raise Malformed("a row ends within a value")
    return place, place + width


def _text(raw: bytes, kind: str) -> str:
    if kind == "VARCHAR":
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise Malformed("a text is not UTF-8") from error
    if kind == "BLOB":
        return raw.hex()
    if kind in _FLOATS:
        return _float_text(raw, kind)
    number = int.from_bytes(raw, "little", signed=not kind.startswith("U"))
    if kind == "BOOLEAN":
        if number not in (0, 1):
            raise Malformed("a truth value is neither 0 nor 1")
        return "true" if number else "false"
    if kind in ("DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ"):
        return _moment_text(number, kind)
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is None:
        return str(number)
    if abs(number) >= 10 ** int(decimal[1]):
        raise Malformed("a DECIMAL has more digits than its type")
    return _placed(number, int(decimal[2]))


def _placed(unscaled: int, scale: int) -> str:
    if not scale:
        return str(unscaled)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return f"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _float_text(raw: bytes, kind: str) -> str:
    layout, quiet = _FLOATS[kind]
    value: float = struct.unpack(layout, raw)[0]
    if math.isnan(value):
        if raw != quiet:
            raise Malformed("a NaN is not the quiet one")
        return "NaN"
    if value == 0 and any(raw):
        raise Malformed("a zero has a sign")
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def _moment_text(number: int, kind: str) -> str:
    try:
        if kind == "DATE":
            return (_EPOCH.date() + dt.timedelta(days=number)).isoformat()
        if kind == "TIME":
            if not 0 <= number < DAY_US:
                raise Malformed("a time is outside of the day")
            return (_EPOCH + dt.timedelta(microseconds=number)).time().isoformat()
        text = (_EPOCH + dt.timedelta(microseconds=number)).isoformat()
    except OverflowError as error:
        raise Malformed("a date is outside of the years 1 to 9999") from error
    return text + "Z" if kind == "TIMESTAMPTZ" else text
