"""The table artifact: canonical bytes, content digest, control totals, reading back.

Source: DESIGN §4 and docs/FORMAT.md §3 to §5; `docs/vectors/table.json` holds test vectors.
The address must not depend on thread count, insertion order or layout, and the content digest
not on any library, so everything that Arrow leaves open is fixed here: types, chunk length,
bytes under nulls, spare bits, offsets, metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.pieces import Pieces
from tieout.artifacts.printable import is_unsafe, one_line
from tieout.artifacts.sorting import is_ascending
from tieout.artifacts.table_bytes import (
    CONTENT_FORMAT,
    METADATA_KEY,
    TABLE_FORMAT,
    Column,
    canonical_batch,
    content_digest,
    stream_pieces,
)
from tieout.artifacts.totals import HIDDEN_PREFIX, control_totals
from tieout.artifacts.values import type_name, type_of

__all__ = [
    "CHUNK_ROWS",
    "CONTENT_FORMAT",
    "HIDDEN_PREFIX",
    "METADATA_KEY",
    "ORDINAL",
    "TABLE_FORMAT",
    "TABLE_MEDIA",
    "ArrowArray",
    "ArrowTable",
    "Column",
    "TableArtifact",
    "canonical",
    "control_totals",
]

# pyarrow ships no types; these names say which of its objects is meant.
ArrowTable: TypeAlias = Any
ArrowArray: TypeAlias = Any

TABLE_MEDIA: Final = "application/vnd.apache.arrow.stream"
CHUNK_ROWS: Final = 65_536
DAYS: Final = (-719_162, 2_932_897)
"""0001-01-01 and the day after 9999-12-31, as days since 1970-01-01."""
MICROSECONDS: Final = 86_400_000_000
"""Of a day."""
ORDINAL: Final = "__row"


@dataclass(frozen=True, slots=True)
class TableArtifact:
    """A table in canonical form.

    pieces: the canonical bytes as they lie in the buffers of the table; hand them to a store.
    digest: `tieout.content/1:` and 64 hex digits. totals: the exact sum of each visible integer
    or DECIMAL column, as text.
    """

    pieces: Pieces
    address: Address
    digest: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    rows: int
    totals: tuple[tuple[str, str], ...]

    @property
    def payload(self) -> bytes:
        """The canonical bytes in one buffer, copied at each call when they are large."""
        return self.pieces.joined()


def canonical(
    table: ArrowTable, *, key: Sequence[str] = (), ordered: bool = False
) -> TableArtifact:
    """Put an Arrow table into canonical form.

    key: columns whose values name a row; they must be unique (nulls equal). ordered: the rows
    stand in the query's own total order and keep it; otherwise they are sorted by the key,
    else by all columns. Raises ArtifactError: table.type, table.column_names, table.key_missing,
    table.key_not_unique.
    """
    try:
        plain = _plain(table)
        return _canonical(plain, tuple(key), ordered=ordered)
    except (pa.ArrowException, OverflowError) as error:
        raise ArtifactError(
            "table.unusable",
            f"the result cannot be put into canonical form ({type(error).__name__})",
            remedy="Cast its columns to simpler types.",
        ) from error


def _canonical(plain: ArrowTable, key: tuple[str, ...], *, ordered: bool) -> TableArtifact:
    names = list(plain.column_names)
    _check_names(names)
    _check_moments(plain)
    if len(set(key)) != len(key):
        raise ArtifactError(
            "table.key_repeated",
            f"the key ({', '.join(key)}) names a column twice",
            remedy="Name each key column once.",
        )
    for name in key:
        if name not in names:
            raise ArtifactError(
                "table.key_missing",
                f"the key column {name!r} is not among the columns {', '.join(names)}",
                remedy="Name columns of the result as its key.",
            )
    if not (key and is_ascending(plain, key, strictly=True)):
        if key:
            _check_unique(plain, key)
        # Unique keys that do not ascend strictly do not ascend: only without one is it asked again.
        if not ordered and (key or not is_ascending(plain, names)):
            plain = _sorted(plain, key or names)
    batches = [canonical_batch(chunk) for chunk in _chunks(plain)]
    columns = tuple(
        Column(name, type_name(kind)) for name, kind in zip(names, plain.schema.types, strict=True)
    )
    pieces = stream_pieces(plain.schema, batches, key)
    return TableArtifact(
        pieces=pieces,
        address=pieces.address,
        digest=content_digest(columns, key, batches, plain.num_rows),
        columns=columns,
        key=key,
        rows=plain.num_rows,
        totals=control_totals(plain),
    )


def _plain(table: ArrowTable) -> ArrowTable:
    """The table with canonical types; refuses what has none."""
    fields = []
    for field in table.schema:
        kind = type_of(field.type)
        if kind is None:
            raise ArtifactError(
                "table.type",
                f"column {field.name!r} has type {field.type}, which a table artifact cannot hold",
                remedy="Cast it to a number, DECIMAL, DATE, TIMESTAMP, BOOLEAN or VARCHAR.",
            )
        fields.append(pa.field(field.name, kind, nullable=True))
    schema = pa.schema(fields)
    try:
        plain = table.replace_schema_metadata(None).cast(schema)
    except pa.ArrowInvalid as error:
        raise ArtifactError(
            "table.type",
            "a value does not fit the canonical type of its column",
            remedy="Timestamps hold microseconds; cast finer ones first.",
        ) from error
    for index, field in enumerate(schema):
        if pa.types.is_floating(field.type):
            plain = plain.set_column(index, field, _normal_floats(plain.column(index)))
    return plain


def _normal_floats(column: ArrowArray) -> ArrowArray:
    """-0.0 as 0.0 and every NaN as the one quiet NaN."""
    zero = pa.scalar(0.0, type=column.type)
    nan = pa.scalar(float("nan"), type=column.type)
    positive = pc.if_else(pc.equal(column, zero), zero, column)
    return pc.if_else(pc.is_nan(positive), nan, positive)


def _check_names(names: list[str]) -> None:
    folded: dict[str, str] = {}
    for name in names:
        if any(is_unsafe(character) for character in name):
            raise ArtifactError(
                "table.column_names",
                f"the column name {one_line(name)!r} holds a character that cannot be printed",
                remedy="Give the column a plain name (AS name).",
            )
        if not name or name.lower() in folded:
            other = folded.get(name.lower(), "")
            raise ArtifactError(
                "table.column_names",
                f"two columns are called {name!r} and {other!r}" if name else "a column is unnamed",
                remedy="Give each output column a name of its own (AS name).",
            )
        folded[name.lower()] = name


def _check_moments(table: ArrowTable) -> None:
    """Dates within the years 1 to 9999, times within a day: others, and infinity, have no text."""
    for field, column in zip(table.schema, table.columns, strict=True):
        what, width = "date outside of the years 1 to 9999", pa.int64()
        if pa.types.is_date(field.type):
            width, (first, after) = pa.int32(), DAYS
        elif pa.types.is_timestamp(field.type):
            first, after = DAYS[0] * MICROSECONDS, DAYS[1] * MICROSECONDS
        elif pa.types.is_time(field.type):  # the engine has a 24:00:00
            what, first, after = "time outside of a day", 0, MICROSECONDS
        else:
            continue
        extent = pc.min_max(column.cast(width)).as_py()
        if extent["min"] is not None and not first <= extent["min"] <= extent["max"] < after:
            raise ArtifactError(
                "table.value",
                f"column {field.name!r} holds a {what}",
                remedy="Leave such rows out, or show it as text.",
            )


def _check_unique(table: ArrowTable, key: Sequence[str]) -> None:
    groups = (
        table.select(list(key))
        .group_by(list(key), use_threads=False)
        .aggregate([([], "count_all")])
    )
    if groups.num_rows == table.num_rows:
        return
    repeated = _sorted(groups.filter(pc.greater(groups["count_all"], 1)), list(key)).slice(0, 3)
    shown = "; ".join(
        ", ".join(f"{name}={row[name]}" for name in key) + f" ({row['count_all']} rows)"
        for row in repeated.to_pylist()
    )
    raise ArtifactError(
        "table.key_not_unique",
        f"the key ({', '.join(key)}) does not name one row each: {shown}",
        remedy="Choose key columns that are unique, or leave the key out.",
    )


def _sorted(table: ArrowTable, names: Sequence[str]) -> ArrowTable:
    """Rows ascending by these columns, nulls last, strings by their UTF-8 bytes."""
    # Nulls last is Arrow's default; naming it is deprecated in the newest release.
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names])
    return table.take(order).combine_chunks()


def _chunks(table: ArrowTable) -> Iterator[ArrowTable]:
    for start in range(0, table.num_rows, CHUNK_ROWS):
        yield table.slice(start, CHUNK_ROWS)
