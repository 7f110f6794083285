"""What SQLite and the disk say, as the ledger's own errors: the edge where they are wrapped."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw

from tieout.artifacts.errors import Exit
from tieout.ledger.errors import LedgerError

_VERIFY: Final = "Run `tieout verify`; if it is damaged, put back a copy."
_FULL: Final = "Free some space and run the command again; nothing was half-written."

# The full disk first, then the first that fits; apsw has one class for each SQLite result code.
_KINDS: Final[tuple[tuple[type[apsw.Error], str, str, str, Exit], ...]] = (
    (apsw.FullError, "disk.full", "the disk is full", _FULL, Exit.ENVIRONMENT),
    (apsw.CorruptError, "ledger.damaged", "the ledger's file is damaged", _VERIFY,
     Exit.DOES_NOT_HOLD),
    (apsw.NotADBError, "ledger.not_ours", "this is a file that is no SQLite database, not a ledger",
     "Name the ledger's own file; this one was left as it is.", Exit.REFUSED),
    (apsw.BusyError, "ledger.locked", "another program holds the ledger's file",
     "Close what has it open (`fuser` on the file shows it), then run the command again.",
     Exit.LOCKED),
    (apsw.IOError, "disk.failed", "the disk failed under the ledger",
     "Check the disk, then run the command again.", Exit.ENVIRONMENT),
    (apsw.CantOpenError, "ledger.unreadable", "the ledger's file cannot be opened",
     "Check who may read the file and write in its folder.", Exit.ENVIRONMENT),
    (apsw.ReadOnlyError, "ledger.unwritable", "the ledger's file cannot be written",
     "Check who may write the file, and that the disk is not read-only.", Exit.ENVIRONMENT),
    (apsw.PermissionsError, "ledger.unwritable", "the ledger's file cannot be written",
     "Check who may write the file, and that the disk is not read-only.", Exit.ENVIRONMENT),
    (apsw.ConstraintError, "ledger.broken", "the ledger refused an entry that does not continue it",
     _VERIFY, Exit.DOES_NOT_HOLD),
    (apsw.ConnectionClosedError, "ledger.closed", "the ledger was closed already",
     "Open it again.", Exit.BUG),
    (apsw.AuthError, "ledger.append_only", "the ledger can only be read and appended to",
     "Record a new row instead.", Exit.BUG),
    (apsw.Error, "ledger.database", "SQLite refused", _VERIFY, Exit.ENVIRONMENT),
)  # fmt: skip


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Within, whatever apsw raises becomes a LedgerError."""
    try:
        yield
    except apsw.Error as error:
        # No room for the index of the -wal is reported as a failed disk, and is a full one.
        is_full = getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE
        _, code, message, remedy, exit_code = next(
            kind for kind in _KINDS if is_full or isinstance(error, kind[0])
        )
        raise LedgerError(
            code,
            f"{message} ({str(error)[:200]})",
            place=str(path),
            remedy=remedy,
            exit_code=exit_code,
        ) from error


def disk_error(error: OSError, path: Path) -> LedgerError:
    """The LedgerError for a failed call to the operating system."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LedgerError(
            "disk.full",
            f"the disk is full ({error.strerror})",
            place=str(path),
            remedy=_FULL,
            exit_code=Exit.ENVIRONMENT,
        )
    return LedgerError(
        "disk.failed",
        f"the ledger's file cannot be made or read: {error.strerror}",
        place=str(path),
        remedy="Check the disk, and who may read and write there.",
        exit_code=Exit.ENVIRONMENT,
    )
