"""The parent's side of the fork server: start it, ask it, kill a child at its bound."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import dataclass

from tieout.executor import wire
from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.sandbox import LAYERS, Layer
from tieout.executor.sql.settings import ENGINE_BUILD, ENGINE_VERSION

GRACE_S = 0.5
"""Wall time a child gets above its bound: binding and sending are inside the bound."""
START_WAIT_S = 60.0
STOP_WAIT_S = 5.0
KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "GLIBC_TUNABLES", "VIRTUAL_ENV")
"""The environment a worker gets; no credentials, no home, no locale of the host."""
FIXED_VARIABLES = {
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # a process that forks has one thread
}
OUT_OF_MEMORY_STATUS = 2
READY_BYTES_MAX = 256
_NO_START = "the engine's worker does not start"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a child said, and the open file it handed over, or -1. Close the file."""

    document: wire.Document
    file: int


class ForkServer:
    """One worker process that forks a bounded child per request; started when first asked.

    layers: of the operating system's lock that children enter if the kernel has them.
    """

    def __init__(self, *, layers: frozenset[Layer] = LAYERS) -> None:
        self._layers = layers
        self._mode = ""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._stop: weakref.finalize[[subprocess.Popen[bytes], socket.socket], ForkServer] | None
        self._stop = None

    def pid(self) -> int:
        """The process id of the running server, started if need be.

        Raises ExecutorError engine.unavailable, engine.other_build.
        """
        with self._lock:
            return self._running()[0].pid

    def sandbox(self) -> str:
        """The mode a child of the running server reached, such as "landlock-7+seccomp", "none"."""
        with self._lock:
            self._running()
            return self._mode

    def close(self) -> None:
        """End the server and, with it, each child. Idempotent."""
        with self._lock:
            if self._stop is not None:
                self._stop()
            self._process = self._control = self._stop = None

    def _running(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        if self._process is not None and self._control is not None:
            if self._process.poll() is None:
                return self._process, self._control
            if self._stop is not None:
                self._stop()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        kept = {k: os.environ[k] for k in KEPT_VARIABLES if k in os.environ}
        try:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "tieout.executor.worker"),
                    *(str(theirs.fileno()), "+".join(sorted(self._layers))),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**kept, **FIXED_VARIABLES},
                cwd="/",
            )
        except OSError as error:
            ours.close()
            raise _environment("the engine's worker cannot be started") from error
        finally:
            theirs.close()
        self._mode, _space, build = _first_words(ours).partition(" ")
        if build != ENGINE_BUILD:
            _end(process, ours)
            raise _other_build(build) if build else _environment(_NO_START)
        self._process, self._control = process, ours
        self._stop = weakref.finalize(self, _end, process, ours)
        return process, ours

    def ask(self, request: wire.Document, files: list[int], *, seconds_max: float) -> Answer:
        """One request in one fresh child; its process is gone when this returns.

        seconds_max: wall seconds. Raises ExecutorError: limit.seconds, limit.memory,
        engine.crashed, engine.unavailable.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ended, ending = os.pipe()
        try:
            with self._lock:
                _process, control = self._running()
                try:
                    socket.send_fds(control, [b"."], [theirs.fileno(), ending])
                except OSError as error:
                    raise _crashed() from error
        except ExecutorError:
            ours.close()
            os.close(ended)
            raise
        finally:
            theirs.close()
            os.close(ending)
        return _converse(ours, ended, request, files, seconds_max=seconds_max)


def _converse(
    peer: socket.socket, ended: int, request: wire.Document, files: list[int], *, seconds_max: float
) -> Answer:
    """Speak with the child until it answers, ends, or must be ended."""
    deadline = time.monotonic() + seconds_max + GRACE_S
    handle = -1
    received: tuple[wire.Document, list[int]] | None = None
    late = False
    try:
        peer.settimeout(seconds_max + GRACE_S)
        _mark, handles, _flags, _address = socket.recv_fds(peer, 1, 1)
        handle = handles[0] if handles else -1
        if handle >= 0:
            wire.send(peer, request, files)
            peer.settimeout(max(0.001, deadline - time.monotonic()))
            received = wire.receive(peer)
    except TimeoutError:
        late = True
    except OSError:
        received = None
    finally:
        if received is None and handle >= 0:
            _kill(handle, wait=False)
        peer.close()
        if handle >= 0:
            _kill(handle, wait=True)
            os.close(handle)
        status = _status(ended, known=handle >= 0)
    if received is None:
        raise _bound_reached(status, late=late)
    document, given = received
    wire.close_all(given[1:])
    return Answer(document=document, file=given[0] if given else -1)


def _kill(handle: int, *, wait: bool) -> None:
    """Kill the process behind a handle; with wait, return when it has ended."""
    if wait and select.select([handle], [], [], STOP_WAIT_S)[0]:
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:  # it has ended by itself
        return
    if wait:
        select.select([handle], [], [], STOP_WAIT_S)


def _status(ended: int, *, known: bool) -> int | None:
    """How the child ended, said by the server that reaped it; None when the server is gone.

    A child that never gave a handle is not waited for: closing the pipe makes the server kill it.
    """
    try:
        if not select.select([ended], [], [], STOP_WAIT_S if known else 0)[0]:
            return None
        said = os.read(ended, 32)
    finally:
        os.close(ended)
    return int(said) if said else None


def _bound_reached(status: int | None, *, late: bool) -> ExecutorError:
    if late or status == -signal.SIGXCPU:
        return ExecutorError(
            "limit.seconds",
            "the query ran longer than it may",
            remedy="Narrow it with WHERE, aggregate earlier, or split it into steps.",
            exit_code=Exit.INCOMPLETE,
        )
    if status in {OUT_OF_MEMORY_STATUS, -signal.SIGABRT}:
        return out_of_memory()
    return _crashed()


def out_of_memory() -> ExecutorError:
    """The memory bound was reached."""
    return ExecutorError(
        "limit.memory",
        "the query needs more memory than it may have",
        remedy="Aggregate earlier, select fewer columns, or split it into steps.",
        exit_code=Exit.INCOMPLETE,
    )


def _crashed() -> ExecutorError:
    return ExecutorError(
        "engine.crashed",
        "the engine's worker ended without an answer",
        remedy="Run the step again; if it ends so again, write the query another way.",
        exit_code=Exit.INCOMPLETE,
    )


def _environment(message: str) -> ExecutorError:
    return ExecutorError(
        "engine.unavailable",
        message,
        remedy="Run tieout doctor; reinstall with the run extra if duckdb is missing.",
        exit_code=Exit.ENVIRONMENT,
    )


def _other_build(build: str) -> ExecutorError:
    return ExecutorError(
        "engine.other_build",
        f"the engine is build {build}; results are promised on {ENGINE_BUILD}",
        remedy=f"Install duckdb=={ENGINE_VERSION} from its own wheel.",
        exit_code=Exit.OTHER_FORMAT,
    )


def _first_words(control: socket.socket) -> str:
    """Wait for the server's first words: loading the engine is not on any query's time."""
    control.settimeout(START_WAIT_S)
    try:
        words = control.recv(READY_BYTES_MAX).decode("ascii", errors="replace")
    except OSError:  # a timeout is one too
        words = ""
    control.settimeout(None)
    return words


def _end(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    """Close the control socket, on which the server ends; kill it if it does not."""
    control.close()
    try:
        process.wait(STOP_WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
