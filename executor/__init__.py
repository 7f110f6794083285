"""Runs validated instructions, deterministic and read-only, and records before it shows."""

from __future__ import annotations

from importlib import import_module
from typing import Final

_WHERE: Final = {
    "Catalog": "catalog",
    "Engine": "engine",
    "EngineLimits": "engine",
    "ExecutorError": "errors",
    "Limits": "limits",
    "Receipt": "record",
    "Recorder": "record",
    "Shown": "record",
    "SystemClock": "clock",
    "World": "world",
    "load_catalog": "catalog",
    "parse_turn": "grammar",
    "perform": "step",
}
__all__ = sorted(_WHERE)  # noqa: PLE0605  (names and their modules stand in one place)


def __getattr__(name: str) -> object:
    if name in _WHERE:
        return getattr(import_module(f"tieout.executor.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
