"""What can go wrong, said once: the shape every room's errors share, and this room's own.

    RoomError (never raised itself)
    ├── ArtifactError    artifacts: bytes, stores, tables, texts
    ├── LedgerError      ledger: rows, log, audit
    ├── ExecutorError    executor: catalog, ingest, plans, SQL, search, extraction
    └── PlannerError     planner: models, replies, answers

Each error carries a code that never changes meaning, the place it speaks of, and what to do
next. The base class of its room says whose input or duty it was; the exit code (DESIGN §14)
says what the command line returns.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of the command line; an unknown code is a failure."""

    FINE = 0
    DOES_NOT_HOLD = 1
    USAGE = 2
    INCOMPLETE = 3
    REFUSED = 4
    ENVIRONMENT = 5
    NO_WORKSPACE = 10
    LOCKED = 11
    OTHER_FORMAT = 12
    BUG = 70
    INTERRUPTED = 130


class RoomError(Exception):
    """Base of every room's base error.

    code: dotted, stable, lower case, such as "object.corrupt".
    message: what is wrong, one sentence without a full stop.
    place: where (an address, a file and line, a table and row), or "".
    remedy: the next thing to do, never empty.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        remedy: str,
        place: str = "",
        exit_code: Exit = Exit.REFUSED,
    ) -> None:
        if not remedy:
            raise AssertionError(f"{code}: an error without a next step is a bug")
        super().__init__(message)
        self.code = code
        self.message = message
        self.place = place
        self.remedy = remedy
        self.exit_code = exit_code

    def __str__(self) -> str:
        where = f" ({self.place})" if self.place else ""
        return f"{self.message}{where}. {self.remedy}"

    def document(self) -> dict[str, str]:
        """The error as the JSON object that --json prints last on standard error."""
        return {
            "type": "error",
            "code": self.code,
            "message": self.message,
            "place": self.place,
            "remedy": self.remedy,
        }


class ArtifactError(RoomError):
    """Bytes, stores, tables or texts: not there, not what their name says, not writable."""
