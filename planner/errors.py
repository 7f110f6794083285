"""The one base error of this room; nothing else leaves it."""

from __future__ import annotations

from tieout.artifacts.errors import Exit, RoomError

__all__ = ["Exit", "PlannerError", "TextRefused"]


class PlannerError(RoomError):
    """A model, its reply, or the answer drafted from it."""


class TextRefused(PlannerError):
    """A text that is not what it should be. line, column: from 1, where the fault lies."""

    def __init__(
        self, code: str, message: str, *, remedy: str, place: str, line: int, column: int
    ) -> None:
        super().__init__(
            code, message, remedy=remedy, place=f"{place}, line {line}, column {column}"
        )
        self.line = line
        self.column = column
