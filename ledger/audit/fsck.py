"""The independent check behind `tieout verify`: everything re-derived, every finding returned.

It shares no code with what writes the ledger (row.py, canon.py, merkle.py, log.py, sqlite.py;
a test looks at its imports): it works from docs/FORMAT.md, with hashlib, json, sqlite3 and
blake3 alone. It never raises for damage. Do not run it in the process that has the ledger open
for writing: two SQLite libraries in one process drop each other's file locks.

What it can show is bounded (DESIGN §11): whoever can rewrite the whole file can make another
record that holds in itself; only a root kept elsewhere (`expect_root`) tells the two apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

from tieout.ledger.audit.database import UNREAD, Raw, read_rows
from tieout.ledger.audit.findings import Finding, Level, Report
from tieout.ledger.audit.inventory import Inventory
from tieout.ledger.audit.objects import LocalObjects, Objects
from tieout.ledger.audit.record import Record
from tieout.ledger.audit.shapes import read_entry

__all__ = ["Finding", "Level", "LocalObjects", "Objects", "Report", "check", "check_rows"]

_TAMPERED: Final = "Compare with a copy; the record was changed after it was written."
_CLOCK: Final = (
    "The order of the entries is proved by their hashes, the times are the writer's word: "
    "see whether its clock was set back."
)


def check(ledger: Path, objects: Objects, *, expect_root: tuple[int, str] | None = None) -> Report:
    """Check the ledger's file and every object it names.

    expect_root: a size and the root (64 hex digits) that the ledger had at that size, kept by
    someone earlier; shows rollback, truncation and a rewritten history.
    """
    audit = _Audit(expect_root)
    for raw in read_rows(ledger, audit.add):
        audit.take(raw)
    audit.note_unread()
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
        self.tree = _Tree()
        self.last_hash = bytes(32)
        self._derived = bytes(32)
        self._expected_index = 0
        self._expect = expect_root
        self._requests: dict[str, int] = {}
        self._record = Record()
        self._time = ""
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
        if document is None:
            self._record.holes.append(index)
        else:
            self._check_request(index, document)
            self._check_time(index, str(document["execution_timestamp"]))
            self._record.take(index, document)

    def note_unread(self) -> None:
        """A file that cannot be read to its end may hold entries that name what seems nobody's."""
        if any(finding.code in UNREAD for finding in self.findings):
            self._record.holes.append(self._expected_index)

    def report(self, objects: Objects) -> Report:
        """After the last entry: check what the entries name, and say all that was found."""
        if self._expect is not None and self._expect[0] > self.entries:
            self._broken(
                "log.shorter",
                f"the ledger had {self._expect[0]} entries once and has {self.entries} now",
            )
        inventory = Inventory(self._record, objects)
        self.findings.extend(inventory.findings())
        return Report(
            findings=tuple(self.findings),
            entries=self.entries,
            objects=inventory.objects_read,
            root=self.tree.root().hex(),
            last_hash=self.last_hash.hex() if self.entries else "",
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

    def _check_time(self, index: int, time: str) -> None:
        """Texts of one form sort as the times do."""
        if time < self._time:
            message = f"its time {time} lies before that of the entry before it, {self._time}"
            code = "time.backwards"
            self.add(Finding(Level.WARNING, code, message, _CLOCK, index=index))
        self._time = time

    def _broken(self, code: str, message: str, *, index: int | None = None) -> None:
        self.add(Finding(Level.BROKEN, code, message, _TAMPERED, index=index))


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""
