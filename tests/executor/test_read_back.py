"""What a step shows of a table is read back from the store, checked, without holding all of it."""

import os
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.layers import Fault, Faulty, Harm
from tieout.artifacts.local import LocalStore
from tieout.artifacts.memory import MemoryStore
from tieout.artifacts.table import CHUNK_ROWS, canonical
from tieout.artifacts.table_reader import TableHead, TableReader
from tieout.executor.engine import Engine, EngineLimits, TableBytes
from tieout.executor.limits import Limits
from tieout.executor.observation import observe, read_back
from tieout.executor.sql.validate import GrantedColumn, GrantedTable

LIMITS = Limits()
SCHEMA = pa.schema([("id", pa.int64()), ("t", pa.bool_())])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 50), st.booleans())
def test_a_head_says_of_its_rows_what_a_whole_reader_says(rows, keyed):
    numbers = range(rows)
    table = pa.table(
        {"id": pa.array(numbers, pa.int64()), "t": [n % 3 == 0 for n in numbers]}, schema=SCHEMA
    )
    made = canonical(table, key=["id"] if keyed else [])
    store = MemoryStore()
    store.put(made.pieces)
    with store.scan(made.address) as stream:
        head = TableHead(stream, 7)
    whole = TableReader(made.payload)
    assert (head.rows, head.key, head.columns) == (whole.rows, whole.key, whole.columns)
    assert head.page(0, 7) == whole.page(0, 7)
    assert [head.row_key(n) for n in range(min(7, rows))] == [
        whole.row_key(n) for n in range(min(7, rows))
    ]
    facts = {"step": "s", "address": str(made.address), "complete": True, "totals": made.totals}
    assert observe(head, **facts, limits=LIMITS) == observe(whole, **facts, limits=LIMITS)


def test_only_the_first_chunk_of_a_large_table_is_kept(tmp_path):
    rows = 3 * CHUNK_ROWS + 5
    made = canonical(pa.table({"id": pa.array(range(rows))}), ordered=True)
    store = LocalStore.create(tmp_path / "store")
    store.put(made.pieces)
    head = read_back(store, made.address, limits=LIMITS)
    assert head.rows == rows
    assert head.arrow.num_rows == CHUNK_ROWS
    assert head.page(0, 2) == [{"id": 0}, {"id": 1}]


@pytest.mark.parametrize("bit", [0, 4_000, -1])
def test_a_stored_table_that_changed_is_never_shown(tmp_path, bit):
    made = canonical(pa.table({"id": pa.array(range(1_000))}), ordered=True)
    store = LocalStore.create(tmp_path / "store")
    store.put(made.pieces)
    (path,) = [p for p in (tmp_path / "store" / "objects").rglob("*") if p.is_file()]
    changed = bytearray(path.read_bytes())
    changed[bit // 8] ^= 1
    path.chmod(0o644)
    path.write_bytes(changed)
    with pytest.raises(ArtifactError) as caught:
        read_back(store, made.address, limits=LIMITS)
    assert caught.value.code == "object.corrupt"


def test_a_fault_of_reading_stops_it():
    made = canonical(pa.table({"id": [1]}))
    store = Faulty(MemoryStore(), [Fault("get", 1, Harm.FAIL)])
    store.put(made.pieces)
    with pytest.raises(ArtifactError, match="planned fault"):
        read_back(store, made.address, limits=LIMITS)


def test_what_is_no_table_is_said_to_be_none(tmp_path):
    store = LocalStore.create(tmp_path / "store")
    address = store.put(b"no table at all").address
    with pytest.raises(ArtifactError) as caught:
        read_back(store, address, limits=LIMITS)
    assert caught.value.code == "table.unreadable"


def test_a_table_is_handed_to_the_engine_as_it_is_scanned_and_only_when_it_is_whole(tmp_path):
    made = canonical(pa.table({"id": pa.array(range(1_000))}), ordered=True)
    store = LocalStore.create(tmp_path / "store")
    store.put(made.pieces)
    granted = {"t": GrantedTable("t", (GrantedColumn("id", "BIGINT"),))}
    handed = {"t": TableBytes(made.address, partial(store.scan, made.address))}
    with Engine(cache=tmp_path / "cache", limits=EngineLimits(seconds_max=20)) as engine:
        validated = engine.validate("SELECT sum(id) AS s FROM t", granted)
        assert engine.run(validated, handed).table.to_pydict() == {"s": [sum(range(1_000))]}
        open_before = len(os.listdir("/proc/self/fd"))
        (path,) = [p for p in (tmp_path / "store" / "objects").rglob("*") if p.is_file()]
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        with pytest.raises(ArtifactError) as caught:
            engine.run(validated, handed)
        assert caught.value.code == "object.corrupt"
        assert len(os.listdir("/proc/self/fd")) == open_before
