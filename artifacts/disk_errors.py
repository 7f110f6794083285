"""What the system says of a failed write or read of a file, in this room's codes and words."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from tieout.artifacts.errors import ArtifactError, Exit

# code, what it means, what to do; a full disk is put into words in write_error
_CAUSES: Final[dict[int, tuple[str, str, str]]] = {
    errno.EROFS: (
        "disk.read_only",
        "the file system is read-only",
        "Mount it writable, or put the workspace elsewhere.",
    ),
    errno.EACCES: (
        "file.forbidden",
        "this user may not write here",
        "Give the user the right to write there, or put the workspace elsewhere.",
    ),
    errno.EIO: (
        "disk.failing",
        "the disk reported an input/output error; what was being written does not count as stored",
        "Stop, look at the system log, and check the disk before going on.",
    ),
    errno.EFBIG: (
        "disk.limit",
        "a file of this size is over the limit of the process or the file system",
        "Raise the limit (ulimit -f), or use a file system that takes larger files.",
    ),
    errno.ENOENT: (
        "file.no_folder",
        "the folder to write in does not exist",
        "Make the folder, or name another place.",
    ),
    errno.ENOTDIR: (
        "file.exists_other",
        "a part of the path is a file, not a folder",
        "Move that file away, or name another place.",
    ),
    errno.EEXIST: (
        "file.exists_other",
        "something else already has this name",
        "Move it away, or name another place.",
    ),
    errno.EMFILE: (
        "file.too_many_open",
        "the process has too many files open",
        "Raise the limit (ulimit -n), then run the same command again.",
    ),
    errno.EINVAL: (
        "disk.unsupported",
        "the file system cannot do this durably (link, lock or fsync)",
        "Put the workspace on a local file system such as ext4 or xfs.",
    ),
}
_SAME_CAUSE: Final = {
    errno.EPERM: errno.EACCES,
    errno.ENFILE: errno.EMFILE,
    errno.EOPNOTSUPP: errno.EINVAL,
    errno.ENOSYS: errno.EINVAL,
    errno.EMLINK: errno.EINVAL,
    errno.ENOLCK: errno.EINVAL,
    errno.EISDIR: errno.EEXIST,
    errno.ELOOP: errno.EEXIST,
}


def write_error(error: OSError, path: Path, *, wanted_bytes: int) -> ArtifactError:
    """The error of a write that failed and left nothing behind."""
    number = error.errno or 0
    if number in (errno.ENOSPC, errno.EDQUOT):
        what = "the disk is full" if number == errno.ENOSPC else "the disk quota is used up"
        return ArtifactError(
            "disk.full",
            f"{what}: {wanted_bytes} bytes were wanted, and nothing was half-written",
            place=str(path),
            remedy="Free some space and run the same command again; what is stored stays.",
            exit_code=Exit.ENVIRONMENT,
        )
    code, meaning, remedy = _CAUSES.get(
        _SAME_CAUSE.get(number, number),
        (
            "file.unwritable",
            f"cannot write: {error.strerror or error}",
            "Check the path and the disk, then run the same command again.",
        ),
    )
    return ArtifactError(code, meaning, place=str(path), remedy=remedy, exit_code=Exit.ENVIRONMENT)


def read_error(error: OSError | ValueError, path: Path) -> ArtifactError:
    """The error of a store that cannot be read."""
    reason = getattr(error, "strerror", None) or str(error)
    if isinstance(error, OSError) and error.errno == errno.EIO:
        code, remedy = "disk.failing", "Look at the system log and check the disk."
    else:
        code, remedy = "store.refused", "Check the path and the rights of this user."
    return ArtifactError(
        code,
        f"the store cannot be read: {reason}",
        place=str(path)[:500],
        remedy=remedy,
        exit_code=Exit.ENVIRONMENT,
    )
