"""The table artifact: canonical bytes, content digest, control totals, reading back.

Source: DESIGN §4 and docs/FORMAT.md §3 to §5; `docs/vectors/table.json` holds test vectors.
The address must not depend on thread count, insertion order or layout, and the content digest
not on any library, so everything that Arrow leaves open is fixed here: types, chunk length,
bytes under nulls, spare bits, offsets, metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3

from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.printable import is_unsafe, one_line
from tieout.artifacts.values import type_name, type_of

# pyarrow ships no types; these names say which of its objects is meant.
ArrowTable: TypeAlias = Any
ArrowArray: TypeAlias = Any

TABLE_MEDIA: Final = "application/vnd.apache.arrow.stream"
TABLE_FORMAT: Final = "tieout.table/1"
CONTENT_FORMAT: Final = "tieout.content/1"
METADATA_KEY: Final = b"tieout.table"
CHUNK_ROWS: Final = 65_536
DAYS: Final = (-719_162, 2_932_897)
"""0001-01-01 and the day after 9999-12-31, as days since 1970-01-01."""
MICROSECONDS: Final = 86_400_000_000
"""Of a day."""
HIDDEN_PREFIX: Final = "__"
ORDINAL: Final = "__row"


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name and canonical type name, such as DECIMAL(18,2)."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class TableArtifact:
    """A table in canonical form.

    payload: the canonical bytes. digest: `tieout.content/1:` and 64 hex digits.
    totals: the exact sum of each visible integer or DECIMAL column, as text.
    """

    payload: bytes
    address: Address
    digest: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    rows: int
    totals: tuple[tuple[str, str], ...]


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
    if key:
        _check_unique(plain, key)
    if not ordered and plain.num_rows > 1:
        plain = _sorted(plain, list(key) or names)
    batches = [_canonical_batch(batch) for batch in _chunks(plain)]
    columns = tuple(
        Column(name, type_name(kind)) for name, kind in zip(names, plain.schema.types, strict=True)
    )
    payload = _write(plain.schema, batches, key)
    return TableArtifact(
        payload=payload,
        address=Address.of(payload),
        digest=_digest(columns, key, batches, plain.num_rows),
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
    return plain.combine_chunks()


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
    """Dates and times stay within the years 1 to 9999: others, and infinity, have no text."""
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_date(field.type):
            unit, width = 1, pa.int32()
        elif pa.types.is_timestamp(field.type):
            unit, width = MICROSECONDS, pa.int64()
        else:
            continue
        extent = pc.min_max(column.cast(width)).as_py()
        first, after = DAYS[0] * unit, DAYS[1] * unit
        if extent["min"] is not None and not first <= extent["min"] <= extent["max"] < after:
            raise ArtifactError(
                "table.value",
                f"column {field.name!r} holds a date outside of the years 1 to 9999",
                remedy="Leave such rows out, or show the date as text.",
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


def _canonical_batch(chunk: ArrowTable) -> ArrowTable:
    arrays = []
    for column in chunk.columns:
        array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        arrays.append(_canonical_array(array))
    schema = pa.schema([pa.field(f.name, f.type, nullable=True) for f in chunk.schema])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _canonical_array(array: ArrowArray) -> ArrowArray:
    """The array with nothing left to chance: offset 0, exact buffers, zero under nulls."""
    length = len(array)
    validity = _bits(pc.is_valid(array)) if array.null_count else None
    if array.null_count:
        array = pc.fill_null(array, _zero(array.type))
    # A slice keeps its parent's buffers; concatenation makes ones that start at 0.
    fresh = pa.concat_arrays([array, array.slice(0, 0)]) if array.offset else array
    buffers = fresh.buffers()
    if pa.types.is_boolean(fresh.type):
        body = [_bits(fresh)]
    elif pa.types.is_string(fresh.type) or pa.types.is_binary(fresh.type):
        offsets, content = buffers[1].slice(0, 4 * (length + 1)), buffers[2]
        end = int.from_bytes(offsets[4 * length : 4 * length + 4], "little")
        body = [offsets, content.slice(0, end) if content is not None else pa.py_buffer(b"")]
    else:
        body = [buffers[1].slice(0, length * (fresh.type.bit_width // 8))]
    nulls = 0 if validity is None else -1
    return pa.Array.from_buffers(fresh.type, length, [validity, *body], null_count=nulls)


def _zero(kind: Any) -> Any:
    if pa.types.is_string(kind):
        return pa.scalar("", type=kind)
    if pa.types.is_binary(kind):
        return pa.scalar(b"", type=kind)
    if pa.types.is_boolean(kind):
        return pa.scalar(False, type=kind)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(0), type=kind)
    if pa.types.is_floating(kind):
        return pa.scalar(0.0, type=kind)
    if pa.types.is_integer(kind):
        return pa.scalar(0, type=kind)
    integer = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.scalar(0, type=integer).cast(kind)


def _bits(flags: ArrowArray) -> Any:
    """A boolean array's bits as an exact buffer, spare bits zero."""
    length = len(flags)
    if flags.offset % 8:
        flags = pc.if_else(flags, True, False)
    start = flags.offset // 8
    buffer = flags.buffers()[1].slice(start, (length + 7) // 8)
    spare = length % 8
    if not spare:
        return buffer
    raw = bytearray(buffer.to_pybytes())
    raw[-1] &= (1 << spare) - 1
    return pa.py_buffer(bytes(raw))


def _write(schema: Any, batches: Sequence[Any], key: Sequence[str]) -> bytes:
    note = _json({"format": TABLE_FORMAT, "key": list(key)})
    plain = pa.schema(
        [pa.field(f.name, f.type, nullable=True) for f in schema],
        metadata={METADATA_KEY: note},
    )
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V5)
    with pa.ipc.new_stream(sink, plain, options=options) as writer:
        for batch in batches:
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=plain))
    return bytes(sink.getvalue())


def _json(document: object) -> bytes:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def _digest(
    columns: Sequence[Column], key: Sequence[str], batches: Sequence[Any], rows: int
) -> str:
    header = _json(
        {
            "columns": [[column.name, column.type] for column in columns],
            "format": CONTENT_FORMAT,
            "key": list(key),
            "rows": rows,
        }
    )
    hasher = blake3(len(header).to_bytes(8, "little") + header)
    for batch in batches:
        for array in batch.columns:
            for piece in _content(array):
                hasher.update(piece)
    return f"{CONTENT_FORMAT}:{hasher.hexdigest()}"


def _content(array: ArrowArray) -> Iterator[Any]:
    """The pieces of one column run, in the order of docs/FORMAT.md §4."""
    buffers = array.buffers()
    if buffers[0] is None:
        yield b"\x00"
    else:
        yield b"\x01"
        yield memoryview(buffers[0])
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        lengths = pc.fill_null(pc.binary_length(array), 0)
        yield memoryview(lengths.buffers()[1].slice(lengths.offset * 4, 4 * len(array)))
        yield memoryview(buffers[2])
    else:
        yield memoryview(buffers[1])


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
    """Sum without overflow: Arrow's own where it cannot reach 38 digits, else Python's integers."""
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    digits = kind.precision if pa.types.is_decimal(kind) else 20
    headroom = 38 - digits
    if headroom > 0 and len(column) < 10**headroom:
        total = pc.sum(column.cast(pa.decimal128(38, scale))).as_py()
        return _placed(0 if total is None else _unscaled(total), scale)
    # Arrow's sum could overflow and Decimal's would round at its context; integers do neither.
    values = column.to_pylist()
    return _placed(sum(_unscaled(value) for value in values if value is not None), scale)


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
