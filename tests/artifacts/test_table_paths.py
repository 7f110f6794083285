"""Every short cut to canonical form gives what the slow way gives (support/slow_table.py)."""

import datetime as dt
import itertools
import math
import os
import subprocess
import sys
from decimal import Decimal
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.slow_table import stream_of, totals_of

from tieout.artifacts import table, totals
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.sorting import is_ascending

RUN_ROWS = 13
"""Rows of a chunk in these tests, so that small tables have several; no multiple of 8."""
VALUES = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    pa.uint64(): st.integers(0, 2**64 - 1) | st.integers(0, 2),
    pa.decimal128(9, 2): st.decimals(-9_999_999, 9_999_999, places=2),
    pa.decimal128(38, 2): st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda units: Decimal((units < 0, tuple(map(int, str(abs(units)))), -2))
    ),
    pa.float64(): st.floats() | st.sampled_from([0.0, -0.0, math.nan, math.inf]),
    pa.float32(): st.floats(width=32) | st.sampled_from([0.0, -0.0, math.nan]),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1)),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    pa.binary(): st.binary(max_size=3),
}
OTHER_LAYOUTS = {
    pa.string(): [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
    pa.binary(): [pa.large_binary()],
    pa.date32(): [pa.date64()],
    pa.timestamp("us"): [pa.timestamp("us")],
}


@st.composite
def drawn_tables(draw):
    """A schema and rows, few or many equal, with nulls in some columns only."""
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    cells = []
    for kind in kinds:
        value = VALUES[kind]
        if draw(st.booleans()):
            value = st.sampled_from(draw(st.lists(value, min_size=1, max_size=3)))
        cells.append(st.none() | value if draw(st.booleans()) else value)
    rows = draw(st.lists(st.tuples(*cells), max_size=45))
    schema = pa.schema([pa.field(f"c{index}", kind) for index, kind in enumerate(kinds)])
    return schema, rows


def arrow(schema, rows):
    arrays = [pa.array([row[i] for row in rows], f.type) for i, f in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=schema)


def laid_out(draw, schema, rows):
    """The same rows in chunks of any length, some of them slices, some in another Arrow type."""
    cuts = sorted({0, len(rows), *draw(st.lists(st.integers(0, len(rows)), max_size=4))})
    parts = [arrow(schema, [])]
    for start, end in itertools.pairwise(cuts):
        padding = draw(st.integers(0, 3))
        padded = arrow(schema, [*rows[:padding], *rows[start:end], *rows[:padding]])
        parts.append(padded.slice(min(padding, len(rows)), end - start))
    made = pa.concat_tables(parts)
    for index, field in enumerate(schema):
        others = OTHER_LAYOUTS.get(field.type)
        if others and draw(st.booleans()):
            column = made.column(index).cast(draw(st.sampled_from(others)))
            made = made.set_column(index, field.name, column)
    return made


@settings(max_examples=250, deadline=None)
@given(st.data(), drawn_tables(), st.booleans())
def test_any_layout_in_any_order_gives_what_the_slow_way_gives(data, drawn, ordered):
    schema, rows = drawn
    if data.draw(st.booleans()):  # in order already: the way without a sort
        stored = pa.ipc.open_stream(stream_of(schema, rows)).read_all()
        rows = [tuple(row.values()) for row in stored.to_pylist()]
    given_table = laid_out(data.draw, schema, rows)
    with patch.object(table, "CHUNK_ROWS", RUN_ROWS), patch.object(totals, "SUM_ROWS", 7):
        made = table.canonical(given_table, ordered=ordered)
    assert made.payload == stream_of(schema, rows, ordered=ordered, run_rows=RUN_ROWS)
    assert list(made.totals) == totals_of(schema, rows)


@settings(max_examples=150, deadline=None)
@given(st.data(), drawn_tables(), st.booleans())
def test_a_key_is_unique_or_refused_whichever_way_it_is_looked_at(data, drawn, ordered):
    schema, rows = drawn
    key = schema.names[: data.draw(st.integers(1, len(schema)))]
    if data.draw(st.booleans()):
        stored = pa.ipc.open_stream(stream_of(schema, rows)).read_all()
        rows = [tuple(row.values()) for row in stored.to_pylist()]
    names = [repr([None if v is None else v + 0 if v == 0 else v for v in row[: len(key)]])
             for row in rows]  # fmt: skip
    try:
        made = table.canonical(laid_out(data.draw, schema, rows), key=key, ordered=ordered)
    except ArtifactError as error:
        assert error.code == "table.key_not_unique"
        assert len(set(names)) < len(names)
        return
    assert len(set(names)) == len(names)
    assert made.payload == stream_of(schema, rows, key=key, ordered=ordered)


@settings(max_examples=300, deadline=None)
@given(drawn_tables(), st.booleans())
def test_what_is_seen_to_ascend_does_so(drawn, strictly):
    schema, rows = drawn
    if schema.types.count(pa.float64()) + schema.types.count(pa.float32()) == 0:
        for candidate in (rows, sorted(rows, key=str)):
            made = arrow(schema, candidate)
            order = pc.sort_indices(made, sort_keys=[(n, "ascending") for n in schema.names])
            stays = made.take(order).equals(made)
            distinct = len({str(row) for row in candidate}) == len(candidate)
            if is_ascending(made, schema.names, strictly=strictly):
                assert stays
                assert distinct or not strictly
            elif all(None not in row for row in candidate):
                assert not stays or (strictly and not distinct)


@pytest.mark.parametrize("value", [math.nan, None])
def test_nan_and_null_are_never_seen_to_ascend(value):
    for column in ([1.0, value], [value, 1.0], [value, value], [1.0, value, 2.0]):
        made = pa.table({"x": pa.array(column, pa.float64(), from_pandas=False)})
        assert not is_ascending(made, ["x"])


def test_buffers_that_begin_before_the_first_row_are_made_anew():
    late = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\3\0\0\0\4\0\0\0\6\0\0\0"), pa.py_buffer(b"xyzabc")]
    )
    assert late.to_pylist() == ["a", "bc"]
    made = table.canonical(pa.table({"x": late}))
    assert made.payload == table.canonical(pa.table({"x": ["a", "bc"]})).payload


def test_canonical_buffers_are_not_copied():
    """Chunks of the canonical length, as the engine's child writes them, are taken as they are."""
    rows = table.CHUNK_ROWS
    runs = (range(start, start + rows) for start in range(0, 3 * rows, rows))
    source = pa.Table.from_batches(
        [pa.record_batch({"id": pa.array(run), "text": ["abcdefgh"] * rows}) for run in runs]
    )
    before = pa.total_allocated_bytes()
    made = table.canonical(source, key=["id"])
    assert pa.total_allocated_bytes() - before < len(made.pieces) / 10
    assert len(made.pieces) > source.nbytes


PEAK = """
import resource, sys
import pyarrow as pa
from pathlib import Path
from tieout.artifacts.local import LocalStore
from tieout.artifacts.table import canonical
place, mode = Path(sys.argv[1]), sys.argv[2]
rows = 1_000_000
if mode == "make":
    batches = []
    for start in range(0, rows, 65_536):
        run = range(start, min(rows, start + 65_536))
        batches.append(pa.record_batch({
            "id": pa.array(run), "text": pa.array([f"posting {n} of the batch" for n in run]),
            **{f"n{c}": pa.array([n * 48_271 % 65_521 for n in run]) for c in range(6)},
        }))
    with pa.OSFile(str(place / "table"), "wb") as out:
        with pa.ipc.new_stream(out, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    LocalStore.create(place / "store")
else:
    store = LocalStore(place / "store")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pa.memory_map(str(place / "table")) as source, pa.ipc.open_stream(source) as reader:
        table = reader.read_all()
    if mode == "sorted anew":
        table = table.select(["n0", "id", "text", "n1", "n2", "n3", "n4", "n5"])
    made = canonical(table, key=["id"] if mode == "in order" else [])
    stored = store.put(made.pieces)
    assert stored.created and stored.address == made.address
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(len(made.pieces), (after - before) * 1024)
"""
PEAKS = {"in order": 1.25, "sorted anew": 3.5}
"""Peak resident memory of canonical form and put, as a multiple of the table's bytes, the table
itself (a mapping) counted: once when its rows are in order; else with the copy in order, and what
the sort takes for it."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is counted in KiB on Linux")
def test_a_million_rows_are_put_in_bounded_memory(tmp_path):
    def run(mode):
        command = [sys.executable, "-c", PEAK, str(tmp_path), mode]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return [int(word) for word in done.stdout.split()]

    run("make")
    for mode, multiple in PEAKS.items():
        size, peak = run(mode)
        assert peak < multiple * size, (mode, peak / size)
