"""Tieout: answers whose figures lead back to the rows and the line of the file.

The names offered here are the whole public interface; they are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieout.artifacts.version import VERSION

if TYPE_CHECKING:
    from tieout.artifacts.errors import RoomError as Error
    from tieout.workspace import Workspace, init_workspace, open_workspace

__version__ = VERSION
__all__ = ["Error", "Workspace", "__version__", "init_workspace", "open_workspace"]


def __getattr__(name: str) -> object:
    if name == "Error":
        from tieout.artifacts.errors import RoomError

        return RoomError
    if name in {"Workspace", "init_workspace", "open_workspace"}:
        from tieout import workspace

        return getattr(workspace, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
