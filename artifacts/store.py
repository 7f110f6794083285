"""What a store of artifacts promises. It can be added to and read; nothing here removes.

Contract (one suite, `tests/artifacts/test_store_contract.py`, runs it on every store):
- `put` MUST NOT return before the bytes are durable, and MUST be idempotent: the same bytes
  again give the same `Stored`, with `created` false. A crash at any moment leaves either no
  object or a whole one under its address.
- An object that is already there MUST be compared by content before it is relied on; one
  that differs from its address is an error with the address, never overwritten.
- `get` and `open` MUST check size and BLAKE3; a corrupted object is an error, never data.
- `scan` MUST check size and BLAKE3 of the very bytes that it gave, at its end.
- No delete and no overwrite: only `retention.py` (later) removes what policy allows.

Source: DESIGN §2 and §4.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO, Protocol

from tieout.artifacts.address import Address
from tieout.artifacts.pieces import Payload


class RetentionClass(StrEnum):
    """What policy may later do with an artifact; it stands in the ledger row."""

    RETAIN = "retain"
    REDACT = "redact"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class Stored:
    """What `put` made or found.

    size: bytes. sha256: 64 hex digits, for `sha256sum` and S3. version: the store's own name
    of this copy (S3 VersionId), or "". created: False when the same bytes were there already.
    """

    address: Address
    sha256: str
    size: int
    retention: RetentionClass
    version: str
    created: bool


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """What a store knows of an object without reading it. size: bytes."""

    address: Address
    size: int


class Store(Protocol):
    """Artifacts by address; see the module's contract."""

    @property
    def location(self) -> str:
        """Where it is, for people and error messages: a path or an s3:// address."""
        ...

    def put(self, payload: Payload, *, retention: RetentionClass = RetentionClass.RETAIN) -> Stored:
        """Store the bytes durably; pieces are hashed again here, whatever address they say.

        Raises ArtifactError: object.corrupt, object.changed (pieces that were written to),
        disk.full, other disk.*, file.* and store.* codes of the environment."""
        ...

    def get(self, address: Address) -> bytes:
        """The bytes, checked. Raises ArtifactError: object.missing, object.corrupt."""
        ...

    def open(self, address: Address) -> BinaryIO:
        """A read-only stream of the checked bytes; never a path into the store."""
        ...

    def scan(self, address: Address) -> AbstractContextManager[BinaryIO]:
        """Its bytes from the first to the last, checked when the block of the `with` ends.

        For what needs no more than a small part of a large object in memory: what was read MUST
        NOT be used before the block has ended. Leaving it raises ArtifactError object.corrupt for
        bytes that are not the object's, also when the block itself failed on them.
        """
        ...

    def stat(self, address: Address) -> ObjectStat:
        """Size without reading. Raises ArtifactError object.missing."""
        ...

    def addresses(self) -> Iterator[Address]:
        """Every object, in ascending order of address."""
        ...
