"""Reading files as received: all of the bytes, or a clear error; never a file that moved.

Source: DESIGN §2 and the trade's rule that evidence is kept as it came (notes on reconciliation).
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from tieout.executor.catalog import Source
from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.limits import Limits

READ_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Received:
    """A file's bytes as received. name: its path below the source's folder, or its own name."""

    name: str
    payload: bytes


def receive(source: Source, root: Path, limits: Limits) -> tuple[Received, ...]:
    """Read a source's file, or its folder's documents in order of name.

    Raises ExecutorError source.missing, source.unreadable, source.changed, source.too_large,
    source.no_documents, source.file_kind.
    """
    table = source.table
    if table.file is not None:
        path = root / table.file
        if not path.exists():
            raise _source_missing(source.name, path, "file")
        return (Received(path.name, read_whole(path, limits.source_bytes_max)),)
    folder = root / (table.folder or "")
    if not folder.is_dir():
        raise _source_missing(source.name, folder, "folder")
    names = _document_names(folder)
    if not names or len(names) > limits.documents_max:
        raise ExecutorError(
            "source.no_documents" if not names else "source.too_many_documents",
            f"the folder holds {len(names)} documents",
            place=str(folder),
            remedy=f"A text source holds 1 to {limits.documents_max} documents.",
        )
    return tuple(Received(n, read_whole(folder / n, limits.source_bytes_max)) for n in names)


def _document_names(folder: Path) -> list[str]:
    """The documents of a folder; what is no file inside of it stops, it is not passed over."""
    names = []
    for path in folder.rglob("*"):
        if path.name.startswith(".") or (path.is_dir() and not path.is_symlink()):
            continue
        inside = path.resolve().is_relative_to(folder.resolve())
        if not path.is_file() or not inside:
            raise ExecutorError(
                "source.not_a_document",
                "it leads out of the folder" if not inside else "it is not a file",
                place=str(path),
                remedy="Move it out, or put the document itself there.",
            )
        names.append(path.relative_to(folder).as_posix())
    return sorted(names)


def read_whole(path: Path, bytes_max: int) -> bytes:
    """A file's bytes, if they did not change while they were read.

    Size, time of change and identity are compared before and after; a writer in between would
    leave a file that nobody ever had. Raises as `receive` does.
    """
    try:
        with _opened(path) as stream:
            before = os.fstat(stream.fileno())
            if before.st_size > bytes_max:
                raise ExecutorError(
                    "source.too_large",
                    f"the file has {before.st_size} bytes, more than {bytes_max}",
                    place=str(path),
                    remedy="Raise limits.source_bytes_max in tieout.toml, or split the file.",
                )
            payload = b"".join(iter(lambda: stream.read(READ_BYTES), b""))
            after = os.fstat(stream.fileno())
        named = path.stat()
    except FileNotFoundError as error:
        raise _source_missing(path.name, path, "file") from error
    except OSError as error:
        raise ExecutorError(
            "source.unreadable",
            f"cannot read the file: {error.strerror}",
            place=str(path),
            remedy="Check that it is a file and may be read.",
            exit_code=Exit.ENVIRONMENT,
        ) from error
    seen = {_identity(before), _identity(after), _identity(named)}
    if len(seen) > 1 or len(payload) != before.st_size:
        raise ExecutorError(
            "source.changed",
            "the file changed while it was read; nothing of it was kept",
            place=str(path),
            remedy="Wait until it is written whole, then run the command again.",
            exit_code=Exit.ENVIRONMENT,
        )
    return payload


def _opened(path: Path) -> BinaryIO:
    """A regular file, opened without waiting: a pipe would never end, a device has no bytes."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(number).st_mode):
        return os.fdopen(number, "rb")
    os.close(number)
    raise ExecutorError(
        "source.not_a_file",
        "it is not a regular file",
        place=str(path),
        remedy="Name a file; a folder of documents is `folder` in tieout.toml.",
    )


def _identity(seen: os.stat_result) -> tuple[int, int, int, int]:
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns


def _source_missing(name: str, path: Path, what: str) -> ExecutorError:
    return ExecutorError(
        "source.missing",
        f"the {what} of source {name!r} is not there",
        place=str(path),
        remedy=f"Put it there, or correct `{what}` in tieout.toml.",
    )
