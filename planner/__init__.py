"""Asks for text, within bounds, and turns drafts into checked answers."""

from __future__ import annotations

from importlib import import_module
from typing import Final

_WHERE: Final = {
    "Batch": "batch",
    "ClaudeModel": "claude",
    "Model": "model",
    "PlannerError": "errors",
    "Prompt": "model",
    "RecordedModel": "recorded",
    "Report": "report",
    "WrittenModel": "written",
    "load_questions": "questions",
    "replay": "rerun",
    "run_batch": "batch",
}
__all__ = sorted(_WHERE)  # noqa: PLE0605  (names and their modules stand in one place)


def __getattr__(name: str) -> object:
    if name in _WHERE:
        return getattr(import_module(f"tieout.planner.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
