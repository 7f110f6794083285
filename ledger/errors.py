"""The one base error of this room; nothing else leaves it."""

from __future__ import annotations

from tieout.artifacts.errors import Exit, RoomError

__all__ = ["Exit", "LedgerError"]


class LedgerError(RoomError):
    """The record: a row, the log, or what an audit reads."""
