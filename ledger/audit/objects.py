"""How an audit reads objects: its own reader of a local store, or any store behind it."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.store import Store

_ADDRESS: Final = re.compile(r"blake3:[0-9a-f]{64}")
_FOLDER: Final = re.compile(r"[0-9a-f]{2}")
_NAME: Final = re.compile(r"[0-9a-f]{62}")


class ObjectMissing(Exception):
    """There is no object under this address."""


class ObjectUnreadable(Exception):
    """There is one, or there may be, and it cannot be read; the argument says why."""


class Objects(Protocol):
    """The objects of a store, by the text of their address. Bytes come as they lie: it is the
    audit that compares them with the address."""

    def get(self, address: str) -> bytes:
        """Raises ObjectMissing or ObjectUnreadable, nothing else."""
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
        self._base = root / "objects" / "blake3"

    def get(self, address: str) -> bytes:
        if not _ADDRESS.fullmatch(address):
            raise ObjectMissing(address)
        digits = address[-64:]
        path = self._base / digits[:2] / digits[2:]
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # never wait on a pipe that lies here
                raise ObjectUnreadable("it is not a file")
            return path.read_bytes()
        except FileNotFoundError as error:
            raise ObjectMissing(address) from error
        except (OSError, MemoryError) as error:
            raise ObjectUnreadable(str(error) or type(error).__name__) from error

    def addresses(self) -> Iterator[str]:
        for folder, name in self._names():
            if _FOLDER.fullmatch(folder) and _NAME.fullmatch(name):
                yield f"blake3:{folder}{name}"

    def strangers(self) -> Iterator[str]:
        for folder, name in self._names():
            if not (_FOLDER.fullmatch(folder) and _NAME.fullmatch(name)):
                yield f"{folder}/{name}".rstrip("/")

    def _names(self) -> Iterator[tuple[str, str]]:
        """(folder, file) of all that lies there; the file is "" where a folder should be."""
        try:
            for folder in sorted(self._base.iterdir()):
                if folder.is_dir():
                    for path in sorted(folder.iterdir()):
                        yield folder.name, path.name
                else:
                    yield folder.name, ""
        except FileNotFoundError:
            return
        except OSError as error:
            raise ObjectUnreadable(str(error)) from error


class StoreObjects:
    """Any store (S3, memory) as the audit reads it; what it hands out is hashed again."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, address: str) -> bytes:
        try:
            return self._store.get(Address.parse(address))
        except ArtifactError as error:
            if error.code in {"object.missing", "address.malformed"}:
                raise ObjectMissing(address) from error
            raise ObjectUnreadable(error.message) from error

    def addresses(self) -> Iterator[str]:
        try:
            for address in self._store.addresses():
                yield str(address)
        except ArtifactError as error:
            raise ObjectUnreadable(error.message) from error

    def strangers(self) -> Iterator[str]:
        return iter(())
