"""The one base error of this room; nothing else leaves it."""

from __future__ import annotations

from tieout.artifacts.errors import Exit, RoomError

__all__ = ["ExecutorError", "Exit"]


class ExecutorError(RoomError):
    """A source, a plan, or the running of one of its steps."""
