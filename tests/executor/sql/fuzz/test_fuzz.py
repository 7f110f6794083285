"""Generated statements against single layers and pairs: no write, no outside read, no hang, no crash.

The trace of the kernel's calls is the witness, not our own word; canaries lie in the folder.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from support.fuzz_audit import STRACE, audit
from support.fuzz_statements import CHARS_MAX, Statements
from support.layers import GATES, Layer, Layers, granted, lying, plant

from tieout.artifacts.address import Address
from tieout.executor.engine import Engine, EngineLimits, TableBytes
from tieout.executor.errors import ExecutorError

HERE = Path(__file__).parent
SEED = 20261130
SAMPLE = 300
FULL = 10_000
TOGETHER = 40
"""Statements whose gates share a child; each run has a child of its own."""
RECORD = os.environ.get("RECORD_FUZZ")
BOUNDS = ("signal 14", "signal 24")
"""SIGALRM and SIGXCPU: a child that its bounds ended."""

SETUPS = {
    "DuckDB tree and plan, open engine": ((Layer.TREE, Layer.PLAN), "bare"),
    "operating system, open engine": ((), Layer.SYSTEM),
    "text rules and sqlglot, open engine": ((Layer.TEXT, Layer.SQLGLOT), "bare"),
    "text rules and engine": ((Layer.TEXT,), Layer.ENGINE),
    "sqlglot and engine": ((Layer.SQLGLOT,), Layer.ENGINE),
    "all gates and engine": (GATES, Layer.ENGINE),
}
"""Gates that are on, and where what they admit is run; all other layers are off."""


def seeds(name):
    return [json.loads(line)["sql"] for line in (HERE.parent / name).read_text().splitlines()]


def statements(count, seed=SEED):
    made = Statements(seed, seeds("usual.jsonl"), seeds("attacks.jsonl"))
    return [made.next() for _ in range(count)]


def outcome(answer, refused="the engine refused"):
    """What became of one text in a gate or a run, in a few words."""
    if answer.said.startswith("signal"):
        return "ended by its bounds" if answer.said in BOUNDS else f"crashed: {answer.said}"
    if answer.said == "no answer":
        return "crashed: no answer"
    return refused if answer.by else "ran"


def one(layers, sql, said, counts):
    """One statement through every setup; it is given back if its second run said something else."""
    runs = {}
    for name, (gates, run) in SETUPS.items():
        by = next((gate for gate in gates if said[gate].refused), None)
        if by is None and run not in runs:
            runs[run] = layers.ask(sql, run=run)
        met = outcome(said[by], f"{by} refused") if by else outcome(runs[run])
        counts[name][met] += 1
    admitted = not any(answer.refused for answer in said.values())
    again = layers.ask(sql, run=Layer.ENGINE) if admitted else None
    return [sql] if admitted and again != runs[Layer.ENGINE] else []


def campaign(folder, trace, count):
    """Every statement in every setup, under strace: counts, findings, results that changed.

    Setups that admit a statement to the same engine share its run.
    """
    counts, differing = {name: Counter() for name in SETUPS}, []
    plant(folder)
    before = lying(folder)
    texts = statements(count)
    with Layers(folder, prefix=[*STRACE, "-o", str(trace)]) as layers:
        for start in range(0, count, TOGETHER):
            some = texts[start : start + TOGETHER]
            for sql, said in zip(some, layers.gates(some), strict=True):
                differing += one(layers, sql, said, counts)
    assert lying(folder) == before
    return {n: dict(sorted(tally.items())) for n, tally in counts.items()}, audit(trace), differing


def check(counts, found, differing):
    assert found == []
    assert differing == []
    crashed = {n: c for n, tally in counts.items() for c in tally if c.startswith("crashed")}
    assert crashed == {}
    for name, tally in counts.items():
        assert tally.get("ran", 0) > 0, f"{name}: nothing ran, so nothing was tried"


def test_statements_are_the_same_from_the_same_seed():
    made = statements(200)
    assert made == statements(200)
    assert made != statements(200, seed=1)
    assert max(map(len, made)) <= CHARS_MAX
    assert len(set(made)) > 190


def test_the_audit_sees_what_it_must(tmp_path):
    trace = tmp_path / "trace"
    trace.write_text(
        "10 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 11\n"
        '11 openat(AT_FDCWD, "/proc/self/statm", O_RDONLY|O_CLOEXEC) = 3\n'
        '11 openat(AT_FDCWD, "missing.csv", O_RDONLY) = -1 ENOENT (No such file or directory)\n'
        '11 openat(AT_FDCWD, "secret.csv", O_RDONLY) = 3\n'
        '11 openat(AT_FDCWD, "/proc/self/environ", O_RDONLY) = 3\n'
        '11 openat(AT_FDCWD, "out.csv", O_WRONLY|O_CREAT|O_TRUNC, 0666 <unfinished ...>\n'
        "11 <... openat resumed>) = 4\n"
        "11 socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = 5\n"
        "11 socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = -1 EPERM (Operation not permitted)\n"
        '11 unlink("x.csv") = 0\n'
        '11 execve("/bin/sh", ["sh"], 0x7ff) = 0\n'
    )
    assert [line.split("(")[0] for line in audit(trace)] == [
        *("openat", "openat", "openat", "socket", "unlink", "execve")
    ]


ROWS = """SELECT n::INTEGER AS id, ((n * 7) % 5 - 2)::DECIMAL(18,2) AS amt,
  CASE WHEN n % 4 = 0 THEN NULL ELSE 'm' || n % 3 END AS memo,
  DATE '2026-01-01' + (n % 6)::INTEGER AS dt, (1000 + n % 2)::INTEGER AS acct_key
  FROM range(12) r(n) ORDER BY n"""
OTHERS = {
    "step1": "SELECT 41.50::DECIMAL(18,2) AS total",
    "floats": "SELECT n::INTEGER AS id, n / 3 AS x FROM range(12) r(n) ORDER BY n",
}


def tables(engine, *, reverse):
    """The granted tables, with ties and NULLs, in one order of rows or the other."""
    found = {}
    for name in granted():
        rows = engine.sql(OTHERS.get(name, ROWS)).to_arrow_table()
        rows = rows.take(list(range(len(rows)))[::-1]) if reverse else rows
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        payload = sink.getvalue().to_pybytes()
        found[name] = TableBytes(Address.of(payload), lambda payload=payload: payload)
    return found


def ran(engine, validated, given):
    """The rows, in the query's order if it has one; else the code of the failure."""
    try:
        rows = [repr(row) for row in engine.run(validated, given).table.to_pylist()]
    except ExecutorError as error:
        return error.code
    return rows if validated.ordered else sorted(rows)


def unequal(count):
    """Statements that the whole gate admits and whose rows change with the order of their input."""
    with duckdb.connect() as maker:
        inputs = [tables(maker, reverse=False), tables(maker, reverse=True)]
    admitted, differing = 0, []
    with Engine(cache=None, limits=EngineLimits(seconds_max=2)) as engine:
        for sql in statements(count):
            try:
                validated = engine.validate(sql, granted())
            except ExecutorError:
                continue
            admitted += 1
            first, second = (ran(engine, validated, given) for given in inputs)
            if first != second:
                differing.append((sql, validated.executed))
    return admitted, differing


@pytest.mark.slow
def test_what_the_gate_admits_is_a_function_of_the_rows():
    admitted, differing = unequal(SAMPLE)
    assert admitted > 10
    assert differing == []


@pytest.mark.soak
def test_much_of_what_the_gate_admits_is_a_function_of_the_rows():
    admitted, differing = unequal(FULL)
    assert admitted > 300
    assert differing == []


@pytest.mark.slow
@pytest.mark.root("strace")
def test_the_trace_catches_a_write_and_a_read(tmp_path):
    """The whole witness once: what an open engine does without any layer is found."""
    trace, folder = tmp_path / "trace", tmp_path / "canaries"
    plant(folder)
    with Layers(folder, prefix=[*STRACE, "-o", str(trace)]) as layers:
        assert not layers.ask("COPY bank TO 'out.csv'", run="bare").refused
        assert not layers.ask("SELECT * FROM 'secret.csv'", run="bare").refused
    found = audit(trace)
    assert any("out.csv" in line and "O_CREAT" in line for line in found)
    assert any("secret.csv" in line for line in found)


@pytest.mark.slow
@pytest.mark.root("strace")
def test_a_sample_does_no_harm(tmp_path):
    check(*campaign(tmp_path / "canaries", tmp_path / "trace", SAMPLE))


@pytest.mark.soak
@pytest.mark.root("strace")
def test_ten_thousand_statements_do_no_harm(tmp_path, repository):
    counts, found, differing = campaign(tmp_path / "canaries", tmp_path / "trace", FULL)
    if RECORD:
        record = {"seed": SEED, "statements": FULL, "findings": len(found), "outcomes": counts}
        path = repository / "bench" / "results" / "fuzz.json"
        path.write_text(json.dumps(record, indent=1) + "\n")
    check(counts, found, differing)
