"""The name of bytes: `blake3:` and 64 hexadecimal digits, nothing else.

Source: DESIGN §4. The address says nothing of time, run or place; `b3sum` checks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from blake3 import blake3

from tieout.artifacts.errors import ArtifactError

SCHEME: Final = "blake3:"
_HEX: Final = re.compile(r"[0-9a-f]{64}")
_FULL: Final = re.compile(r"blake3:[0-9a-f]{64}")
READ_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """The BLAKE3 digest of exactly the bytes it names.

    hex: 64 lower-case hexadecimal digits.
    """

    hex: str

    def __post_init__(self) -> None:
        if not _HEX.fullmatch(self.hex):
            raise ArtifactError(
                "address.malformed",
                f"{self.hex[:80]!r} is not 64 lower-case hexadecimal digits",
                remedy="Copy the address whole: blake3: and 64 digits.",
            )

    def __str__(self) -> str:
        return SCHEME + self.hex

    @property
    def key(self) -> str:
        """Where the object lies below a store's root, the same in a folder and in S3."""
        return f"objects/blake3/{self.hex[:2]}/{self.hex[2:]}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read `blake3:<64 hex>`; anything else raises ArtifactError `address.malformed`."""
        if not _FULL.fullmatch(text):
            raise ArtifactError(
                "address.malformed",
                f"{text[:80]!r} is not an address",
                remedy="An address is blake3: and 64 lower-case hexadecimal digits.",
            )
        return cls(text[len(SCHEME) :])

    @classmethod
    def from_key(cls, key: str) -> Address:
        """The address of a store key; the inverse of `key`."""
        parts = key.split("/")
        if len(parts) != 4 or parts[:2] != ["objects", "blake3"] or len(parts[2]) != 2:
            raise ArtifactError(
                "address.malformed",
                f"{key[:120]!r} is not the key of an object",
                remedy="Objects lie at objects/blake3/ab/<62 hex>; move other files out.",
            )
        return cls(parts[2] + parts[3])

    @classmethod
    def of(cls, payload: bytes) -> Address:
        """The address of these bytes."""
        return cls(blake3(payload).hexdigest())

    @classmethod
    def of_chunks(cls, chunks: Iterable[bytes | memoryview]) -> Address:
        """The address of the concatenation of these chunks."""
        hasher = blake3()
        for chunk in chunks:
            hasher.update(chunk)
        return cls(hasher.hexdigest())

    @classmethod
    def of_file(cls, path: Path) -> Address:
        """The address of a file's bytes, read in pieces; OSError is wrapped."""
        try:
            with path.open("rb") as stream:
                return cls.of_chunks(iter(lambda: stream.read(READ_BYTES), b""))
        except OSError as error:
            raise ArtifactError(
                "file.unreadable",
                f"cannot read the file: {error.strerror}",
                place=str(path),
                remedy="Check that it exists and may be read.",
            ) from error
