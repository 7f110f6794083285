"""The canonical buffers of a table, and what is made of them: the Arrow stream and its digest.

Source: docs/FORMAT.md §3 and §4. Everything that Arrow leaves open is fixed here: offsets, lengths,
bytes under nulls, spare bits, metadata. What is in that form already is not copied.
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

from tieout.artifacts.pieces import Pieces

# pyarrow ships no types; these names say which of its objects is meant.
ArrowTable: TypeAlias = Any
ArrowArray: TypeAlias = Any
ArrowBatch: TypeAlias = Any

TABLE_FORMAT: Final = "tieout.table/1"
CONTENT_FORMAT: Final = "tieout.content/1"
METADATA_KEY: Final = b"tieout.table"


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name and canonical type name, such as DECIMAL(18,2)."""

    name: str
    type: str


def canonical_batch(chunk: ArrowTable) -> ArrowBatch:
    """One chunk of a table with canonical types as a batch whose buffers are canonical.

    Buffers that are so already are not copied.
    """
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
    fresh = pa.concat_arrays([array, array.slice(0, 0)]) if _starts_late(array) else array
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


def _starts_late(array: ArrowArray) -> bool:
    """Whether something lies in the buffers before the first row."""
    if array.offset:
        return True
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        offsets = array.buffers()[1]
        return offsets is not None and offsets.size >= 4 and any(offsets.slice(0, 4).to_pybytes())
    return False


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


class _Sink:
    """A file for Arrow's writer that keeps the buffers it is given instead of copying them."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[memoryview] = []

    def write(self, part: Any) -> int:
        self.parts.append(memoryview(part))
        return len(part)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """The parts stay."""


def stream_pieces(schema: Any, batches: Sequence[ArrowBatch], key: Sequence[str]) -> Pieces:
    """The canonical Arrow IPC stream of these batches; its pieces are their own buffers."""
    note = _json({"format": TABLE_FORMAT, "key": list(key)})
    plain = pa.schema(
        [pa.field(f.name, f.type, nullable=True) for f in schema],
        metadata={METADATA_KEY: note},
    )
    sink = _Sink()
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V5)
    with pa.ipc.new_stream(sink, plain, options=options) as writer:
        for batch in batches:
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=plain))
    return Pieces(sink.parts)


def _json(document: object) -> bytes:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def content_digest(
    columns: Sequence[Column], key: Sequence[str], batches: Sequence[ArrowBatch], rows: int
) -> str:
    """The content digest of a table in canonical batches (docs/FORMAT.md §4)."""
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
