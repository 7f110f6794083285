"""The operating system's lock around a child of the fork server: its layers, entering, and modes.

Under it, text that got past every gate and past the engine's own lock still reaches no file, no
network and no other process. Source: notes on the engine, OS lock without packages.
"""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Final

from tieout.executor import landlock, seccomp

NONE: Final = "none"


class Layer(StrEnum):
    """Two kernel mechanisms; each holds alone."""

    LANDLOCK = "landlock"
    SECCOMP = "seccomp"


LAYERS: Final = frozenset(Layer)
MEANINGS: Final = {
    frozenset(LAYERS): "no file, network, program or other process can be reached from a query",
    frozenset({Layer.LANDLOCK}): (
        "weaker: the kernel refuses seccomp; files are shut, but system calls are not"
    ),
    frozenset({Layer.SECCOMP}): (
        "weaker: the kernel refuses Landlock; calls are shut, but files may be read while tables"
        " are loaded"
    ),
    frozenset(): (
        "weak: the kernel offers neither Landlock nor seccomp; the gates, the engine's own lock and"
        " the bounds remain"
    ),
}


def layers_of(mode: str) -> frozenset[Layer]:
    """The layers that a mode such as "landlock-7+seccomp" names."""
    named = {part.split("-", 1)[0] for part in mode.split("+")}
    return frozenset(layer for layer in Layer if layer.value in named)


def meaning(mode: str) -> str:
    """What a mode holds back, in one line for a person."""
    return MEANINGS[layers_of(mode)]


class Sandbox:
    """What a process may shut behind itself. libc: with errno; loaded before anything is shut."""

    def __init__(self, layers: Collection[Layer], libc: ctypes.CDLL) -> None:
        self.layers = frozenset(layers)
        self._libc = libc
        self._abi = landlock.abi(libc) if Layer.LANDLOCK in self.layers else 0
        self._machine = seccomp.architecture() if Layer.SECCOMP in self.layers else None

    def enter(self, *, readable: Iterable[Path] = (), kept: Path | None = None) -> None:
        """Deny all but reading the named files or, with kept, writing files in that folder.

        This process must have one thread. Raises OSError when a layer cannot be entered.
        """
        if self.layers:
            landlock.no_new_privileges(self._libc)
        if Layer.LANDLOCK in self.layers:
            landlock.restrict(self._libc, self._abi, readable=readable, kept=kept)
        if self._machine is not None:
            make = seccomp.reading if kept is None else seccomp.keeping
            seccomp.install(self._libc, self._machine, make(self._machine, os.getpid()))

    def close_files(self) -> None:
        """After `enter`: from here on no path can be opened or looked at. Raises OSError."""
        if self._machine is not None:
            seccomp.install(self._libc, self._machine, seccomp.closed(self._machine))

    def probe(self) -> str:
        """Enter for good what this kernel offers of the layers, try it, and name the mode.

        Run it in a process made for it. A layer counts only if it was seen to deny.
        """
        found = []
        if self._abi and self._try(Layer.LANDLOCK) and _is_denied(_open_a_file):
            found.append(f"{Layer.LANDLOCK}-{self._abi}")
        if self._machine is not None and self._try(Layer.SECCOMP) and _is_denied(socket.socketpair):
            found.append(str(Layer.SECCOMP))
        return "+".join(found) or NONE

    def _try(self, layer: Layer) -> bool:
        try:
            Sandbox({layer}, self._libc).enter()
        except OSError:
            return False
        return True


def _open_a_file() -> object:
    with Path("/proc/self/status").open("rb") as file:
        return file.read(1)


def _is_denied(act: Callable[[], object]) -> bool:
    try:
        act()
    except PermissionError:
        return True
    except OSError:
        return False
    return False
