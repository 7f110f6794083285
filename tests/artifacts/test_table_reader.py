"""Reading tables back: whatever the bytes are, a table or ArtifactError, and no other way out."""

from __future__ import annotations

import io
import json
import struct
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.row_oracle import stored, tables, vectors

from tieout.artifacts.errors import ArtifactError, Exit
from tieout.artifacts.rows import RowTree
from tieout.artifacts.table import canonical
from tieout.artifacts.table_reader import TableHead, TableReader

NOTE = '{"format":"tieout.table/1","key":[]}'
END = b"\xff\xff\xff\xff" + bytes(4)


def stream(table, note=NOTE, **options):
    metadata = None if note is None else {"tieout.table": note}
    sink = pa.BufferOutputStream()
    plain = table.replace_schema_metadata(metadata)
    with pa.ipc.new_stream(sink, plain.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(plain)
    return sink.getvalue().to_pybytes()


def outcome(payload):
    """What of a reader of these bytes: None, or the code of why there is none."""
    try:
        reader = TableReader(payload)
    except ArtifactError as error:
        assert error.remedy
        assert error.exit_code is Exit.OTHER_FORMAT
        return error.code
    used(reader)
    RowTree(reader)
    return None


def used(reader, rows=None):
    """Everything that a reader of a true table gives."""
    held = reader.rows if rows is None else min(rows, reader.rows)
    names = [column.name for column in reader.columns]
    assert len(reader.page(0, held)) == held
    for position in range(min(held, 20)):
        cells = {name: reader.text(position, name) for name in names}
        reader.row_key(position)
        if rows is None:
            assert position in reader.positions(cells) or "NaN" in cells.values()


def table(**columns):
    return pa.table(columns)


ONE = table(a=pa.array([1, None], pa.int64()), b=["x", None])


def test_the_shape_that_the_others_are_changed_from_is_read():
    assert outcome(stream(ONE)) is None
    assert outcome(canonical(ONE, key=["a"]).payload) is None


def deep(levels):
    return '{"format":"tieout.table/1","key":' + "[" * levels + "]" * levels + "}"


NOTES = {
    "none": None,
    "empty": "",
    "broken": "{",
    "not UTF-8": b"\xff{}",
    "a list": "[]",
    "a number": "1",
    "null": "null",
    "endless digits": "9" * 5_000,
    "deep": deep(100_000),
    "no key": '{"format":"tieout.table/1"}',
    "no format": '{"key":[]}',
    "another format": NOTE.replace("/1", "/2"),
    "a format that is a list": '{"format":[],"key":[]}',
    "one member more": NOTE.replace("}", ',"x":1}'),
    "a key that is null": NOTE.replace("[]", "null"),
    "a key that is text": NOTE.replace("[]", '"a"'),
    "a key of numbers": NOTE.replace("[]", "[1]"),
    "a key of lists": NOTE.replace("[]", "[[]]"),
    "a key twice": NOTE.replace("[]", '["a","a"]'),
    "a key that is no column": NOTE.replace("[]", '["z"]'),
    "a key with half a character": NOTE.replace("[]", '["\\ud800"]'),
}


@pytest.mark.parametrize("note", list(NOTES.values()), ids=list(NOTES))
def test_metadata_that_is_none_of_ours(note):
    assert outcome(stream(ONE, note)) == "table.unreadable"


def typed(kind, *values):
    return table(a=pa.array(values, kind))


DAY = 86_400_000_000
TABLES = {
    "no column": pa.table({}),
    "rows of no column": typed(pa.int8(), 1).select([]),
    "a list": typed(pa.list_(pa.int8()), [1]),
    "a struct": typed(pa.struct([("x", pa.int8())]), {"x": 1}),
    "a map": typed(pa.map_(pa.string(), pa.int8()), [("x", 1)]),
    "null": typed(pa.null(), None),
    "a dictionary": table(a=pa.array(["x"]).dictionary_encode()),
    "large text": typed(pa.large_string(), "x"),
    "a view": typed(pa.string_view(), "x"),
    "fixed bytes": typed(pa.binary(2), b"xx"),
    "half a float": typed(pa.float16(), 1.0),
    "a small decimal": typed(pa.decimal64(9, 2), Decimal(1)),
    "a large decimal": typed(pa.decimal256(50, 2), Decimal(1)),
    "places before the point": typed(pa.decimal128(5, -2), None),
    "more places than digits": typed(pa.decimal128(5, 7), None),
    "milliseconds": typed(pa.date64(), 0),
    "seconds": typed(pa.timestamp("s"), 0),
    "nanoseconds": typed(pa.timestamp("ns"), 0),
    "another zone": typed(pa.timestamp("us", tz="Europe/Zurich"), 0),
    "a duration": typed(pa.duration("us"), 0),
    "an interval": typed(pa.month_day_nano_interval(), (1, 1, 1)),
    "a known extension": table(
        a=pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16)))
    ),
    "a day before the first": typed(pa.date32(), -719_163),
    "a day after the last": typed(pa.date32(), 2_932_897),
    "a moment before the first": typed(pa.timestamp("us"), -719_162 * DAY - 1),
    "a moment after the last": typed(pa.timestamp("us", tz="UTC"), 2_932_897 * DAY),
    "a time before the day": typed(pa.int64(), -1).cast(pa.schema([("a", pa.time64("us"))])),
    "a time after the day": typed(pa.time64("us"), DAY + 1),
    "the last of all times": typed(pa.time64("us"), 2**63 - 1),
    "the last of all moments": typed(pa.timestamp("us"), 2**63 - 1),
    "two columns of one name": pa.table([[1], [2]], names=["a", "a"]),
    "of one name but for case": pa.table([[1], [2]], names=["a", "A"]),
    "a column without a name": pa.table([[1]], names=[""]),
    "a column that has no null": pa.table(
        [pa.array([1])], schema=pa.schema([pa.field("a", pa.int64(), nullable=False)])
    ),
    "a column with metadata": pa.table(
        [pa.array([1])], schema=pa.schema([pa.field("a", pa.int64(), metadata={"x": "y"})])
    ),
    "text that is not UTF-8": table(
        a=pa.Array.from_buffers(
            pa.string(),
            1,
            [None, pa.py_buffer(struct.pack("<2i", 0, 2)), pa.py_buffer(b"\xff\xfe")],
        )
    ),
    "digits beyond the type": table(
        a=pa.Array.from_buffers(
            pa.decimal128(3, 2), 1, [None, pa.py_buffer((10**6).to_bytes(16, "little"))]
        )
    ),
}


@pytest.mark.parametrize("made", list(TABLES.values()), ids=list(TABLES))
def test_types_and_values_that_no_table_has(made):
    assert outcome(stream(made)) == "table.unreadable"


@pytest.mark.parametrize("bounds", [(0, 1 << 30), (-8, 4), (5, 2), (1 << 30, 1 << 30), (0, -1)])
def test_offsets_that_reach_beyond_the_text(bounds):
    """They are put into the bytes: Arrow itself does not write them."""
    payload = stream(table(a=["abcd"]))
    place = payload.index(struct.pack("<2i", 0, 4))
    payload = payload[:place] + struct.pack("<2i", *bounds) + payload[place + 8 :]
    assert outcome(payload) == "table.unreadable"


def test_what_does_not_end_where_its_stream_ends():
    payload = canonical(ONE).payload
    assert payload.endswith(END)
    for other in (
        payload[:-8],
        payload[:-4],
        payload + b"x",
        payload + END,
        payload + payload,
        END,
    ):
        assert outcome(other) == "table.unreadable"


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("number", [1 << 24, (1 << 31) - 1, -1, -(1 << 31), (1 << 62) + 8])
def test_huge_numbers_anywhere(width, number):
    """Lengths of messages, bodies, buffers and rows all stand on places divisible by four."""
    payload = canonical(table(a=pa.array([1, None, 3], pa.int64()), b=["x", "yy", None])).payload
    word = (number % (1 << 8 * width)).to_bytes(width, "little")
    for place in range(0, len(payload) - width, 4):
        changed = payload[:place] + word + payload[place + width :]
        assert outcome(changed) in {None, "table.unreadable"}
        head(changed)


def head(payload):
    try:
        reader = TableHead(io.BytesIO(payload), 2)
    except ArtifactError as error:
        assert error.code == "table.unreadable"
        return
    used(reader, 2)


VECTORS = [stored(v["columns"], v["key"], v["rows"]) for v in vectors()]


@st.composite
def damaged(draw):
    """A stored table that something happened to, once or a few times."""
    if draw(st.booleans()):
        columns, rows, _ = draw(tables())
        payload = stored(columns, [], rows)
    else:
        payload = draw(st.sampled_from(VECTORS))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(len(payload) - 1, 0)))
        other = draw(st.sampled_from(VECTORS))
        start = draw(st.integers(0, len(other)))
        piece = other[start : start + draw(st.integers(1, 200))]
        match draw(st.sampled_from(["flip", "cut", "splice", "insert", "drop", "word", "join"])):
            case "flip" if payload:
                byte = payload[place] ^ draw(st.integers(1, 255))
                payload = payload[:place] + bytes([byte]) + payload[place + 1 :]
            case "cut":
                payload = payload[:place]
            case "splice":
                payload = payload[:place] + piece + payload[place + len(piece) :]
            case "insert":
                payload = payload[:place] + piece + payload[place:]
            case "drop":
                payload = payload[:place] + payload[place + len(piece) :]
            case "word":
                at = place // 4 * 4
                word = draw(st.sampled_from([b"\0", b"\xff", b"\x7f", b"\x01"])) * 4
                payload = payload[:at] + word + payload[at + 4 :]
            case _:
                payload = payload[:place] + other
    return payload


def check_damaged(payload):
    assert outcome(payload) in {None, "table.unreadable"}
    head(payload)


@given(damaged())
@settings(max_examples=200, deadline=None)
def test_damage_has_one_way_out(payload):
    check_damaged(payload)


@pytest.mark.soak
@given(damaged())
@settings(max_examples=20_000, deadline=None)
def test_much_damage_has_one_way_out(payload):
    check_damaged(payload)


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_every_cut_is_unreadable(vector):
    for length in range(len(vector)):
        assert outcome(vector[:length]) == "table.unreadable"


def test_cells_that_are_not_there():
    reader = TableReader(canonical(ONE).payload)
    for call in (reader.value, reader.text):
        for position, column, code in (
            (0, "z", "table.no_column"),
            (2, "a", "table.no_row"),
            (-1, "a", "table.no_row"),
        ):
            with pytest.raises(ArtifactError) as caught:
                call(position, column)
            assert caught.value.code == code
            assert caught.value.remedy
    with pytest.raises(ArtifactError, match="no column 'z'"):
        reader.positions({"z": "1"})


def test_half_a_character_is_in_no_row():
    reader = TableReader(canonical(ONE).payload)
    assert reader.positions({"b": "\ud800"}) == []
    assert reader.positions({"b": "x"}) == [0]
    assert reader.positions({"b": None}) == [1]


def test_a_note_may_be_written_otherwise_than_canonically_only_by_others():
    """The reader minds what the note says; that its bytes are canonical is for the address."""
    spaced = json.dumps({"key": ["a"], "format": "tieout.table/1"})
    assert TableReader(stream(ONE, spaced)).key == ("a",)
