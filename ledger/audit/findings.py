"""What an audit says: findings, all of them, each with its place and the next thing to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """broken: the record does not hold. warning: it holds, and a guard is missing or a clock went
    back. notice: worth knowing. unchecked: could not be checked here, and why."""

    BROKEN = "broken"
    WARNING = "warning"
    NOTICE = "notice"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found. code: dotted and stable. index: the entry, if it speaks of one.
    address: the object, if it speaks of one."""

    level: Level
    code: str
    message: str
    remedy: str
    index: int | None = None
    address: str | None = None

    def document(self) -> dict[str, str | int | None]:
        """The finding as one JSON object."""
        return {
            "level": self.level.value,
            "code": self.code,
            "index": self.index,
            "address": self.address,
            "message": self.message,
            "remedy": self.remedy,
        }

    def __str__(self) -> str:
        place = ""
        if self.index is not None:
            place += f" entry {self.index}"
        if self.address is not None:
            place += f" {self.address}"
        return f"{self.level}: {self.code}{place}: {self.message}. {self.remedy}"


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, and what was checked.

    entries: read from the ledger. objects: read from the store and re-hashed. root: the RFC 6962
    root over the entries as found, 64 hex digits. last_hash: the `sha256_hash` of the last
    entry as stored, 64 hex digits, "" if there is none.
    """

    findings: tuple[Finding, ...]
    entries: int
    objects: int
    root: str
    last_hash: str

    @property
    def holds(self) -> bool:
        """Whether nothing was found broken."""
        return all(finding.level is not Level.BROKEN for finding in self.findings)

    @property
    def unchecked(self) -> int:
        """How many things could not be checked here."""
        return sum(finding.level is Level.UNCHECKED for finding in self.findings)

    def lines(self) -> list[str]:
        """The findings for people: a line each, and one line for all of a kind unchecked."""
        kinds = Counter((f.code, f.remedy) for f in self.findings if f.level is Level.UNCHECKED)
        lines = []
        for finding in self.findings:
            if finding.level is not Level.UNCHECKED:
                lines.append(str(finding))
            elif count := kinds.pop((finding.code, finding.remedy), 0):
                times = f"{count} time{'s' if count > 1 else ''}"
                said = f"{finding.code}: {times}, first {finding.message}. {finding.remedy}"
                lines.append(f"{finding.level}: {said}")
        return lines

    def verdict(self) -> str:
        """One sentence without a full stop: whether it holds, and how far that was seen."""
        if not self.holds:
            broken = sum(finding.level is Level.BROKEN for finding in self.findings)
            rest = f", {self.unchecked} things not checked" if self.unchecked else ""
            return f"The record does not hold: {broken} broken{rest}"
        if not self.unchecked:
            return "The record holds"
        were = "1 thing was" if self.unchecked == 1 else f"{self.unchecked} things were"
        lacking = any(
            finding.level is Level.UNCHECKED and "pyarrow" in finding.remedy
            for finding in self.findings
        )
        then = "install pyarrow to check them" if lacking else "the lines above say why"
        return f"The record holds as far as it was checked: {were} not, {then}"

    def document(self) -> dict[str, object]:
        """The report as one JSON object."""
        return {
            "type": "audit",
            "holds": self.holds,
            "entries": self.entries,
            "objects": self.objects,
            "root": self.root,
            "last_hash": self.last_hash,
            "findings": [finding.document() for finding in self.findings],
        }
