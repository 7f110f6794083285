"""The independent check of objects and claims, and its independence."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import socket
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from support.audit_command import audit
from support.ledger_rows import World, broken, codes, raw_of, row

from tieout.artifacts.address import Address
from tieout.artifacts.memory import MemoryStore
from tieout.artifacts.store import RetentionClass
from tieout.ledger.audit.findings import Level, Report
from tieout.ledger.audit.fsck import check_rows
from tieout.ledger.audit.objects import LocalObjects, StoreObjects
from tieout.ledger.audit.tables import TABLE_MEDIA
from tieout.ledger.log import MemoryLog
from tieout.ledger.row import (
    Attachment,
    ControlTotal,
    Input,
    Kind,
    LedgerRow,
    OutputRef,
)

SIZE = 8

# --- objects --------------------------------------------------------------------------------


def test_one_flipped_bit_in_any_object_is_found(world: World) -> None:
    for address in list(world.store.addresses()):
        path = world.path(address)
        whole = path.read_bytes()
        for position in {0, len(whole) // 2, len(whole) - 1}:
            changed = bytearray(whole)
            changed[position] ^= 1 << position % 8
            rewrite(path, bytes(changed))
            report = world.verify()
            assert codes(report) == ["object.corrupt"]
            assert report.findings[0].address == str(address)
        rewrite(path, whole)
    assert world.verify().findings == ()


def test_an_object_missing_swapped_emptied_or_replaced_by_a_folder(world: World) -> None:
    first, second = list(world.store.addresses())[:2]
    one, two = world.path(first).read_bytes(), world.path(second).read_bytes()
    world.path(first).unlink()
    report = world.verify()
    assert [(item.code, item.address) for item in report.findings] == [
        ("object.missing", str(first))
    ]
    world.path(first).mkdir()
    assert codes(world.verify()) == ["object.unreadable"]
    world.path(first).rmdir()
    rewrite(world.path(first), b"")
    assert codes(world.verify()) == ["object.corrupt"]
    rewrite(world.path(first), two)
    rewrite(world.path(second), one)
    assert codes(world.verify()) == ["object.corrupt", "object.corrupt"]


def socket_at(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:  # its name is longer than a socket's may be
        here = os.open(path.parent, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{here}/s")
        os.close(here)
    (path.parent / "s").rename(path)


NO_FILES = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a socket": socket_at,
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to its own bytes": lambda path: path.symlink_to(path.parent.parent / "elsewhere"),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("put", list(NO_FILES.values()), ids=list(NO_FILES))
def test_what_is_no_file_in_the_place_of_an_object_is_not_read(world: World, put) -> None:
    first = next(iter(world.store.addresses()))
    path = world.path(first)
    path.rename(path.parent.parent / "elsewhere")
    put(path)
    report = world.verify()
    assert [(f.code, f.address) for f in report.findings if f.level is Level.BROKEN] == [
        ("object.unreadable", str(first))
    ]
    assert codes(report)[1:] == ["store.stranger"]


def test_a_hard_link_is_a_file_like_any_other(world: World) -> None:
    first = next(iter(world.store.addresses()))
    os.link(world.path(first), world.folder.parent / "twin")
    assert world.verify().findings == ()


def test_what_no_entry_names_is_a_notice_that_says_both_possibilities(world: World) -> None:
    extra = world.store.put(b"left by a step that was cut off")
    (world.folder / "objects" / "blake3" / "notes.txt").write_text("hm")
    (world.path(extra.address).parent / "short").write_text("hm")
    (world.folder / "readme").write_text("hm")
    (world.folder / "objects" / "sha256").mkdir()
    report = world.verify()
    assert report.holds
    assert codes(report) == ["object.orphan"] + ["store.stranger"] * 4
    assert report.findings[0].address == str(extra.address)
    for finding, name in zip(
        report.findings[1:], ("readme", "objects/sha256", "short", "objects/blake3/notes.txt"),
        strict=True,
    ):  # fmt: skip
        assert name in finding.message
    for finding in report.findings:
        assert "before it was recorded" in finding.remedy
        assert "--expect" in finding.remedy


def test_a_cut_off_end_leaves_its_objects_as_orphans(world: World) -> None:
    world.rewrite(f"DELETE FROM entry WHERE idx >= {SIZE - 1}")
    report = world.verify()
    assert report.holds  # in itself; the orphan's text says what else it may mean
    assert codes(report) == ["object.orphan"]
    assert "ledger whose end was cut off" in str(report.findings[0])


def test_an_object_that_may_be_discarded_and_is_missing_is_a_notice() -> None:
    store, gone = MemoryStore(), b"a draft"
    draft = Attachment("a", Address.of(gone), sha256(gone).hexdigest(), 7, "text/plain",
                       RetentionClass.DISCARD)  # fmt: skip
    report = claims(store, row(0, attachments=(draft,)))
    assert [(item.level, item.code) for item in report.findings] == [
        (Level.NOTICE, "object.discarded")
    ]
    kept = dataclasses.replace(draft, retention=RetentionClass.RETAIN)
    report = claims(store, row(0, attachments=(draft,)), row(1, attachments=(kept,)))
    assert broken(report) == [("object.missing", 0)]


def test_no_store_at_all(world: World) -> None:
    shutil.rmtree(world.folder)
    report = world.verify()
    assert set(codes(report)) == {"object.missing"}
    assert len(report.findings) == 9


def rewrite(path: Path, payload: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(payload)


# --- claims ---------------------------------------------------------------------------------


def claims(store: MemoryStore, *rows: LedgerRow) -> Report:
    log = MemoryLog()
    log.append(rows)
    raw = [(e.index, e.entry, e.previous, e.sha256_hash) for e in log.entries()]
    return check_rows(raw, StoreObjects(store))


def output(world: World, **changes) -> OutputRef:
    fields = {name: getattr(world.table, name) for name in OutputRef.__dataclass_fields__}
    return OutputRef(**(fields | changes))


FALSE = {
    "its SHA-256": ({"sha256": "0" * 64}, "object.sha256"),
    "its size": ({"size": 1}, "object.size"),
    "its digest": ({"content_digest": "tieout.content/1:" + "0" * 64}, "table.digest"),
    "its digest's name": ({"content_digest": "tieout.content/2:" + "0" * 64}, "table.digest"),
    "its rows": ({"row_count": 4}, "table.rows"),
    "its total": ({"control_totals": (ControlTotal("amount", "-3"),)}, "table.totals"),
    "no total": ({"control_totals": ()}, "table.totals"),
    "another column's": ({"control_totals": (ControlTotal("line_id", "-2"),)}, "table.totals"),
}


@pytest.mark.parametrize(("changes", "code"), list(FALSE.values()), ids=list(FALSE))
def test_a_false_word_about_a_table_is_found(world: World, changes, code) -> None:
    made = row(0, deterministic_output=output(world, **changes))
    report = check_rows(raw_of(made), LocalObjects(world.folder))
    assert (code, 0) in broken(report)


def test_a_table_without_a_digest_is_a_warning(world: World) -> None:
    made = row(0, deterministic_output=output(world, content_digest=None))
    report = check_rows(raw_of(made), LocalObjects(world.folder))
    assert report.holds
    assert "table.no_digest" in codes(report)


def test_bytes_that_are_no_table_are_found(world: World) -> None:
    store = MemoryStore()
    for payload in (b"", b"no table", world.store.get(world.table.address)[:-30]):
        stored = store.put(payload)
        ref = OutputRef(stored.address, stored.sha256, stored.size, TABLE_MEDIA)
        report = claims(store, row(0, deterministic_output=ref))
        assert ("table.malformed", 0) in broken(report)


def test_each_word_about_an_attachment_is_checked(world: World) -> None:
    (first,) = world.rows[1].attachments
    for changes in ({"sha256": "1" * 64}, {"size": 7}):
        fields = {name: getattr(first, name) for name in Attachment.__dataclass_fields__}
        made = row(0, attachments=(Attachment(**(fields | changes)),))
        found = broken(check_rows(raw_of(made), LocalObjects(world.folder)))
        assert found == [("object." + next(iter(changes)), 0)]


def test_what_is_named_must_be_there() -> None:
    ghost = Address.of(b"never stored")
    for changes in ({"executed": ghost}, {"raw_llm_instruction": ghost}):
        report = claims(MemoryStore(), row(0, **changes))
        assert broken(report) == [("object.missing", 0)]


def test_an_input_must_have_been_recorded_before(world: World) -> None:
    result, table = Input("x", world.result.address), Input("y", world.table.address)
    first = row(0, deterministic_output=world.table)
    objects = LocalObjects(world.folder)

    def found(*rows: LedgerRow) -> list[tuple[str, int | None]]:
        return broken(check_rows(raw_of(*rows), objects))

    assert found(first, row(1, inputs=(table,), deterministic_output=world.result)) == []
    later = row(1, inputs=(result,)), row(2, deterministic_output=world.result)
    assert found(first, *later) == [("input.unrecorded", 1)]
    itself = row(1, inputs=(result,), deterministic_output=world.result)
    assert found(first, itself) == [("input.unrecorded", 1)]
    seen = world.rows[5].attachments[0]
    attached = row(1, inputs=(Input("own", seen.address),), attachments=(seen,))
    assert found(first, attached) == []


def test_what_a_model_was_shown_must_have_been_recorded_before(world: World) -> None:
    seen = world.rows[5].attachments[0]
    shown = {"kind": Kind.MODEL_REQUEST, "inputs": (Input("seen", seen.address),)}
    objects = LocalObjects(world.folder)
    before = [row(0, attachments=(seen,)), row(1, **shown)]
    assert broken(check_rows(raw_of(*before), objects)) == []
    after = [row(0, **shown), row(1, attachments=(seen,))]
    assert broken(check_rows(raw_of(*after), objects)) == [("request.unrecorded", 0)]
    beside = [row(0, **shown, attachments=(seen,))]
    assert broken(check_rows(raw_of(*beside), objects)) == [("request.unrecorded", 0)]


def test_a_repeated_req_is_found(world: World) -> None:
    first, second = raw_of(row(0))[0], raw_of(row(1, req="req-0"))[0]
    link = sha256(b"\x02" + first[3] + sha256(b"\x00" + second[1]).digest()).digest()
    report = check_rows([first, (1, second[1], first[3], link)], LocalObjects(world.folder))
    assert broken(report) == [("req.repeated", 1)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"attempt":1', b'"attempt":true'),
        (b'"attempt":1', b'"attempt":1.0'),
        (b'"attempt":1', b'"attempt": 1'),
        (b'"attempt":1', b'"attempt":9007199254740992'),
        (b'"attempt":1,', b""),
        (b'"attempt":1', b'"attempt":1,"attempt":1'),
        (b'"attempt":1', b'"attempt":1,"attempt2":1'),
        (b'"kind":"sql"', b'"kind":"thought"'),
        (b'"req":"req-0"', b'"req":""'),
        (b'"req":"req-0"', b'"req":"\\ud800"'),
        (b'"req":"req-0"', b'"req":"\\u0000"'),
        (b"2026-06-30", b"2026-06-31"),
        (b"tieout.entry/1", b"tieout.entry/2"),
        (b'"status":"done"', b'"status":null'),
    ],
)
def test_an_entry_that_is_none_is_found_though_its_hash_is_right(old, new) -> None:
    payload = row(0).entry()
    assert payload.count(old) == 1
    bent = payload.replace(old, new)
    link = sha256(b"\x02" + bytes(32) + sha256(b"\x00" + bent).digest()).digest()
    report = check_rows([(0, bent, bytes(32), link)], StoreObjects(MemoryStore()))
    assert set(broken(report)) == {("entry.malformed", 0)}


# --- independence ---------------------------------------------------------------------------

WRITERS = ["row", "refs", "reading", "fields", "canon", "merkle", "log", "sqlite", "sqlite_file"]


def modules(program: str) -> set[str]:
    command = [sys.executable, "-c", f"import sys; {program}; print(*sys.modules)"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_the_check_shares_no_code_with_the_writer() -> None:
    loaded = modules("import tieout.ledger.audit.fsck, tieout.ledger.audit.__main__")
    assert not loaded & {f"tieout.ledger.{name}" for name in WRITERS}
    assert "tieout.artifacts.table" not in loaded
    assert not loaded & {"apsw", "pyarrow", "pydantic", "duckdb", "boto3", "anthropic", "sqlglot"}
    assert {f"tieout.ledger.{name}" for name in WRITERS} <= modules(
        "import tieout.ledger.sqlite, tieout.ledger.reading"
    )


def test_the_command_says_what_it_found(world: World) -> None:
    places = ("--ledger", world.ledger, "--store", world.folder)
    result = audit(*places, "--json", "--expect", f"{SIZE}:{world.root}")
    assert (result.returncode, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert (document["holds"], document["entries"], document["findings"]) == (True, SIZE, [])
    result = audit(*places, "--expect", f"{SIZE}:{'0' * 64}")
    assert result.returncode == 1
    assert "root.differs" in result.stdout
    assert "does not hold: 1 broken" in result.stdout
    assert audit(*places, "--expect", "8").returncode == 2
    assert audit("--ledger", world.ledger).returncode == 2


def test_without_pyarrow_tables_are_unchecked_and_all_else_is_checked(world: World) -> None:
    places = ("--ledger", world.ledger, "--store", world.folder, "--json")
    result = audit(*places, before="sys.modules['pyarrow'] = None")
    document = json.loads(result.stdout)
    assert result.returncode == 0
    assert [(item["level"], item["code"]) for item in document["findings"]] == [
        ("unchecked", "table.unchecked")
    ] * 2
    assert document["objects"] == 9
    said = audit(*places[:-1], before="sys.modules['pyarrow'] = None").stdout.splitlines()
    assert len(said) == 2, "one line for all of a kind"
    assert said[0].startswith("unchecked: table.unchecked: 2 times, first ")
    assert said[1].startswith(
        "The record holds as far as it was checked: 2 things were not, "
        "install pyarrow to check them. "
    )
