"""A file read once from its beginning, every byte of it hashed as it is given."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

from blake3 import blake3

from tieout.artifacts.disk_errors import read_error

DRAIN_BYTES: Final = 1 << 20


class HashedStream(io.RawIOBase):
    """A stream over a file number, which it owns. path: the file's name, for errors.

    `read` gives as many bytes as are asked for, unless the file ends. Raises ArtifactError file.*,
    disk.*.
    """

    def __init__(self, fd: int, path: Path) -> None:
        super().__init__()
        self._file = io.FileIO(fd)
        self._path = path
        self._hasher = blake3()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        pieces: list[bytes] = []
        wanted = size
        while size < 0 or wanted:
            piece = self._piece(wanted)
            if not piece:
                break
            pieces.append(piece)
            wanted -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        piece = self._piece(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def _piece(self, size: int) -> bytes:
        """Some of the next bytes; b"" at the end. size: at most; below 0: all."""
        try:
            piece = self._file.read(size) or b""
        except OSError as error:
            raise read_error(error, self._path) from error
        self._hasher.update(piece)
        return piece

    def drain(self) -> None:
        """Read what is left."""
        while self._piece(DRAIN_BYTES):
            pass

    def hexdigest(self) -> str:
        """BLAKE3 of the bytes given so far."""
        return self._hasher.hexdigest()

    def close(self) -> None:
        self._file.close()
        super().close()
