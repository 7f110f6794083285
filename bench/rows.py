"""The row root of a table, and the proof of one row: what they cost, beside what they build on.

    python bench/rows.py [--repeats N] [--save]

Method. One process, one run, CPU seconds of this process. For each number of rows: the canonical
form (which every put pays), the row root from the stored bytes, a proof, its check. Each repeat
makes all of them in turn, so that a noisy neighbour meets all; a first turn is thrown away; told
are medians. A check is timed over many; beside it stands one BLAKE3 of as many bytes as the proof
has without its siblings. No figure here is a test.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from blake3 import blake3

from tieout.artifacts import RowTree, canonical, check_row

RESULTS = Path(__file__).resolve().parent / "results" / "rows.json"
SIZES = (100_000, 1_000_000)
CHECKS = 2_000
PRIME = 2_147_483_647
Figures = dict[str, Any]


def rows(count: int) -> Any:
    """Eight columns of about a hundred bytes together, as bench/data.py has them, as Arrow."""
    states = [1]
    for _ in range(count - 1):
        states.append(states[-1] * 48_271 % PRIME)
    cents = pa.array([state % 20_000_000 - 10_000_000 for state in states], pa.int64())
    rates = pa.array([state // 29 % 3_000_000 for state in states], pa.int64())
    return pa.table(
        {
            "id": pa.array(range(1_000_000, 1_000_000 + count), pa.int64()),
            "account": pa.array([4_000 + state // 7 % 1_000 for state in states], pa.int64()),
            "booked": pa.array([20_454 + s // 11 % 365 for s in states], pa.int32()).cast("date32"),
            "amount": placed(cents, 18, 2),
            "currency": pa.array([("GBP", "EUR", "USD")[state // 17 % 3] for state in states]),
            "memo": pa.array(
                [f"posting {state % 50_000} of batch {n // 500}" for n, state in enumerate(states)]
            ),
            "quantity": pa.array([state // 19 % 10 or None for state in states], pa.int64()),
            "rate": placed(rates, 9, 6),
        }
    )


def placed(units: Any, precision: int, scale: int) -> Any:
    """Integers as units of the last digit of a DECIMAL."""
    wide = units.cast(pa.decimal128(19, 0))
    words = pa.Array.from_buffers(pa.decimal128(19, scale), len(wide), wide.buffers())
    return words.cast(pa.decimal128(precision, scale))


def cpu(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def measure(count: int, repeats: int) -> Figures:
    table = rows(count)
    costs: dict[str, list[float]] = {}
    found: Figures = {"rows": count}
    for turn in range(repeats + 1):
        spent: dict[str, float] = {}
        spent["canonical"], made = cpu(lambda: canonical(table, key=["id"]))
        payload = made.payload
        spent["root"], tree = cpu(lambda payload=payload: RowTree(payload))
        spent["proof"], proof = cpu(lambda tree=tree: tree.prove(count // 3))
        root = tree.root.root
        spent["check"], _ = cpu(
            lambda proof=proof, root=root: [check_row(proof, root) for _ in range(CHECKS)]
        )
        leaf = bytes(len(proof) - 32 * (tree.root.leaves - 1).bit_length())
        spent["hash"], _ = cpu(lambda leaf=leaf: [blake3(leaf).digest() for _ in range(CHECKS)])
        found |= {"leaves": tree.root.leaves, "rows_per_leaf": tree.root.rows_per_leaf}
        found |= {"proof_bytes": len(proof), "table_bytes": len(payload), "root": root}
        if turn:
            for name, cost in spent.items():
                costs.setdefault(name, []).append(cost)
    middle = {name: statistics.median(each) for name, each in costs.items()}
    return found | {
        "canonical_cpu_s": middle["canonical"],
        "root_cpu_s": middle["root"],
        "proof_cpu_s": middle["proof"],
        "check_cpu_us": middle["check"] / CHECKS * 1e6,
        "hash_cpu_us": middle["hash"] / CHECKS * 1e6,
        "root_to_canonical": middle["root"] / middle["canonical"],
    }


def told(found: Figures) -> str:
    return (
        f"{found['rows']:>10,} rows, {found['table_bytes']:,} bytes, {found['leaves']:,} leaves of "
        f"{found['rows_per_leaf']}\n"
        f"  canonical form      {found['canonical_cpu_s']:.3f} CPU s\n"
        f"  row root            {found['root_cpu_s']:.3f} CPU s "
        f"({found['root_to_canonical']:.2f} of the canonical form)\n"
        f"  a proof, tree kept  {found['proof_cpu_s'] * 1e3:.2f} CPU ms, "
        f"{found['proof_bytes']:,} bytes\n"
        f"  its check           {found['check_cpu_us']:.1f} CPU us; one BLAKE3 of as many bytes as "
        f"it has without siblings {found['hash_cpu_us']:.1f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    figures: Figures = {
        "format": "tieout.bench/rows/1",
        "repeats": options.repeats,
        "pyarrow": pa.__version__,
        "python": platform.python_version(),
        "cpus": len(os.sched_getaffinity(0)),
        "tables": [],
    }
    for count in SIZES:
        found = measure(count, options.repeats)
        figures["tables"].append(found)
        print(told(found))
    if options.save:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(figures, indent=1) + "\n")
        print(f"\nwritten: {RESULTS.relative_to(Path.cwd())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
