"""Row roots and proofs by docs/FORMAT.md read literally, from texts of values, without Arrow."""

from __future__ import annotations

import datetime as dt
import json
import struct
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from blake3 import blake3
from hypothesis import strategies as st

from tieout.artifacts.table import canonical

VECTORS = Path(__file__).parents[2] / "docs" / "vectors" / "rows.json"
INTEGERS = {
    "BOOLEAN": "b", "TINYINT": "b", "SMALLINT": "h", "INTEGER": "i", "BIGINT": "q",
    "UTINYINT": "B", "USMALLINT": "H", "UINTEGER": "I", "UBIGINT": "Q",
}  # fmt: skip
ARROW = {
    "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(),
    "BIGINT": pa.int64(), "UTINYINT": pa.uint8(), "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(), "UBIGINT": pa.uint64(), "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(), "DECIMAL(18,2)": pa.decimal128(18, 2),
    "DECIMAL(38,0)": pa.decimal128(38, 0), "DECIMAL(5,5)": pa.decimal128(5, 5),
    "DATE": pa.date32(), "TIME": pa.time64("us"), "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"), "VARCHAR": pa.string(), "BLOB": pa.binary(),
}  # fmt: skip


def micros(text):
    moment = dt.datetime.fromisoformat(text.removesuffix("Z"))
    return (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


def value_bytes(text, kind):
    if kind in INTEGERS:
        return struct.pack(
            "<" + INTEGERS[kind],
            {"true": 1, "false": 0}.get(text) if kind == "BOOLEAN" else int(text),
        )
    if kind in {"FLOAT", "DOUBLE"}:
        return struct.pack("<f" if kind == "FLOAT" else "<d", float(text))
    if kind.startswith("DECIMAL"):
        return int(text.replace(".", "")).to_bytes(16, "little", signed=True)
    if kind == "DATE":
        return struct.pack("<i", (dt.date.fromisoformat(text) - dt.date(1970, 1, 1)).days)
    if kind == "TIME":
        return struct.pack("<q", micros("1970-01-01T" + text))
    if kind.startswith("TIMESTAMP"):
        return struct.pack("<q", micros(text))
    raw = text.encode() if kind == "VARCHAR" else bytes.fromhex(text)
    return struct.pack("<I", len(raw)) + raw


def row_bytes(row, columns):
    return b"".join(
        b"\x00" if text is None else b"\x01" + value_bytes(text, kind)
        for text, (_, kind) in zip(row, columns, strict=True)
    )


def mth(leaves):
    """RFC 6962 §2.1."""
    if len(leaves) <= 1:
        return leaves[0] if leaves else blake3(b"").digest()
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return blake3(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def path(m, leaves):
    """RFC 6962 §2.1.1."""
    if len(leaves) == 1:
        return b""
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    if m < k:
        return path(m, leaves[:k]) + mth(leaves[k:])
    return path(m - k, leaves[k:]) + mth(leaves[:k])


class Oracle:
    def __init__(self, columns, key, rows, size):
        self.size = size
        self.header = json.dumps(
            {"columns": columns, "format": "tieout.rows/1", "key": key, "rows": len(rows), "rows_per_leaf": size},
            sort_keys=True, separators=(",", ":"), ensure_ascii=False,
        ).encode()  # fmt: skip
        hashed = blake3(self.header).digest()
        self.groups = [
            b"".join(row_bytes(row, columns) for row in rows[start : start + size])
            for start in range(0, len(rows), size)
        ]
        self.leaves = [
            blake3(b"\x00" + hashed + struct.pack("<Q", number * size) + group).digest()
            for number, group in enumerate(self.groups)
        ]
        self.root = "tieout.rows/1:" + blake3(b"\x02" + hashed + mth(self.leaves)).hexdigest()

    def prove(self, position):
        index = position // self.size
        group = self.groups[index]
        return (
            b"tieout.row-proof/1\n"
            + struct.pack("<I", len(self.header)) + self.header
            + struct.pack("<Q", position)
            + struct.pack("<I", len(group)) + group
            + path(index, self.leaves)
        )  # fmt: skip


def python_value(text, kind):
    if text is None or kind == "VARCHAR":
        return text
    if kind == "BOOLEAN":
        return text == "true"
    if kind in INTEGERS:
        return int(text)
    if kind in {"FLOAT", "DOUBLE"}:
        return float(text)
    if kind.startswith("DECIMAL"):
        return Decimal(text)
    if kind == "DATE":
        return dt.date.fromisoformat(text)
    if kind == "TIME":
        return dt.time.fromisoformat(text)
    if kind == "BLOB":
        return bytes.fromhex(text)
    moment = dt.datetime.fromisoformat(text.removesuffix("Z"))
    return moment.replace(tzinfo=dt.UTC) if text.endswith("Z") else moment


def stored(columns, key, rows):
    """The bytes of a table artifact with these rows in this order."""
    arrays = [
        pa.array([python_value(row[i], kind) for row in rows], type=ARROW[kind])
        for i, (_, kind) in enumerate(columns)
    ]
    table = pa.table(arrays, names=[name for name, _ in columns])
    return canonical(table, key=key, ordered=True).payload


def vectors():
    return json.loads(VECTORS.read_text(encoding="utf-8"))


TEXTS = {
    "BIGINT": st.integers(-(2**63), 2**63 - 1).map(str),
    "UTINYINT": st.integers(0, 255).map(str),
    "BOOLEAN": st.sampled_from(["true", "false"]),
    "DECIMAL(18,2)": st.decimals(-(10**15), 10**15, places=2, allow_nan=False).map(
        lambda x: format(x + 0, "f") if x else "0.00"
    ),
    "DOUBLE": st.floats().map(lambda x: x + 0.0).map(
        lambda x: {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity", "-0.0": "0.0"}.get(repr(x), repr(x))
    ),
    "DATE": st.dates().map(str),
    "TIME": st.times().map(lambda x: x.isoformat()),
    "TIMESTAMPTZ": st.datetimes().map(lambda x: x.isoformat() + "Z"),
    "VARCHAR": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    "BLOB": st.binary(max_size=5).map(bytes.hex),
}  # fmt: skip


@st.composite
def tables(draw, least=0):
    kinds = draw(st.lists(st.sampled_from(sorted(TEXTS)), min_size=1, max_size=4))
    row = st.tuples(*[st.none() | TEXTS[kind] for kind in kinds]).map(list)
    rows = draw(st.lists(row, min_size=least, max_size=12))
    columns = [[f"c{number}", kind] for number, kind in enumerate(kinds)]
    return columns, rows, draw(st.integers(1, 5))
