"""The operating system's lock alone: an engine with every door open, in a child that is shut in.

No gate, no lock of the engine, no least catalog: what still fails here, the kernel refuses. Each
text runs in a fresh child. As a program it is the server of `Sandboxed`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap  # noqa: F401 -- for the code of a test
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading  # noqa: F401 -- for the code of a test
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tieout.executor.sandbox import LAYERS, Layer, Sandbox
from tieout.executor.sql import session

SECONDS = 5
MEMORY_BYTES = 256 << 20
SPARE_BYTES = 1_288_490_189
ROWS_READ_MAX = 1_000
SAID_CHARS_MAX = 400
ANSWERS = (
    *(duckdb.Error, OSError, MemoryError, RecursionError, ValueError, RuntimeError),
    *(subprocess.SubprocessError, NotImplementedError, TypeError, OverflowError),
    AssertionError,
)


@dataclass(frozen=True)
class Outcome:
    """kind: rows (said: how many, and the first one), error (said: class and words), killed.

    A text killed says by which signal. rows are those of the last statement.
    """

    kind: str
    said: str


class Sandboxed:
    """A context manager over a server that forks a shut-in child per text.

    setup: statements of ours that each child's engine has run before it is shut in.
    tracer: a command before the server's own, such as strace with its options.
    """

    def __init__(
        self,
        *,
        layers: Collection[Layer] = LAYERS,
        setup: Sequence[str] = (),
        tracer: Sequence[str] = (),
        cwd: Path | str = "/",
    ) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # At its largest a packet holds some 200 kB, more than a text may have.
        self._control = ours
        with theirs:
            self._process = subprocess.Popen(
                [
                    *(*tracer, sys.executable, "-P", __file__),
                    *(str(theirs.fileno()), "+".join(sorted(layers)), json.dumps(list(setup))),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "JE_ARROW_MALLOC_CONF": "background_thread:false"},
                cwd=cwd,
            )
        self.mode = ours.recv(256).decode()
        """What a child of the server reached."""
        assert self.mode, "the server did not start"

    def __enter__(self) -> Sandboxed:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._control.close()
        self._process.wait(60)

    @property
    def pid(self) -> int:
        """The server's process id (with a tracer, the tracer's)."""
        return self._process.pid

    def sql(self, text: str, *, seconds: int = SECONDS) -> Outcome:
        """Run a text, all of its statements, on the unlocked engine of a fresh child."""
        return self._ask("sql", text, seconds)

    def python(self, code: str, *, seconds: int = SECONDS) -> Outcome:
        """Run Python, with what this module has imported, in a fresh child: raw system calls."""
        return self._ask("python", code, seconds)

    def _ask(self, kind: str, text: str, seconds: int) -> Outcome:
        self._control.send(json.dumps([kind, text, seconds]).encode("utf-8", "surrogatepass"))
        document = json.loads(self._control.recv(1 << 20))
        return Outcome(document["kind"], document["said"])


def run_unlocked_in_sandbox(text: str, *, layers: Collection[Layer] = LAYERS) -> Outcome:
    """One text on an unlocked engine under these layers alone."""
    with Sandboxed(layers=layers) as shut:
        return shut.sql(text)


def serve(control: socket.socket, layers: Collection[Layer], setup: Sequence[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(0x7FFF)  # resolved before anything is shut
    engine = duckdb.connect(":memory:", config={"threads": "1", "async_threads": "0"})
    session.warm(engine)
    for statement in setup:
        engine.execute(statement).fetchall()
    control.send(_probed(layers, libc).encode())
    while request := control.recv(1 << 20):
        kind, text, seconds = json.loads(request)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.close(reader)
                control.close()
                answer = _child(engine, Sandbox(layers, libc), kind, text, seconds)
                os.write(writer, json.dumps(answer).encode())
            finally:
                os._exit(0)
        os.close(writer)
        control.send(_answer(child, reader, seconds))


def _probed(layers: Collection[Layer], libc: ctypes.CDLL) -> str:
    reader, writer = os.pipe()
    if not os.fork():
        os.write(writer, Sandbox(layers, libc).probe().encode())
        os._exit(0)
    os.close(writer)
    mode = os.read(reader, 256).decode()
    os.close(reader)
    os.wait()
    return mode


def _answer(child: int, reader: int, seconds: int) -> bytes:
    ready = select.select([reader], [], [], seconds + 1)[0]
    said = os.read(reader, 1 << 16) if ready else b""
    os.close(reader)
    with contextlib.suppress(ProcessLookupError):
        if not ready:
            os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if said:
        return said
    ended = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "no answer"
    return json.dumps({"kind": "killed", "said": ended}).encode()


def _child(
    engine: duckdb.DuckDBPyConnection, box: Sandbox, kind: str, text: str, seconds: int
) -> dict[str, str]:
    size = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    engine.execute(f"SET memory_limit='{MEMORY_BYTES}B'")
    for which, bound in (
        (resource.RLIMIT_AS, size + MEMORY_BYTES + SPARE_BYTES),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(which, (bound, bound))
    box.enter()
    box.close_files()
    said = ""
    try:
        if kind == "python":
            _python(text)
        else:
            for statement in engine.extract_statements(text):
                said = _rows(engine.execute(statement))
    except ANSWERS as error:
        said = f"{type(error).__name__}: {error}"[:SAID_CHARS_MAX]
        return {"kind": "error", "said": said.encode("ascii", "replace").decode()}
    return {"kind": "rows", "said": said}


def _python(code: str) -> None:
    process = os.getpid()
    try:
        exec(code, {**globals(), "libc": ctypes.CDLL(None, use_errno=True)})  # noqa: S102
    finally:
        if os.getpid() != process:  # a child of its own, where that is not refused
            os._exit(0)


def _rows(done: duckdb.DuckDBPyConnection) -> str:
    """A result read to its end: how many rows, and the first."""
    count, first = 0, ""
    while done.description is not None and (rows := done.fetchmany(ROWS_READ_MAX)):
        first = first or repr(rows[0])[:SAID_CHARS_MAX]
        count += len(rows)
    return f"{count}: {first}".encode("ascii", "replace").decode()


if __name__ == "__main__":
    serve(
        socket.socket(fileno=int(sys.argv[1])),
        {Layer(name) for name in sys.argv[2].split("+") if name},
        json.loads(sys.argv[3]),
    )
