"""What the executor costs: validation, a child and its sandbox, canonical write, a whole step.

    python bench/executor.py [--rows N] [--large N] [--repeats N] [--save]

Method. One run; CPU seconds, medians, each thing beside what it is compared with, in turn; a first
turn is thrown away. Validation: `Engine.validate` of eleven usual finance queries over three
tables; CPU of this process, of the server and of its children, over many turns since children are
counted in ticks of 10 ms. A child: the smallest query, with the operating system's lock and without
it. Canonical write: an Arrow table of 8 columns, its rows in order, to canonical form, content
digest, control totals and a durable put, beside bare DuckDB that writes the same Arrow table to
Parquet with zstd and fsync, and with its defaults and no fsync; the memory is the peak of a process
of its own above what it had with the table made. A whole step at three sizes: bench/step.py. No
figure here is a test.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import step
from data import SOURCE, write_csv
from finance import QUERIES, TABLES
from stages import Cost, Stages

from tieout.artifacts.local import LocalStore
from tieout.artifacts.table import CHUNK_ROWS, canonical
from tieout.executor.engine import Engine, EngineLimits
from tieout.executor.sandbox import LAYERS
from tieout.executor.sql.settings import THREADS
from tieout.executor.sql.validate import GrantedColumn, GrantedTable

RESULTS = Path(__file__).resolve().parent / "results" / "executor.json"
TURNS = 20
"""Of a validation: ticks of 10 ms are then half a millisecond."""
ROWS = """
SELECT 1000000 + i AS id, 4000 + s // 7 % 1000 AS account,
  DATE '2026-01-01' + (s // 11 % 365)::INTEGER AS booked,
  ((s % 20000000 - 10000000) / 100)::DECIMAL(18,2) AS amount,
  ['GBP', 'EUR', 'USD'][s // 17 % 3 + 1] AS currency,
  'posting ' || s % 50000 || ' of batch ' || i // 500 AS memo,
  s // 19 % 10 AS quantity, (s // 29 % 3000000 / 1000000)::DECIMAL(9,6) AS rate
FROM (SELECT i, (i + 1) * 48271 % 2147483647 AS s FROM range({rows}) t(i))
"""
PARQUET = {
    "zstd, fsync": "FORMAT parquet, COMPRESSION zstd",
    "defaults, no fsync": "FORMAT parquet",
}
Figures = dict[str, Any]


def granted() -> dict[str, GrantedTable]:
    return {
        name: GrantedTable(name, tuple(GrantedColumn(*pair) for pair in columns.items()))
        for name, columns in TABLES.items()
    }


def validation(turns: int) -> Figures:
    """CPU and wall milliseconds of each query's validation, and of the smallest child."""
    with (
        Engine(cache=None, limits=EngineLimits()) as engine,
        Engine(cache=None, limits=EngineLimits(), layers=frozenset()) as unlocked,
    ):
        queries = {
            name: per_turn(engine, turns, lambda text=text: engine.validate(text, granted()))
            for name, text in QUERIES.items()
        }
        smallest = {
            mode.info.sandbox: per_turn(mode, 3 * turns, lambda e=mode: e.validate("SELECT 1", {}))
            for mode in (engine, unlocked)
        }
    return {"turns": turns, "queries_ms": queries, "smallest_child_ms": smallest}


def per_turn(engine: Engine, turns: int, ask: Callable[[], object]) -> dict[str, float]:
    ask()
    stages = Stages(children=lambda: (engine.worker_pid,))
    start = stages.now()
    for _ in range(turns):
        ask()
    cost = stages.now() - start
    return {"cpu": cost.cpu_s * 1e3 / turns, "wall": cost.wall_s * 1e3 / turns}


def table_of(rows: int) -> Any:
    """The rows as the engine's child hands them over: chunks of the canonical length."""
    with duckdb.connect(config={"threads": THREADS}) as db:
        batches = list(db.sql(ROWS.format(rows=rows)).to_arrow_reader(CHUNK_ROWS))
    return pa.Table.from_batches(batches)


def written(folder: Path, rows: int, repeats: int) -> Figures:
    """Canonical form and durable put beside bare Parquet of the same Arrow table."""
    table = table_of(rows)
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    own: list[Stages] = []
    bare: dict[str, list[Cost]] = {kind: [] for kind in PARQUET}
    size = 0
    for turn in range(repeats + 1):
        stages = Stages()
        store = LocalStore.create(folder / f"store-{rows}-{turn}")
        with stages.stage("canonical"):
            made = canonical(table, ordered=True)
        with stages.stage("put"):
            size = store.put(made.pieces).size
        del made
        if not turn:  # before anything else could take more
            peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kib
        for path in (folder / f"store-{rows}-{turn}" / "objects").rglob("*/*"):
            path.unlink() if path.is_file() else None
        costs = {kind: parquet(folder, table, kind) for kind in PARQUET}
        if turn:
            own.append(stages)
            for kind, cost in costs.items():
                bare[kind].append(cost)
    return compared(table, size, peak_kib << 10, own, bare)


def compared(
    table: Any, size: int, peak: int, own: list[Stages], bare: dict[str, list[Cost]]
) -> Figures:
    whole = step.median([sum(stages.costs.values(), Cost()) for stages in own])
    plain = {kind: step.median(costs) for kind, costs in bare.items()}
    return {
        "rows": table.num_rows,
        "columns": table.num_columns,
        "bytes": size,
        "peak_bytes_above_the_table": peak,
        "ours": asdict(whole),
        "stages": {
            name: asdict(step.median([stages.costs[name] for stages in own]))
            for name in ("canonical", "put")
        },
        "bare": {kind: asdict(cost) for kind, cost in plain.items()},
        "ratio_cpu": {kind: whole.cpu_s / cost.cpu_s for kind, cost in plain.items()},
        "ratio_wall": {kind: whole.wall_s / cost.wall_s for kind, cost in plain.items()},
    }


def parquet(folder: Path, table: Any, kind: str) -> Cost:
    out = folder / "bare.parquet"
    out.unlink(missing_ok=True)
    with duckdb.connect(config={"threads": THREADS}) as db:
        db.register("given", table)

        def write() -> None:
            db.execute(f"COPY given TO '{out}' ({PARQUET[kind]})")
            if "no fsync" not in kind:
                step.sync(out)

        return step.timed(Stages(), write)


def apart(rows: int, repeats: int, folder: Path) -> Figures:
    """`written` in a process of its own, so that the peak is its own."""
    command = [sys.executable, __file__, "--written", str(rows), "--repeats", str(repeats)]
    done = subprocess.run([*command, "--folder", str(folder)], check=True, stdout=subprocess.PIPE)
    found: Figures = json.loads(done.stdout)
    return found


def steps(folder: Path, rows: int, repeats: int) -> list[Figures]:
    """A whole step at three sizes of the result, over a snapshot of so many rows."""
    (folder / "tieout.toml").write_text(SOURCE)
    write_csv(folder / "entries.csv", rows)
    _, manifest = step.pin(folder)
    return step.measure(folder, manifest, repeats)


def told(figures: Figures) -> str:
    lines = ["validation, ms of CPU and on the wall:"]
    for name, cost in figures["validation"]["queries_ms"].items():
        lines.append(f"  {name:<34}{cost['cpu']:>8.1f}{cost['wall']:>8.1f}")
    for mode, cost in figures["validation"]["smallest_child_ms"].items():
        lines.append(f"  {'SELECT 1, ' + mode:<34}{cost['cpu']:>8.1f}{cost['wall']:>8.1f}")
    for found in figures["canonical_write"]:
        lines.append(
            f"canonical write of {found['rows']:,} rows x {found['columns']}, {found['bytes']:,} "
            f"bytes: {found['ours']['cpu_s']:.3f} CPU s ("
            + ", ".join(f"{name} {cost['cpu_s']:.3f}" for name, cost in found["stages"].items())
            + f"); peak above the table {found['peak_bytes_above_the_table']:,} bytes"
        )
        for kind, cost in found["bare"].items():
            lines.append(
                f"  bare Parquet, {kind:<20}{cost['cpu_s']:>8.3f}{found['ratio_cpu'][kind]:>7.2f}x"
            )
    return "\n".join(lines) + "\n" + step.told_queries(figures["steps"])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=10_000_000, help="0 leaves it out")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--written", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.written:
        print(json.dumps(written(options.folder, options.written, options.repeats)))
        return 0
    figures: Figures = {
        "format": "tieout.bench/executor/1",
        "repeats": options.repeats,
        "machine": machine(),
        "versions": {
            "duckdb": duckdb.__version__,
            "pyarrow": pa.__version__,
            "python": platform.python_version(),
        },
        "method": " ".join((__doc__ or "").partition("Method. ")[2].split()),
        "validation": validation(TURNS),
    }
    with tempfile.TemporaryDirectory(prefix="tieout-bench-") as name:
        folder = Path(name)
        figures["canonical_write"] = [apart(options.rows, options.repeats, folder)]
        if options.large:
            figures["canonical_write"].append(apart(options.large, 1, folder))
        figures["steps"] = steps(folder, options.rows, options.repeats)
    print(told(figures))
    if options.save:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def machine() -> Figures:
    model = ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
    return {
        "processor": model,
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release().partition("-")[0],
        "threads_of_the_engine": THREADS,
        "load_at_the_start": statistics.fmean(os.getloadavg()),
        "layers_asked_for": sorted(LAYERS),
    }


if __name__ == "__main__":
    sys.exit(main())
