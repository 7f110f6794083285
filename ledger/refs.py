"""The artifacts that a ledger row names: by address, never by payload.

Source: DESIGN §5 and docs/FORMAT.md §6. Each value checks itself when it is made and raises
LedgerError `entry.malformed` with the place of what does not fit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tieout.artifacts.address import Address
from tieout.artifacts.store import RetentionClass
from tieout.ledger import fields
from tieout.ledger.canon import Json

_TABLE_MEDIA: Final = "application/vnd.apache.arrow.stream"
_ROW_ROOT: Final = re.compile(r"tieout\.rows/1:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Input:
    """An artifact that the step read. role: what it was to the step, such as "table:bank"."""

    role: str
    address: Address

    def __post_init__(self) -> None:
        fields.name(self.role, "inputs.role")
        fields.instance(Address, self.address, "inputs.address")

    def document(self) -> dict[str, Json]:
        return {"role": self.role, "address": str(self.address)}


@dataclass(frozen=True, slots=True)
class ControlTotal:
    """The exact sum of a numeric column, as text (docs/FORMAT.md §5)."""

    column: str
    value: str

    def __post_init__(self) -> None:
        fields.text(self.column, "control_totals.column")
        fields.text(self.value, "control_totals.value")

    def document(self) -> dict[str, Json]:
        return {"column": self.column, "value": self.value}


@dataclass(frozen=True, slots=True)
class OutputRef:
    """The artifact that the step made.

    sha256: 64 hex digits over the same bytes. content_digest: `tieout.content/1:<64 hex>` of a
    table, else None. size: bytes. version: the store's own name of this copy (S3 VersionId) or "".
    row_root: `tieout.rows/1:<64 hex>` (docs/FORMAT.md §12), of a table alone; None where it was
    not made, and then the entry has no such member, as entries had none before there were roots.
    """

    address: Address
    sha256: str
    size: int
    media_type: str
    retention: RetentionClass = RetentionClass.RETAIN
    content_digest: str | None = None
    row_count: int | None = None
    control_totals: tuple[ControlTotal, ...] = ()
    version: str = ""
    row_root: str | None = None

    def __post_init__(self) -> None:
        where = "deterministic_output."
        _check_artifact(self, where)
        if self.content_digest is not None:
            fields.content_digest(self.content_digest, where + "content_digest")
        if self.row_count is not None:
            fields.count(self.row_count, where + "row_count")
        fields.instance(tuple, self.control_totals, where + "control_totals")
        for total in self.control_totals:
            fields.instance(ControlTotal, total, where + "control_totals")
        fields.text(self.version, where + "version")
        if self.row_root is not None:
            self._check_row_root(where + "row_root")

    def _check_row_root(self, place: str) -> None:
        if not _ROW_ROOT.fullmatch(fields.text(self.row_root, place)):
            fields.malformed("a row root is wanted: tieout.rows/1:64 hexadecimal digits", place)
        if self.media_type != _TABLE_MEDIA or self.content_digest is None:
            fields.malformed("only a table with a content digest has a row root", place)

    def document(self) -> dict[str, Json]:
        rooted: dict[str, Json] = {} if self.row_root is None else {"row_root": self.row_root}
        return rooted | {
            "address": str(self.address),
            "sha256": self.sha256,
            "content_digest": self.content_digest,
            "size": self.size,
            "media_type": self.media_type,
            "class": self.retention.value,
            "row_count": self.row_count,
            "control_totals": [total.document() for total in self.control_totals],
            "version": self.version,
        }


@dataclass(frozen=True, slots=True)
class Attachment:
    """Another artifact stored in the same step. size: bytes. sha256: 64 hex digits."""

    role: str
    address: Address
    sha256: str
    size: int
    media_type: str
    retention: RetentionClass = RetentionClass.RETAIN

    def __post_init__(self) -> None:
        fields.name(self.role, "attachments.role")
        _check_artifact(self, "attachments.")

    def document(self) -> dict[str, Json]:
        return {
            "role": self.role,
            "address": str(self.address),
            "sha256": self.sha256,
            "size": self.size,
            "media_type": self.media_type,
            "class": self.retention.value,
        }


def _check_artifact(ref: OutputRef | Attachment, where: str) -> None:
    fields.instance(Address, ref.address, where + "address")
    fields.sha256_hex(ref.sha256, where + "sha256")
    fields.count(ref.size, where + "size")
    fields.name(ref.media_type, where + "media_type")
    fields.instance(RetentionClass, ref.retention, where + "class")
