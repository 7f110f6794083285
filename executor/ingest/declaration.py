"""What a person may declare about a CSV file, and the check that a declaration makes sense."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tieout.executor.errors import ExecutorError, Exit

DECIMAL_DIGITS_MAX = 38
DELIMITER_FORBIDDEN = "\r\n\0"
DATE_ORDERS = ("day first", "month first", "year first")
NEGATIVE_STYLES = ("leading minus", "trailing minus", "parentheses", "DR", "CR")
GROUPINGS = ("", ",", ".", " ", "'")

_PLAIN_TYPES = {
    "BOOLEAN": "BOOLEAN",
    "BOOL": "BOOLEAN",
    "BIGINT": "BIGINT",
    "INTEGER": "BIGINT",
    "INT": "BIGINT",
    "HUGEINT": "DECIMAL(38,0)",
    "DECIMAL": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMPTZ",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ",
    "VARCHAR": "VARCHAR",
    "TEXT": "VARCHAR",
    "STRING": "VARCHAR",
}
_SIZED = re.compile(r"(?:DECIMAL|NUMERIC) ?\( ?([0-9]{1,2}) ?, ?([0-9]{1,2}) ?\)")


@dataclass(frozen=True, slots=True)
class ColumnDeclaration:
    """How one column is to be read; None leaves the choice to the evidence in the file.

    type: a type name; DECIMAL without sizes takes the scale that the values need.
    decimal: "." or ",". grouping: "," "." " " "'" (each space and each apostrophe is one
    family), or "" for none. negative: one of NEGATIVE_STYLES; DR and CR name the suffix that
    marks a negative amount. date_order: one of DATE_ORDERS. format: strftime codes, English
    month names. empty: texts that mean that there is no value.
    """

    type: str | None = None
    decimal: str | None = None
    grouping: str | None = None
    negative: str | None = None
    date_order: str | None = None
    format: str | None = None
    empty: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CsvDeclaration:
    """How one file is to be read; None leaves the choice to the evidence in the file.

    delimiter: one ASCII character. quote: one ASCII character, "" for none. header_line: the
    physical line (from 1) on which the header begins, 0 when the file has none. footer: regular
    expressions matched from the beginning of a record's first field or of its whole text.
    footer_lines: how many physical lines at the end of the file are footer, blank ones counted.
    wide_rows: "refuse" or "extend". rejected: "refuse" or "keep".
    """

    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    header_line: int | None = None
    footer: tuple[str, ...] = ()
    footer_lines: int | None = None
    wide_rows: str = "refuse"
    rejected: str = "refuse"
    columns: Mapping[str, ColumnDeclaration] = field(default_factory=dict)


def canonical_type(text: str) -> str | None:
    """The type's one spelling, such as DECIMAL(18,2); None for a type that no column can have."""
    folded = " ".join(text.upper().split())
    if folded in _PLAIN_TYPES:
        return _PLAIN_TYPES[folded]
    sized = _SIZED.fullmatch(folded)
    if sized is None:
        return None
    precision, scale = int(sized[1]), int(sized[2])
    if not 1 <= precision <= DECIMAL_DIGITS_MAX or scale > precision:
        return None
    return f"DECIMAL({precision},{scale})"


def decimal_sizes(type_text: str) -> tuple[int, int]:
    """Precision and scale of a canonical DECIMAL(p,s)."""
    sized = _SIZED.fullmatch(type_text)
    if sized is None:
        raise AssertionError(f"not a sized decimal: {type_text}")
    return int(sized[1]), int(sized[2])


def toml_key(name: str) -> str:
    """`name` as a TOML key, quoted when it must be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _basic_string(name)


def toml_text(text: str) -> str:
    """`text` as a TOML string: as it is between apostrophes where it can stand so."""
    return f"'{text}'" if text.isprintable() and "'" not in text else _basic_string(text)


def _basic_string(text: str) -> str:
    # JSON's escapes are among TOML's, but for halves of pairs, which no decoded text has.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def source_table(source: str) -> str:
    """The line of the workspace file under which a source is declared."""
    return f"[source.{toml_key(source)}]"


def column_table(source: str, column: str) -> str:
    """The line of the workspace file under which a column is declared."""
    return f"[source.{toml_key(source)}.column.{toml_key(column)}]"


def under(table: str, line: str, *, verb: str = "add") -> str:
    """The words of a remedy that say where a line of the workspace file belongs.

    verb: "set" where the table may have a line with that key.
    """
    return f"under {table} {verb}: {line}"


def check_declaration(declaration: CsvDeclaration, *, name: str) -> tuple[re.Pattern[str], ...]:
    """Refuse a declaration that cannot be followed; give back the footer patterns, compiled.

    Raises ExecutorError csv.declaration.
    """
    _one_character(declaration.delimiter, what="delimiter", may_be_empty=False, name=name)
    _one_character(declaration.quote, what="quote", may_be_empty=True, name=name)
    if declaration.quote and declaration.quote == declaration.delimiter:
        raise _wrong(name, "quote", declaration.quote, "give another character than the delimiter")
    _one_of(declaration.wide_rows, ("refuse", "extend"), what="wide_rows", name=name)
    _one_of(declaration.rejected, ("refuse", "keep"), what="rejected", name=name)
    for what, number in (
        ("header_line", declaration.header_line),
        ("footer_lines", declaration.footer_lines),
    ):
        if number is not None and number < 0:
            raise _wrong(name, what, str(number), "give a number of lines, 0 or more")
    for column, declared in declaration.columns.items():
        _check_column(column, declared, name=name)
    return tuple(_compiled(pattern, name=name) for pattern in declaration.footer)


def _check_column(column: str, declared: ColumnDeclaration, *, name: str) -> None:
    where = f"{name}, column {column}"
    if declared.type is not None and canonical_type(declared.type) is None:
        raise _wrong(
            where,
            "type",
            declared.type,
            "choose BOOLEAN, BIGINT, DECIMAL(p,s) with p up to 38, DATE, TIMESTAMP, TIMESTAMPTZ"
            " or VARCHAR; binary floating point is not read from files",
        )
    _one_of(declared.decimal, (".", ","), what="decimal", name=where)
    _one_of(declared.grouping, GROUPINGS, what="grouping", name=where)
    _one_of(declared.negative, NEGATIVE_STYLES, what="negative", name=where)
    _one_of(declared.date_order, DATE_ORDERS, what="date_order", name=where)
    if declared.decimal is not None and declared.decimal == declared.grouping:
        raise _wrong(where, "grouping", declared.decimal, "it cannot be the decimal sign as well")
    if declared.format is not None and declared.date_order is not None:
        raise _wrong(where, "date_order", declared.date_order, "leave it out: format decides")


def _compiled(pattern: str, *, name: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        remedy = f"correct the regular expression ({error})"
        raise _wrong(name, "footer", pattern, remedy) from error


def _one_character(text: str | None, *, what: str, may_be_empty: bool, name: str) -> None:
    if text is None or (may_be_empty and not text):
        return
    if len(text) != 1 or not text.isascii() or text in DELIMITER_FORBIDDEN:
        raise _wrong(name, what, text, "give one ASCII character that is not a line end")


def _one_of(text: str | None, allowed: tuple[str, ...], *, what: str, name: str) -> None:
    if text is not None and text not in allowed:
        choices = ", ".join(f'"{choice}"' for choice in allowed)
        raise _wrong(name, what, text, f"choose one of {choices}")


def _wrong(place: str, what: str, text: str, remedy: str) -> ExecutorError:
    return ExecutorError(
        "csv.declaration",
        f'{what} = "{text}" cannot be followed',
        place=place,
        remedy=f"In the declaration of the source, {remedy}.",
        exit_code=Exit.USAGE,
    )
