"""Everything that a record names, looked up in the store: documents, readings, then objects.

One object that cannot be read is said once. What then cannot be concluded (a manifest names what
a snapshot recorded) is left out and said with it: an accusation needs whole evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tieout.ledger.audit.contents import (
    MANIFEST_MEDIA,
    REPORT_MEDIA,
    Document,
    batch_addresses,
    manifest_addresses,
    read_document,
    report_addresses,
)
from tieout.ledger.audit.evidence import Evidence, TooLarge, Unavailable, Verdict
from tieout.ledger.audit.findings import Finding, Level
from tieout.ledger.audit.manifests import check_manifest
from tieout.ledger.audit.objects import Objects, ObjectUnreadable
from tieout.ledger.audit.record import Claim, Record
from tieout.ledger.audit.reports import Checked, Cited, check_batch, check_report
from tieout.ledger.audit.tables import check_table, unchecked

_TAMPERED: Final = "Compare with a copy; the record was changed after it was written."
_RESTORE: Final = "Put the object back from a copy of the store; its address names the bytes."
_LEFT: Final = (
    "A step cut off before it was recorded leaves such; so does a ledger whose end was cut off: "
    "compare with a kept root (--expect)."
)
_UNFOLLOWED: Final = (
    "; it is a snapshot's manifest, so these were not checked: the objects that it alone names, "
    "whether later entries and reports read only what was recorded, and which objects of the "
    "store belong to no entry"
)


class Inventory:
    """One pass over the store, after the last entry was taken."""

    def __init__(self, record: Record, objects: Objects) -> None:
        self._record = record
        self._objects = objects
        self._evidence = Evidence(objects)
        self._unfollowed: set[str] = set()
        self._left_out = 0

    @property
    def objects_read(self) -> int:
        """How many objects were read and hashed."""
        return self._evidence.read

    def findings(self) -> Iterator[Finding]:
        """Everything found."""
        unread_entries = bool(self._record.holes)
        for address, claims in self._record.claims.items():
            self._state(address, claims)
        yield from self._check_documents()
        yield from self._check_readings()
        for address, claims in self._record.claims.items():
            yield from self._check_object(address, claims)
        yield from self._check_listing()
        if unread_entries and self._left_out:
            yield Finding(
                Level.UNCHECKED,
                "record.incomplete",
                f"there may be entries that cannot be read: whether they recorded "
                f"{self._left_out} things that others read, or that lie in the store, was not "
                "checked",
                "Put back a copy of the ledger and check again.",
            )

    def _state(self, address: str, claims: list[Claim]) -> None:
        for claim in claims:
            if claim.size is not None:
                self._evidence.state(address, claim.size)

    # --- documents ---

    def _check_documents(self) -> Iterator[Finding]:
        """Follow every manifest first, then compare each document with what it speaks of."""
        opened: list[tuple[Document, Checked]] = []
        reports: dict[str, Checked | None] = {}
        for source in self._record.documents:
            found, problems, findings = self._opened(source)
            yield from findings
            self._follow(source, found)
            if source.media_type == REPORT_MEDIA:
                reports[source.address] = None if problems else found
            if not problems:
                opened.append((source, found))
        cited = Cited(self._evidence)
        for source, document in opened:
            if source.media_type == MANIFEST_MEDIA:
                yield from check_manifest(document, self._evidence, source)
                continue
            named = _named(source, document)
            yield from self._check_named(source, named)
            if source.media_type == REPORT_MEDIA:
                yield from check_report(document, cited, source)
            else:  # those that nothing recorded were said just now
                ghosts = dict.fromkeys(named - self._record.recorded.keys())
                yield from check_batch(document, ghosts | reports, source)

    def _opened(self, source: Document) -> tuple[dict[str, object], bool, list[Finding]]:
        """The document, whether anything is wrong with it, and what was found."""
        is_manifest = source.media_type == MANIFEST_MEDIA
        findings: list[Finding] = []
        found: dict[str, object] = {}
        problems: list[str] = []
        readable = True
        try:
            found, problems = read_document(self._evidence.load(source.address), source.media_type)
        except TooLarge as error:
            readable = False
            message = f"it was not looked into: {error}" + (_UNFOLLOWED if is_manifest else "")
            remedy = "Check again on a larger machine."
            findings.append(source.unchecked("document.unchecked", message, remedy))
        except Unavailable:
            readable = False  # said where the object itself is checked
        if is_manifest and (problems or not readable):
            self._record.holes.append(source.index)
            self._unfollowed.add(source.address)
        for number, problem in enumerate(problems):
            more = _UNFOLLOWED if is_manifest and number == 0 else ""
            findings.append(source.finding("document.malformed", problem + more))
        return found, bool(problems) or not readable, findings

    def _follow(self, source: Document, found: dict[str, object]) -> None:
        """What it names must be there, even where no entry names it."""
        if source.media_type == MANIFEST_MEDIA:
            self._record.follow(found, source)
            for address in manifest_addresses(found):
                self._state(address, self._record.claims[address])
            return
        for address in sorted(_named(source, found)):
            self._record.name(address, Claim(source.index, "named by its document"))

    def _check_named(self, source: Document, named: set[str]) -> Iterator[Finding]:
        """A report rests on what was recorded before it, a run's list on its reports."""
        for address in sorted(named):
            if self._record.is_recorded_before(source.index, address):
                continue
            if self._record.is_unknown_before(source.index):
                self._left_out += 1
                continue
            message = f"it names {address}, which no earlier entry recorded"
            yield source.finding("report.unrecorded", message)

    def _check_readings(self) -> Iterator[Finding]:
        """What a step read must have been recorded before it (DESIGN §1: recorded, then shown)."""
        for reading in self._record.readings:
            if self._record.is_recorded_before(reading.index, reading.address):
                continue
            if self._record.is_unknown_before(reading.index):
                self._left_out += 1
                continue
            code, what = "input.unrecorded", "read"
            if reading.shown:
                code, what = "request.unrecorded", "shown to the model"
            message = f"{reading.place}: {what}, and no earlier entry recorded it"
            yield Finding(Level.BROKEN, code, message, _TAMPERED, reading.index, reading.address)

    # --- objects ---

    def _check_object(self, address: str, claims: list[Claim]) -> Iterator[Finding]:
        tables = [(claim.index, claim.table) for claim in claims if claim.table is not None]
        payload: bytes | None = None
        why = ""
        if tables:
            try:
                payload = self._evidence.load(address)
            except Unavailable as error:
                why = str(error)
        verdict = self._evidence.verdict(address)
        if verdict.code:
            yield self._absent(address, claims, verdict)
            return
        for claim in claims:
            if claim.sha256 is not None and claim.sha256 != verdict.sha256:
                message = f"{claim.place}: its SHA-256 is {verdict.sha256}"
                yield _broken("object.sha256", message, claim.index, address)
            if claim.size is not None and claim.size != verdict.size:
                message = f"{claim.place}: it has {verdict.size} bytes, not {claim.size}"
                yield _broken("object.size", message, claim.index, address)
        if payload is not None:
            yield from check_table(payload, tables, address)
        elif tables:
            remedy = "Check again on a larger machine."
            yield unchecked(
                f"nothing in it was re-derived: {why}", remedy, claims[0].index, address
            )

    def _absent(self, address: str, claims: list[Claim], verdict: Verdict) -> Finding:
        classes = {claim.retention for claim in claims if claim.retention}
        if verdict.code == "object.missing" and classes == {"discard"}:
            message = "the object is not in the store; its class is discard"
            remedy = "Nothing needs to be done if policy removed it; a replay makes it anew."
            index = claims[0].index
            return Finding(Level.NOTICE, "object.discarded", message, remedy, index, address)
        more = _UNFOLLOWED if address in self._unfollowed else ""
        return _broken(verdict.code, verdict.message + more, claims[0].index, address)

    def _check_listing(self) -> Iterator[Finding]:
        """What lies in the store and is named by nothing."""
        try:
            for address in self._objects.addresses():
                if address in self._record.claims:
                    continue
                if self._record.holes:
                    self._left_out += 1
                    continue
                message = "no entry names this object"
                yield Finding(Level.NOTICE, "object.orphan", message, _LEFT, None, address)
            for name in self._objects.strangers():
                message = f"{name[:120]!r} in the store is no object"
                yield Finding(Level.NOTICE, "store.stranger", message, _LEFT)
        except ObjectUnreadable as error:
            message = f"the store's objects cannot be listed: {error!s:.200}"
            remedy = "Check that it is reachable."
            yield Finding(Level.UNCHECKED, "store.unlisted", message, remedy)


def _named(source: Document, document: Checked) -> set[str]:
    """The addresses in a report or in a run's list of reports."""
    listed = report_addresses if source.media_type == REPORT_MEDIA else batch_addresses
    return set(listed(document))


def _broken(code: str, message: str, index: int, address: str) -> Finding:
    return Finding(Level.BROKEN, code, message, _RESTORE, index, address)
