"""A step beside the same query run by bare DuckDB writing Parquet; and the snapshot of a CSV file.

    python bench/step.py [--rows N] [--repeats N] [--save]

Method. One process, one run. Bare: DuckDB in this process, the table in a database file on the same
disk, `COPY (query) TO file (FORMAT parquet)`: with our number of threads and with all; then with
our number of threads, zstd and fsync of file and folder, over an open connection; and so with a
connection of its own for each query, as a step has. Ours: `perform` as a run calls it, over the
pinned snapshot: validate, run in a forked child over the engine file of the cache, canonical form
and content digest, put with fsync, the observation made from the bytes read back, one durable
ledger row. Each repeat asks all in turn, so that a noisy neighbour meets all of them, and writes
new files; a first turn is thrown away. Told are medians. CPU is of this process, of the engine's
server and its children (those in ticks of 10 ms). What bare DuckDB does not do: keep the result
under its hash, in one form for all machines, durably, with the query checked and the row written.
No figure here is a test.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pyarrow as pa
from data import COLUMNS, QUERIES, SOURCE, write_csv
from stages import Cost, Stages, TimedEngine, TimedLog, TimedStore

import tieout
from tieout.artifacts.local import LocalStore
from tieout.executor import pinning, snapshot, step
from tieout.executor.engine import EngineLimits
from tieout.executor.grammar import SqlStep
from tieout.executor.limits import Limits
from tieout.executor.record import Recorder
from tieout.executor.sql.settings import THREADS
from tieout.executor.world import World, load_pinned

RESULTS = Path(__file__).resolve().parent / "results" / "step.json"
ORDER = ("validate", "run", "canonical", "put", "read back", "observe", "record", "rest")
PIN_ORDER = ("receive", "read", "canonical", "put", "record", "rest")
MIB = 1 << 20
Figures = dict[str, Any]


def median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.wall_s for cost in costs),
        statistics.median(cost.cpu_s for cost in costs),
    )


def timed(stages: Stages, function: Callable[[], object]) -> Cost:
    start = stages.now()
    function()
    return stages.now() - start


@dataclass(frozen=True)
class Kind:
    """A way to do it with DuckDB alone. durable: zstd, and fsync of the file and its folder."""

    threads: int
    durable: bool = False
    own_connection: bool = False


def kinds() -> dict[str, Kind]:
    return {
        "same threads": Kind(THREADS),
        "all threads": Kind(len(os.sched_getaffinity(0))),
        "zstd, fsync": Kind(THREADS, durable=True),
        "zstd, fsync, own connection": Kind(THREADS, durable=True, own_connection=True),
    }


def sync(path: Path) -> None:
    """fsync of a file and of its folder."""
    for place in (path, path.parent):
        number = os.open(place, os.O_RDONLY)
        os.fsync(number)
        os.close(number)


class Bare:
    """DuckDB alone, the table in its own file."""

    def __init__(self, folder: Path, csv: Path, threads: int) -> None:
        self.out = folder / "bare" / "bare.parquet"
        self.out.parent.mkdir(exist_ok=True)
        path = folder / "bare.duckdb"
        new = not path.exists()
        self._db = duckdb.connect(str(path), config={"threads": threads})
        if new:
            types = ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS.items())
            read = f"read_csv('{csv}', header=true, columns={{{types}}})"
            self._db.execute(f"CREATE TABLE entries AS SELECT * FROM {read}")
            self._db.execute("CHECKPOINT")

    def copy(self, query: str, *, durable: bool = False) -> None:
        form = "FORMAT parquet, COMPRESSION zstd" if durable else "FORMAT parquet"
        self._db.execute(f"COPY ({query}) TO '{self.out}' ({form})")
        if durable:
            sync(self.out)

    def close(self) -> None:
        self._db.close()


def pin(folder: Path) -> tuple[Figures, Any]:
    """Snapshot the CSV file, stage by stage; return the figures and the manifest's address."""
    stages = Stages()
    with tieout.init_workspace(folder) as workspace:
        workspace.log(write=True)
        store, log = workspace.store, workspace.log(write=True)
        with (
            patch.object(pinning, "receive", stages.counted("receive", pinning.receive)),
            patch.object(snapshot, "read_csv", stages.counted("read", snapshot.read_csv)),
            patch.object(snapshot, "canonical", stages.counted("canonical", snapshot.canonical)),
            patch.object(store, "put", stages.counted("put", store.put)),
            patch.object(log, "append", stages.counted("record", log.append)),
            stages.stage("rest"),
        ):
            (pinned,) = workspace.snapshot()
    whole = sum(stages.costs.values(), Cost())
    found: Figures = {
        "rows": pinned.rows,
        "csv_bytes": (folder / "entries.csv").stat().st_size,
        "whole": asdict(whole),
        "stages": {name: asdict(stages.costs[name]) for name in PIN_ORDER},
    }
    return found, pinned.manifest


def measure(folder: Path, manifest: Any, repeats: int) -> list[Figures]:
    """Every query, bare and ours in turn."""
    csv = folder / "entries.csv"
    figures = []
    base = LocalStore(folder / ".tieout" / "store")
    limits = Limits()
    bounds = EngineLimits(
        seconds_max=limits.step_seconds_max,
        memory_bytes_max=limits.memory_mib_max * MIB,
        rows_max=limits.rows_stored_max,
        sql_chars_max=limits.sql_chars_max,
    )
    with (
        TimedEngine(cache=folder / "cache", limits=bounds) as engine,
        tieout.open_workspace(folder) as workspace,
    ):
        log = workspace.log(write=True)
        world = World(base, {"entries": load_pinned(base, manifest)})
        for number, (name, query) in enumerate(QUERIES.items()):
            own: list[Stages] = []
            bare: dict[str, list[Cost]] = {kind: [] for kind in kinds()}
            rows = 0
            for turn in range(repeats + 1):
                costs = {
                    name: bare_cost(folder, csv, query, kind) for name, kind in kinds().items()
                }
                stages = Stages(children=lambda: (engine.worker_pid,))
                place = folder / f"store-{number}-{turn}"
                world.store = TimedStore(base, LocalStore.create(place))
                world.store.stages = engine.stages = stages
                recorder = Recorder(
                    world.store,
                    TimedLog(log, stages),
                    workspace.clock,
                    f"b-{os.getpid()}-{number}-{turn}",
                )
                rows = one_step(engine, world, recorder, query, limits, stages)
                if turn:
                    own.append(stages)
                    for kind, cost in costs.items():
                        bare[kind].append(cost)
            figures.append(compared(name, query, rows, own, bare))
    return figures


def bare_cost(folder: Path, csv: Path, query: str, kind: Kind) -> Cost:
    def whole() -> None:
        own = Bare(folder, csv, kind.threads)
        own.copy(query, durable=kind.durable)
        own.close()

    with contextlib.closing(Bare(folder, csv, kind.threads)) as bare:
        bare.out.unlink(missing_ok=True)
        if not kind.own_connection:
            return timed(Stages(), lambda: bare.copy(query, durable=kind.durable))
    return timed(Stages(), whole)


def one_step(
    engine: TimedEngine,
    world: World,
    recorder: Recorder,
    query: str,
    limits: Limits,
    stages: Stages,
) -> int:
    """Perform the step once, its functions counted; return the rows of the result."""
    asked = SqlStep.model_validate({"do": "sql", "id": "result", "sql": query})
    world.steps.clear()
    with (
        patch.object(step, "canonical", stages.counted("canonical", step.canonical)),
        patch.object(step, "observe", stages.counted("observe", step.observe)),
        stages.stage("rest"),
    ):
        bench = step.Bench(recorder, engine, limits)
        result = step.perform(bench, world, asked, asked=query, place=step.Place("bench", 1))
    if not result.ok or not result.complete:
        raise SystemExit(f"the step did not do what is measured: {result.code}")
    return result.rows


def compared(
    name: str,
    query: str,
    rows: int,
    own: Sequence[Stages],
    bare: dict[str, list[Cost]],
) -> Figures:
    whole = median([sum(stages.costs.values(), Cost()) for stages in own])
    return {
        "query": name,
        "sql": query,
        "rows": rows,
        "bare": {kind: asdict(median(costs)) for kind, costs in bare.items()},
        "step": asdict(whole),
        "ratio": {
            kind: {
                "wall": whole.wall_s / median(costs).wall_s,
                "cpu": whole.cpu_s / median(costs).cpu_s,
            }
            for kind, costs in bare.items()
        },
        "stages": {
            stage: asdict(median([stages.costs[stage] for stages in own])) for stage in ORDER
        },
    }


def told_queries(queries: Sequence[Figures]) -> str:
    """The figures of the steps as text."""
    lines = []
    for found in queries:
        lines.append(f"\n{found['query']}: {found['rows']:,} rows of the result")
        lines.append(f"  {'':<34}{'wall s':>9}{'CPU s':>9}{'ours, wall':>12}{'CPU':>8}")
        for kind, cost in found["bare"].items():
            ratio = found["ratio"][kind]
            lines.append(
                f"  {'bare, ' + kind:<34}{cost['wall_s']:>9.3f}{cost['cpu_s']:>9.3f}"
                f"{ratio['wall']:>11.2f}x{ratio['cpu']:>7.2f}x"
            )
        lines.append(f"  {'ours':<34}{found['step']['wall_s']:>9.3f}{found['step']['cpu_s']:>9.3f}")
        lines += stage_lines(found["stages"])
    return "\n".join(lines)


def told(figures: Figures) -> str:
    """The figures as text."""
    lines = [told_queries(figures["queries"])]
    pinned = figures["snapshot"]
    lines.append(
        f"\nsnapshot of a CSV file: {pinned['rows']:,} rows, {pinned['csv_bytes']:,} bytes\n"
        f"  {'ours':<26}{pinned['whole']['wall_s']:>9.3f}{pinned['whole']['cpu_s']:>9.3f}"
    )
    lines += stage_lines(pinned["stages"])
    bare = pinned["bare"]
    lines.append(f"  {'bare read_csv to Parquet':<26}{bare['wall_s']:>9.3f}{bare['cpu_s']:>9.3f}")
    return "\n".join(lines)


def stage_lines(stages: dict[str, dict[str, float]]) -> list[str]:
    return [
        f"    {name:<32}{cost['wall_s']:>9.3f}{cost['cpu_s']:>9.3f}"
        for name, cost in stages.items()
    ]


def bare_csv(folder: Path) -> Figures:
    """DuckDB alone reading the CSV file with given types and writing Parquet."""
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS.items())
    csv = f"read_csv('{folder / 'entries.csv'}', header=true, columns={{{types}}})"
    with duckdb.connect(config={"threads": THREADS}) as db:
        query = f"COPY (FROM {csv}) TO '{folder / 'csv.parquet'}' (FORMAT parquet)"
        return asdict(timed(Stages(), lambda: db.execute(query)))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    figures: Figures = {
        "format": "tieout.bench/step/1",
        "rows": options.rows,
        "repeats": options.repeats,
        "duckdb": duckdb.__version__,
        "pyarrow": pa.__version__,
        "python": platform.python_version(),
        "cpus": len(os.sched_getaffinity(0)),
        "threads": THREADS,
    }
    with tempfile.TemporaryDirectory(prefix="tieout-bench-") as name:
        folder = Path(name)
        (folder / "tieout.toml").write_text(SOURCE)
        write_csv(folder / "entries.csv", options.rows)
        figures["snapshot"], manifest = pin(folder)
        figures["snapshot"]["bare"] = bare_csv(folder)
        figures["queries"] = measure(folder, manifest, options.repeats)
    print(
        f"{options.rows:,} rows x {len(COLUMNS)} columns, {options.repeats} repeats, medians; "
        f"duckdb {figures['duckdb']}, {figures['cpus']} CPUs, same threads = {THREADS}"
    )
    print(told(figures))
    if options.save:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(figures, indent=1) + "\n")
        print(f"\nwritten: {RESULTS.relative_to(Path.cwd())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
