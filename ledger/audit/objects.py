"""How an audit reads objects: its own reader of a local store, or any store behind it."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.store import Store

PAGE_BYTES: Final = 1 << 20

_ADDRESS: Final = re.compile(r"blake3:[0-9a-f]{64}")
_FOLDER: Final = re.compile(r"[0-9a-f]{2}")
_NAME: Final = re.compile(r"[0-9a-f]{62}")
# As the store itself opens them: never through a link, and without waiting on a pipe.
_READ_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class ObjectMissing(Exception):
    """There is no object under this address."""


class ObjectUnreadable(Exception):
    """There is one, or there may be, and it cannot be read; the argument says why."""


class ObjectCorrupt(ObjectUnreadable):
    """There is one, and its own store says that its bytes are not those of its address."""


class ObjectTooLarge(Exception):
    """It does not fit into the memory of this machine."""


class Objects(Protocol):
    """The objects of a store, by the text of their address. Bytes come as they lie: it is the
    audit that compares them with the address."""

    def size(self, address: str) -> int:
        """Bytes, without reading them. Raises ObjectMissing or ObjectUnreadable."""
        ...

    def pages(self, address: str) -> Iterator[bytes]:
        """The bytes in pages, never the whole in memory. Raises ObjectMissing or
        ObjectUnreadable."""
        ...

    def get(self, address: str) -> bytes:
        """All bytes. Raises ObjectMissing, ObjectUnreadable or ObjectTooLarge."""
        ...

    def addresses(self) -> Iterator[str]:
        """Every object's address, ascending. Raises ObjectUnreadable."""
        ...

    def strangers(self) -> Iterator[str]:
        """Names in the store that are no object's. Raises ObjectUnreadable."""
        ...


class LocalObjects:
    """A local store, read by its layout alone: `objects/blake3/ab/<62 hex>`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def size(self, address: str) -> int:
        fd = self._open(address)
        try:
            return os.fstat(fd).st_size
        finally:
            os.close(fd)

    def pages(self, address: str) -> Iterator[bytes]:
        fd = self._open(address)
        with os.fdopen(fd, "rb", buffering=0) as stream:
            while page := _read(stream.read, PAGE_BYTES):
                yield page

    def get(self, address: str) -> bytes:
        fd = self._open(address)
        with os.fdopen(fd, "rb") as stream:
            try:
                return _read(stream.read, -1)
            except MemoryError as error:
                raise ObjectTooLarge(address) from error

    def addresses(self) -> Iterator[str]:
        for shard in self._listed("objects/blake3"):
            if not _is_shard(shard):
                continue
            for item in self._listed(f"objects/blake3/{shard.name}"):
                if _NAME.fullmatch(item.name):
                    yield f"blake3:{shard.name}{item.name}"

    def strangers(self) -> Iterator[str]:
        for folder, own in ((".", "objects"), ("objects", "blake3")):
            for item in self._listed(folder):
                if item.name != own:
                    yield item.name if folder == "." else f"{folder}/{item.name}"
        for shard in self._listed("objects/blake3"):
            place = f"objects/blake3/{shard.name}"
            if not _is_shard(shard):
                yield place
                continue
            for item in self._listed(place):
                if not _NAME.fullmatch(item.name):
                    yield f"{place}/{item.name}"

    def _open(self, address: str) -> int:
        """A descriptor of a regular file."""
        if not _ADDRESS.fullmatch(address):
            raise ObjectMissing(address)
        digits = address[-64:]
        path = self._root / "objects" / "blake3" / digits[:2] / digits[2:]
        try:
            fd = os.open(path, _READ_FLAGS)
        except FileNotFoundError as error:
            raise ObjectMissing(address) from error
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise ObjectUnreadable("a link lies in its place, not a file") from error
            raise ObjectUnreadable(error.strerror or type(error).__name__) from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise ObjectUnreadable("it is not a file")
        return fd

    def _listed(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self._root / folder) as found:
                return sorted(found, key=lambda item: item.name)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ObjectUnreadable(f"{folder}: {error.strerror}") from error


def _is_shard(item: os.DirEntry[str]) -> bool:
    return bool(_FOLDER.fullmatch(item.name)) and item.is_dir()


class _Reader(Protocol):
    def __call__(self, size: int, /) -> bytes | None: ...


def _read(read: _Reader, size: int) -> bytes:
    try:
        return read(size) or b""
    except OSError as error:
        raise ObjectUnreadable(error.strerror or type(error).__name__) from error


@runtime_checkable
class _Listing(Protocol):
    """A store that can say what else lies in it."""

    def strangers(self) -> Sequence[str]: ...


class StoreObjects:
    """Any store (S3, memory) as the audit reads it; what it hands out is hashed again."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def size(self, address: str) -> int:
        try:
            return self._store.stat(Address.parse(address)).size
        except ArtifactError as error:
            raise _explained(error, address) from error

    def pages(self, address: str) -> Iterator[bytes]:
        try:
            with self._store.open(Address.parse(address)) as stream:
                while page := stream.read(PAGE_BYTES):
                    yield page
        except ArtifactError as error:
            raise _explained(error, address) from error

    def get(self, address: str) -> bytes:
        try:
            return self._store.get(Address.parse(address))
        except ArtifactError as error:
            raise _explained(error, address) from error
        except MemoryError as error:
            raise ObjectTooLarge(address) from error

    def addresses(self) -> Iterator[str]:
        try:
            for address in self._store.addresses():
                yield str(address)
        except ArtifactError as error:
            raise ObjectUnreadable(error.message) from error

    def strangers(self) -> Iterator[str]:
        if not isinstance(self._store, _Listing):
            return
        try:
            yield from self._store.strangers()
        except ArtifactError as error:
            raise ObjectUnreadable(error.message) from error


def _explained(error: ArtifactError, address: str) -> ObjectMissing | ObjectUnreadable:
    if error.code in {"object.missing", "address.malformed"}:
        return ObjectMissing(address)
    if error.code == "object.corrupt":
        return ObjectCorrupt(error.message)
    return ObjectUnreadable(error.message)
