"""What a table artifact says of itself, decoded a second time from docs/FORMAT.md §3 to §5.

Content digest, row count, control totals and, where an entry has one, the row root are re-derived
here from the buffers of the Arrow stream, without the code that wrote them (artifacts/table.py).
pyarrow is imported only here and only when a table is met; without it tables are `unchecked`, all
else is still checked.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from blake3 import blake3

from tieout.ledger.audit.findings import Finding, Level
from tieout.ledger.audit.row_leaves import RowLeaves, canonical_json, cells

ArrowModule: TypeAlias = Any
ArrowSchema: TypeAlias = Any
ArrowTable: TypeAlias = Any
ArrowArray: TypeAlias = Any
ArrowBatch: TypeAlias = Any
ArrowType: TypeAlias = Any

TABLE_MEDIA: Final = "application/vnd.apache.arrow.stream"
RUN_ROWS: Final = 65_536
METADATA_KEY: Final = b"tieout.table"

# Arrow's name of a type: (canonical name, bytes per value, struct code of an integer or "").
_FIXED: Final[dict[str, tuple[str, int, str]]] = {
    "int8": ("TINYINT", 1, "b"),
    "int16": ("SMALLINT", 2, "h"),
    "int32": ("INTEGER", 4, "i"),
    "int64": ("BIGINT", 8, "q"),
    "uint8": ("UTINYINT", 1, "B"),
    "uint16": ("USMALLINT", 2, "H"),
    "uint32": ("UINTEGER", 4, "I"),
    "uint64": ("UBIGINT", 8, "Q"),
    "float": ("FLOAT", 4, ""),
    "double": ("DOUBLE", 8, ""),
    "date32[day]": ("DATE", 4, ""),
    "time64[us]": ("TIME", 8, ""),
    "timestamp[us]": ("TIMESTAMP", 8, ""),
    "timestamp[us, tz=UTC]": ("TIMESTAMPTZ", 8, ""),
}
_SIZED: Final = {"string": "VARCHAR", "binary": "BLOB"}


@dataclass(frozen=True, slots=True)
class TableClaim:
    """What a ledger entry, or a manifest, says of a table; None where it says nothing."""

    digest: str | None
    rows: int | None
    totals: tuple[tuple[str, str], ...] | None
    row_root: str | None = None

    @classmethod
    def of(cls, output: dict[str, Any]) -> TableClaim:
        """The claim of a `deterministic_output` whose shape was checked."""
        totals = tuple((item["column"], item["value"]) for item in output["control_totals"])
        root = output.get("row_root")
        return cls(output["content_digest"], output["row_count"], totals, root)


@dataclass(frozen=True, slots=True)
class Derived:
    """What the bytes themselves say. row_root: None unless it was asked for."""

    digest: str
    rows: int
    totals: tuple[tuple[str, str], ...]
    row_root: str | None = None


class MalformedTable(Exception):
    """The bytes are no table artifact; the argument says why."""


def check_table(
    payload: bytes, claims: Sequence[tuple[int, TableClaim]], address: str
) -> Iterator[Finding]:
    """Every way in which the table is not what is said of it; (entry, claim) each."""
    first = claims[0][0]
    try:
        derived = derive(payload, rooted=any(claim.row_root is not None for _, claim in claims))
    except ImportError:
        message = "pyarrow is not installed: digest, row count and totals were not re-derived"
        yield unchecked(message, "Install pyarrow and check again.", first, address)
        return
    except MemoryError:
        message = "this machine has too little memory for it: nothing in it was re-derived"
        yield unchecked(message, "Check again on a larger machine.", first, address)
        return
    except MalformedTable as error:
        yield _finding(
            "table.malformed", f"it is no table artifact: {error!s:.200}", first, address
        )
        return
    for index, claim in claims:
        yield from _compared(derived, claim, index, address)


def unchecked(message: str, remedy: str, index: int, address: str) -> Finding:
    """A table that could not be looked into here."""
    return Finding(
        Level.UNCHECKED, "table.unchecked", message, remedy, index=index, address=address
    )


def _finding(
    code: str, message: str, index: int, address: str, *, level: Level = Level.BROKEN
) -> Finding:
    remedy = "Compare with a copy, and replay the run: it makes the table anew."
    return Finding(level, code, message, remedy, index=index, address=address)


def _compared(derived: Derived, claim: TableClaim, index: int, address: str) -> Iterator[Finding]:
    if claim.digest is None:
        message = "the entry states no content digest for this table"
        yield _finding("table.no_digest", message, index, address, level=Level.WARNING)
    elif claim.digest != derived.digest:
        yield _finding("table.digest", f"its content digest is {derived.digest}", index, address)
    if claim.rows is not None and claim.rows != derived.rows:
        message = f"it has {derived.rows} rows, the entry says {claim.rows}"
        yield _finding("table.rows", message, index, address)
    if claim.totals is not None and claim.totals != derived.totals:
        wrong = sorted({name for name, _ in set(claim.totals) ^ set(derived.totals)})
        message = f"its control totals differ: {', '.join(wrong) or 'in their order'}"
        yield _finding("table.totals", message[:300], index, address)
    if claim.row_root is not None and claim.row_root != derived.row_root:
        yield _finding("table.row_root", f"its row root is {derived.row_root}", index, address)


def derive(payload: bytes, *, rooted: bool = False) -> Derived:
    """Content digest, row count and control totals of these bytes; rooted: the row root too.

    Raises MalformedTable, or ImportError when pyarrow is not installed.
    """
    with _decoding() as pa:
        schema, batches = _batches(pa, payload)
        return _derive(schema, batches, rooted=rooted)


def read_stream(payload: bytes) -> tuple[ArrowTable, list[str]]:
    """The table and its key columns. Raises as `derive`."""
    with _decoding() as pa:
        schema, batches = _batches(pa, payload)
        table = pa.Table.from_batches(batches, schema=schema)
        table.validate(full=True)
        return table, _key(schema.metadata, table.column_names)


@contextmanager
def _decoding() -> Iterator[ArrowModule]:
    """pyarrow; whatever it finds wrong with the bytes becomes MalformedTable."""
    import pyarrow as pa

    try:
        yield pa
    except pa.ArrowMemoryError as error:  # an ArrowException, and nothing against the table
        raise MemoryError(str(error)) from error
    except (
        pa.ArrowException,
        ArithmeticError,
        LookupError,
        OSError,
        TypeError,
        ValueError,
        struct.error,
    ) as error:
        raise MalformedTable(f"{type(error).__name__}: {error}") from error


def _batches(pa: ArrowModule, payload: bytes) -> tuple[ArrowSchema, list[ArrowBatch]]:
    with pa.ipc.open_stream(payload) as reader:
        return reader.schema, list(reader)


def _derive(schema: ArrowSchema, batches: list[ArrowBatch], *, rooted: bool) -> Derived:
    names = [field.name for field in schema]
    columns = [_Column(field.name, field.type) for field in schema]
    rows = sum(len(batch) for batch in batches)
    said = {
        "columns": [[column.name, column.type] for column in columns],
        "key": _key(schema.metadata, names),
        "rows": rows,
    }
    header = canonical_json(said | {"format": "tieout.content/1"})
    leaves = RowLeaves(said, rows) if rooted else None
    hasher = blake3(struct.pack("<Q", len(header)) + header)
    for number, batch in enumerate(batches):
        if len(batch) != min(RUN_ROWS, rows - number * RUN_ROWS):
            raise MalformedTable(f"batch {number} has {len(batch)} rows")
        batch.validate(full=True)
        for column, array in zip(columns, batch.columns, strict=True):
            for part in column.take(array):
                hasher.update(part)
        if leaves is not None:
            leaves.add(
                [
                    cells(array, column.form, column.width)
                    for column, array in zip(columns, batch.columns, strict=True)
                ]
            )
    totals = tuple((column.name, column.total()) for column in columns if column.is_summed)
    root = None if leaves is None else leaves.root()
    return Derived(f"tieout.content/1:{hasher.hexdigest()}", rows, totals, root)


def _key(metadata: dict[bytes, bytes] | None, names: list[str]) -> list[str]:
    if metadata is None or set(metadata) != {METADATA_KEY}:
        raise MalformedTable("the schema's metadata is not tieout.table alone")
    stated = json.loads(metadata[METADATA_KEY])
    if not isinstance(stated, dict) or set(stated) != {"format", "key"}:
        raise MalformedTable("the schema's metadata has other members")
    key = stated["key"]
    if stated["format"] != "tieout.table/1" or not isinstance(key, list):
        raise MalformedTable("the schema's metadata is of another format")
    if not all(name in names for name in key):
        raise MalformedTable("the key names a column that is not there")
    return key


class _Column:
    """One column: its bytes in the content digest, run by run, and its sum on the way."""

    def __init__(self, name: str, kind: ArrowType) -> None:
        self.name = name
        text = str(kind)
        self._code = ""
        self.width = 0
        self._scale = 0
        self._sum = 0
        self.form = "fixed"
        if text == "bool":
            self.type, self.form = "BOOLEAN", "bits"
        elif text in _SIZED:
            self.type, self.form = _SIZED[text], "sized"
        elif text.startswith("decimal128("):
            self._scale, self.width, self._code = kind.scale, 16, "decimal"
            self.type = f"DECIMAL({kind.precision},{kind.scale})"
        elif text in _FIXED:
            self.type, self.width, self._code = _FIXED[text]
        else:
            raise MalformedTable(f"column {name!r} has type {text}")

    @property
    def is_summed(self) -> bool:
        return bool(self._code) and not self.name.startswith("__")

    def total(self) -> str:
        """The sum so far, as text (FORMAT §5)."""
        digits = str(abs(self._sum)).rjust(self._scale + 1, "0")
        if self._scale:
            digits = f"{digits[: -self._scale]}.{digits[-self._scale :]}"
        return f"-{digits}" if self._sum < 0 else digits

    def take(self, array: ArrowArray) -> Iterator[bytes]:
        """The bytes of this run: null flag, validity, values."""
        length = len(array)
        if array.offset:
            raise MalformedTable("a column does not start at its first value")
        buffers = [None if part is None else part.to_pybytes() for part in array.buffers()]
        every = (1 << length) - 1
        valid = every
        if array.null_count:
            valid = int.from_bytes(buffers[0] or b"", "little") & every
            yield b"\x01" + valid.to_bytes((length + 7) // 8, "little")
        else:
            yield b"\x00"
        if self.form == "bits":
            bits = int.from_bytes(buffers[1] or b"", "little") & valid
            yield bits.to_bytes((length + 7) // 8, "little")
        elif self.form == "sized":
            yield from _sized(length, valid, buffers[1] or b"", buffers[2] or b"")
        else:
            values = _zeroed((buffers[1] or b"")[: length * self.width], self.width, valid)
            if len(values) != length * self.width:
                raise MalformedTable(f"column {self.name!r} is cut off")
            self._add(values, length)
            yield values

    def _add(self, values: bytes, length: int) -> None:
        if self._code == "decimal":  # low and high halves of each 128-bit integer
            low = struct.unpack(f"<{2 * length}Q", values)[0::2]
            high = struct.unpack(f"<{2 * length}q", values)[1::2]
            self._sum += sum(low) + (sum(high) << 64)
        elif self._code:
            self._sum += sum(struct.unpack(f"<{length}{self._code}", values))


def _nulls(valid: int, length: int) -> Iterator[int]:
    """The positions whose bit is 0."""
    missing = ~valid & ((1 << length) - 1)
    for start, byte in enumerate(missing.to_bytes((length + 7) // 8, "little")):
        if byte:
            for bit in range(8):
                if byte >> bit & 1:
                    yield start * 8 + bit


def _zeroed(values: bytes, width: int, valid: int) -> bytes:
    """The values with zero bytes under nulls."""
    length = len(values) // width
    changed = bytearray(values)
    for position in _nulls(valid, length):
        changed[position * width : (position + 1) * width] = bytes(width)
    return bytes(changed)


def _sized(length: int, valid: int, offsets: bytes, values: bytes) -> Iterator[bytes]:
    """The lengths of all values, then all values, nothing under nulls."""
    if length == 0:
        return
    bounds = struct.unpack_from(f"<{length + 1}i", offsets)
    missing = set(_nulls(valid, length))
    spans = [
        (0, 0) if position in missing else (bounds[position], bounds[position + 1])
        for position in range(length)
    ]
    yield struct.pack(f"<{length}I", *(end - start for start, end in spans))
    for start, end in spans if missing else [(bounds[0], bounds[length])]:
        yield values[start:end]
