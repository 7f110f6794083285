"""Pinning: bytes as received, a manifest that builds itself again, a row for each change only."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.worlds import recorder

from tieout.artifacts.address import Address
from tieout.executor.catalog import ColumnTable, Source, SourceTable
from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.limits import Limits
from tieout.executor.pinning import newest, pin
from tieout.executor.receive import Received, read_whole, receive
from tieout.executor.snapshot import build, source_of
from tieout.executor.world import load_pinned

BANK = b"\xef\xbb\xbfline_id;amount\r\nB1;1,50\r\n\r\nB2;-2,25\r\nTotal;-0,75\r\n"
SOURCE = Source(
    "bank",
    SourceTable(
        file="bank.csv",
        key=["line_id"],
        note="from the bank",
        footer=["^Total"],
        column={"amount": ColumnTable(type="DECIMAL(18,2)", decimal=",")},
    ),
)
NOTES = Source("notes", SourceTable(folder="notes", published={"a.txt": "2026-06-30"}))


def test_a_manifest_says_what_was_read_and_how():
    snapshot = build(SOURCE, [Received("bank.csv", BANK)])
    manifest = json.loads(snapshot.manifest.payload)
    assert manifest["file"] == {
        "name": "bank.csv",
        "size": len(BANK),
        "address": str(Address.of(BANK)),
    }
    assert manifest["reading"]["lines"] == {
        "all": 5, "preamble": 0, "header": 1, "data": 2, "blank": 1, "footer": 1, "rejected": 0,
    }  # fmt: skip
    assert manifest["reading"]["delimiter"] == ";"
    assert manifest["table"]["control_totals"] == [["amount", "-0.75"]]
    assert [part.role for part in snapshot.parts] == ["raw", "table", "records"]
    assert snapshot.parts[0].payload == BANK


@pytest.mark.parametrize(
    ("source", "received"),
    [
        (SOURCE, [Received("bank.csv", BANK)]),
        (NOTES, [Received("a.txt", b"One.\n"), Received("b/c.html", b"<p>Two &amp; three</p>")]),
    ],
    ids=["table", "text"],
)
def test_a_snapshot_is_built_again_from_its_manifest_and_the_raw_bytes(source, received):
    first = build(source, received)
    again, files = source_of(first.manifest.payload)
    assert files == tuple((r.name, Address.of(r.payload)) for r in received)
    second = build(again, received)
    assert second == first


def test_another_declaration_is_another_snapshot_of_the_same_bytes():
    other = Source("bank", SOURCE.table.model_copy(update={"note": "other"}))
    received = [Received("bank.csv", BANK)]
    assert build(SOURCE, received).address != build(other, received).address
    assert build(SOURCE, received).parts == build(other, received).parts


def test_a_repeated_key_names_its_lines():
    with pytest.raises(ExecutorError) as caught:
        build(SOURCE, [Received("bank.csv", b"line_id;amount\nB1;1,00\nB2;1,00\nB1;2,00\n")])
    error = caught.value
    assert error.code == "source.key_not_unique"
    assert "lines 2 and 4" in error.message
    assert error.place == "bank: bank.csv"


def test_text_sources_take_known_endings_and_known_dates():
    with pytest.raises(ExecutorError) as caught:
        build(NOTES, [Received("a.txt", b"x"), Received("b.pdf", b"x")])
    assert caught.value.code == "source.file_kind"
    with pytest.raises(ExecutorError) as caught:
        build(NOTES, [Received("b.txt", b"x")])
    assert caught.value.code == "source.unknown_document"


def test_what_the_manifest_says_is_what_a_question_sees():
    keeper = recorder()
    snapshot = build(SOURCE, [Received("bank.csv", BANK)])
    keeper.store.put(snapshot.manifest.payload)
    pinned = load_pinned(keeper.store, snapshot.address)
    assert (pinned.name, pinned.kind, pinned.rows, pinned.key) == ("bank", "table", 2, ("line_id",))
    assert [(c.name, c.type) for c in pinned.columns] == [
        ("line_id", "VARCHAR"),
        ("amount", "DECIMAL(18,2)"),
    ]


@pytest.mark.parametrize(
    "payload", [b"", b"{}", b"[]", b'{"kind": "table"}', b"\xff", b'{"kind": 5}']
)
def test_what_is_no_manifest_is_not_read_as_one(payload):
    keeper = recorder()
    stored = keeper.store.put(payload)
    with pytest.raises(ExecutorError) as caught:
        load_pinned(keeper.store, stored.address)
    assert (caught.value.code, caught.value.exit_code) == ("snapshot.unreadable", Exit.OTHER_FORMAT)


# --- receiving and pinning -------------------------------------------------------------------


def folder(root: Path) -> Path:
    (root / "notes" / "deep").mkdir(parents=True)
    (root / "bank.csv").write_bytes(BANK)
    (root / "notes" / "a.txt").write_text("One.")
    (root / "notes" / "deep" / "b.txt").write_text("Two.")
    (root / "notes" / ".hidden").write_text("no")
    return root


def test_files_and_folders_are_received_in_order_of_name(tmp_path):
    folder(tmp_path)
    assert receive(SOURCE, tmp_path, Limits()) == (Received("bank.csv", BANK),)
    received = receive(NOTES, tmp_path, Limits())
    assert [r.name for r in received] == ["a.txt", "deep/b.txt"]


@pytest.mark.parametrize(
    ("change", "source", "code", "exit_code"),
    [
        (lambda root: (root / "bank.csv").unlink(), SOURCE, "source.missing", Exit.REFUSED),
        (
            lambda root: (root / "notes").rename(root / "other"),
            NOTES,
            "source.missing",
            Exit.REFUSED,
        ),
        (
            lambda root: ((root / "bank.csv").unlink(), (root / "bank.csv").mkdir()),
            SOURCE,
            "source.not_a_file",
            Exit.REFUSED,
        ),
        (
            lambda root: ((root / "bank.csv").unlink(), (root / "bank.csv").symlink_to("/nowhere")),
            SOURCE,
            "source.missing",
            Exit.REFUSED,
        ),
    ],
    ids=["file", "folder", "a folder as file", "dangling"],
)
def test_what_cannot_be_received(tmp_path, change, source, code, exit_code):
    change(folder(tmp_path))
    with pytest.raises(ExecutorError) as caught:
        receive(source, tmp_path, Limits())
    error = caught.value
    assert (error.code, error.exit_code) == (code, exit_code)
    assert str(tmp_path) in error.place
    assert f"'{source.name}'" in error.message or code == "source.not_a_file"


def test_bounds_of_size_and_number(tmp_path):
    folder(tmp_path)
    with pytest.raises(ExecutorError) as caught:
        receive(SOURCE, tmp_path, Limits(source_bytes_max=10))
    assert caught.value.code == "source.too_large"
    with pytest.raises(ExecutorError) as caught:
        receive(NOTES, tmp_path, Limits(documents_max=1))
    assert caught.value.code == "source.too_many_documents"


def test_a_file_that_is_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "bank.csv")
    with pytest.raises(ExecutorError) as caught:
        read_whole(tmp_path / "bank.csv", 100)
    assert caught.value.code == "source.not_a_file"


def test_only_a_change_is_pinned_again(tmp_path):
    folder(tmp_path)
    keeper = recorder()

    def pinned() -> tuple[bool, str]:
        (one,) = pin([SOURCE], root=tmp_path, recorder=keeper, limits=Limits())
        return one.fresh, str(one.manifest)

    fresh, first = pinned()
    assert fresh
    assert pinned() == (False, first)
    (tmp_path / "bank.csv").write_bytes(BANK.replace(b"1,50", b"1,51"))
    fresh, second = pinned()
    assert fresh
    assert second != first
    (tmp_path / "bank.csv").write_bytes(BANK)
    assert pinned() == (True, first)  # back to the old bytes: the newest is what counts
    assert [e.row.req for e in keeper.log.entries()] == [f"snapshot/bank/{n}" for n in (1, 2, 3)]
    found = newest(keeper.log, "bank")
    assert found is not None
    assert found.row.deterministic_output.address == Address.parse(first)
    assert newest(keeper.log, "gl") is None


def test_a_fault_in_one_source_pins_none(tmp_path):
    folder(tmp_path)
    (tmp_path / "notes" / "a.txt").unlink()
    keeper = recorder()
    with pytest.raises(ExecutorError):
        pin([SOURCE, NOTES], root=tmp_path, recorder=keeper, limits=Limits())
    assert keeper.log.size() == 0
    assert list(keeper.store.addresses()) == []
