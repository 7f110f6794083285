"""Texts that never end, or eat memory: who stops each, at which bound, and that nothing is left.

The bounds are of one request (a validation, a run), and a step makes up to three. "Stopped at the
bound plus one second" is meant of the request as its asker sees it, by a clock that only goes
forward: the parent's kill comes GRACE_S after the bound, and the rest of the second is for the end
of the child. What the machine itself takes to wake three sleepers (parent, child's end, server) is
measured beside it and taken off.

"Never above the limit" is meant of what the engine counts as its own. It does not count all: texts
and lists that one call is making, and trees of parsers. That is bounded by the kernel, at the limit
and SPARE_BYTES above what the child began with; the kinds that need more than a small overhead are
named, so that a new one is seen.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.runaways import RUNAWAYS, SAMPLE, Watch, children, cpu_s, peak, run_ungated
from tieout.artifacts.address import Address
from tieout.executor.engine import Engine, EngineLimits, TableBytes
from tieout.executor.errors import ExecutorError
from tieout.executor.forked import GRACE_S, ForkServer
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.validate import GrantedColumn, GrantedTable
from tieout.executor.worker import SPARE_BYTES, SPARE_CPU_S

MIB = 1 << 20
LIMITS = EngineLimits(seconds_max=1, memory_bytes_max=256 * MIB, result_bytes_max=64 * MIB)
START_BYTES_MAX = 128 * MIB
"""What a child holds before it begins: Python, the engine, the modules."""
BOUND_CODES = {"limit.seconds", "limit.memory", "limit.bytes"}
OWN_CODES = {"sql.value", "sql.conversion", "sql.overflow", "sql.too_complex", "engine.failed"}
"""The engine's own refusal: an inner limit of it."""
BANK = GrantedTable("bank", (GrantedColumn("id", "INTEGER"),), ("id",))
LATE_S = 1.0
SLEEPERS = 3
OVERHEAD_BYTES_MAX = 128 * MIB
"""Above the engine's limit, of what it does not count; 88 MiB were measured."""
UNCOUNTED = {
    "a lambda inside a lambda",
    "a lambda over a long list",
    "a replacement that grows",
    "many unions",
}
"""One call, or one parser, whose memory the engine does not count: 281 MiB above were measured."""


def bank() -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table({"id": pa.array(range(10), pa.int32())})
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.fixture(scope="module")
def engine():
    with Engine(cache=None, limits=LIMITS) as running:
        yield running


def gated(engine: Engine, text: str, spent: list[float] | None = None) -> str:
    """How a text ends. spent: takes the seconds of each request, from its sending to its answer."""
    payload = bank()
    started = time.monotonic()
    spent = [] if spent is None else spent
    try:
        validated = engine.validate(text, {"bank": BANK})
        spent.append(time.monotonic() - started)
        started = time.monotonic()
        found = engine.run(validated, {"bank": TableBytes(Address.of(payload), lambda: payload)})
    except SqlRefused:
        return "refused"
    except ExecutorError as error:
        return error.code
    finally:
        spent.append(time.monotonic() - started)
    return "result" if found.complete else "cut"


def ungated(engine: Engine, text: str, spent: list[float] | None = None) -> str:
    started = time.monotonic()
    try:
        answer = run_ungated(engine, text, bank())
    except ExecutorError as error:
        return error.code
    finally:
        if spent is not None:
            spent.append(time.monotonic() - started)
    os.close(answer.file)
    return "result" if answer.document["complete"] else "cut"


def nothing_is_left(engine: Engine, files: int) -> None:
    while children(engine.worker_pid):  # until the server has reaped it
        os.sched_yield()
    assert len(list(Path("/proc/self/fd").iterdir())) == files
    assert gated(engine, "SELECT 1 AS a") == "result"


@pytest.mark.parametrize("kind", SAMPLE)
def test_a_runaway_is_stopped_and_the_next_query_works(engine, kind):
    assert gated(engine, "SELECT 1 AS a") == "result"
    files, server = len(list(Path("/proc/self/fd").iterdir())), engine.worker_pid
    assert ungated(engine, RUNAWAYS[kind]) in BOUND_CODES
    nothing_is_left(engine, files)
    assert engine.worker_pid == server


def test_there_are_enough_kinds():
    assert len(RUNAWAYS) >= 37
    assert len(set(RUNAWAYS.values())) == len(RUNAWAYS)


@pytest.mark.slow
@pytest.mark.parametrize("way", [gated, ungated])
@pytest.mark.parametrize("kind", RUNAWAYS)
def test_every_kind_is_stopped_at_its_bound(engine, kind, way):
    assert gated(engine, "SELECT 1 AS a") == "result"
    files, server = len(list(Path("/proc/self/fd").iterdir())), engine.worker_pid
    cpu, spent = cpu_s(server), list[float]()
    with Watch(server) as watch:
        stopped = way(engine, RUNAWAYS[kind], spent)
    requests = len(spent)
    assert 1 <= requests <= 2
    assert max(spent) - SLEEPERS * watch.late_s < LIMITS.seconds_max + LATE_S, watch.late_s
    assert stopped in BOUND_CODES | OWN_CODES | {"refused", "cut"}, (
        "nothing of this list ends by itself"
    )
    more = SPARE_BYTES if kind in UNCOUNTED else OVERHEAD_BYTES_MAX
    assert watch.risen_bytes < LIMITS.memory_bytes_max + more
    assert watch.peak_bytes < START_BYTES_MAX + LIMITS.memory_bytes_max + more
    while children(server):
        os.sched_yield()
    assert cpu_s(server) - cpu < requests * (LIMITS.seconds_max + LATE_S)
    nothing_is_left(engine, files)
    assert engine.worker_pid == server


def asked(kind: str, *, cpu: int, wall: float, memory: int = 256 * MIB) -> str:
    """How a request ends whose bounds are set one by one."""
    server = ForkServer()
    request = {
        "kind": "run",
        "sql": RUNAWAYS[kind],
        "tables": [],
        "rows_max": 1000,
        "memory_bytes": memory,
        "cpu_s": cpu,
        "file_bytes": 64 * MIB,
    }
    try:
        answer = server.ask(request, [], seconds_max=wall)
    except ExecutorError as error:
        return error.code
    finally:
        server.close()
    return str(answer.document.get("failed"))


def test_the_kernel_stops_a_child_whose_parent_does_not():
    assert asked("an endless recursion", cpu=1 - SPARE_CPU_S, wall=120.0) == "limit.seconds"


def test_the_parent_stops_a_child_that_waits():
    assert asked("a wait", cpu=600, wall=0.2) == "limit.seconds"


def test_memory_is_stopped_by_the_engine_and_beyond_it_by_the_kernel():
    assert asked("a text that doubles", cpu=600, wall=120.0) == "limit.memory"
    assert asked("a width of printf", cpu=600, wall=120.0, memory=4 * MIB) == "limit.memory"


def test_threads_cannot_be_started(engine):
    for text in ("SET threads=64", "SET GLOBAL external_threads=64", "SET async_threads=8"):
        assert ungated(engine, text) in OWN_CODES


def test_two_statements_are_no_request(engine):
    assert ungated(engine, "SELECT 1 AS a; SELECT 2 AS b") in {"engine.crashed", "engine.failed"}
    assert gated(engine, "SELECT 1 AS a") == "result"


def test_a_large_result_costs_the_parent_no_memory():
    limits = EngineLimits(seconds_max=60, rows_max=4_000_000, result_bytes_max=256 * MIB)
    text, before = RUNAWAYS["a large result"], peak(os.getpid())
    with Engine(cache=None, limits=limits) as engine:
        answer = run_ungated(engine, text)
    assert os.fstat(answer.file).st_size > 64 * MIB
    os.close(answer.file)
    assert peak(os.getpid()) - before < 32 * MIB


def test_the_grace_of_the_parent_is_within_the_second_that_is_promised():
    assert 0 < GRACE_S < LATE_S
    assert SPARE_CPU_S <= LATE_S


# Between two requests


LEAKS = [
    "SET search_path='main'",
    "SET VARIABLE kept = 1",
    "CREATE TEMP TABLE kept AS SELECT 1 AS a",
    "CREATE TABLE kept AS SELECT 1 AS a",
    "CREATE TEMP VIEW bank AS SELECT 99 AS id",
    "CREATE TEMP MACRO sum(x) AS 99",
    "CREATE SEQUENCE kept",
    "CREATE TYPE kept AS ENUM ('a')",
    "CREATE SCHEMA kept",
    "PREPARE kept AS SELECT 1",
    "BEGIN TRANSACTION",
    "PRAGMA enable_verification",
    "SELECT setseed(0.5) AS a",
    "DELETE FROM bank",
    "UPDATE bank SET id = 99",
    "INSERT INTO bank VALUES (99)",
    "DROP TABLE bank",
    "ALTER TABLE bank ADD COLUMN kept INTEGER",
    "WITH x AS (DELETE FROM bank RETURNING id) SELECT count(*) AS n FROM x",
    "CHECKPOINT",
    "VACUUM",
    "ANALYZE",
    "CALL enable_logging()",
    "SET lock_configuration=false",
]
SEEN = (
    "SELECT (SELECT sum(id)::BIGINT FROM bank) AS a, (SELECT count(*) FROM duckdb_tables()) AS b, "
    "(SELECT count(*) FROM duckdb_views() WHERE NOT internal) AS c, "
    "(SELECT count(*) FROM duckdb_functions() WHERE NOT internal) AS d, "
    "(SELECT count(*) FROM duckdb_sequences()) AS e, (SELECT count(*) FROM duckdb_types() "
    "WHERE NOT internal) AS f, (SELECT count(*) FROM duckdb_schemas() WHERE NOT internal) AS g, "
    "(SELECT string_agg(name || value, ',' ORDER BY name) FROM duckdb_settings() "
    "WHERE name <> 'memory_limit') AS h, getvariable('kept') AS i, "
    "(SELECT count(*) FROM duckdb_prepared_statements()) AS k, current_schemas(true) AS l, "
    "(SELECT count(*) FROM duckdb_logs()) AS m"
)


def seen(engine: Engine) -> list[object]:
    answer = run_ungated(engine, SEEN, bank())
    os.lseek(answer.file, 0, os.SEEK_SET)
    with os.fdopen(answer.file, "rb") as file, pa.ipc.open_stream(file.read()) as reader:
        return list(reader.read_all().to_pylist()[0].values())


def test_nothing_of_a_request_is_there_in_the_next(engine):
    fresh = seen(engine)
    for text in LEAKS:
        ungated(engine, text)
        assert seen(engine) == fresh, text
