"""Where time goes: wall and CPU seconds of named stages, each without those inside it."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from tieout.artifacts.address import Address
from tieout.artifacts.layers import Overlay
from tieout.artifacts.pieces import Payload
from tieout.artifacts.store import RetentionClass, Stored
from tieout.executor.engine import Engine, EngineResult, TableBytes
from tieout.executor.sql.validate import GrantedTable, ValidatedSql
from tieout.ledger.log import Log, Recorded
from tieout.ledger.row import LedgerRow

Result = TypeVar("Result")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """Seconds: by the clock on the wall, and of all processors."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.wall_s - other.wall_s, self.cpu_s - other.cpu_s)


@dataclass
class Stages:
    """A stop-watch with names. children: ids of processes that work for this one."""

    children: Callable[[], Sequence[int]] = tuple
    costs: dict[str, Cost] = field(default_factory=lambda: defaultdict(Cost))
    _inside: list[Cost] = field(default_factory=list)

    def now(self) -> Cost:
        cpu = time.process_time() + sum(cpu_of(child) for child in self.children())
        return Cost(time.perf_counter(), cpu)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what happens inside to this name, less the stages inside it."""
        start = self.now()
        self._inside.append(Cost())
        try:
            yield
        finally:
            whole = self.now() - start
            self.costs[name] += whole - self._inside.pop()
            if self._inside:
                self._inside[-1] += whole

    def counted(self, name: str, function: Callable[..., Result]) -> Callable[..., Result]:
        """The same function, its time counted to a name."""

        @wraps(function)
        def inner(*positional: Any, **named: Any) -> Result:
            with self.stage(name):
                return function(*positional, **named)

        return inner


def cpu_of(process: int) -> float:
    """CPU seconds of a process and of its ended children, as /proc tells (in ticks of 10 ms)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / TICKS_PER_S


class TimedStore(Overlay):
    """A fresh store over the one with the sources, so that each run writes its own objects."""

    stages: Stages

    def put(self, payload: Payload, *, retention: RetentionClass = RetentionClass.RETAIN) -> Stored:
        with self.stages.stage("put"):
            return super().put(payload, retention=retention)

    @contextmanager
    def scan(self, address: Address) -> Iterator[BinaryIO]:
        with self.stages.stage("read back"), super().scan(address) as stream:
            yield stream


class TimedEngine(Engine):
    """The engine, its two calls counted."""

    stages: Stages

    def validate(self, sql: str, tables: Any, **more: Any) -> ValidatedSql:
        granted: dict[str, GrantedTable] = tables
        with self.stages.stage("validate"):
            return super().validate(sql, granted, **more)

    def run(self, validated: ValidatedSql, tables: Any) -> EngineResult:
        handed: dict[str, TableBytes] = tables
        with self.stages.stage("run"):
            return super().run(validated, handed)


class TimedLog:
    """A log, its appends counted."""

    def __init__(self, log: Log, stages: Stages) -> None:
        self._log, self._stages = log, stages

    def append(self, rows: Sequence[LedgerRow]) -> tuple[Recorded, ...]:
        with self._stages.stage("record"):
            return self._log.append(rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)
