"""Bytes leave a store only after they were compared with their address, by what stands here."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO, Final

from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError, Exit
from tieout.artifacts.pieces import Payload, Pieces

PAGE_BYTES: Final = 1 << 20


def checked(address: Address, payload: bytes, *, location: str) -> bytes:
    """The payload, when it is what the address names; else ArtifactError object.corrupt."""
    found = Address.of(payload)
    if found != address:
        raise corrupt(
            address,
            f"it has {len(payload)} bytes whose address is {found}",
            location=location,
        )
    return payload


def unchanged(payload: Payload, found: Address, *, location: str) -> None:
    """Pieces still have the address that they had; else ArtifactError object.changed.

    found: the address of the bytes as they were hashed on their way into the store.
    """
    if isinstance(payload, Pieces) and payload.address != found:
        raise ArtifactError(
            "object.changed",
            f"the bytes changed while they were stored in {location}: they have the address "
            f"{found} now; nothing was kept",
            place=str(payload.address),
            remedy="Run again; if it happens again, report it and check the memory.",
            exit_code=Exit.BUG,
        )


def corrupt(address: Address, found: str, *, location: str) -> ArtifactError:
    """What lies under this address is something else. found: what, as a clause."""
    return ArtifactError(
        "object.corrupt",
        f"the object in {location} is not what its address says: {found}",
        place=str(address),
        remedy="Keep it for inquiry, restore it from a copy of the store, then run tieout verify.",
        exit_code=Exit.DOES_NOT_HOLD,
    )


def missing(address: Address, *, location: str) -> ArtifactError:
    """There is nothing under this address."""
    return ArtifactError(
        "object.missing",
        f"there is no such object in {location}",
        place=str(address),
        remedy="If the ledger names it, put it back from a copy; see `tieout verify`.",
        exit_code=Exit.DOES_NOT_HOLD,
    )


def no_store(location: str, why: str, *, remedy: str) -> ArtifactError:
    """There is no store at this place. why: one clause."""
    return ArtifactError(
        "store.missing", why, place=location, remedy=remedy, exit_code=Exit.NO_WORKSPACE
    )


class _Window(io.RawIOBase):
    """A read-only stream over `fetch(offset, size)`; it has no name and no file number."""

    def __init__(
        self, size: int, fetch: Callable[[int, int], bytes], release: Callable[[], None]
    ) -> None:
        super().__init__()
        self._size = size
        self._fetch = fetch
        self._release = release
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0
        piece = self._fetch(self._at, wanted)
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._release()
        super().close()


def stream(payload: bytes) -> BinaryIO:
    """A read-only stream over bytes that were checked."""
    view = memoryview(payload)
    window = _Window(
        len(payload), lambda at, size: bytes(view[at : at + size]), release=lambda: None
    )
    return io.BufferedReader(window)


def paged_stream(
    size: int, fetch: Callable[[int, int], bytes], *, release: Callable[[], None]
) -> BinaryIO:
    """A read-only stream over a source that is read piece by piece.

    size: bytes. fetch(offset, size) gives between one byte and `size` bytes, checked; it may
    raise ArtifactError. release is called once, when the stream is closed.
    """
    return io.BufferedReader(_Window(size, fetch, release), buffer_size=PAGE_BYTES)
