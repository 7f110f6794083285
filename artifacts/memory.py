"""A store of artifacts in memory: for tests, and for the results of a replay."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import BinaryIO

from tieout.artifacts.address import Address
from tieout.artifacts.checked import checked, corrupt, missing, stream, unchanged
from tieout.artifacts.pieces import Payload, joined
from tieout.artifacts.store import ObjectStat, RetentionClass, Stored


class MemoryStore:
    """Keeps what store.py promises, as long as the process lives; safe for threads."""

    def __init__(self, location: str = "memory") -> None:
        self._location = location
        self._objects: dict[Address, bytes] = {}
        self._lock = threading.Lock()

    @property
    def location(self) -> str:
        return self._location

    def put(self, payload: Payload, *, retention: RetentionClass = RetentionClass.RETAIN) -> Stored:
        """Raises ArtifactError object.corrupt when other bytes lie under the address,
        object.changed for pieces that were written to."""
        kept = joined(payload)
        address = Address.of(kept)
        unchanged(payload, address, location=self.location)
        with self._lock:
            created = address not in self._objects
            found = self._objects.setdefault(address, kept)
        if found != kept:
            raise corrupt(address, "other bytes have its name", location=self.location)
        return Stored(
            address=address,
            sha256=hashlib.sha256(kept).hexdigest(),
            size=len(kept),
            retention=retention,
            version="",
            created=created,
        )

    def get(self, address: Address) -> bytes:
        return checked(address, self._find(address), location=self.location)

    def open(self, address: Address) -> BinaryIO:
        return stream(self.get(address))

    def scan(self, address: Address) -> AbstractContextManager[BinaryIO]:
        return self.open(address)

    def stat(self, address: Address) -> ObjectStat:
        return ObjectStat(address=address, size=len(self._find(address)))

    def addresses(self) -> Iterator[Address]:
        with self._lock:
            known = sorted(self._objects)
        yield from known

    def _find(self, address: Address) -> bytes:
        with self._lock:
            payload = self._objects.get(address)
        if payload is None:
            raise missing(address, location=self.location)
        return payload
