"""The audit's own decoder of tables and cells, against the vectors and against the writer."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tieout.artifacts.table import canonical
from tieout.artifacts.values import cell_text, row_key, type_name
from tieout.ledger.audit.cells import NoSuchCell, find_cell
from tieout.ledger.audit.tables import MalformedTable, derive

VECTORS = json.loads(
    (Path(__file__).parents[2] / "docs" / "vectors" / "table.json").read_text("utf-8")
)


# --- tables: the second decoder against the vectors and against the first -------------------


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_the_vectors_of_the_format(vector) -> None:
    derived = derive(bytes.fromhex(vector["payload_hex"]))
    assert derived.digest == vector["content_digest"]
    assert [list(total) for total in derived.totals] == vector["control_totals"]
    assert derived.rows == len(vector["rows"])


INTEGERS = {
    kind: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for kind, bits in ((pa.int8(), 8), (pa.int16(), 16), (pa.int32(), 32), (pa.int64(), 64))
} | {
    kind: st.integers(0, 2**bits - 1)
    for kind, bits in ((pa.uint8(), 8), (pa.uint16(), 16), (pa.uint32(), 32), (pa.uint64(), 64))
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))
TYPES = INTEGERS | {
    pa.bool_(): st.booleans(),
    pa.decimal128(18, 2): st.integers(-(10**17), 10**17).map(lambda n: Decimal(n).scaleb(-2)),
    pa.decimal128(38, 0): st.integers(-(10**27), 10**27).map(Decimal),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.date32(): st.dates(),
    pa.time64("us"): st.times(),
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("us", tz="UTC"): MOMENTS.map(lambda at: at.replace(tzinfo=dt.UTC)),
    pa.string(): TEXTS,
    pa.binary(): st.binary(max_size=5),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=5))
    rows = draw(st.integers(0, 20))
    arrays = [
        pa.array(draw(st.lists(st.none() | TYPES[kind], min_size=rows, max_size=rows)), kind)
        for kind in kinds
    ]
    names = [f"{'__' if number == 2 else 'ü'}{number}" for number in range(len(kinds))]
    return pa.table(arrays, names=names)


@settings(max_examples=60, deadline=None)
@given(tables())
def test_both_decoders_agree_on_any_table(table: pa.Table) -> None:
    made = canonical(table)
    derived = derive(made.payload)
    assert (derived.digest, derived.rows, derived.totals) == (made.digest, made.rows, made.totals)


@pytest.mark.parametrize("rows", [65_535, 65_536, 65_537, 131_073])
def test_both_decoders_agree_across_runs(rows: int) -> None:
    table = pa.table(
        {
            "n": pa.array(range(rows), pa.int64()),
            "s": pa.array([None if n % 9 == 0 else str(n % 77) for n in range(rows)]),
            "b": pa.array([None if n % 5 == 0 else n % 3 == 0 for n in range(rows)]),
            "d": pa.array([None if n % 7 == 0 else n for n in range(rows)]).cast(
                pa.decimal128(20, 0)
            ),
        }
    )
    made = canonical(table)
    derived = derive(made.payload)
    assert (derived.digest, derived.totals) == (made.digest, made.totals)


def stream(table: pa.Table, rows_max: int | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, rows_max)
    return sink.getvalue().to_pybytes()


def described(table: pa.Table, **words: object) -> pa.Table:
    stated = json.dumps({"format": "tieout.table/1", "key": []} | words)
    return table.replace_schema_metadata({"tieout.table": stated})


PLAIN = pa.table({"a": pa.array([1, 2, 3], pa.int64())})
NO_TABLES = {
    "nothing": b"",
    "noise": b"\xff\xff\xff\xff" + bytes(60),
    "no metadata": stream(PLAIN),
    "more metadata": stream(
        PLAIN.replace_schema_metadata(
            {"tieout.table": '{"format":"tieout.table/1","key":[]}', "x": "y"}
        )
    ),
    "metadata that is not JSON": stream(PLAIN.replace_schema_metadata({"tieout.table": "{"})),
    "another format": stream(described(PLAIN, format="tieout.table/2")),
    "a key that is not there": stream(described(PLAIN, key=["b"])),
    "a key that is no list": stream(described(PLAIN, key=7)),
    "another run length": stream(described(PLAIN), 2),
    "a type outside the set": stream(described(pa.table({"a": pa.array([[1]])}))),
    "a dictionary": stream(described(pa.table({"a": pa.array(["x"]).dictionary_encode()}))),
}


@pytest.mark.parametrize("payload", list(NO_TABLES.values()), ids=list(NO_TABLES))
def test_bytes_that_are_no_table(payload: bytes) -> None:
    with pytest.raises(MalformedTable):
        derive(payload)


def test_a_flipped_bit_changes_the_digest_or_is_no_table() -> None:
    made = canonical(pa.table({"a": pa.array([1, None, 3], pa.int64()), "s": ["x", "", None]}))
    found = 0
    for position in range(len(made.payload)):
        changed = bytearray(made.payload)
        changed[position] ^= 1 << position % 8
        try:
            found += derive(bytes(changed)).digest != made.digest
        except MalformedTable:
            found += 1
    assert found > 100  # padding and lengths that mean nothing remain; the address covers them


# --- cells ----------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(tables())
def test_every_cell_has_the_text_that_the_writer_gives_it(table: pa.Table) -> None:
    made = canonical(table, ordered=True)
    for name in table.column_names:
        kind = type_name(table.schema.field(name).type)
        for position, value in enumerate(pa.ipc.open_stream(made.payload).read_all()[name]):
            wanted = cell_text(value.as_py(), kind)
            assert find_cell(made.payload, str(position + 1), name) == wanted


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.none() | TEXTS, st.none() | st.integers(0, 9)), unique=True, max_size=9)
)
def test_every_row_is_found_by_its_key(keys) -> None:
    table = pa.table(
        {
            "näme": pa.array([name for name, _ in keys], pa.string()),
            "no": pa.array([number for _, number in keys], pa.int64()),
            "place": pa.array(range(len(keys)), pa.int64()),
        }
    )
    made = canonical(table, key=["näme", "no"])
    for place, (name, number) in enumerate(keys):
        texts = {"näme": name, "no": None if number is None else str(number)}
        key = row_key(["näme", "no"], texts, 0)
        assert find_cell(made.payload, key, "place") == str(place)


@pytest.mark.parametrize(
    ("key", "column"),
    [("id=9", "x"), ("id=1", "y"), ("1", "x"), ("", "x"), ("!id", "x"), ("id=1&id=2", "x"),
     ("id=1&x=1", "x"), ("other=1", "x")],
)  # fmt: skip
def test_cells_that_are_not_there(key: str, column: str) -> None:
    made = canonical(pa.table({"id": [1, 2], "x": [1, 2]}), key=["id"])
    assert find_cell(made.payload, "id=2", "x") == "2"
    with pytest.raises(NoSuchCell):
        find_cell(made.payload, key, column)


@pytest.mark.parametrize("key", ["0", "3", "-1", "01", "１", "1e0", "9" * 40, "id=1"])
def test_positions_that_are_not_there(key: str) -> None:
    made = canonical(pa.table({"x": [1, 2]}))
    assert find_cell(made.payload, "2", "x") == "2"
    with pytest.raises(NoSuchCell):
        find_cell(made.payload, key, "x")


def test_a_date_that_no_calendar_has_is_no_leak() -> None:
    """The writer refuses such a date; a stranger's table may hold it."""
    days = pa.table({"d": pa.array([10**8], pa.int32()).cast(pa.date32())})
    payload = stream(described(days))
    assert derive(payload).rows == 1
    with pytest.raises(MalformedTable):
        find_cell(payload, "1", "d")


def test_not_a_number_has_a_text() -> None:
    made = canonical(pa.table({"x": [math.nan, math.inf, -math.inf]}), ordered=True)
    assert [find_cell(made.payload, str(n), "x") for n in (1, 2, 3)] == [
        "NaN", "Infinity", "-Infinity",
    ]  # fmt: skip
