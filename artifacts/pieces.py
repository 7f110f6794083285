"""Bytes that lie in several buffers, one after another, so that a large table is never copied.

A store takes them in the place of one `bytes`: what it hashes and writes are the buffers of the
table itself. Such a buffer may belong to a mapping, so a store hashes it again while it writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from tieout.artifacts.address import Address

BLOCK_BYTES: Final = 1 << 18
"""What is hashed twice and written in one go: it stays in a processor's second cache."""
JOINED_BYTES_MAX: Final = 1 << 20
"""Up to this many bytes are copied into one buffer: fewer calls cost less than the copy."""


class Pieces:
    """Bytes in several buffers, and the address that they had when this was made.

    The buffers are kept alive and must not be written to.
    """

    __slots__ = ("_parts", "address", "size")

    def __init__(self, parts: Iterable[memoryview]) -> None:
        kept = tuple(part.cast("B") for part in parts)
        self.size: Final = sum(map(len, kept))
        if self.size <= JOINED_BYTES_MAX:
            kept = (memoryview(b"".join(kept)),)
        self._parts = kept
        self.address: Final = Address.of_chunks(kept)

    def __len__(self) -> int:
        return self.size

    def parts(self) -> tuple[memoryview, ...]:
        """The buffers in order."""
        return self._parts

    def joined(self) -> bytes:
        """All of it in one new buffer."""
        return b"".join(self._parts)


Payload: TypeAlias = bytes | Pieces


def address_of(payload: Payload) -> Address:
    """The address of the bytes; of pieces, the one that they had when they were made."""
    return payload.address if isinstance(payload, Pieces) else Address.of(payload)


def joined(payload: Payload) -> bytes:
    """The bytes in one buffer: the same object, or a new one made of pieces."""
    return payload.joined() if isinstance(payload, Pieces) else bytes(payload)


def blocks(payload: Payload) -> Iterator[memoryview]:
    """The bytes in order, BLOCK_BYTES at most at a time."""
    parts = payload.parts() if isinstance(payload, Pieces) else (memoryview(payload).cast("B"),)
    for part in parts:
        for start in range(0, len(part), BLOCK_BYTES):
            yield part[start : start + BLOCK_BYTES]
