"""The operating system's lock: each layer alone, what is still allowed, weaker modes told."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.ledger_rows import row
from tests.support.sandboxed import Sandboxed, run_unlocked_in_sandbox
from tieout.executor import landlock, seccomp
from tieout.executor.engine import Engine, EngineLimits
from tieout.executor.errors import ExecutorError
from tieout.executor.replay import compare
from tieout.executor.sandbox import LAYERS, MEANINGS, NONE, Layer, Sandbox, layers_of, meaning
from tieout.ledger.log import MemoryLog
from tieout.workspace import open_workspace

BOTH = pytest.param(LAYERS, id="both")
LANDLOCK = pytest.param({Layer.LANDLOCK}, id="landlock")
SECCOMP = pytest.param({Layer.SECCOMP}, id="seccomp")
SECRET = "planted-4711"


def in_child(act: Callable[[], str]) -> str:
    """What a function says in a process of its own, which it may shut in for good."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writer, act().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


@pytest.fixture(scope="module", params=[BOTH, LANDLOCK, SECCOMP])
def shut(request, tmp_path_factory):
    """An unlocked engine under some layers, in a folder that holds a secret."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret.csv").write_text(f"a,b\n1,{SECRET}\n")
    (folder / "link").symlink_to(folder / "secret.csv")
    setup = ["CREATE TABLE bank AS SELECT range AS id FROM range(10)"]
    with Sandboxed(layers=request.param, setup=setup, cwd=folder) as server:
        server.folder = folder
        server.layers = frozenset(request.param)
        if layers_of(server.mode) != server.layers:
            pytest.skip(f"this kernel offers {server.mode}")
        yield server


def listing(folder: Path) -> list[tuple[str, bytes]]:
    return sorted((str(p), p.read_bytes()) for p in folder.rglob("*") if p.is_file())


def test_a_query_over_what_is_there_runs(shut):
    assert shut.sql("SELECT count(*) FROM bank").said == "1: (10,)"
    assert shut.sql("CREATE TEMP TABLE t AS SELECT 1 AS a; SELECT a FROM t").said == "1: (1,)"


OUTSIDE = [
    "COPY bank TO '{folder}/out.csv'",
    "COPY bank TO '{folder}/out.parquet' (FORMAT parquet)",
    "COPY bank TO '/dev/shm/out.csv'",
    "WITH x AS (COPY bank TO '{folder}/out.csv') SELECT 1",
    "ATTACH '{folder}/new.duckdb'",
    "ATTACH '{folder}/new.duckdb' AS n; CREATE TABLE n.t AS SELECT 1 AS a",
    "EXPORT DATABASE '{folder}/dump'",
    "INSTALL httpfs",
    "INSTALL '{folder}/x.duckdb_extension'",
    "LOAD '{folder}/x.duckdb_extension'",
    "LOAD httpfs",
    "SET temp_directory='{folder}/t'; SET memory_limit='20MB'; CREATE TABLE t AS FROM range(9000000)",
    "CALL enable_logging(storage='file', storage_config={{'path': '{folder}/log'}}); SELECT 1",
    "CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 'x')",
    "SELECT * FROM read_text('{folder}/secret.csv')",
    "SELECT * FROM read_blob('{folder}/link')",
    "SELECT * FROM read_csv('{folder}/secret.csv')",
    "SELECT * FROM read_csv('secret.csv')",
    "SELECT * FROM 'secret.csv'",
    "SELECT * FROM read_json('{folder}/../outside0/secret.csv', format='unstructured')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_text('/proc/self/environ')",
    "SELECT * FROM read_text('/proc/self/root{folder}/secret.csv')",
    "SELECT * FROM read_text('/proc/1/cmdline')",
    "COPY bank FROM '{folder}/secret.csv'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM 'http://127.0.0.1:9/x.csv'",
    "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
    "IMPORT DATABASE '{folder}'",
]


@pytest.mark.parametrize("text", OUTSIDE)
def test_an_unlocked_engine_reaches_nothing(shut, text):
    before = listing(shut.folder)
    outcome = shut.sql(text.format(folder=shut.folder))
    assert SECRET not in outcome.said
    assert outcome.kind == "error" or outcome.said.startswith("0: ") or "logging" in text, outcome
    assert listing(shut.folder) == before
    assert not Path("/dev/shm/out.csv").exists()


FILES = [
    "open('{folder}/secret.csv').read()",
    "open('/proc/self/mem', 'wb')",
    "open(f'/proc/{{os.getppid()}}/environ').read()",
    "open(f'/proc/{{os.getppid()}}/mem', 'r+b')",
    "open('/proc/self/environ').read()",
    "os.open('{folder}', os.O_RDWR | os.O_TMPFILE)",
    "os.listdir('/proc/self/fd')",
    "os.symlink('{folder}/secret.csv', '{folder}/other')",
    "os.link('{folder}/secret.csv', '{folder}/other')",
    "os.rename('{folder}/secret.csv', '{folder}/other')",
    "os.mkdir('{folder}/other')",
    "os.mkfifo('{folder}/other')",
    "os.truncate('{folder}/secret.csv', 0)",
    "os.unlink('{folder}/secret.csv')",
    "os.execv('/bin/true', ['true'])",
    "subprocess.run(['/bin/true'], check=True)",
    "os.posix_spawn('/bin/true', ['true'], {{}})",
]
CALLS = [
    "socket.socket()",
    "socket.socket(socket.AF_UNIX)",
    "socket.socketpair()",
    "os.fork()",
    "os.kill(os.getppid(), 0)",
    "os.kill(1, 0)",
    "os.stat('{folder}/secret.csv')",
    "os.chmod('{folder}/secret.csv', 0)",
    "os.utime('{folder}/secret.csv', (0, 0))",
    "os.setuid(1)",
    "os.chroot('/')",
    "os.nice(1)",
    "os.pidfd_open(os.getppid())",
    "os.sched_setaffinity(0, {{0}})",
    "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))",
    "resource.prlimit(os.getppid(), resource.RLIMIT_CPU)",
    "os.execve(os.memfd_create('x'), ['x'], {{}})",
    "mmap.mmap(-1, 4096, prot=7)",
    "t = threading.Thread(target=print); t.start()",
    *(
        f"assert libc.syscall({number}, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 1, 'EPERM'"
        for number in (
            *(101, 310, 311, 165, 166, 155, 425, 426, 427, 321, 323, 298, 248, 249, 250),
            *(175, 176, 313, 246, 320, 304, 435, 272, 308, 434, 424, 440, 428, 442, 300, 157),
        )  # ptrace, process_vm_*, mount, io_uring, bpf, userfaultfd, perf, keys, modules, kexec …
    ),
]


REFUSALS = (
    "PermissionError",
    "can't start new thread",
    "not allowed to raise maximum limit",  # how Python reads EPERM of setrlimit
    "AssertionError: EPERM",
)


@pytest.mark.parametrize("code", FILES)
def test_raw_calls_reach_no_file(shut, code):
    before = listing(shut.folder)
    outcome = shut.python(code.format(folder=shut.folder))
    assert outcome.kind == "error", outcome
    assert SECRET not in outcome.said
    assert listing(shut.folder) == before


@pytest.mark.parametrize("code", CALLS)
def test_raw_calls_reach_no_process_and_no_socket(shut, code):
    if Layer.SECCOMP not in shut.layers:
        pytest.skip("Landlock knows files, TCP ports and signals; the rest is seccomp's")
    if "libc.syscall" in code and os.uname().machine != "x86_64":
        pytest.skip("the numbers are those of x86-64")
    outcome = shut.python(code.format(folder=shut.folder))
    assert outcome.kind == "error"
    assert any(words in outcome.said for words in REFUSALS), outcome


@pytest.mark.parametrize(
    "code",
    [
        "s = socket.socket(); s.bind(('127.0.0.1', 0))",
        "s = socket.socket(); s.connect(('127.0.0.1', {port}))",
        "s = socket.socket(socket.AF_UNIX); s.connect('\\0tieout-test')",
        "os.kill(os.getppid(), signal.SIGTERM)",
        "signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0)",
    ],
)
def test_landlock_alone_knows_ports_and_signals(code):
    with Sandboxed(layers={Layer.LANDLOCK}) as shut, socket.socket() as listening:
        if landlock.abi(ctypes.CDLL(None, use_errno=True)) < landlock.SCOPES_FROM_ABI:
            pytest.skip(f"this kernel offers {shut.mode}")
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        with socket.socket(socket.AF_UNIX) as local:
            local.bind("\0tieout-test")
            local.listen()
            outcome = shut.python(code.format(port=listening.getsockname()[1]))
    assert "PermissionError" in outcome.said


def test_a_call_by_the_other_door_ends_the_process():
    if os.uname().machine != "x86_64":
        pytest.skip("x32 is of x86-64")
    with Sandboxed(layers={Layer.SECCOMP}) as shut:
        assert shut.python("libc.syscall(0x40000000 + 39)").said == "SIGSYS"


def test_without_any_layer_the_same_texts_do_reach(tmp_path):
    (tmp_path / "secret.csv").write_text(SECRET)
    outcome = run_unlocked_in_sandbox(
        f"SELECT content FROM read_text('{tmp_path}/secret.csv')", layers=()
    )
    assert SECRET in outcome.said


def test_while_tables_are_loaded_only_the_named_file_can_be_read(tmp_path):
    (tmp_path / "named").write_text("named")
    (tmp_path / "other").write_text("other")

    def act() -> str:
        box = Sandbox(LAYERS, ctypes.CDLL(None, use_errno=True))
        box.enter(readable=[tmp_path / "named"])
        said = (tmp_path / "named").read_text()
        for path, mode in (("other", "r"), ("named", "a"), ("new", "w")):
            try:
                (tmp_path / path).open(mode).close()
            except PermissionError:
                said += f" {path} refused"
        box.close_files()
        try:
            (tmp_path / "named").read_text()
        except PermissionError:
            said += " closed"
        return said

    assert in_child(act) == "named other refused named refused new refused closed"


def test_an_engine_file_is_written_in_the_folder_of_the_cache_alone(tmp_path):
    (tmp_path / "cache").mkdir()

    def act() -> str:
        Sandbox(LAYERS, ctypes.CDLL(None, use_errno=True)).enter(kept=tmp_path / "cache")
        (tmp_path / "cache" / "new").write_text("a")
        said = (tmp_path / "cache" / "new").read_text()
        for path in (tmp_path / "new", Path("/dev/shm/tieout-new")):
            try:
                path.write_text("b")
            except PermissionError:
                said += " refused"
        return said

    assert in_child(act) == "a refused refused"


# Weaker modes


@pytest.mark.parametrize("layers", [frozenset(), *(frozenset({one}) for one in Layer), LAYERS])
def test_a_forced_mode_is_reached_recorded_and_named(layers):
    with Engine(cache=None, limits=EngineLimits(), layers=layers) as engine:
        info = engine.info
        assert layers_of(info.sandbox) == layers
        assert info.recorded()["sandbox"] == info.sandbox
        assert engine.run(engine.validate("SELECT 1 AS a", {}), {}).table.num_rows == 1
    assert (info.sandbox == NONE) == (not layers)
    assert ("weak" in meaning(info.sandbox)) == (layers != LAYERS)


def test_every_mode_has_a_meaning():
    assert set(MEANINGS) == {frozenset(), *(frozenset({one}) for one in Layer), LAYERS}


@pytest.mark.parametrize("layers", [frozenset(), frozenset({Layer.SECCOMP})])
def test_doctor_names_a_weaker_mode(tmp_path, layers):
    from tieout.diagnosis import examine

    (tmp_path / "tieout.toml").write_text('[workspace]\nname = "w"\n')
    with open_workspace(tmp_path) as workspace:
        workspace.create()
        weaker = Engine(cache=None, limits=EngineLimits(), layers=layers)
        workspace._engines[workspace.catalog.limits] = weaker
        (said,) = [c for c in examine(workspace).checks if c.name == "sandbox"]
    assert said.state == "weak"
    assert said.said.startswith("seccomp: weaker" if layers else "none: weak")


def test_another_machine_is_told_and_is_no_other_build():
    old = row()
    here = dataclasses.replace(
        old.executor, settings={**old.executor.settings, "sandbox": "none", "libc": "glibc 2.36"}
    )
    new = dataclasses.replace(old, executor=here)
    found = compare([_entry(old)], [_entry(new)])
    assert (found.differences, found.builds) == ((), ())
    assert [d.replayed for d in found.hosts] == ["libc=glibc 2.36, sandbox=none"]
    other = dataclasses.replace(
        here, settings={**here.settings, "threads": "8"}, build=f"{here.build}x"
    )
    assert len(compare([_entry(new)], [_entry(dataclasses.replace(old, executor=other))]).builds)


def _entry(of):
    log = MemoryLog()
    log.append([of])
    return next(iter(log.entries()))


def test_a_layer_that_was_promised_and_cannot_be_entered_ends_the_request():
    def act() -> str:
        from tieout.executor import worker

        calls = ctypes.CDLL(None, use_errno=True)
        origin = worker.Origin(worker.session.connect(), Sandbox(LAYERS, calls), calls)
        machine = seccomp.architecture()
        landlock.no_new_privileges(calls)
        # From here on Landlock's calls answer EPERM, as in a container that forbids them.
        seccomp.install(calls, machine, seccomp.keeping(machine, os.getpid()))
        request = {"kind": "examine", "tables": {}, "sql": "SELECT 1 AS a", "chars_max": 99}
        return json.dumps(worker.answer(request, [], origin)[0])

    assert json.loads(in_child(act)) == {"failed": "engine.sandbox"}


# Seen from outside


@pytest.mark.root("strace")
def test_strace_sees_no_way_out(tmp_path):
    trace = tmp_path / "trace"
    (tmp_path / "secret.csv").write_text(SECRET)
    tracer = ["strace", "-f", "-qq", "-o", str(trace), "-e", "trace=file,network,process,seccomp"]
    setup = ["CREATE TABLE bank AS SELECT range AS id FROM range(10)"]
    with Sandboxed(tracer=tracer, setup=setup, cwd=tmp_path) as shut:
        for text in OUTSIDE:
            shut.sql(text.format(folder=tmp_path))
        for code in FILES:
            shut.python(code.format(folder=tmp_path))
    filters: dict[str, int] = {}
    for line in trace.read_text(errors="replace").splitlines():
        found = re.match(r"(\d+) +(\w+)\((.*)\) += (-?\d+)", line)
        if found is None:
            continue
        process, call, arguments, result = found.groups()
        if filters.get(process) == 2 and call not in {"exit_group", "sendto", "recvfrom"}:
            harmless = call == "newfstatat" and "AT_EMPTY_PATH" in arguments
            assert result == "-1" or harmless or call in {"getsockname", "getpeername"}, line
        filters[process] = filters.get(process, 0) + (call == "seccomp" and result == "0")
    assert list(filters.values()).count(2) == len(OUTSIDE) + len(FILES)


@pytest.mark.root("strace")
def test_strace_sees_a_real_request_open_nothing_but_what_it_was_given(tmp_path):
    trace = tmp_path / "trace"
    script = tmp_path / "script.py"
    script.write_text(
        "from tieout.executor.engine import Engine, EngineLimits\n"
        "with Engine(cache=None, limits=EngineLimits()) as engine:\n"
        "    found = engine.validate('SELECT range AS a FROM range(3)', {})\n"
        "    assert engine.run(found, {}).table.num_rows == 3\n"
    )
    command = ["strace", "-f", "-qq", "-o", str(trace), "-e", "trace=file,seccomp,network,process"]
    subprocess.run([*command, sys.executable, str(script)], check=True)
    closed: dict[str, int] = {}
    for line in trace.read_text(errors="replace").splitlines():
        process, _, call = line.partition(" ")
        if call.strip().startswith("seccomp("):
            closed[process] = closed.get(process, 0) + 1
        elif closed.get(process, 0) == 2:
            assert not re.match(r" *(open|openat|stat|access|execve|clone|fork)\(", call), line
    assert sorted(closed.values()) == [1, 2, 2]  # the probe, the validation, the run


def test_signals_of_the_parent_still_end_a_child():
    with Engine(cache=None, limits=EngineLimits(seconds_max=1)) as engine:
        sql = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t)"
        validated = engine.validate(f"{sql} SELECT count(*) AS c FROM t", {})
        with pytest.raises(ExecutorError) as caught:
            engine.run(validated, {})
    assert caught.value.code == "limit.seconds"
