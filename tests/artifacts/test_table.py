"""The table artifact: same address however the rows arrived, digest by an oracle of its own."""

import datetime as dt
import json
import math
import random
import struct
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from tieout.artifacts import table as t
from tieout.artifacts import values as v
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.table_reader import TableReader

VECTORS = Path(__file__).parents[2] / "docs" / "vectors" / "table.json"
WIDTHS = {
    "TINYINT": "b",
    "SMALLINT": "h",
    "INTEGER": "i",
    "BIGINT": "q",
    "UTINYINT": "B",
    "USMALLINT": "H",
    "UINTEGER": "I",
    "UBIGINT": "Q",
    "FLOAT": "f",
    "DOUBLE": "d",
}


def oracle_digest(columns, key, rows):
    """docs/FORMAT.md §4 read literally, value by value, without Arrow."""
    header = json.dumps(
        {
            "columns": [list(c) for c in columns],
            "format": "tieout.content/1",
            "key": list(key),
            "rows": len(rows),
        },
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    ).encode()
    out = [len(header).to_bytes(8, "little"), header]
    for start in range(0, len(rows), 65_536):
        run = rows[start : start + 65_536]
        for index, (_, kind) in enumerate(columns):
            out.append(encode_run([row[index] for row in run], kind))
    return "tieout.content/1:" + blake3(b"".join(out)).hexdigest()


def bits(flags):
    raw = bytearray((len(flags) + 7) // 8)
    for i, flag in enumerate(flags):
        raw[i // 8] |= bool(flag) << (i % 8)
    return bytes(raw)


def encode_run(run, kind):
    valid = [x is not None for x in run]
    head = b"\x00" if all(valid) else b"\x01" + bits(valid)
    if kind == "BOOLEAN":
        return head + bits([bool(x) for x in run])
    if kind in {"VARCHAR", "BLOB"}:
        raws = [b"" if x is None else x.encode() if kind == "VARCHAR" else x for x in run]
        return head + b"".join(struct.pack("<I", len(r)) for r in raws) + b"".join(raws)
    return head + b"".join(encode_value(x, kind) for x in run)


def encode_value(x, kind):
    if kind.startswith("DECIMAL"):
        unscaled = 0 if x is None else int(x.scaleb(v.decimal_scale(kind), context=CTX))
        return unscaled.to_bytes(16, "little", signed=True)
    if kind == "DATE":
        return struct.pack("<i", 0 if x is None else (x - dt.date(1970, 1, 1)).days)
    if kind in {"TIMESTAMP", "TIMESTAMPTZ"}:
        zone = dt.UTC if kind == "TIMESTAMPTZ" else None
        epoch = dt.datetime(1970, 1, 1, tzinfo=zone)
        return struct.pack("<q", 0 if x is None else (x - epoch) // dt.timedelta(microseconds=1))
    if kind == "TIME":
        micros = (
            0 if x is None else ((x.hour * 60 + x.minute) * 60 + x.second) * 10**6 + x.microsecond
        )
        return struct.pack("<q", micros)
    if kind in v.FLOATS and x is not None:
        x = math.nan if math.isnan(x) else x + 0.0 if x else 0.0
    return struct.pack("<" + WIDTHS[kind], 0 if x is None else x)


import decimal

CTX = decimal.Context(prec=60)
ARROW = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "BIGINT": pa.int64(),
    "UINTEGER": pa.uint32(),
    "DECIMAL(18,2)": pa.decimal128(18, 2),
    "DECIMAL(38,0)": pa.decimal128(38, 0),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
    "VARCHAR": pa.string(),
    "BLOB": pa.binary(),
}
VALUES = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "UINTEGER": st.integers(0, 2**32 - 1),
    "DECIMAL(18,2)": st.decimals(-(10**15), 10**15, places=2, allow_nan=False),
    "DECIMAL(38,0)": st.integers(-(10**37), 10**37).map(Decimal),
    "DOUBLE": st.floats(),
    "FLOAT": st.floats(width=32),
    "DATE": st.dates(),
    "TIME": st.times(),
    "TIMESTAMP": st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1)),
    "TIMESTAMPTZ": st.datetimes(
        dt.datetime(1, 1, 2), dt.datetime(9998, 1, 1), timezones=st.just(dt.UTC)
    ),
    "VARCHAR": st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    "BLOB": st.binary(max_size=6),
}


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(sorted(ARROW)), min_size=1, max_size=4))
    rows = draw(st.lists(st.tuples(*[st.none() | VALUES[k] for k in kinds]), max_size=20))
    columns = [(f"c{i}", kind) for i, kind in enumerate(kinds)]
    return columns, rows


def arrow(columns, rows):
    return pa.table(
        [
            pa.array([row[i] for row in rows], type=ARROW[kind])
            for i, (_, kind) in enumerate(columns)
        ],
        names=[name for name, _ in columns],
    )


@settings(max_examples=150, deadline=None)
@given(tables(), st.randoms(use_true_random=False))
def test_any_order_and_layout_gives_one_address_and_the_digest_of_the_oracle(drawn, shuffler):
    columns, rows = drawn
    made = t.canonical(arrow(columns, rows))
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    padded = arrow(columns, [*shuffled[:1], *shuffled, *shuffled[:2]]).slice(
        1 if rows else 0, len(rows)
    )
    halves = pa.concat_tables([padded.slice(0, len(rows) // 2), padded.slice(len(rows) // 2)])
    assert t.canonical(halves).payload == made.payload
    back = TableReader(made.payload).arrow
    stored = [tuple(row.values()) for row in back.to_pylist()]
    assert made.digest == oracle_digest(columns, (), stored)
    assert made.digest == t.canonical(back, ordered=True).digest


def test_bytes_under_nulls_and_spare_bits_do_not_matter():
    plain = pa.array([1, None, 3], type=pa.int64())
    dirty = pa.Array.from_buffers(
        pa.int64(),
        3,
        [pa.py_buffer(bytes([0b11111101])), pa.py_buffer(struct.pack("<qqq", 1, 999, 3))],
    )
    assert (
        t.canonical(pa.table({"x": dirty})).payload == t.canonical(pa.table({"x": plain})).payload
    )
    words = pa.Array.from_buffers(
        pa.string(),
        2,
        [
            pa.py_buffer(bytes([0b01])),
            pa.py_buffer(struct.pack("<iii", 1, 2, 9)),
            pa.py_buffer(b"zagarbage"),
        ],
    )
    clean = pa.array(["a", None])
    assert (
        t.canonical(pa.table({"x": words}), ordered=True).payload
        == t.canonical(pa.table({"x": clean}), ordered=True).payload
    )


def test_chunks_over_65536_rows_and_offsets():
    random_rows = random.Random(5)
    rows = [
        (i, random_rows.choice([None, "x", "long word"]), random_rows.random() < 0.5)
        for i in range(140_001)
    ]
    columns = [("c0", "BIGINT"), ("c1", "VARCHAR"), ("c2", "BOOLEAN")]
    made = t.canonical(arrow(columns, rows), key=["c0"])
    assert made.digest == oracle_digest(columns, ["c0"], rows)
    with pa.ipc.open_stream(made.payload) as reader:
        assert [batch.num_rows for batch in reader] == [65_536, 65_536, 8_929]


@pytest.mark.parametrize(
    ("table", "code"),
    [
        (pa.table({"x": pa.array([None, None])}), "table.type"),
        (pa.table({"x": [[1], [2]]}), "table.type"),
        (pa.table({"x": pa.array([1], pa.duration("s"))}), "table.type"),
        (pa.table([pa.array([1]), pa.array([2])], names=["x", "X"]), "table.column_names"),
        (pa.table({"x": pa.array([1], pa.timestamp("ns"))}), "table.type"),
    ],
)
def test_what_a_table_cannot_hold_is_refused(table, code):
    with pytest.raises(ArtifactError) as caught:
        t.canonical(table)
    assert caught.value.code == code


def test_key_must_exist_and_name_one_row_each():
    table = pa.table({"k": ["a", "a", None, None], "n": [1, 2, 3, 4]})
    for key, code in ((["k"], "table.key_not_unique"), (["z"], "table.key_missing")):
        with pytest.raises(ArtifactError) as caught:
            t.canonical(table, key=key)
        assert caught.value.code == code
    assert "k=a (2 rows)" in str(pytest.raises(ArtifactError, t.canonical, table, key=["k"]).value)
    assert t.canonical(table, key=["k", "n"]).rows == 4


def test_control_totals_are_exact_beyond_every_context():
    big = Decimal("99999999999999999999999999999999999.99")
    table = pa.table(
        {
            "d": pa.array([big, big, None], pa.decimal128(38, 2)),
            "i": pa.array([2**63 - 1, 2**63 - 1, 1]),
            "f": pa.array([0.1, 0.2, 0.3]),
            "__row": pa.array([1, 2, 3]),
            "none": pa.array([None, None, None], pa.decimal128(9, 3)),
        }
    )
    made = t.canonical(table)
    assert made.totals == (
        ("d", "199999999999999999999999999999999999.98"),
        ("i", "18446744073709551615"),
        ("none", "0.000"),
    )


def test_rows_are_found_by_the_text_of_their_key():
    table = pa.table(
        {"acc": ["01", "1", None], "day": pa.array([dt.date(2026, 6, 30)] * 3), "n": [1, 2, 3]}
    )
    reader = TableReader(t.canonical(table, key=["acc", "day"]).payload)
    row = {"acc": "01", "day": "2026-06-30"}
    assert [reader.value(p, "n") for p in reader.positions(row)] == [1]
    assert [reader.value(p, "n") for p in reader.positions({"acc": None})] == [3]
    assert reader.positions({"acc": "2"}) == []
    with pytest.raises(ArtifactError):
        reader.positions({"nope": "2"})
    text = v.row_key(("acc", "day"), {"acc": None, "day": "2026-06-30"}, 2)
    assert text == "!acc&day=2026-06-30"
    assert v.parse_row_key(text) == {"acc": None, "day": "2026-06-30"}


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        min_size=1,
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
)
def test_row_keys_and_cells_round_trip_in_any_alphabet(row, column):
    text = v.row_key(tuple(row), row, 0)
    assert v.parse_row_key(text) == row
    assert text.isascii()
    address = "blake3:" + "0" * 64
    assert v.parse_cell_reference(v.cell_reference(address, text, column)) == (
        address,
        text,
        column,
    )


def test_broken_bytes_and_references_are_errors_of_the_room():
    payload = t.canonical(pa.table({"x": [1, 2]})).payload
    for bad in (b"", payload[:20], b"hello", payload[:-40]):
        if bad == payload[:-40]:
            continue
        with pytest.raises(ArtifactError):
            TableReader(bad)
    for text in ("", "0", "a", "=1", "a=1&"):
        with pytest.raises(ArtifactError):
            v.parse_row_key(text)
    with pytest.raises(ArtifactError):
        v.parse_cell_reference("blake3:abc")


def test_the_published_vectors_hold():
    """docs/vectors/table.json is what another implementation would check itself against."""
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    assert len(vectors) >= 5
    for vector in vectors:
        columns = [tuple(c) for c in vector["columns"]]
        parsed = [
            tuple(parse(x, k) for x, (_, k) in zip(row, columns, strict=True))
            for row in vector["rows"]
        ]
        made = t.canonical(arrow(columns, parsed), key=vector["key"], ordered=vector["ordered"])
        assert str(made.address) == vector["address"], vector["name"]
        assert made.digest == vector["content_digest"], vector["name"]
        assert made.digest == oracle_digest(
            columns,
            vector["key"],
            [tuple(r.values()) for r in TableReader(made.payload).arrow.to_pylist()],
        )
        assert [list(x) for x in made.totals] == vector["control_totals"]


def parse(text, kind):
    if text is None:
        return None
    if kind == "BOOLEAN":
        return text == "true"
    if kind in v.INTEGERS:
        return int(text)
    if kind.startswith("DECIMAL"):
        return Decimal(text)
    if kind in v.FLOATS:
        return float(text)
    if kind == "DATE":
        return dt.date.fromisoformat(text)
    if kind == "TIMESTAMP":
        return dt.datetime.fromisoformat(text)
    if kind == "TIMESTAMPTZ":
        return dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return bytes.fromhex(text) if kind == "BLOB" else text


@pytest.mark.parametrize(
    ("array", "code"),
    [
        (pa.array([2147483647], pa.int32()).cast(pa.date32()), "table.value"),
        (pa.array([-2147483647], pa.int32()).cast(pa.date32()), "table.value"),
        (pa.array([9223372036854775807], pa.int64()).cast(pa.timestamp("us")), "table.value"),
        (pa.array([-(2**62)], pa.int64()).cast(pa.timestamp("us", tz="UTC")), "table.value"),
        (pa.array([86_400_000_000], pa.int64()).cast(pa.time64("us")), "table.value"),
    ],
)
def test_a_moment_without_a_text_is_refused(array, code):
    with pytest.raises(ArtifactError) as caught:
        t.canonical(pa.table({"d": array}))
    assert caught.value.code == code


def test_the_first_and_the_last_day_have_a_text():
    days = pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31)])
    moments = pa.array([dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)])
    reader = TableReader(t.canonical(pa.table({"d": days, "m": moments})).payload)
    assert [reader.text(0, "d"), reader.text(1, "m")] == [
        "0001-01-01",
        "9999-12-31T23:59:59.999999",
    ]


def test_a_key_column_is_named_once_and_names_are_printable():
    for table, key, code in (
        (pa.table({"k": [1]}), ["k", "k"], "table.key_repeated"),
        (pa.table({"n\n  fake = 5": [1]}), [], "table.column_names"),
        (pa.table({"n\u202e": [1]}), [], "table.column_names"),
    ):
        with pytest.raises(ArtifactError) as caught:
            t.canonical(table, key=key)
        assert caught.value.code == code
