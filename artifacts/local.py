"""A store of artifacts in a folder: `objects/blake3/ab/<62 hex>`, one read-only file each."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

from blake3 import blake3

from tieout.artifacts import durable
from tieout.artifacts.address import Address
from tieout.artifacts.checked import (
    PAGE_BYTES,
    checked,
    corrupt,
    missing,
    no_store,
    paged_stream,
    unchanged,
)
from tieout.artifacts.disk_errors import read_error
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.pieces import Payload, Pieces, address_of, blocks
from tieout.artifacts.scanned import HashedStream
from tieout.artifacts.store import ObjectStat, RetentionClass, Stored

SHARDS: Final = tuple(f"{number:02x}" for number in range(256))
LOAD_BYTES_MAX: Final = 1 << 28
_REST: Final = re.compile(r"[0-9a-f]{62}")
_READ_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class LocalStore:
    """The store in a folder that exists; see store.py for what every store promises.

    Safe for several threads and processes at once. Raises ArtifactError store.missing (exit
    10) when there is no store in the folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._shelf = root / "objects" / "blake3"
        self._ready: set[str] = set()
        self._failure: ArtifactError | None = None
        self._require()

    @classmethod
    def create(cls, root: Path) -> LocalStore:
        """Make the folder and its 256 shards, durably; one that is there is completed."""
        shelf = root / "objects" / "blake3"
        durable.make_folder(shelf)
        durable.make_folders(shelf, SHARDS)
        return cls(root)

    @property
    def location(self) -> str:
        return str(self._root)

    def put(self, payload: Payload, *, retention: RetentionClass = RetentionClass.RETAIN) -> Stored:
        """Raises ArtifactError: object.corrupt, object.changed, disk.*, file.*, store.missing.

        After disk.failing this object refuses every further put: what the kernel says of the
        disk after a failed fsync cannot be relied on.
        """
        if self._failure is not None:
            raise self._failure
        address = address_of(payload)
        seen = _Seen(payload, self.location)
        try:
            self._prepare(address)
            created = durable.create_idempotent(
                self._path(address), payload, mode=durable.OBJECT_MODE, watch=seen
            )
            if not created:
                seen = _Seen.whole(payload, self.location)
        except ArtifactError as error:
            if error.code == "disk.failing":
                self._failure = error
            if error.code == "file.no_folder":
                self._ready.discard(address.hex[:2])
                self._require()
            if error.code == "file.exists_other":
                _Seen.whole(payload, self.location)
                raise corrupt(
                    address, "a file with other bytes has its name", location=self.location
                ) from error
            raise
        return Stored(
            address=address,
            sha256=seen.sha256.hexdigest(),
            size=len(payload),
            retention=retention,
            version="",
            created=created,
        )

    def get(self, address: Address) -> bytes:
        """All of it in memory; a large object is checked before it is loaded, so that what
        somebody put in its place cannot take the memory of the machine."""
        fd, size = self._open(address)
        if size > LOAD_BYTES_MAX:
            os.close(fd)
            with self.open(address) as checked_first:
                return checked_first.read()
        with _explained(self._path(address)), os.fdopen(fd, "rb", buffering=0) as stream:
            pieces = []
            while piece := stream.read(max(size, PAGE_BYTES)):
                pieces.append(piece)
        payload = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return checked(address, payload, location=self.location)

    def open(self, address: Address) -> BinaryIO:
        """The bytes are checked before the stream is given, and each page again as it is read."""
        fd, size = self._open(address)
        try:
            pages = self._pages(address, fd)
        except ArtifactError:
            os.close(fd)
            raise

        def fetch(offset: int, wanted: int) -> bytes:
            number = offset // PAGE_BYTES
            with _explained(self._path(address)):
                page = _read_page(fd, number)
            if blake3(page).digest() != pages[number]:
                raise corrupt(address, "it changed while it was read", location=self.location)
            start = offset - number * PAGE_BYTES
            return page[start : start + wanted]

        return paged_stream(size, fetch, release=lambda: os.close(fd))

    @contextlib.contextmanager
    def scan(self, address: Address) -> Iterator[BinaryIO]:
        """One reading of the file: each piece is hashed as it is given."""
        fd, _ = self._open(address)
        with HashedStream(fd, self._path(address)) as source:
            try:
                yield cast("BinaryIO", source)
            finally:
                # Also when the block failed: bytes that are not the object's are the reason.
                source.drain()
                found = source.hexdigest()
                if found != address.hex:
                    told = f"its bytes have the address blake3:{found}"
                    raise corrupt(address, told, location=self.location)

    def stat(self, address: Address) -> ObjectStat:
        fd, size = self._open(address)
        os.close(fd)
        return ObjectStat(address=address, size=size)

    def addresses(self) -> Iterator[Address]:
        self._require()
        for shard in SHARDS:
            for name in self._names(shard):
                if _REST.fullmatch(name):
                    yield Address(shard + name)

    def strangers(self) -> list[str]:
        """What lies in the folder and is neither an object nor a temp file, sorted.

        Paths below the root. Temp files of dead writers are left to `sweep`.
        """
        self._require()
        found = [name for name in _listed(self._root) if name != "objects"]
        found += [f"objects/{name}" for name in _listed(self._root / "objects") if name != "blake3"]
        for shard in _listed(self._shelf):
            place = f"objects/blake3/{shard}"
            if shard not in SHARDS or not (self._shelf / shard).is_dir():
                found.append(place)
                continue
            found += [
                f"{place}/{name}"
                for name in self._names(shard)
                if not _REST.fullmatch(name) and not durable.is_temp(name)
            ]
        return sorted(found)

    def sweep(self) -> int:
        """Remove the temp files that dead writers left; returns how many."""
        self._require()
        return sum(durable.sweep(self._shelf / shard) for shard in SHARDS if self._names(shard))

    def _path(self, address: Address) -> Path:
        return self._root / address.key

    def _require(self) -> None:
        try:
            there = stat.S_ISDIR(self._shelf.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            there = False
        except (OSError, ValueError) as error:
            raise read_error(error, self._root) from error
        if not there:
            raise no_store(
                self.location,
                "there is no store of artifacts in this folder",
                remedy="Run tieout init, or name the folder of the store in tieout.toml.",
            )

    def _prepare(self, address: Address) -> None:
        """See that the shard exists durably, once per shard and store object."""
        shard = address.hex[:2]
        if shard in self._ready:
            return
        self._require()
        durable.make_folder(self._shelf / shard)
        self._ready.add(shard)

    def _names(self, shard: str) -> list[str]:
        """The names in a shard, sorted; a shard that was never made holds none."""
        return _listed(self._shelf / shard)

    def _open(self, address: Address) -> tuple[int, int]:
        """A file number open for reading, and the size in bytes."""
        path = self._path(address)
        try:
            fd = os.open(path, _READ_FLAGS)
        except FileNotFoundError as error:
            self._require()  # a store that went away is not an object that is missing
            raise missing(address, location=self.location) from error
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise corrupt(address, "it is not a file", location=self.location) from error
            raise read_error(error, path) from error
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(fd)
            raise corrupt(address, "it is not a file", location=self.location)
        return fd, status.st_size

    def _pages(self, address: Address, fd: int) -> list[bytes]:
        """Read all of it, check it, and give the digest of each page."""
        whole = blake3()
        pages: list[bytes] = []
        with _explained(self._path(address)):
            while page := _read_page(fd, len(pages)):
                whole.update(page)
                pages.append(blake3(page).digest())
        if whole.hexdigest() != address.hex:
            found = f"its bytes have the address blake3:{whole.hexdigest()}"
            raise corrupt(address, found, location=self.location)
        return pages


class _Seen:
    """The hashes of a payload, taken while it is written: in a block that is at hand already.

    Of pieces the address is made again, since nothing keeps their buffers as they were.
    """

    def __init__(self, payload: Payload, location: str) -> None:
        self._payload, self._location = payload, location
        self._blake3 = blake3() if isinstance(payload, Pieces) else None
        self.sha256 = hashlib.sha256()

    @classmethod
    def whole(cls, payload: Payload, location: str) -> _Seen:
        """Of all the bytes; raises ArtifactError object.changed."""
        seen = cls(payload, location)
        for block in blocks(payload):
            seen.see(block)
        seen.accept()
        return seen

    def see(self, block: memoryview) -> None:
        self.sha256.update(block)
        if self._blake3 is not None:
            self._blake3.update(block)

    def accept(self) -> None:
        if self._blake3 is not None:
            found = Address(self._blake3.hexdigest())
            unchanged(self._payload, found, location=self._location)


def _read_page(fd: int, number: int) -> bytes:
    """One page, whole unless the file ends; b"" past the end."""
    offset = number * PAGE_BYTES
    page = os.pread(fd, PAGE_BYTES, offset)
    while 0 < len(page) < PAGE_BYTES:
        more = os.pread(fd, PAGE_BYTES - len(page), offset + len(page))
        if not more:
            break
        page += more
    return page


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise read_error(error, folder) from error


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise read_error(error, path) from error
