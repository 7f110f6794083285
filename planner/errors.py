"""The one base error of this room; nothing else leaves it."""

from __future__ import annotations

from tieout.artifacts.errors import Exit, RoomError

__all__ = ["Exit", "PlannerError"]


class PlannerError(RoomError):
    """A model, its reply, or the answer drafted from it."""
