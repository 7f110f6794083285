"""The row root in an entry: written, read, held against the table by the audit."""

from __future__ import annotations

import dataclasses
import json
from hashlib import sha256

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledger_rows import OUTPUTS, World, row
from support.row_oracle import stored, tables, vectors

from tieout.artifacts.memory import MemoryStore
from tieout.artifacts.row_proof import check_row
from tieout.artifacts.rows import RowTree, row_root
from tieout.artifacts.table import TABLE_MEDIA, canonical
from tieout.ledger.audit import shapes
from tieout.ledger.audit.findings import Level, Report
from tieout.ledger.audit.fsck import check_rows
from tieout.ledger.audit.objects import LocalObjects, StoreObjects
from tieout.ledger.audit.tables import derive
from tieout.ledger.errors import LedgerError
from tieout.ledger.log import MemoryLog
from tieout.ledger.refs import OutputRef
from tieout.ledger.row import LedgerRow

ROOT = "tieout.rows/1:" + "0" * 64
DIGEST = "tieout.content/1:" + "0" * 64
ROOTED = OUTPUTS.map(
    lambda ref: dataclasses.replace(
        ref, media_type=TABLE_MEDIA, content_digest=DIGEST, row_root=ROOT
    )
)


def reported(store: MemoryStore | World, *rows: LedgerRow) -> Report:
    log = MemoryLog()
    log.append(rows)
    raw = [(e.index, e.entry, e.previous, e.sha256_hash) for e in log.entries()]
    world = isinstance(store, World)
    return check_rows(raw, LocalObjects(store.folder) if world else StoreObjects(store))


def codes(report: Report) -> set[str]:
    return {item.code for item in report.findings if item.level is Level.BROKEN}


# --- the entry ------------------------------------------------------------------------------


@settings(max_examples=50)
@given(ROOTED)
def test_an_entry_with_a_root_comes_back_byte_for_byte(output: OutputRef) -> None:
    made = row(deterministic_output=output)
    payload = made.entry()
    assert LedgerRow.parse(payload) == made
    assert shapes.read_entry(payload) == (json.loads(payload), [])
    # All else of the entry is as it was without a root.
    document = json.loads(payload)
    assert document["deterministic_output"].pop("row_root") == ROOT
    plain = row(deterministic_output=dataclasses.replace(output, row_root=None))
    assert json.loads(plain.entry()) == document


@pytest.fixture
def rooted() -> dict:
    ref = dataclasses.replace(TABLE, row_root=ROOT)
    return json.loads(row(deterministic_output=ref).entry())


TABLE = OutputRef(
    MemoryStore().put(b"x").address, "0" * 64, 1, TABLE_MEDIA, content_digest=DIGEST, row_count=1
)
MALFORMED = {
    "null": {"row_root": None},
    "a number": {"row_root": 1},
    "nothing": {"row_root": ""},
    "a content digest": {"row_root": DIGEST},
    "another format": {"row_root": "tieout.rows/2:" + "0" * 64},
    "too short": {"row_root": ROOT[:-1]},
    "capitals": {"row_root": ROOT[:-1] + "A"},
    "a line end": {"row_root": ROOT + "\n"},
    "no digest beside it": {"content_digest": None},
    "no table beside it": {"media_type": "text/plain"},
}


@pytest.mark.parametrize("changes", list(MALFORMED.values()), ids=list(MALFORMED))
def test_what_is_no_root_is_refused_by_the_reader_and_found_by_the_audit(rooted, changes) -> None:
    rooted["deterministic_output"] |= changes
    payload = json.dumps(
        rooted, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()  # fmt: skip
    with pytest.raises(LedgerError) as caught:
        LedgerRow.parse(payload)
    assert caught.value.code == "entry.malformed"
    assert caught.value.place == "deterministic_output.row_root"
    _, problems = shapes.read_entry(payload)
    assert len(problems) == 1
    assert "row_root" in problems[0]


@pytest.mark.parametrize(
    "changes", [{"row_root": b"x"}, {"row_root": ROOT, "content_digest": None}]
)
def test_what_is_no_root_cannot_be_written(changes) -> None:
    with pytest.raises(LedgerError, match="not an entry"):
        dataclasses.replace(TABLE, **changes)


def test_a_root_anywhere_else_is_an_unknown_field(rooted) -> None:
    rooted["row_root"] = rooted["deterministic_output"].pop("row_root")
    payload = json.dumps(rooted, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(LedgerError, match="unknown field"):
        LedgerRow.parse(payload)
    assert shapes.read_entry(payload)[0] is None


# --- the audit's own derivation -------------------------------------------------------------


@pytest.mark.parametrize("vector", vectors(), ids=[vector["name"] for vector in vectors()])
def test_the_vectors_of_the_format(vector) -> None:
    payload = stored(vector["columns"], vector["key"], vector["rows"])
    if vector["rows_per_leaf"] == 1:  # larger leaves are no small table's own
        assert derive(payload, rooted=True).row_root == vector["root"]
    assert derive(payload).row_root is None


@given(tables(), st.booleans())
@settings(max_examples=100)
def test_both_derivations_agree_on_any_table(case, keyed) -> None:
    columns, rows, _ = case
    if keyed:  # a key that is unique
        columns = [["k", "BIGINT"], *columns]
        rows = [[str(number), *each] for number, each in enumerate(rows)]
    payload = stored(columns, ["k"] if keyed else [], rows)
    assert derive(payload, rooted=True).row_root == row_root(payload).root


@pytest.mark.parametrize("rows", [65_535, 65_536, 65_537, 200_000, 200_001])
def test_both_derivations_agree_across_runs_and_leaves(rows: int) -> None:
    numbers = pa.array([None if n % 9 == 0 else n % 128 for n in range(rows)], pa.int8())
    payload = canonical(pa.table({"n": numbers}), ordered=True).payload
    assert derive(payload, rooted=True).row_root == row_root(payload).root


# --- entries against their tables -----------------------------------------------------------


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("roots"))


def test_a_true_root_holds_and_an_entry_without_one_does(world: World) -> None:
    payload = world.store.get(world.table.address)
    true = dataclasses.replace(world.table, row_root=row_root(payload).root)
    assert codes(reported(world, row(0, deterministic_output=true))) == set()
    assert codes(reported(world, row(0, deterministic_output=world.table))) == set()


def test_a_false_root_is_found_with_its_entry(world: World) -> None:
    other = row_root(world.store.get(world.result.address)).root
    for root in (ROOT, other):
        false = dataclasses.replace(world.table, row_root=root)
        report = reported(
            world, row(0, deterministic_output=world.table), row(1, deterministic_output=false)
        )
        assert codes(report) == {"table.row_root"}
        (finding,) = [f for f in report.findings if f.code == "table.row_root"]
        assert (finding.index, finding.address) == (1, str(world.table.address))
        assert row_root(world.store.get(world.table.address)).root in finding.message


def test_the_root_of_rows_in_another_order_is_found() -> None:
    """The content digest of the entry would be another too: here both are the writer's lie."""
    store = MemoryStore()
    rows = pa.table({"n": pa.array([1, 2, 3], pa.int64())})
    made, turned = (
        canonical(table, ordered=True) for table in (rows, rows.take(pa.array([2, 1, 0])))
    )
    kept = store.put(made.payload)
    ref = OutputRef(
        kept.address,
        sha256(made.payload).hexdigest(),
        kept.size,
        TABLE_MEDIA,
        content_digest=made.digest,
        row_count=3,
        control_totals=(),
        row_root=row_root(turned.payload).root,
    )
    assert "table.row_root" in codes(reported(store, row(0, deterministic_output=ref)))


def test_a_proof_holds_against_the_root_of_the_entry_alone(world: World) -> None:
    payload = world.store.get(world.table.address)
    tree = RowTree(payload)
    entry = row(deterministic_output=dataclasses.replace(world.table, row_root=tree.root.root))
    stated = json.loads(entry.entry())["deterministic_output"]["row_root"]
    checked = check_row(tree.prove(1), stated)
    assert dict(checked.values) == {"line_id": "b", "amount": "-7"}


def test_the_entry_of_the_vectors_has_the_root_of_the_table_of_the_vectors(repository) -> None:
    listed = json.loads((repository / "docs" / "vectors" / "ledger.json").read_text("utf-8"))
    outputs = [json.loads(vector["entry"])["deterministic_output"] for vector in listed]
    (output,) = [each for each in outputs if each and "row_root" in each]
    table = next(vector for vector in vectors() if vector["name"] == "three rows")
    payload = stored(table["columns"], table["key"], table["rows"])
    assert output["row_root"] == table["root"]
    assert output["sha256"] == sha256(payload).hexdigest()
    assert output["content_digest"] == derive(payload).digest
