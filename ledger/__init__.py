"""What happened, in order, provably: rows, the log, citations, the independent check."""

from __future__ import annotations

from importlib import import_module
from typing import Final

_WHERE: Final = {
    "Answer": "citation",
    "CellCitation": "citation",
    "Figure": "citation",
    "Label": "citation",
    "LedgerError": "errors",
    "LedgerRow": "row",
    "Log": "log",
    "MemoryLog": "log",
    "SpanCitation": "citation",
    "SqliteLog": "sqlite",
    "create": "sqlite",
    "open_log": "sqlite",
    "read_log": "sqlite",
}
__all__ = sorted(_WHERE)  # noqa: PLE0605  (names and their modules stand in one place)


def __getattr__(name: str) -> object:
    if name in _WHERE:
        return getattr(import_module(f"tieout.ledger.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
