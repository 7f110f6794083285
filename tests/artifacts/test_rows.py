"""Row roots of stored tables: vectors, an oracle of its own, groups of rows, bounds."""

from __future__ import annotations

import functools
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from support.row_oracle import Oracle, stored, tables, vectors

from tieout.artifacts import row_proof
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.memory import MemoryStore
from tieout.artifacts.row_proof import check_row
from tieout.artifacts.rows import RowTree, prove_row, row_root
from tieout.artifacts.table import canonical
from tieout.artifacts.table_reader import TableReader


@pytest.mark.parametrize("vector", vectors(), ids=[vector["name"] for vector in vectors()])
def test_vectors(vector):
    columns, key, rows = vector["columns"], vector["key"], vector["rows"]
    oracle = Oracle(columns, key, rows, vector["rows_per_leaf"])
    tree = RowTree(stored(columns, key, rows), grouped=vector["rows_per_leaf"])
    assert vector["root"] == oracle.root == tree.root.root
    assert vector["leaves"] == [leaf.hex() for leaf in oracle.leaves]
    assert [leaf.hex() for leaf in oracle.leaves] == [leaf.hex() for leaf in tree._levels[0]]
    for proof in vector["proofs"]:
        position = proof["position"]
        raw = bytes.fromhex(proof["proof_hex"])
        assert raw == oracle.prove(position) == tree.prove(position)
        checked = check_row(raw, vector["root"])
        assert [list(pair) for pair in checked.values] == [
            [name, text] for (name, _), text in zip(columns, rows[position], strict=True)
        ]


def test_vectors_hold_every_type_of_the_closed_list():
    from tieout.artifacts.values import _NAMES

    used = {kind for vector in vectors() for _, kind in vector["columns"]}
    assert set(_NAMES.values()) <= used
    assert {"DECIMAL(18,2)", "DECIMAL(38,0)", "DECIMAL(5,5)"} <= used
    sizes = {(len(vector["rows"]), vector["rows_per_leaf"]) for vector in vectors()}
    assert {(0, 1), (1, 1), (3, 1)} <= sizes
    assert any(size > 1 and rows > size for rows, size in sizes)


@given(tables())
@settings(max_examples=150)
def test_roots_and_proofs_are_the_oracles(case):
    columns, rows, size = case
    payload = stored(columns, [], rows)
    oracle = Oracle(columns, [], rows, size)
    tree = RowTree(payload, grouped=size)
    assert tree.root.root == oracle.root
    assert tree.root.leaves == len(oracle.leaves)
    reader = TableReader(payload)
    for position in range(len(rows)):
        proof = tree.prove(position)
        assert proof == oracle.prove(position)
        checked = check_row(proof, oracle.root)
        assert checked.position == position
        assert checked.rows == len(rows)
        texts = [(name, reader.text(position, name)) for name, _ in columns]
        assert list(checked.values) == texts


@functools.cache
def wide(rows):
    """A table of ordinary rows: eight columns, a hundred bytes each."""
    ids = list(range(1_000_000, 1_000_000 + rows))
    table = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "account": pa.array([4_000 + i * 7_919 % 1_000 for i in ids], pa.int64()),
            "booked": pa.array([20_000 + i % 365 for i in ids], pa.int32()).cast(pa.date32()),
            "amount": pa.array([i * 48_271 % 10**8 for i in ids], pa.int64()).cast(pa.decimal128(21, 2)).cast(pa.decimal128(18, 2)),
            "currency": pa.array([("GBP", "EUR", "USD")[i % 3] for i in ids]),
            "memo": pa.array([f"posting {i % 50_000} of batch {i // 500}" for i in ids]),
            "quantity": pa.array([None if i % 7 == 0 else i % 10 for i in ids], pa.int64()),
            "rate": pa.array([i % 999 for i in ids], pa.int64()).cast(pa.decimal128(21, 2)),
        }
    )  # fmt: skip
    return canonical(table, key=["id"]).payload


def test_a_proof_of_an_ordinary_row_has_under_a_kilobyte():
    tree = RowTree(wide(100_000))
    assert (tree.root.leaves, tree.root.rows_per_leaf) == (100_000, 1)
    for position in (0, 65_535, 65_536, 99_999):
        proof = tree.prove(position)
        assert len(proof) < 1_024
        assert check_row(proof, tree.root.root).values[0] == ("id", str(1_000_000 + position))


def test_many_rows_are_grouped():
    assert [row_proof.rows_per_leaf(n) for n in (0, 200_000, 200_001)] == [1, 1, 64]
    reader = TableReader(wide(200_001))
    tree = RowTree(reader)
    assert (tree.root.leaves, tree.root.rows_per_leaf) == (3_126, 64)
    assert row_root(reader) == tree.root
    for position in (0, 63, 64, 65_536, 131_071, 200_000):
        proof = prove_row(reader, position)
        values = dict(check_row(proof, tree.root.root).values)
        assert values == {c.name: reader.text(position, c.name) for c in reader.columns}


def test_the_runs_of_the_encoder_leave_no_trace(monkeypatch):
    """Leaves that do not divide a run, and runs of other lengths, give the same root."""
    payload = wide(2_000)
    expected = {size: RowTree(payload, grouped=size).root for size in (1, 7, 64, 999)}
    monkeypatch.setattr("tieout.artifacts.rows.RUN_ROWS", 1_000)
    assert {size: RowTree(payload, grouped=size).root for size in expected} == expected


@pytest.mark.parametrize("position", [-1, 3, 10**20])
def test_there_is_no_proof_of_no_row(position):
    with pytest.raises(ArtifactError) as caught:
        prove_row(stored([["a", "BIGINT"]], [], [["1"], ["2"], ["3"]]), position)
    assert caught.value.code == "row_proof.no_row"


@pytest.mark.parametrize("size", [0, -1, 65_537])
def test_a_leaf_has_a_bound(size):
    with pytest.raises(ArtifactError) as caught:
        RowTree(stored([["a", "BIGINT"]], [], [["1"]]), grouped=size)
    assert caught.value.code == "row_root.grouped"


def test_a_proof_over_its_bound_is_not_made(monkeypatch):
    tree = RowTree(stored([["a", "VARCHAR"]], [], [["x" * 100]]))
    monkeypatch.setattr("tieout.artifacts.rows.PROOF_BYTES_MAX", 100)
    with pytest.raises(ArtifactError) as caught:
        tree.prove(0)
    assert caught.value.code == "row_proof.too_large"


def test_bytes_that_are_no_table_have_no_root():
    with pytest.raises(ArtifactError) as caught:
        row_root(b"not a table")
    assert caught.value.code == "table.unreadable"


def test_the_example_of_the_format_runs(repository: Path):
    text = (repository / "docs" / "FORMAT.md").read_text(encoding="utf-8")
    start = text.index("    from tieout.artifacts import RowTree")
    example = textwrap.dedent(text[start : text.index("**Without the table.**", start)])
    vector = next(vector for vector in vectors() if vector["name"] == "three rows")
    store = MemoryStore()
    payload = stored(vector["columns"], vector["key"], vector["rows"])
    address = store.put(payload).address
    names = {"store": store, "address": address}
    exec(example, names)
    told = example.strip().splitlines()[-1].partition("#")[2]
    assert (names["row"].position, names["row"].values) == eval(told)
    assert names["root"] == vector["root"]
