"""What the schema and the values of a stored table may be: strict, for the bytes may be anyone's.

Source: docs/FORMAT.md §3. Whatever is not of it is ArtifactError table.unreadable, before a cell is
looked at: a value that Arrow cannot hold up must not be met in the middle of a page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tieout.artifacts.errors import ArtifactError, Exit
from tieout.artifacts.table import DAYS, METADATA_KEY, MICROSECONDS, TABLE_FORMAT, Column
from tieout.artifacts.values import type_name, type_of

ArrowTable: TypeAlias = Any
ArrowSchema: TypeAlias = Any
ArrowArray: TypeAlias = Any

STREAM_END: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""The last bytes of every Arrow stream that was written whole."""


def unreadable(why: str) -> ArtifactError:
    """The error for bytes that are not a table artifact."""
    return ArtifactError(
        "table.unreadable",
        f"the bytes are not a table artifact: {why}",
        remedy="Check the address; `tieout show ADDRESS` says what an artifact is.",
        exit_code=Exit.OTHER_FORMAT,
    )


@contextmanager
def decoding() -> Iterator[None]:
    """Whatever Arrow finds wrong with the bytes in this block is ArtifactError table.unreadable."""
    try:
        yield
    except (
        pa.ArrowException,
        ArithmeticError,
        LookupError,
        MemoryError,  # a length of petabytes; a table that is true fits where it was made
        OSError,
        TypeError,
        ValueError,
    ) as error:
        raise unreadable(f"it is not an Arrow stream ({type(error).__name__})") from error


def read_schema(schema: ArrowSchema) -> tuple[tuple[str, ...], tuple[Column, ...]]:
    """Key and columns. Raises ArtifactError table.unreadable."""
    with decoding():
        fields = [(field.name, field.type, field.metadata, field.nullable) for field in schema]
        metadata = dict(schema.metadata or {})
    columns = []
    for name, kind, note, nullable in fields:
        if not _is_canonical(kind) or note or not nullable:
            raise unreadable(f"its column {name[:60]!r} is none that a table artifact has")
        columns.append(Column(name, type_name(kind)))
    if not columns:
        raise unreadable("it has no column")
    folded = {column.name.lower() for column in columns}
    if len(folded) != len(columns) or "" in folded:
        raise unreadable("its columns do not have a name each")
    if set(metadata) != {METADATA_KEY}:
        raise unreadable("its metadata is not tieout.table alone")
    key = _key(metadata[METADATA_KEY])
    if len(set(key)) != len(key) or not {column.name for column in columns}.issuperset(key):
        raise unreadable("its key does not name columns of it")
    return key, tuple(columns)


def _is_canonical(kind: Any) -> bool:
    if pa.types.is_decimal(kind) and not 0 <= kind.scale <= kind.precision:
        return False
    canonical = type_of(kind)
    return canonical is not None and bool(canonical == kind)


def _key(note: bytes) -> tuple[str, ...]:
    """The names of the key columns; the note has one form only."""
    try:
        document = json.loads(note)
    except (ValueError, RecursionError) as error:
        raise unreadable("its tieout.table metadata is not JSON") from error
    if not isinstance(document, dict) or document.keys() != {"format", "key"}:
        raise unreadable("its tieout.table metadata has other members")
    if document["format"] != TABLE_FORMAT:
        raise unreadable(f"its format is {document['format']!r:.60}")
    key = document["key"]
    if not isinstance(key, list) or not all(isinstance(name, str) for name in key):
        raise unreadable("its key is not a list of names")
    return tuple(key)


def check_values(table: ArrowTable) -> None:
    """Texts, bytes and decimals are what their type says; times lie in the day, dates in 1 to 9999.

    Raises ArtifactError table.unreadable. Costs about as much as one hash of the bytes.
    """
    with decoding():
        table.validate()  # every buffer is as long as its type and length want it
        for column in table.columns:
            kind = column.type
            if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_decimal(kind):
                column.validate(full=True)  # offsets beyond the buffer would read foreign memory
        outside = [
            field.name
            for field, column in zip(table.schema, table.columns, strict=True)
            if not _in_calendar(column)
        ]
    if outside:
        raise unreadable(
            f"its column {outside[0][:60]!r} has a moment outside of the day or the years 1 to 9999"
        )


def _in_calendar(column: ArrowArray) -> bool:
    if pa.types.is_date(column.type):
        width, first, last = pa.int32(), DAYS[0], DAYS[1] - 1
    elif pa.types.is_timestamp(column.type):
        width, first, last = pa.int64(), DAYS[0] * MICROSECONDS, DAYS[1] * MICROSECONDS - 1
    elif pa.types.is_time(column.type):
        width, first, last = pa.int64(), 0, MICROSECONDS - 1
    else:
        return True
    extent = pc.min_max(column.cast(width)).as_py()
    return extent["min"] is None or bool(first <= extent["min"] <= extent["max"] <= last)
