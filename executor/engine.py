"""The engine as the rest of the room sees it: validate a text, run it, name itself.

All of DuckDB lives in children of a fork server (`worker.py`), so that any of them can be killed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import os
import platform
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeAlias

import pyarrow as pa

from tieout.artifacts.address import Address
from tieout.executor import wire
from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.failures import FAILURES
from tieout.executor.forked import ForkServer, out_of_memory
from tieout.executor.sandbox import LAYERS, Layer
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.settings import (
    ENGINE_BUILD,
    ENGINE_VERSION,
    HOST_FACTS,
    settings_that_matter,
)
from tieout.executor.sql.text import check_text
from tieout.executor.sql.validate import Finding, GrantedTable, ValidatedSql, validate

Arrow: TypeAlias = Any
"""pyarrow is untyped: a pyarrow.Table."""

KEPT_BYTES_MIN = 4 << 20
"""Below this a table is loaded into memory each time: faster than opening an engine file."""
COPY_BYTES = 1 << 20
CPU_FEATURES = ("avx2", "avx512f", "fma")


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Bounds of one request; a value is refused or a run ended when one is reached.

    A step makes up to three requests, each in a child of its own with these bounds anew: the
    validation of its text, its run, and the countercheck.

    seconds_max: wall seconds, half a second after which the parent ends the child, and CPU seconds,
    a second after which the kernel does. validation_seconds_max: the same for a validation, where
    it is less. memory_bytes_max: the engine's own memory; address space is 512 MiB above it, beside
    what the child starts with and the tables mapped in. rows_max: rows kept of a result.
    result_bytes_max: bytes of its Arrow stream. sql_chars_max: characters of a query.
    """

    seconds_max: int = 30
    validation_seconds_max: int = 10
    memory_bytes_max: int = 1 << 30
    rows_max: int = 1_000_000
    result_bytes_max: int = 1 << 30
    sql_chars_max: int = 32_768


@dataclass(frozen=True, slots=True)
class TableBytes:
    """A table for a run: its address, and how to read its Arrow IPC stream when it is needed.

    read: gives the bytes, or a store's scan of them, which takes no memory here.
    kept: it will be read by many runs, so that an engine file of it may be kept in the cache.
    """

    address: Address
    read: Callable[[], bytes | AbstractContextManager[BinaryIO]]
    kept: bool = True


@dataclass(frozen=True, slots=True)
class EngineResult:
    """table: pyarrow.Table in the order of the result. complete: False when rows_max cut it."""

    table: Arrow
    complete: bool


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Which engine. settings are the same everywhere; libc, cpu and sandbox are of this machine.

    sandbox: the mode that a child of the worker reached, such as "landlock-7+seccomp" or "none".
    """

    name: str
    version: str
    build: str
    settings: Mapping[str, str]
    libc: str
    cpu: tuple[str, ...]
    sandbox: str = ""

    def recorded(self) -> dict[str, str]:
        """What a ledger row says of it: the settings, and the facts of the host beside them."""
        host = (" ".join(self.cpu), self.libc, self.sandbox)
        return {**self.settings, **dict(zip(HOST_FACTS, host, strict=True))}


class Engine:
    """A context manager over one fork server; threads may share it.

    cache: folder for engine files keyed by table address, or None; may be emptied at any time.
    layers: of the operating system's lock; the worker enters those that the kernel has, and
    `info.sandbox` says which.
    """

    def __init__(
        self, *, cache: Path | None, limits: EngineLimits, layers: frozenset[Layer] = LAYERS
    ) -> None:
        self.limits = limits
        self._cache = (
            None if cache is None else cache.resolve() / f"{ENGINE_VERSION}-{ENGINE_BUILD}"
        )
        self._server = ForkServer(layers=layers)
        self._partials = 0
        self._lock = threading.Lock()
        self._named = _info(limits)

    @functools.cached_property
    def info(self) -> EngineInfo:
        """Which engine, and how its children are shut in; the worker is started to find out.

        Raises ExecutorError engine.unavailable, engine.other_build.
        """
        return dataclasses.replace(self._named, sandbox=self._server.sandbox())

    def __enter__(self) -> Self:
        self._server.pid()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the fork server and its children. Idempotent."""
        self._server.close()

    @property
    def worker_pid(self) -> int:
        """The process id of the fork server."""
        return self._server.pid()

    def validate(
        self, sql: str, tables: Mapping[str, GrantedTable], *, as_of: str | None = None
    ) -> ValidatedSql:
        """Admit a text over the granted tables, all parsing in a child.

        as_of: ISO date that the question sets, which the clock then shows.

        Raises SqlRefused; ExecutorError limit.seconds, limit.memory, engine.crashed.
        """
        return validate(sql, tables, examine=partial(self._examine, as_of=as_of))

    def _examine(
        self, sql: str, tables: Mapping[str, GrantedTable], *, as_of: str | None
    ) -> Finding:
        if len(sql) > self.limits.sql_chars_max:
            check_text(sql, chars_max=self.limits.sql_chars_max)  # refuses it; nothing is read
        request: wire.Document = {
            "sql": sql,
            "tables": wire.tables_to_json(dict(tables)),
            "chars_max": self.limits.sql_chars_max,
            "as_of": as_of,
        }
        document, _file = self._ask("examine", request, [])
        found = document["finding"]
        assert isinstance(found, dict)
        return wire.finding_from_json(found)

    def run(
        self,
        validated: ValidatedSql,
        tables: Mapping[str, TableBytes],
        *,
        opposite: bool = False,
    ) -> EngineResult:
        """Run the validated bytes over tables of the granted names; those not used are not read.

        opposite: run the countercheck instead, in which each order that was added is turned round.

        Raises ExecutorError: sql.conversion, sql.overflow, sql.several_rows, sql.value,
        limit.seconds, limit.memory, limit.bytes, engine.crashed, engine.failed, engine.input.
        """
        sql = validated.countercheck if opposite else validated.executed
        missing = [name for name in validated.tables if name not in tables]
        if missing:
            raise _failure("engine.input", f"the table {missing[0]} was not handed over")
        kept = {n: p for n in validated.tables if (p := self._kept(n, tables[n])) is not None}
        try:
            return self._run(validated, sql, tables, kept)
        except ExecutorError as error:
            if error.code != "engine.cache" or not kept:
                raise
        for path in kept.values():
            path.unlink(missing_ok=True)
        return self._run(validated, sql, tables, {})

    def _run(
        self,
        validated: ValidatedSql,
        sql: str,
        tables: Mapping[str, TableBytes],
        kept: Mapping[str, Path],
    ) -> EngineResult:
        listed: list[wire.Json] = []
        files: list[int] = []
        try:
            for name in validated.tables:
                path = kept.get(name)
                listed.append([name, None if path is None else str(path)])
                if path is None:
                    files.append(_memory_file(tables[name].read()))
            request: wire.Document = {
                "sql": sql,
                "tables": listed,
                "rows_max": self.limits.rows_max,
            }
            document, file = self._ask("run", request, files)
        finally:
            wire.close_all(files)
        return _named(_result(document, file), validated)

    def _kept(self, name: str, table: TableBytes) -> Path | None:
        """The engine file of a table, written now if it is worth one; None: load into memory."""
        if self._cache is None or not table.kept:
            return None
        path = self._cache / f"{table.address.hex}-{Address.of(name.encode()).hex[:16]}.duckdb"
        if path.exists():
            return path
        file = _memory_file(table.read())
        if os.fstat(file).st_size < KEPT_BYTES_MIN:
            os.close(file)
            return None
        with self._lock:
            self._partials += 1
            partial = path.with_suffix(f".{os.getpid()}.{self._partials}.partial")
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
            self._ask("keep", {"name": name, "path": str(partial)}, [file])
            partial.replace(path)
        except (OSError, ExecutorError):  # a cache that cannot be written is done without
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            return None
        finally:
            os.close(file)
        return path

    def _ask(
        self, kind: str, request: wire.Document, files: list[int]
    ) -> tuple[wire.Document, int]:
        seconds = self.limits.seconds_max
        if kind == "examine":  # constants are computed there
            seconds = min(seconds, self.limits.validation_seconds_max)
        bounds: wire.Document = {
            "kind": kind,
            "memory_bytes": self.limits.memory_bytes_max,
            "cpu_s": seconds,
            "file_bytes": self.limits.result_bytes_max if kind == "run" else 1 << 40,
        }
        answer = self._server.ask({**request, **bounds}, files, seconds_max=float(seconds))
        document = answer.document
        if "refused" in document:
            raise _refused(document)
        if "failed" in document:
            raise _failure(str(document["failed"]))
        return document, answer.file


def _memory_file(opened: bytes | AbstractContextManager[BinaryIO]) -> int:
    """An anonymous file in memory that holds the bytes; those of a scan were checked at its end."""
    with contextlib.ExitStack() as undone:
        number = os.memfd_create("table")
        undone.callback(os.close, number)
        stream = io.BytesIO(opened) if isinstance(opened, bytes) else opened
        with stream as source:
            while block := source.read(COPY_BYTES):
                rest = memoryview(block)
                while rest:
                    rest = rest[os.write(number, rest) :]
        undone.pop_all()
    return number


def _named(result: EngineResult, validated: ValidatedSql) -> EngineResult:
    """Under the names of the text as asked: a rewrite changes those of bare expressions."""
    names = [name for name, _kind in validated.columns]
    return replace(result, table=result.table.rename_columns(names))


def _result(document: wire.Document, file: int) -> EngineResult:
    try:
        with pa.memory_map(f"/proc/self/fd/{file}") as source, pa.ipc.open_stream(source) as reader:
            table = reader.read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise _failure("engine.failed") from error
    finally:
        os.close(file)
    return EngineResult(table=table, complete=bool(document["complete"]))


def _refused(document: wire.Document) -> SqlRefused:
    line, column = document.get("line"), document.get("column")
    return SqlRefused(
        str(document["refused"]),
        str(document["message"]),
        remedy=str(document["remedy"]),
        line=line if isinstance(line, int) else None,
        column=column if isinstance(column, int) else None,
        reasons=wire.reasons_from_json(document["reasons"]),
    )


def _failure(code: str, message: str = "") -> ExecutorError:
    """The engine's failure by class; its own words stay in the child: they may hold cell values."""
    if code == "limit.memory":
        return out_of_memory()
    known, remedy = FAILURES.get(code, FAILURES["engine.failed"])
    return ExecutorError(code, message or known, remedy=remedy, exit_code=Exit.INCOMPLETE)


def _info(limits: EngineLimits) -> EngineInfo:
    try:
        have = version("duckdb")
    except PackageNotFoundError as error:
        raise ExecutorError(
            "engine.unavailable",
            "duckdb is not installed",
            remedy="Install tieout with the run extra.",
            exit_code=Exit.ENVIRONMENT,
        ) from error
    if have != ENGINE_VERSION:
        raise ExecutorError(
            "engine.other_build",
            f"duckdb {have} is installed; results are promised on {ENGINE_VERSION}",
            remedy=f"Install duckdb=={ENGINE_VERSION}.",
            exit_code=Exit.OTHER_FORMAT,
        )
    _interpreted()
    return EngineInfo(
        name="duckdb",
        version=have,
        build=ENGINE_BUILD,
        settings=settings_that_matter(limits.memory_bytes_max),
        libc=" ".join(platform.libc_ver()),
        cpu=_cpu_features(),
    )


def _interpreted() -> None:
    """The second parser is sqlglot without its function tables, which a compiled one keeps."""
    with contextlib.suppress(PackageNotFoundError):
        version("sqlglotc")
        raise ExecutorError(
            "engine.other_parser",
            "sqlglotc is installed; the second parser is the interpreted sqlglot",
            remedy="Uninstall sqlglotc.",
            exit_code=Exit.ENVIRONMENT,
        )


def _cpu_features() -> tuple[str, ...]:
    """Which of the features that change the last digits of libm this processor has."""
    try:
        text = Path("/proc/cpuinfo").read_text("ascii", errors="replace")
    except OSError:
        return ()
    words = set(text.split())
    return tuple(f for f in CPU_FEATURES if f in words)
