"""The independent check of large objects: in pages, and only as large as the record says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.audit_command import audit
from support.ledger_rows import World, broken, raw_of, row

from tieout.ledger.audit import evidence
from tieout.ledger.audit.contents import MANIFEST_MEDIA
from tieout.ledger.audit.findings import Level
from tieout.ledger.audit.fsck import check_rows
from tieout.ledger.audit.objects import PAGE_BYTES, LocalObjects
from tieout.ledger.row import Attachment, OutputRef

MEMORY_BYTES = 400 * 1024**2
CAPPED = (
    f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({MEMORY_BYTES},) * 2);"
    " sys.modules['pyarrow'] = None"
)


def sparse(path: Path, size: int) -> None:
    path.unlink()
    with path.open("wb") as stream:
        stream.truncate(size)


def test_a_huge_file_in_the_place_of_an_object_is_not_read(world: World) -> None:
    """5 GiB of nothing, in a process that may have 400 MiB; of a raw file and of a table."""
    raw = world.rows[1].attachments[0].address
    for address in (raw, world.table.address):
        sparse(world.path(address), 5 * 1024**3)
    places = ("--ledger", world.ledger, "--store", world.folder, "--json")
    result = audit(*places, before=CAPPED)
    assert (result.returncode, result.stderr) == (1, "")
    found = [item for item in json.loads(result.stdout)["findings"] if item["level"] == "broken"]
    assert {item["address"] for item in found} == {str(raw), str(world.table.address)}
    assert {item["code"] for item in found} == {"object.size"}
    assert all("not read" in item["message"] for item in found)


class Counted(LocalObjects):
    """Says how many bytes were asked for, and in how large pieces."""

    largest = whole = 0

    def pages(self, address: str) -> Iterator[bytes]:
        for page in super().pages(address):
            self.largest = max(self.largest, len(page))
            yield page

    def get(self, address: str) -> bytes:
        payload = super().get(address)
        self.whole = max(self.whole, len(payload))
        return payload


def test_a_large_object_is_hashed_in_pages(world: World) -> None:
    stored = world.store.put(bytes(5 * PAGE_BYTES + 1))
    large = Attachment("raw", stored.address, stored.sha256, stored.size, "text/csv")
    objects = Counted(world.folder)
    rows = [*world.rows, row(9, attachments=(large,)), row(10, executed=stored.address)]
    assert check_rows(raw_of(*rows), objects).findings == ()
    assert objects.largest == PAGE_BYTES
    assert 0 < objects.whole < PAGE_BYTES  # the tables


def test_what_states_no_size_is_hashed_in_pages_and_not_loaded(world: World, monkeypatch) -> None:
    """A text that a manifest names, or a table of another store: no entry says how large."""
    monkeypatch.setattr(evidence, "UNSTATED_BYTES_MAX", 100)
    stored = world.store.put(b"x" * 101)
    judge = evidence.Evidence(LocalObjects(world.folder))
    with pytest.raises(evidence.TooLarge):
        judge.load(str(stored.address))
    assert judge.verdict(str(stored.address)).code == ""
    judge.state(str(stored.address), 101)
    assert judge.load(str(stored.address)) == b"x" * 101
    told = evidence.Evidence(LocalObjects(world.folder))
    told.state(str(stored.address), 100)
    assert told.verdict(str(stored.address)).code == "object.size"
    assert told.read == 0
    with pytest.raises(evidence.Unavailable):
        told.load(str(stored.address))


def test_a_document_too_large_to_load_is_unchecked(world: World, monkeypatch) -> None:
    manifest = world.store.put(b"{}" + b" " * 200)
    ref = OutputRef(manifest.address, manifest.sha256, 7, MANIFEST_MEDIA)
    monkeypatch.setattr(evidence, "UNSTATED_BYTES_MAX", 100)
    rows = [row(0, deterministic_output=ref), *world.rows[1:]]
    report = check_rows(raw_of(*rows), LocalObjects(world.folder))
    assert broken(report) == [("object.size", 0)]
    assert ("document.unchecked", Level.UNCHECKED) in [(f.code, f.level) for f in report.findings]
