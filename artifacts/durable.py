"""The only writes to files in this project: whole or not at all, and durable on return.

Every function writes to a temp file in the same folder, checks its size, fsyncs it, gives it
its name, and fsyncs the folder; so a crash at any moment leaves the old state or the new one
(`append` excepted, see there). A temp file is locked with flock while its writer lives, which
is how `sweep` tells a leftover from work under way.

Source: DESIGN §2; the four kinds of write follow the POSIX driver of transparency logs.
Deliberately not here: the ledger database, which writes through its own engine.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from tieout.artifacts.disk_errors import write_error
from tieout.artifacts.errors import ArtifactError, Exit
from tieout.artifacts.pieces import BLOCK_BYTES, Payload, blocks

OBJECT_MODE: Final = 0o440
FILE_MODE: Final = 0o644
WRITE_BYTES_MAX: Final = BLOCK_BYTES  # one call: a signal or a limit then costs little
TEMP_TRIES_MAX: Final = 10_000  # names left by dead writers that had this process's number

_TEMP_NAME: Final = re.compile(r"\.tieout-[0-9]+-[0-9]+\.temp")
_TEMP_NUMBERS: Final = itertools.count()
_READ_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Watch(Protocol):
    """Sees the bytes on their way to the disk, so that they are gone through once."""

    def see(self, block: memoryview) -> None:
        """The next bytes that will be written."""
        ...

    def accept(self) -> None:
        """All were written and are durable; what is raised here keeps them from being named."""
        ...


def is_temp(name: str) -> bool:
    """Whether a file of this name is one of our temp files."""
    return _TEMP_NAME.fullmatch(name) is not None


def make_folder(path: Path) -> None:
    """Make the folder and its missing parents, durably; one that is there is fine.

    Raises ArtifactError: file.exists_other when something else has the name, disk.*, file.*.
    """
    with _explained(path, wanted_bytes=0):
        _make_folder(path)


def make_folders(parent: Path, names: Iterable[str]) -> None:
    """Make folders in one that exists, durably, with one fsync; those that are there are fine.

    Raises ArtifactError: disk.*, file.*.
    """
    with _explained(parent, wanted_bytes=0):
        for name in names:
            with contextlib.suppress(FileExistsError):
                (parent / name).mkdir()
        _sync_folder(parent)


def create_exclusive(path: Path, payload: bytes, *, mode: int = FILE_MODE) -> None:
    """Create the file with these bytes; exactly one of several callers at once succeeds.

    Raises ArtifactError: file.exists when the name is taken, disk.*, file.*.
    """
    if not _create(path, payload, mode):
        raise ArtifactError(
            "file.exists",
            "a file of this name is already there; it was left as it is",
            place=str(path),
            remedy="Choose another name, or move the file away.",
        )


def create_idempotent(
    path: Path, payload: Payload, *, mode: int = FILE_MODE, watch: Watch | None = None
) -> bool:
    """Create the file, or find it there with the same bytes. True: created by this call.

    watch: sees the bytes when the file is created; what it saw counts for nothing otherwise.
    Raises ArtifactError: file.exists_other when the file there holds other bytes (it is left
    as it is), disk.*, file.*.
    """
    if not os.path.lexists(path) and _create(path, payload, mode, watch):
        return True
    with _explained(path, wanted_bytes=len(payload)):
        same = _holds(path, payload)
        if same:
            # Its maker may have died between naming it and syncing the folder.
            _sync_folder(path.parent)
    if not same:
        raise ArtifactError(
            "file.exists_other",
            "the file is already there with other bytes; it was left as it is",
            place=str(path),
            remedy="Compare the two; move the file away if it is the wrong one.",
            exit_code=Exit.DOES_NOT_HOLD,
        )
    return False


def replace(path: Path, payload: bytes, *, mode: int = FILE_MODE) -> None:
    """Put these bytes in the place of the file, which may be absent; readers see old or new.

    Raises ArtifactError: disk.*, file.*.
    """
    with _explained(path, wanted_bytes=len(payload)), _Temp(path.parent, mode) as temp:
        _write(temp.fd, payload)
        _sync(temp.fd)
        temp.rename(path)
        _sync_folder(path.parent)


def append(path: Path, payload: bytes, *, mode: int = FILE_MODE) -> None:
    """Add these bytes at the end of the file, made if absent; writers take turns.

    An error takes back what was written. A crash can leave a beginning of the payload at the
    end of the file: a reader must frame what it reads. Raises ArtifactError: disk.*, file.*.
    """
    with _explained(path, wanted_bytes=len(payload)):
        new = not path.exists()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(path, flags, mode)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            before = os.fstat(fd).st_size
            try:
                _write(fd, payload, before=before)
                _sync(fd)
            except (OSError, ArtifactError):
                os.ftruncate(fd, before)
                raise
        finally:
            os.close(fd)
        if new:
            _sync_folder(path.parent)


def sweep(folder: Path) -> int:
    """Remove the temp files that dead writers left in this folder; returns how many.

    A file whose writer lives is locked and stays. Raises ArtifactError: disk.*, file.*.
    """
    removed = 0
    with _explained(folder, wanted_bytes=0):
        for path in sorted(folder.iterdir()):
            if is_temp(path.name):
                removed += _sweep_one(path)
    return removed


class _Temp:
    """A new, locked temp file in a folder; removed at the end unless it was renamed."""

    def __init__(self, folder: Path, mode: int) -> None:
        self._folder = folder
        self._mode = mode
        self._renamed = False
        self.fd = -1
        self.path = folder

    def __enter__(self) -> Self:
        for _ in range(TEMP_TRIES_MAX):
            number = next(_TEMP_NUMBERS)
            self.path = self._folder / f".tieout-{os.getpid()}-{number}.temp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            try:
                self.fd = os.open(self.path, flags, self._mode)
            except FileExistsError:
                continue
            kept = False
            try:
                kept = _lock(self.fd) and os.fstat(self.fd).st_nlink > 0
            finally:
                if not kept:  # no locks here, or a sweeper was faster and removes the name
                    os.close(self.fd)
            if kept:
                return self
        raise OSError(errno.EEXIST, "no free name for a temp file; remove the old ones")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if not self._renamed:
                # What cannot be removed now is swept later; the first error is the one to tell.
                with contextlib.suppress(OSError):
                    self.path.unlink()
        finally:
            os.close(self.fd)

    def rename(self, path: Path) -> None:
        self.path.rename(path)
        self._renamed = True


def _create(path: Path, payload: Payload, mode: int, watch: Watch | None = None) -> bool:
    """Create the file unless the name is taken; False when it is."""
    with _explained(path, wanted_bytes=len(payload)), _Temp(path.parent, mode) as temp:
        _write(temp.fd, payload, watch=watch)
        _sync(temp.fd)
        if watch is not None:
            watch.accept()
        try:
            # A link, not a rename: it fails when the name is taken, also in a race.
            os.link(temp.path, path)
        except FileExistsError:
            return False
        _sync_folder(path.parent)
    return True


def _make_folder(path: Path) -> None:
    try:
        path.mkdir()
    except FileNotFoundError:
        if path.parent == path:
            raise
        _make_folder(path.parent)
        _make_folder(path)
        return
    except FileExistsError:
        if not path.is_dir():
            raise
        # Another process may have made it and not yet synced; a parent that we may not read
        # is one that nobody made for us just now.
        with contextlib.suppress(PermissionError):
            _sync_folder(path.parent)
        return
    _sync_folder(path.parent)


def _write(fd: int, payload: Payload, *, before: int = 0, watch: Watch | None = None) -> None:
    """Write all bytes, in as many calls as it takes, and check the size (bytes) after."""
    for block in blocks(payload):
        if watch is not None:
            watch.see(block)
        rest = block
        while rest:
            rest = rest[os.write(fd, rest) :]
    size = os.fstat(fd).st_size
    if size != before + len(payload):
        raise ArtifactError(
            "disk.short",
            f"the file has {size} bytes after {before + len(payload)} were written",
            remedy="Check the disk and that nothing else writes there; nothing was kept.",
            exit_code=Exit.ENVIRONMENT,
        )


def _sync(fd: int) -> None:
    """fsync, once: after a failure the kernel may drop the pages and report success."""
    os.fsync(fd)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _sync(fd)
    finally:
        os.close(fd)


def _holds(path: Path, payload: Payload) -> bool:
    """Whether the name is a regular file with exactly these bytes."""
    try:
        fd = os.open(path, _READ_FLAGS)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a symbolic link, a socket
            return False
        raise
    with os.fdopen(fd, "rb", buffering=0) as stream:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size != len(payload):
            return False
        return all(_reads(stream, block) for block in blocks(payload)) and not stream.read(1)


def _reads(stream: io.FileIO, block: memoryview) -> bool:
    """Whether exactly these bytes come next in a file."""
    done = 0
    while done < len(block):
        piece = stream.read(len(block) - done)
        if not piece or block[done : done + len(piece)] != piece:
            return False
        done += len(piece)
    return True


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sweep_one(path: Path) -> int:
    """Remove one temp file unless it is locked; 1 when this call removed it.

    Nobody removes or renames a temp file without holding its lock, so a locked file that is
    still linked is the one that the name means.
    """
    try:
        fd = os.open(path, _READ_FLAGS)
    except FileNotFoundError:
        return 0
    try:
        if not _lock(fd):
            return 0
        try:
            if not os.path.samestat(os.fstat(fd), path.lstat()):
                return 0
            path.unlink()
        except FileNotFoundError:
            return 0
        return 1
    finally:
        os.close(fd)


@contextlib.contextmanager
def _explained(path: Path, *, wanted_bytes: int) -> Iterator[None]:
    """Turn what the system says into this room's error."""
    try:
        yield
    except OSError as error:
        raise write_error(error, path, wanted_bytes=wanted_bytes) from error
    except ValueError as error:  # a NUL or a surrogate in the name
        raise ArtifactError(
            "file.name",
            f"no file can have this name: {error}",
            place=repr(os.fspath(path))[:200],
            remedy="Use another name.",
        ) from error
