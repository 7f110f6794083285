"""The one base error of this room; nothing else leaves it."""

from __future__ import annotations

from tieout.artifacts.errors import Exit, RoomError

__all__ = ["ExecutorError", "Exit", "SourcesRefused"]


class ExecutorError(RoomError):
    """A source, a plan, or the running of one of its steps."""


class SourcesRefused(ExecutorError):
    """More than one source could not be pinned: the first one's error, and those of the others."""

    def __init__(self, first: RoomError, others: tuple[RoomError, ...]) -> None:
        super().__init__(
            first.code,
            first.message,
            place=first.place,
            remedy=first.remedy,
            exit_code=first.exit_code,
        )
        self.others = others
