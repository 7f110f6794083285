"""One text against chosen layers with all others off, each time in a bounded child of its own.

`Layers` is the client; the file run as a program is the server: it makes the engines once and forks
one child per request, so that whatever a text does ends with the child.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import duckdb
import pyarrow as pa

from tieout.executor.sandbox import LAYERS as OS_LAYERS
from tieout.executor.sandbox import Sandbox
from tieout.executor.sql import examine, functions, session
from tieout.executor.sql.plan import check_plan
from tieout.executor.sql.refusal import SqlRefused, Text
from tieout.executor.sql.second import read_second
from tieout.executor.sql.text import check_text
from tieout.executor.sql.text import tokens as read_tokens
from tieout.executor.sql.tree import check_tree
from tieout.executor.sql.validate import GrantedColumn, GrantedTable

CHARS_MAX = 32_768
CPU_S = 2
WALL_S = 4
MEMORY_BYTES = 1 << 30
SPARE_BYTES = 2 << 30
ROWS_MAX = 10_000


class Layer(StrEnum):
    """What may refuse a text. Tree and plan are of one class: both are DuckDB's own reading."""

    TEXT = "text"
    TREE = "tree"
    PLAN = "plan"
    SQLGLOT = "sqlglot"
    ENGINE = "engine"
    SYSTEM = "system"


CLASSES = {
    Layer.TEXT: "text rules",
    Layer.TREE: "DuckDB tree and plan",
    Layer.PLAN: "DuckDB tree and plan",
    Layer.SQLGLOT: "sqlglot",
    Layer.ENGINE: "engine and catalog",
    Layer.SYSTEM: "operating system",
}
GATES = (Layer.TEXT, Layer.TREE, Layer.PLAN, Layer.SQLGLOT)

_COLUMNS = {
    "id": "INTEGER",
    "amt": "DECIMAL(18,2)",
    "memo": "VARCHAR",
    "dt": "DATE",
    "acct_key": "INTEGER",
}
_ROWS = """SELECT * FROM (VALUES
 (1, 10.50::DECIMAL(18,2), 'fee', DATE '2026-01-05', 1010),
 (2, -4.75, 'rent', DATE '2026-02-01', 1010),
 (3, 20.25, 'INV-7', DATE '2026-02-28', 2020)) t(id, amt, memo, dt, acct_key)"""
WARM = "SELECT memo, sum(amt) AS s FROM bank GROUP BY memo ORDER BY memo"
SECRET = "CREATE TABLE secret_hr AS SELECT 'S3CRET' AS name, 777777.0::DOUBLE AS salary"


def granted() -> dict[str, GrantedTable]:
    """What the texts of the attacks may read."""
    columns = tuple(GrantedColumn(c, kind) for c, kind in _COLUMNS.items())
    floats = (GrantedColumn("id", "INTEGER"), GrantedColumn("x", "DOUBLE"))
    step1 = (GrantedColumn("total", "DECIMAL(18,2)"),)
    return {
        "bank": GrantedTable("bank", columns, ("id",)),
        "ledger": GrantedTable("ledger", columns, ("id",)),
        "step1": GrantedTable("step1", step1),
        "floats": GrantedTable("floats", floats, ("id",)),
    }


NO_ANSWER = "no answer"


@dataclass(frozen=True, slots=True)
class Answer:
    """by: the layer that refused, "" when the text ran. said: a code, or the engine's own class.

    digest: of the rows when it ran.
    """

    by: str
    said: str
    digest: str = ""

    @property
    def refused(self) -> bool:
        return bool(self.by)

    @property
    def fell(self) -> bool:
        """Whether the child ended without a word: a fault of the harness or a gate, no refusal."""
        return self.said == NO_ANSWER


class Layers:
    """A context manager over one server. folder: its working directory, where canaries lie.

    prefix: a command that runs the server, such as strace with its arguments.
    """

    def __init__(self, folder: Path, *, prefix: Iterable[str] = ()) -> None:
        self._command = [*prefix, sys.executable, "-P", str(Path(__file__).resolve())]
        self._folder = folder

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self._folder),
                "JE_ARROW_MALLOC_CONF": "background_thread:false",
            },
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()

    def alone(self, layer: Layer, sql: str) -> Answer:
        """One layer, all others off."""
        if layer in GATES:
            return self.ask(sql, gates=[layer])
        return self.ask(sql, run=layer)

    def gates(self, texts: Sequence[str]) -> list[dict[Layer, Answer]]:
        """What each gate alone says to each text; they share a child as long as it lives."""
        found = self._asked({"each": list(texts), "gates": list(GATES), "run": ""})
        if isinstance(found, list):
            return [{g: Answer(**a) for g, a in zip(GATES, said, strict=True)} for said in found]
        return [{gate: self.alone(gate, sql) for gate in GATES} for sql in texts]

    def each(self, sql: str) -> dict[Layer, Answer]:
        """What every layer alone says."""
        runs = {run: self.alone(run, sql) for run in (Layer.ENGINE, Layer.SYSTEM)}
        return self.gates([sql])[0] | runs

    def ask(self, sql: str, *, gates: Iterable[Layer] = (), run: Layer | str = "") -> Answer:
        """The gates in their order, then a run.

        run: "" for none; ENGINE: under the engine's locks; SYSTEM: unlocked, in the kernel's
        sandbox; "bare": unlocked and outside it.
        """
        found = self._asked({"sql": sql, "gates": [str(g) for g in gates], "run": str(run)})
        return Answer(**found)

    def _asked(self, request: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the server of the layers has ended"
        return json.loads(line)


def _engine(*, loaded: bool) -> duckdb.DuckDBPyConnection:
    engine = session.connect()
    for name, table in granted().items():
        columns = {c.name: c.type for c in table.columns}
        session.declare(engine, name, columns)
        if loaded and "amt" in columns:
            engine.execute(f"INSERT INTO {name} {_ROWS}")
        elif loaded:
            values = ", ".join("1" for _ in columns)
            engine.execute(f"INSERT INTO {name} VALUES ({values})")
    return engine


class _Server:
    """Three engines that were made before any text was read: a child has its own copy."""

    def __init__(self) -> None:
        functions.classes()  # read now: a child must not open files of ours
        self.tables = granted()
        self.granted = examine.granted_of(self.tables)
        self.gate = _engine(loaded=False)
        session.lock(self.gate, memory_bytes=MEMORY_BYTES)
        self.locked = _engine(loaded=True)
        session.lock(self.locked, memory_bytes=MEMORY_BYTES)
        self.bare = duckdb.connect(":memory:", config={"threads": "1"})
        for name in self.tables:
            self.bare.register("incoming", self.locked.sql(f"FROM {name}").to_arrow_table())
            self.bare.execute(f"CREATE TABLE {name} AS FROM incoming")
            self.bare.unregister("incoming")
        self.bare.execute(SECRET)
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.rules: dict[str, Callable[[str], object]] = {
            Layer.TEXT: lambda sql: check_text(sql, chars_max=CHARS_MAX),
            Layer.TREE: self.tree,
            Layer.PLAN: self.plan,
            Layer.SQLGLOT: lambda sql: read_second(Text(sql), self.granted),
        }

    def warm(self) -> None:
        """Go once through all that a child would do first: it costs each of them 5 ms."""
        for engine in (self.locked, self.bare):
            _run(engine, WARM)
        for rule in self.rules.values():
            rule(WARM)
        gc.collect()
        gc.freeze()

    def tree(self, sql: str) -> None:
        """One SELECT by DuckDB's count, and its parse tree against the lists."""
        text = Text(sql)
        # Places for refusals; the text rules are off.
        read = tuple(read_tokens(sql)) or check_text("x", chars_max=1)
        examine._one_select(self.gate, text, read)
        check_tree(text, examine._tree(self.gate, text), self.granted)

    def plan(self, sql: str) -> None:
        """The bound plan against the lists."""
        text = Text(sql)
        document = examine._serialized(self.gate, "json_serialize_plan", sql)
        if document.get("error"):
            raise text.refuse("sql.bind", "the engine does not bind it")
        plans = document["plans"]
        if not isinstance(plans, list) or len(plans) != 1:
            raise text.refuse("sql.two_statements", "the text has no single plan")
        check_plan(text, examine.as_node(plans[0]), granted=frozenset(self.granted.columns))

    def answer(self, request: dict[str, Any]) -> dict[str, str]:
        """Each gate, then the run; the first refusal ends it."""
        for gate in request["gates"]:
            try:
                self.rules[gate](request["sql"])
            except SqlRefused as refused:
                return {"by": gate, "said": refused.code}
            except (duckdb.Error, RecursionError, ValueError) as error:
                return {"by": gate, "said": type(error).__name__}
        run = request["run"]
        if not run:
            return {"by": "", "said": "admitted"}
        engine = self.locked if run == Layer.ENGINE else self.bare
        if run == Layer.SYSTEM:
            sandbox = Sandbox(OS_LAYERS, self.libc)
            sandbox.enter()
            sandbox.close_files()
        try:
            return {"by": "", "said": "ran", "digest": _run(engine, request["sql"])}
        except (duckdb.Error, RuntimeError, OSError, MemoryError) as error:
            return {"by": run, "said": type(error).__name__}

    def child(self, request: dict[str, Any], out: int) -> None:
        """Bound this process, do it, say it."""
        size = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
        space = size + MEMORY_BYTES + SPARE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(WALL_S)
        if "each" in request:
            found: object = [
                [self.answer({"sql": sql, "gates": [g], "run": ""}) for g in request["gates"]]
                for sql in request["each"]
            ]
        else:
            found = self.answer(request)
        os.write(out, json.dumps(found).encode())


def _run(engine: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The text as it is, to its first rows; the digest of what came."""
    found = engine.execute(sql)
    if found is None:  # an empty text
        return ""
    rows = found.fetchmany(ROWS_MAX) if found.description else []
    return hashlib.sha256(repr((found.description, rows)).encode("utf-8", "replace")).hexdigest()


def _reply(server: _Server, line: str) -> str:
    request = json.loads(line)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(reading)
            server.child(request, writing)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if said:
        return said.decode()
    last = request["run"] or request["gates"][-1]
    ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else NO_ANSWER
    return json.dumps({"by": last, "said": ended})


def serve() -> None:
    """A request a line, an answer a line; ends when nobody asks any more."""
    server = _Server()
    server.warm()
    print("ready", flush=True)
    for line in sys.stdin:
        print(_reply(server, line), flush=True)


def plant(folder: Path) -> dict[str, str]:
    """Files that a text could read or change; a name to the hash of its content."""
    folder.mkdir(exist_ok=True)
    for name in ("secret.csv", "x.csv", "bank.csv"):
        (folder / name).write_text("a,b\nS3CRET,777777\n")
    (folder / "secret.txt").write_text("S3CRET 777777\n")
    (folder / "secret.json").write_text('[{"a": "S3CRET"}]\n')
    with duckdb.connect(str(folder / "other.duckdb")) as other:
        other.execute("CREATE TABLE t AS SELECT 'S3CRET' AS a")
        path = str(folder / "secret.parquet").replace("'", "''")
        other.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    return lying(folder)


def lying(folder: Path) -> dict[str, str]:
    """All files below a folder with the hash of each."""
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


if __name__ == "__main__":
    pa.set_cpu_count(1)
    serve()
