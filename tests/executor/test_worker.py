"""The fork server: killed, stopped, orphaned; always a clean error and never a zombie."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tieout.executor import forked
from tieout.executor.engine import Engine, EngineLimits
from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.sql.settings import ENGINE_BUILD

ENDLESS = (
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) AS c FROM t"
)


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(p) for p in text.split()]


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@pytest.fixture
def engine():
    with Engine(cache=None, limits=EngineLimits(seconds_max=30)) as running:
        yield running


def while_running(engine, act) -> ExecutorError:
    """Start an endless query, act on (server, child) once the child is there, return its error."""
    validated = engine.validate(ENDLESS, {})
    server = engine.worker_pid
    raised: list[ExecutorError] = []

    def ask() -> None:
        try:
            engine.run(validated, {})
        except ExecutorError as error:
            raised.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not (found := children(server)):
        os.sched_yield()
    act(server, found[0])
    thread.join(60)
    assert not thread.is_alive()
    return raised[0]


def test_a_killed_child_is_a_clean_error_and_the_next_query_works(engine):
    error = while_running(engine, lambda _server, child: os.kill(child, signal.SIGKILL))
    assert error.code == "engine.crashed"
    assert engine.run(engine.validate("SELECT 1 AS a", {}), {}).table.num_rows == 1
    assert [p for p in children(engine.worker_pid) if state(p) == "Z"] == []


def test_a_killed_server_takes_its_children_along_and_is_started_anew(engine):
    ended: list[int] = []

    def act(server: int, child: int) -> None:
        ended.append(os.pidfd_open(child))
        os.kill(server, signal.SIGKILL)

    first = engine.worker_pid
    error = while_running(engine, act)
    assert error.code == "engine.crashed"
    assert select.select(ended, [], [], 20)[0]
    os.close(ended[0])
    assert engine.run(engine.validate("SELECT 1 AS a", {}), {}).table.num_rows == 1
    assert engine.worker_pid != first


def test_a_stopped_child_ends_at_the_wall_bound():
    with Engine(cache=None, limits=EngineLimits(seconds_max=1)) as engine:
        error = while_running(engine, lambda _server, child: os.kill(child, signal.SIGSTOP))
        assert error.code == "limit.seconds"
        while children(engine.worker_pid):  # until the server has reaped it
            os.sched_yield()


def test_a_worker_that_does_not_start_is_an_environment_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    engine = Engine(cache=None, limits=EngineLimits())
    with pytest.raises(ExecutorError) as caught:
        engine.validate("SELECT 1 AS a", {})
    assert (caught.value.code, caught.value.exit_code) == ("engine.unavailable", Exit.ENVIRONMENT)
    monkeypatch.setattr(sys, "executable", "/no/such/program")
    with pytest.raises(ExecutorError) as caught:
        engine.validate("SELECT 1 AS a", {})
    assert caught.value.code == "engine.unavailable"


def test_an_engine_of_another_build_is_refused(monkeypatch):
    """The worker says what the engine says; the build that is promised is the other one here."""
    monkeypatch.setattr(forked, "ENGINE_BUILD", "0000000000")
    with pytest.raises(ExecutorError) as caught, Engine(cache=None, limits=EngineLimits()):
        pass
    assert (caught.value.code, caught.value.exit_code) == ("engine.other_build", Exit.OTHER_FORMAT)
    assert ENGINE_BUILD in caught.value.message


def test_a_validation_has_a_bound_of_its_own():
    """Constants are computed while a text is bound: this one holds the engine for 26 s."""
    limits = EngineLimits(seconds_max=3_600, validation_seconds_max=1)
    with Engine(cache=None, limits=limits) as engine, pytest.raises(ExecutorError) as caught:
        engine.validate("SELECT length(lpad('x', 2000000000, 'y')) AS n", {})
    assert caught.value.code == "limit.seconds"
    assert EngineLimits().validation_seconds_max <= 10


def test_a_closed_engine_leaves_no_process():
    engine = Engine(cache=None, limits=EngineLimits())
    with engine:
        handle = os.pidfd_open(engine.worker_pid)
    assert select.select([handle], [], [], 20)[0]
    os.close(handle)
    engine.close()


def test_the_server_dies_with_its_parent():
    code = (
        "import os, sys\n"
        "from tieout.executor.engine import Engine, EngineLimits\n"
        "engine = Engine(cache=None, limits=EngineLimits())\n"
        "print(engine.worker_pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with parent:
        handle = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    assert select.select([handle], [], [], 20)[0]
    os.close(handle)


def test_the_worker_has_no_secrets_and_no_core_files(engine, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    with Engine(cache=None, limits=EngineLimits()) as other:
        environment = Path(f"/proc/{other.worker_pid}/environ").read_bytes()
    assert b"hush" not in environment
    limits: list[str] = []
    while_running(
        engine,
        lambda _server, child: (
            limits.append(_bounded(child)),
            os.kill(child, signal.SIGKILL),
        ),
    )
    assert "31" in limits[0]


def _bounded(child: int) -> str:
    """The child's CPU bound once it has taken its bounds."""
    while True:
        lines = Path(f"/proc/{child}/limits").read_text().splitlines()
        (cpu,) = [x for x in lines if x.startswith("Max cpu time")]
        (core,) = [x for x in lines if x.startswith("Max core file size")]
        if "unlimited" not in cpu:
            assert core.split()[4] == "0"
            return cpu
        os.sched_yield()
