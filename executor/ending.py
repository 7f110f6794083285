"""What ends a run early is written into the ledger before it is told.

A run that stops for a missing file, a full disk or its user's interruption leaves a row that says
so; only a kill leaves none. Source: DESIGN §5, §14.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from tieout.artifacts.errors import Exit, RoomError
from tieout.executor.record import Recorder, RowDraft
from tieout.ledger.row import Kind, LedgerRow, Outcome, Status

INTERRUPTED: Final = "run.interrupted"
ENDING_SUBJECT: Final = "ended"
MESSAGE_CHARS_MAX: Final = 2_000


@contextmanager
def ending_recorded(recorder: Recorder, *, tool: str) -> Iterator[None]:
    """Record an error or an interruption that leaves the work inside, then let it go on.

    tool: what was under way, such as "run". The row holds no path: places are told, not recorded.
    """
    try:
        yield
    except RoomError as error:
        refused = error.exit_code is Exit.REFUSED
        status = Status.REFUSED if refused else Status.FAILED
        _record(recorder, tool, Outcome(status, error.code, error.message[:MESSAGE_CHARS_MAX]))
        raise
    except KeyboardInterrupt:
        _record(recorder, tool, Outcome(Status.FAILED, INTERRUPTED, "its user interrupted it"))
        raise


def is_ending(row: LedgerRow) -> bool:
    """Whether the row says how a run ended early, and is no step of it."""
    return row.kind is Kind.FAILURE and row.subject == ENDING_SUBJECT


def _record(recorder: Recorder, tool: str, outcome: Outcome) -> None:
    # The ledger itself may be what failed, on the same full disk; the first error is the one to
    # tell, and a second one must not hide it.
    with suppress(RoomError):
        recorder.record(
            RowDraft(kind=Kind.FAILURE, subject=ENDING_SUBJECT, tool=tool, outcome=outcome)
        )
