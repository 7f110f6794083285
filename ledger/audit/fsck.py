"""The independent check behind `tieout verify`: everything re-derived, every finding returned.

It shares no code with what writes the ledger (row.py, canon.py, merkle.py, log.py, sqlite.py;
a test looks at its imports): it works from docs/FORMAT.md, with hashlib, json, sqlite3 and
blake3 alone. It never raises for damage. Do not run it in the process that has the ledger open
for writing: two SQLite libraries in one process drop each other's file locks.

What it can show is bounded (DESIGN §11): whoever can rewrite the whole file can make another
record that holds in itself; only a root kept elsewhere (`expect_root`) tells the two apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from blake3 import blake3

from tieout.ledger.audit.contents import (
    MANIFEST_MEDIA,
    REPORT_MEDIA,
    Document,
    check_report,
    manifest_addresses,
    read_document,
    report_addresses,
    stated_tables,
)
from tieout.ledger.audit.database import Raw, read_rows
from tieout.ledger.audit.findings import Finding, Level, Report
from tieout.ledger.audit.objects import LocalObjects, ObjectMissing, Objects, ObjectUnreadable
from tieout.ledger.audit.shapes import read_entry
from tieout.ledger.audit.tables import TABLE_MEDIA, TableClaim, check_table

__all__ = ["Finding", "Level", "LocalObjects", "Objects", "Report", "check", "check_rows"]

_TAMPERED: Final = "Compare with a copy; the record was changed after it was written."
_RESTORE: Final = "Put the object back from a copy of the store; its address names the bytes."


@dataclass(frozen=True, slots=True)
class _Claim:
    """What one entry says of one artifact. sha256 and size are None where it only names it."""

    index: int
    place: str
    sha256: str | None = None
    size: int | None = None
    media_type: str = ""
    table: TableClaim | None = None


def check(ledger: Path, objects: Objects, *, expect_root: tuple[int, str] | None = None) -> Report:
    """Check the ledger's file and every object it names.

    expect_root: a size and the root (64 hex digits) that the ledger had at that size, kept by
    someone earlier; shows rollback, truncation and a rewritten history.
    """
    audit = _Audit(expect_root)
    for raw in read_rows(ledger, audit.add):
        audit.take(raw)
    return audit.report(objects)


def check_rows(
    rows: Iterable[Raw], objects: Objects, *, expect_root: tuple[int, str] | None = None
) -> Report:
    """The same for rows that come from elsewhere: (index, entry, previous, sha256_hash)."""
    audit = _Audit(expect_root)
    for raw in rows:
        audit.take(raw)
    return audit.report(objects)


class _Tree:
    """The RFC 6962 root, counted like a binary number: equal neighbours are joined at once."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, bytes]] = []  # (leaves below, hash), largest first

    def add(self, leaf: bytes) -> None:
        count, node = 1, leaf
        while self._parts and self._parts[-1][0] == count:
            node = sha256(b"\x01" + self._parts.pop()[1] + node).digest()
            count *= 2
        self._parts.append((count, node))

    def root(self) -> bytes:
        if not self._parts:
            return sha256(b"").digest()
        parts = [node for _, node in self._parts]
        node = parts.pop()
        while parts:
            node = sha256(b"\x01" + parts.pop() + node).digest()
        return node


class _Audit:
    """One pass over the entries, then one over the objects."""

    def __init__(self, expect_root: tuple[int, str] | None) -> None:
        self.findings: list[Finding] = []
        self.entries = 0
        self.objects_read = 0
        self.tree = _Tree()
        self.last_hash = bytes(32)
        self._derived = bytes(32)
        self._expected_index = 0
        self._expect = expect_root
        self._requests: dict[str, int] = {}
        self._recorded: dict[str, int] = {}  # address: the first entry that recorded it
        self._claims: dict[str, list[_Claim]] = {}
        self._documents: list[Document] = []
        self._reading: list[tuple[int, str, str, bool]] = []
        self._check_expected()

    def add(self, finding: Finding) -> None:
        self.findings.append(finding)

    def take(self, raw: Raw) -> None:
        """Check the next row of the file."""
        idx, entry, previous, stored = raw
        index = idx if isinstance(idx, int) else self._expected_index
        if idx != self._expected_index:
            wanted = self._expected_index
            self._broken("index.gap", f"entry {wanted} should come here", index=index)
        self._expected_index = index + 1
        if not (
            isinstance(entry, bytes) and isinstance(previous, bytes) and isinstance(stored, bytes)
        ):
            self._broken("entry.malformed", "a column does not hold bytes", index=index)
            entry, previous, stored = _bytes(entry), _bytes(previous), _bytes(stored)
        self._check_chain(index, entry, previous, stored)
        self.entries += 1
        self._check_expected()
        document, problems = read_entry(entry)
        for problem in problems:
            self._broken("entry.malformed", problem, index=index)
        if document is not None:
            self._check_request(index, document)
            self._check_references(index, document)

    def report(self, objects: Objects) -> Report:
        """After the last entry: check what the entries name, and say all that was found."""
        if self._expect is not None and self._expect[0] > self.entries:
            self._broken(
                "log.shorter",
                f"the ledger had {self._expect[0]} entries once and has {self.entries} now",
            )
        self._check_objects(objects)
        return Report(
            findings=tuple(self.findings),
            entries=self.entries,
            objects=self.objects_read,
            root=self.tree.root().hex(),
            last_hash=self.last_hash.hex() if self.entries else "",
        )

    def _check_objects(self, objects: Objects) -> None:
        """Read every object that an entry names, then look for those that none names."""
        self._check_documents(objects)
        self._check_readings()
        for address in self._claims:
            self._check_object(objects, address)
        try:
            for address in objects.addresses():
                if address not in self._claims:
                    self._notice("object.orphan", "no entry names this object", address=address)
            for name in objects.strangers():
                self._notice("store.stranger", f"{name[:120]!r} in the store is no object")
        except ObjectUnreadable as error:
            message = f"the store's objects cannot be listed: {error!s:.200}"
            self.add(
                Finding(Level.UNCHECKED, "store.unlisted", message, "Check that it is reachable.")
            )

    def _check_chain(self, index: int, entry: bytes, previous: bytes, stored: bytes) -> None:
        leaf = sha256(b"\x00" + entry).digest()
        derived = sha256(b"\x02" + previous + leaf).digest()
        if derived != stored:
            self._broken(
                "chain.hash", "sha256_hash is not the hash of previous and entry", index=index
            )
        # Either the stored or the re-derived hash of the row before: one changed byte there is
        # then named once, where it is.
        if previous not in (self.last_hash, self._derived):
            self._broken(
                "chain.previous", "previous is not the hash of the entry before", index=index
            )
        self.last_hash, self._derived = stored, derived
        self.tree.add(leaf)

    def _check_expected(self) -> None:
        if self._expect is None or self._expect[0] != self.entries:
            return
        root = self.tree.root().hex()
        if root != self._expect[1].lower():
            self._broken(
                "root.differs",
                f"the root over the first {self.entries} entries is {root}, not the one kept",
            )

    def _check_request(self, index: int, document: dict[str, object]) -> None:
        req = str(document["req"])
        first = self._requests.setdefault(req, index)
        if first != index:
            self._broken("req.repeated", f"entry {first} has the same req", index=index)

    def _check_references(self, index: int, document: dict[str, object]) -> None:
        """Note what the entry names, what it stored, and what it read without storing it."""
        made = list(_artifacts(index, document))
        here = {address for address, claim in made if claim.place.startswith("attachments")}
        shown = document["kind"] == "model_request"
        for place, address in _named(document):
            self._claims.setdefault(address, []).append(_Claim(index, place))
            if place.startswith("inputs") and (shown or address not in here):
                self._reading.append((index, place, address, shown))
        for address, claim in made:
            self._claims.setdefault(address, []).append(claim)
            self._recorded.setdefault(address, index)
            if claim.media_type in (MANIFEST_MEDIA, REPORT_MEDIA):
                self._documents.append(Document(index, address, claim.media_type))

    def _follow_manifest(self, manifest: dict[str, object], source: Document) -> None:
        """What a manifest names was recorded with it, and must be there as it says."""
        for address in manifest_addresses(manifest):
            place = "named by its manifest"
            self._claims.setdefault(address, []).append(_Claim(source.index, place))
            first = self._recorded.get(address, source.index)
            self._recorded[address] = min(first, source.index)
        for address, table in stated_tables(manifest):
            claim = _Claim(source.index, "the manifest", table=table)
            self._claims.setdefault(address, []).append(claim)

    def _check_documents(self, objects: Objects) -> None:
        """Follow every manifest first, then compare every report with what it cites."""
        reports: list[tuple[dict[str, object], Document]] = []
        for source in self._documents:
            try:
                found = read_document(objects.get(source.address))
            except (ObjectMissing, ObjectUnreadable):
                continue  # found again, and said, where objects are checked
            if found is None:
                self.add(source.finding("document.malformed", "it is not a JSON object"))
            elif source.media_type == MANIFEST_MEDIA:
                self._follow_manifest(found, source)
            else:
                reports.append((found, source))
        for found, source in reports:
            for address in sorted(set(report_addresses(found))):
                if self._recorded.get(address, source.index) >= source.index:
                    message = f"it names {address}, which no earlier entry recorded"
                    self.add(source.finding("report.unrecorded", message))
            self.findings.extend(check_report(found, objects.get, source))

    def _check_readings(self) -> None:
        """What a step read must have been recorded before it (DESIGN §1: recorded, then shown)."""
        for index, place, address, shown in self._reading:
            if self._recorded.get(address, index) < index:
                continue
            code, what = "input.unrecorded", "read"
            if shown:
                code, what = "request.unrecorded", "shown to the model"
            message = f"{place}: {what}, and no earlier entry recorded it"
            self._broken(code, message, index=index, address=address)

    def _check_object(self, objects: Objects, address: str) -> None:
        claims = self._claims[address]
        first = claims[0].index
        try:
            payload = objects.get(address)
        except ObjectMissing:
            self._object("object.missing", "the object is not in the store", first, address)
            return
        except ObjectUnreadable as error:
            message = f"the object cannot be read: {error!s:.200}"
            self._object("object.unreadable", message, first, address)
            return
        self.objects_read += 1
        if f"blake3:{blake3(payload).hexdigest()}" != address:
            self._object("object.corrupt", "the bytes are not those of its address", first, address)
            return
        digest = sha256(payload).hexdigest()
        for claim in claims:
            if claim.sha256 is not None and claim.sha256 != digest:
                message = f"{claim.place}: its SHA-256 is {digest}"
                self._object("object.sha256", message, claim.index, address)
            if claim.size is not None and claim.size != len(payload):
                message = f"{claim.place}: it has {len(payload)} bytes, not {claim.size}"
                self._object("object.size", message, claim.index, address)
            if claim.table is not None:
                for finding in check_table(payload, claim.table, claim.index, address):
                    self.add(finding)

    def _object(self, code: str, message: str, index: int, address: str) -> None:
        self.add(Finding(Level.BROKEN, code, message, _RESTORE, index=index, address=address))

    def _broken(
        self, code: str, message: str, *, index: int | None = None, address: str | None = None
    ) -> None:
        self.add(Finding(Level.BROKEN, code, message, _TAMPERED, index=index, address=address))

    def _notice(self, code: str, message: str, *, address: str | None = None) -> None:
        remedy = "Nothing is lost; a step that was cut off before it was recorded leaves such."
        self.add(Finding(Level.NOTICE, code, message, remedy, address=address))


def _artifacts(index: int, document: dict[str, object]) -> Iterator[tuple[str, _Claim]]:
    """What the step stored, with what the entry says of it; the shape was checked."""
    output = document["deterministic_output"]
    if isinstance(output, dict):
        table = TableClaim.of(output) if output["media_type"] == TABLE_MEDIA else None
        claim = _Claim(
            index,
            "deterministic_output",
            output["sha256"],
            output["size"],
            output["media_type"],
            table,
        )
        yield output["address"], claim
    attachments = document["attachments"]
    assert isinstance(attachments, list)
    for number, item in enumerate(attachments):
        place = f"attachments[{number}]"
        yield (
            item["address"],
            _Claim(index, place, item["sha256"], item["size"], item["media_type"]),
        )


def _named(document: dict[str, object]) -> Iterator[tuple[str, str]]:
    """(place, address) of what the entry only names."""
    inputs = document["inputs"]
    assert isinstance(inputs, list)
    for number, item in enumerate(inputs):
        yield f"inputs[{number}]", item["address"]
    if isinstance(document["executed"], str):
        yield "executed", document["executed"]
    asked = document["raw_llm_instruction"]
    if isinstance(asked, dict):
        yield "raw_llm_instruction", asked["address"]


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""
