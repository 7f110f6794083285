"""Each object judged once: whether the bytes under an address are those that it names.

Whatever else is compared (tables, documents, quotes) is compared with bytes that passed here, so
that one damaged object is said once and accuses nothing that names it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from blake3 import blake3

from tieout.ledger.audit.objects import (
    ObjectCorrupt,
    ObjectMissing,
    Objects,
    ObjectTooLarge,
    ObjectUnreadable,
)

# Larger ones are read, and held in memory, only if the record itself says that they are so large.
UNSTATED_BYTES_MAX: Final = 64 * 1024**2


class Unavailable(Exception):
    """The bytes cannot be had; the verdict on the object says why, once for all."""


class TooLarge(Unavailable):
    """The bytes can be had and not held in memory here; the argument says why."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with an object: code "" if nothing is. size: bytes. sha256: hex digits."""

    code: str
    message: str = ""
    size: int = 0
    sha256: str = ""


class Evidence:
    """The objects of a store, each hashed before anything in it is believed."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._stated: dict[str, set[int]] = {}
        self._verdicts: dict[str, Verdict] = {}
        self.read = 0

    def state(self, address: str, size: int) -> None:
        """The record says that this object has so many bytes."""
        self._stated.setdefault(address, set()).add(size)

    def verdict(self, address: str) -> Verdict:
        """Hash the object in pages, unless it was judged before."""
        found = self._verdicts.get(address)
        if found is None:
            found = self._verdicts[address] = self._judged(address)
        return found

    def load(self, address: str) -> bytes:
        """The bytes that the address names. Raises Unavailable, TooLarge."""
        known = self._verdicts.get(address)
        if known is not None and known.code:
            raise Unavailable(known.message)
        try:
            size = self._objects.size(address)
            if size > UNSTATED_BYTES_MAX and size not in self._stated.get(address, ()):
                raise TooLarge(f"it has {size} bytes, and nothing recorded says so")
            payload = self._objects.get(address)
        except (ObjectMissing, ObjectUnreadable) as error:
            raise Unavailable(self.verdict(address).message or str(error)) from error
        except ObjectTooLarge as error:
            raise TooLarge("it does not fit into the memory of this machine") from error
        if known is None:
            known = self._verdicts[address] = self._hashed(address, [payload])
        elif f"blake3:{blake3(payload).hexdigest()}" != address:
            known = self._verdicts[address] = _CHANGED
        if known.code:
            raise Unavailable(known.message)
        return payload

    def _judged(self, address: str) -> Verdict:
        try:
            size = self._objects.size(address)
            stated = self._stated.get(address, set())
            if size > UNSTATED_BYTES_MAX and stated and size not in stated:
                said = " or ".join(str(number) for number in sorted(stated))
                message = f"it has {size} bytes, not {said}; it was not read"
                return Verdict("object.size", message, size)
            return self._hashed(address, self._objects.pages(address))
        except ObjectMissing:
            return Verdict("object.missing", "the object is not in the store")
        except ObjectCorrupt:
            return _CORRUPT
        except ObjectUnreadable as error:
            return Verdict("object.unreadable", f"the object cannot be read: {error!s:.200}")

    def _hashed(self, address: str, pages: Iterable[bytes]) -> Verdict:
        content, digest, size = blake3(), sha256(), 0
        for page in pages:
            content.update(page)
            digest.update(page)
            size += len(page)
        self.read += 1
        if f"blake3:{content.hexdigest()}" != address:
            return _CORRUPT
        return Verdict("", size=size, sha256=digest.hexdigest())


_CORRUPT: Final = Verdict("object.corrupt", "the bytes are not those of its address")
_CHANGED: Final = Verdict("object.corrupt", "the bytes changed while they were checked")
