"""One writer per ledger: an advisory lock (flock) on a file beside it.

SQLite would let two processes take turns, and each would hold a different idea of what it had
recorded; one writer is simpler to reason about. The lock goes with the process, however it
ends; the file stays and means nothing by itself. It is a note for people, no evidence.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from tieout.artifacts.errors import Exit
from tieout.ledger.errors import LedgerError

_PID_BYTES_MAX: Final = 32


class WriterLock:
    """Held from `take` until `release`, or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, ledger: Path) -> WriterLock:
        """Lock `<ledger>.lock` for this process.

        Raises LedgerError: `ledger.locked` naming the process that has it; `ledger.no_folder`,
        `ledger.unwritable` when the lock file cannot be made.
        """
        path = ledger.with_name(ledger.name + ".lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except FileNotFoundError as error:
            raise LedgerError(
                "ledger.no_folder",
                "the folder of the ledger does not exist",
                place=str(ledger.parent),
                remedy="Make the folder, or run `tieout init` in the workspace.",
                exit_code=Exit.NO_WORKSPACE,
            ) from error
        except OSError as error:
            raise LedgerError(
                "ledger.unwritable",
                f"cannot open the lock file of the ledger: {error.strerror}",
                place=str(path),
                remedy="Check who may write in the folder, and that the disk is not read-only.",
                exit_code=Exit.ENVIRONMENT,
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError as error:
            holder = os.pread(descriptor, _PID_BYTES_MAX, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise _locked(ledger, holder) from error
        except OSError as error:
            os.close(descriptor)
            raise LedgerError(
                "ledger.unwritable",
                f"cannot lock the ledger: {error.strerror}",
                place=str(path),
                remedy="Keep the ledger on a local disk that has room and supports locks.",
                exit_code=Exit.ENVIRONMENT,
            ) from error
        return cls(descriptor)

    def release(self) -> None:
        """Let the next writer in; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _locked(ledger: Path, holder: str) -> LedgerError:
    who = f"process {holder}" if holder.isdecimal() else "another process"
    look = f" (`ps -p {holder}` shows it)" if holder.isdecimal() else ""
    return LedgerError(
        "ledger.locked",
        f"the ledger is being written by {who}",
        place=str(ledger),
        remedy=f"Wait until it is done, or end it{look}, then run the command again.",
        exit_code=Exit.LOCKED,
    )
