"""The fork server: opens an empty engine once, and forks one bounded, shut-in child per request.

Run as `python -m tieout.executor.worker FD LAYERS` by `Engine`; it ends when the other end of FD
closes. Its first words on FD are the sandbox mode that a child of its own reached, and the engine's
build as the engine gives it. Each request brings a socket and a pipe. The child answers on the
socket; the server writes how the child ended into the pipe. Nothing here is shown to anybody:
standard error is closed.

The server's engine has seen no table and no text but our own, and has no thread, so that each child
starts from the same fresh state; opening and settling one took 30 of the 45 ms of a small request.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot.dialects.duckdb import DuckDB

from tieout.executor import wire
from tieout.executor.failures import code_of
from tieout.executor.sandbox import Layer, Sandbox, layers_of
from tieout.executor.sql import functions, session
from tieout.executor.sql.examine import examine
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.validate import GrantedColumn, GrantedTable

SPARE_BYTES = 512 << 20
"""Address space above the engine's own memory_limit and the tables that are mapped in.

An engine that is opened by a child needs 1.2 GB; one that is forked, and starts no thread, did the
same work with 128 MiB at limits of 64 MiB, 256 MiB and 1 GiB.
"""
SPARE_CPU_S = 1
BATCH_ROWS = 65_536
FILE_BYTES_MAX = 1 << 40
PR_SET_PDEATHSIG = 1
MODE_BYTES_MAX = 256
STATM_BYTES_MAX = 256

WARMED = GrantedTable("a", (GrantedColumn("b", "INTEGER"), GrantedColumn("c", "VARCHAR")), ("b",))
WARMING: wire.Document = {
    "sql": "SELECT c, sum(b) AS s FROM a WHERE b > 0 GROUP BY c ORDER BY s",
    "tables": wire.tables_to_json({WARMED.name: WARMED}),
    "memory_bytes": 1 << 28,
    "chars_max": 100,
    "as_of": None,
}
"""A text of our own for the gates, before any of a model's; its engine is thrown away."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What each child starts with: an engine without a table, and its way into the sandbox."""

    engine: duckdb.DuckDBPyConnection
    sandbox: Sandbox
    libc: ctypes.CDLL


class _NotShutIn(Exception):
    """A layer that the probe had reached could not be entered."""


def main(arguments: list[str]) -> int:
    """Serve until the control socket closes."""
    control = socket.socket(fileno=int(arguments[0]))
    sqlglot.parse_one("SELECT 1", dialect=DuckDB)
    functions.classes()
    libc = ctypes.CDLL(None, use_errno=True)
    mode = _probed({Layer(name) for name in arguments[1].split("+") if name}, libc)
    origin = Origin(_template(libc), Sandbox(layers_of(mode), libc), libc)
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    gc.collect()
    gc.freeze()
    gc.disable()  # a child is short and bounded; a collection would copy the server's pages into it
    control.send(f"{mode} {session.build(origin.engine)}".encode())  # ready
    _accept(control, wake, origin)
    return 0


def _template(libc: ctypes.CDLL) -> duckdb.DuckDBPyConnection:
    """An engine to fork. One with threads must not be: a child would lack them and their locks."""
    threads = Path("/proc/self/task")
    before = len(list(threads.iterdir()))
    # What the gates load and compile late is there for every child: 6 of its 31 ms.
    _examine(WARMING, [], Origin(session.connect(), Sandbox((), libc), libc))
    engine = session.connect()
    session.warm(engine)
    if len(list(threads.iterdir())) != before:
        raise RuntimeError
    return engine


def _probed(layers: Collection[Layer], libc: ctypes.CDLL) -> str:
    """The mode that a process of this machine reaches: one is made that enters and tries it."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writer, Sandbox(layers, libc).probe().encode())
        finally:
            os._exit(0)
    os.close(writer)
    mode = os.read(reader, MODE_BYTES_MAX).decode()
    os.close(reader)
    os.waitpid(child, 0)
    return mode


def _accept(control: socket.socket, wake: int, origin: Origin) -> None:
    """Fork a child per request and tell how each ended, until nobody can ask any more."""
    running: dict[int, int] = {}
    control.send(b".")  # ready
    while True:
        watch = select.poll()
        watch.register(control, select.POLLIN)
        watch.register(wake, select.POLLIN)
        for pipe in running.values():
            watch.register(pipe, 0)  # told only when nobody reads it any more
        ready = {number for number, _event in watch.poll()}
        for child, pipe in running.items():
            if pipe in ready:
                os.kill(child, signal.SIGKILL)
        if wake in ready:
            os.read(wake, 4096)
        _reap(running)
        if control.fileno() in ready:
            note, files, _flags, _address = socket.recv_fds(control, 1, 2)
            if not note:
                break
            _start(control, files, running, origin)
    for child in running:
        os.kill(child, signal.SIGKILL)


def _reap(running: dict[int, int]) -> None:
    """Say how each ended child ended, and let it go."""
    for child in list(running):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            pipe = running.pop(child)
            ended = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            with contextlib.suppress(BrokenPipeError):  # the parent no longer asks
                os.write(pipe, str(ended).encode())
            os.close(pipe)


def _start(
    control: socket.socket, files: list[int], running: dict[int, int], origin: Origin
) -> None:
    request, pipe = files
    server = os.getpid()
    child = os.fork()
    if child:
        running[child] = pipe
        os.close(request)
        return
    status = 1
    try:
        origin.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == server:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            wire.close_all([pipe, *running.values()])
            _serve(socket.socket(fileno=request), origin)
            status = 0
    except MemoryError:
        status = 2
    finally:
        os._exit(status)


def _serve(peer: socket.socket, origin: Origin) -> None:
    """One request: hand over a handle on this process, take the bounds, do it, answer."""
    handle = os.pidfd_open(os.getpid())
    socket.send_fds(peer, [b"."], [handle])
    os.close(handle)
    received = wire.receive(peer)
    if received is None:
        return
    request, files = received
    _bound(request, sum(os.fstat(file).st_size for file in files))
    document, given = answer(request, files, origin)
    wire.send(peer, document, given)


def answer(
    request: wire.Document, files: list[int], origin: Origin
) -> tuple[wire.Document, list[int]]:
    """What one request comes to, and the files handed over; this process is shut in by it."""
    kinds = {"examine": _examine, "run": _run, "keep": _keep}
    failed = "engine.failed"
    try:
        return kinds[str(request["kind"])](request, files, origin)
    except SqlRefused as refused:
        return _refusal(refused), []
    except _NotShutIn:
        failed = "engine.sandbox"
    except MemoryError:
        failed = "limit.memory"
    except duckdb.Error as error:
        failed = code_of(str(error))
    except OSError as error:
        code = {errno.EFBIG: "limit.bytes", None: code_of(str(error))}.get(error.errno)
        failed = code or "engine.input"
    except pa.ArrowInvalid:
        failed = "engine.input"
    except RecursionError:
        failed = "sql.too_complex"
    except ImportError:  # a module that something wanted late: no file can be opened any more
        failed = "engine.failed"
    return {"failed": failed}, []


def _bound(request: wire.Document, mapped_bytes: int) -> None:
    memory, seconds = _int(request, "memory_bytes"), _int(request, "cpu_s")
    with os.fdopen(os.open("/proc/self/statm", os.O_RDONLY), "rb", 0) as file:  # Path costs 1 ms
        size = int(file.read(STATM_BYTES_MAX).split()[0]) * resource.getpagesize()
    bounds = {
        resource.RLIMIT_AS: size + memory + mapped_bytes + SPARE_BYTES,
        resource.RLIMIT_CPU: seconds + SPARE_CPU_S,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: _int(request, "file_bytes"),
    }
    for which, value in bounds.items():
        most = resource.getrlimit(which)[1]
        soft = value if most == resource.RLIM_INFINITY else min(value, most)
        # At the hard bound of CPU the kernel kills; a second before, it says why.
        later = which == resource.RLIMIT_CPU and soft != most
        resource.setrlimit(which, (soft, soft + 1 if later else soft))


def _int(document: wire.Document, key: str) -> int:
    value = document[key]
    assert isinstance(value, int)
    return value


def _refusal(refused: SqlRefused) -> wire.Document:
    return {
        "refused": refused.code,
        "message": refused.message,
        "remedy": refused.remedy,
        "line": refused.line,
        "column": refused.column,
        "reasons": wire.reasons_to_json(refused.reasons),
    }


@contextlib.contextmanager
def _shut_in() -> Iterator[None]:
    """A layer that was promised and cannot be entered ends the request: never weaker unsaid."""
    try:
        yield
    except OSError as error:
        raise _NotShutIn from error


def _examine(
    request: wire.Document, files: list[int], origin: Origin
) -> tuple[wire.Document, list[int]]:
    wire.close_all(files)
    with _shut_in():
        origin.sandbox.enter()
        origin.sandbox.close_files()
    tables = wire.tables_from_json(request["tables"])
    engine = origin.engine
    for name, table in tables.items():
        session.declare(engine, name, {c.name: c.type for c in table.columns})
    session.lock(engine, memory_bytes=_int(request, "memory_bytes"))
    as_of = request["as_of"]
    found = examine(
        engine,
        str(request["sql"]),
        tables,
        chars_max=_int(request, "chars_max"),
        as_of=as_of if isinstance(as_of, str) else None,
    )
    return {"finding": wire.finding_to_json(found)}, []


def _run(
    request: wire.Document, files: list[int], origin: Origin
) -> tuple[wire.Document, list[int]]:
    """Load or open the tables, lock, run the text, write at most rows_max rows to a memory file."""
    engine = origin.engine
    kept: list[Path] = []
    incoming = iter(files)
    tables = wire.rows(request["tables"])
    opened = [Path(str(path)) for _name, path in tables if path is not None]
    with _shut_in():
        origin.sandbox.enter(readable=[path for path in opened if path.is_file()])
    for name, path in tables:
        if path is None:
            with os.fdopen(next(incoming), "rb") as file:
                session.load(
                    engine, str(name), session.read_stream(pa.memory_map(_path(file.fileno())))
                )
        else:
            kept.append(Path(str(path)))
    session.attach(engine, kept)
    session.lock(engine, memory_bytes=_int(request, "memory_bytes"))
    with _shut_in():
        origin.sandbox.close_files()
    (statement,) = engine.extract_statements(str(request["sql"]))
    reader: session.Arrow = engine.sql(statement).to_arrow_reader(BATCH_ROWS)
    rows_max, written, complete = _int(request, "rows_max"), 0, True
    result = os.memfd_create("result")
    with os.fdopen(os.dup(result), "wb") as sink, pa.ipc.new_stream(sink, reader.schema) as out:
        for batch in reader:
            room = rows_max - written
            complete = batch.num_rows <= room
            out.write_batch(batch if complete else batch.slice(0, room))
            written += min(batch.num_rows, room)
            if not complete:
                break
    return {"complete": complete, "rows": written}, [result]


def _keep(
    request: wire.Document, files: list[int], origin: Origin
) -> tuple[wire.Document, list[int]]:
    """Write one table into an engine file at a path the parent chose."""
    engine, path = origin.engine, Path(str(request["path"]))
    with _shut_in():
        origin.sandbox.enter(kept=path.parent)
    session.create(engine, path)
    with os.fdopen(files[0], "rb") as file:
        table = session.read_stream(pa.memory_map(_path(file.fileno())))
        session.load(engine, str(request["name"]), table)
    session.finish(engine)
    return {"kept": True}, []


def _path(number: int) -> str:
    return f"/proc/self/fd/{number}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
