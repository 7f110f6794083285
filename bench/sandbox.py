"""What a child costs: fork, settled engine, sandbox, validation, run; CPU ms, in one run.

`python bench/sandbox.py [--save]`. Two ways side by side: a child that opens and settles an engine
of its own, and one that is forked with the server's. Each figure is the least of its repeats: the
machine is shared, and what others do only adds.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from tieout.executor.engine import Engine, EngineLimits
from tieout.executor.sandbox import LAYERS, Layer, Sandbox
from tieout.executor.sql import functions, session
from tieout.executor.sql.validate import GrantedColumn, GrantedTable

RESULTS = Path(__file__).parent / "results" / "sandbox.json"
REPEATS = 30
MEMORY_BYTES = 1 << 30
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
BANK = GrantedTable(
    "bank",
    (GrantedColumn("id", "INTEGER"), GrantedColumn("amount", "DECIMAL(18,2)")),
    ("id",),
)
TEXT = "SELECT id, sum(amount) AS total FROM bank GROUP BY id ORDER BY id"


def child_ms(act: Callable[[], object]) -> float:
    """CPU ms of a forked child that does this and ends, the least of the repeats."""
    found = []
    for _ in range(REPEATS):
        child = os.fork()
        if not child:
            try:
                act()
            finally:
                os._exit(0)
        used = os.wait4(child, 0)[2]
        found.append(1000 * (used.ru_utime + used.ru_stime))
    return round(min(found), 2)


def request_ms(engine: Engine, ask: Callable[[], object]) -> float:
    """CPU ms of the server and its reaped children per request, the mean of the repeats."""

    def used_s() -> float:
        fields = Path(f"/proc/{engine.worker_pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(int(f) for f in fields[11:15]) * TICK_S

    ask()
    before = used_s()
    for _ in range(REPEATS):
        ask()
    return round(1000 * (used_s() - before) / REPEATS, 2)


def figures() -> dict[str, float | str]:
    functions.classes()
    libc = ctypes.CDLL(None, use_errno=True)
    session.warm(session.connect())  # modules, as in the server
    kept = session.connect()
    session.warm(kept)

    def shut(*layers: Layer) -> None:
        box = Sandbox(layers, libc)
        box.enter()
        box.close_files()

    nothing = child_ms(lambda: None)
    found: dict[str, float | str] = {
        "fork": nothing,
        "connect_and_settings_in_the_child": round(child_ms(session.connect) - nothing, 2),
        "lock": round(child_ms(lambda: session.lock(kept, memory_bytes=MEMORY_BYTES)) - nothing, 2),
        "landlock": round(child_ms(lambda: shut(Layer.LANDLOCK)) - nothing, 2),
        "seccomp": round(child_ms(lambda: shut(Layer.SECCOMP)) - nothing, 2),
        "both_layers": round(child_ms(lambda: shut(*LAYERS)) - nothing, 2),
    }
    with Engine(cache=None, limits=EngineLimits()) as engine:
        found["mode"] = engine.info.sandbox
        found["validate"] = request_ms(engine, lambda: engine.validate(TEXT, {"bank": BANK}))
        constant = engine.validate("SELECT 42 AS answer", {})
        found["run"] = request_ms(engine, lambda: engine.run(constant, {}))
    return found


def main(arguments: list[str]) -> int:
    document = {
        "unit": "CPU ms",
        "method": f"least of {REPEATS} children; validate and run: mean of {REPEATS} requests",
        "machine": platform.processor() or platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "figures": figures(),
        "resident_peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }
    text = json.dumps(document, indent=2) + "\n"
    if "--save" in arguments:
        RESULTS.write_text(text)
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
