"""What a command loads, seen in sys.modules of a process of its own; what the packages offer.

A model's client costs 2.5 CPU seconds to import, boto3 0.4, the SQL parser 0.3, the engine 0.2:
what only reads a workspace never pays for them, and works where they are not installed.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tieout

HEAVY = {"duckdb", "sqlglot", "anthropic", "httpx2", "boto3", "botocore"}
FOREIGN = {"pyarrow", "pydantic", "apsw", "blake3", "cyclopts", "rich", *HEAVY}
PUBLIC = {
    "tieout": ["Error", "Workspace", "__version__", "init_workspace", "open_workspace"],
    "tieout.artifacts": [
        "Address", "ArtifactError", "CheckedRow", "RetentionClass", "RowRoot", "RowTree", "Store",
        "Stored", "TableArtifact", "TableReader", "TextSnapshot", "canonical", "check_row",
        "create_store", "open_store", "prove_row", "row_root",
    ],
    "tieout.ledger": [
        "Answer", "CellCitation", "Figure", "Label", "LedgerError", "LedgerRow", "Log", "MemoryLog",
        "SpanCitation", "SqliteLog", "create", "open_log", "read_log",
    ],
    "tieout.executor": [
        "Catalog", "Engine", "EngineLimits", "ExecutorError", "Limits", "Receipt", "Recorder",
        "Shown", "SystemClock", "World", "load_catalog", "parse_turn", "perform",
    ],
    "tieout.planner": [
        "Batch", "ClaudeModel", "Model", "PlannerError", "Prompt", "RecordedModel", "Report",
        "WrittenModel", "load_questions", "replay", "run_batch",
    ],
}  # fmt: skip
ROOMS = ("artifacts", "ledger", "ledger.audit", "executor", "executor.sql", "planner")

LOADED = """
import json, sys
sys.argv = ["tieout", *sys.argv[1:]]
from tieout.cli import start
code = start()
print(json.dumps([code, sorted({name.split(".")[0] for name in sys.modules})]))
"""


def python(*arguments: str, hashing: str = "0") -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONHASHSEED": hashing},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(*arguments: str) -> set[str]:
    """The top-level packages in memory when a command has ended well."""
    last = python("-c", LOADED, *arguments).splitlines()[-1]
    code, modules = json.loads(last)
    assert code == 0
    return set(modules)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A workspace with one run of one question."""
    folder = tmp_path_factory.mktemp("small")
    for name in ("bank.csv", "gl.csv", "tieout.toml"):
        shutil.copy(repository / "fixtures" / "close" / name, folder)
    plan = repository / "fixtures" / "close" / "plans" / "bank-1010.json"
    with tieout.init_workspace(folder) as opened:
        result = opened.ask("Does it tie out?", sources=["bank", "gl"], plan=plan.read_bytes())
    assert result.complete
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["log"],
        ["log", "--run", "latest"],
        ["show", "latest"],
        ["show", "ask/bank"],
        ["show", "latest/ask"],
        ["verify"],
    ],
    ids=" ".join,
)
def test_what_only_reads_loads_no_engine_and_no_client(command: list[str], workspace: Path) -> None:
    loaded = loaded_by(*command, "-w", str(workspace))
    assert loaded & HEAVY == set()
    assert "tieout" in loaded


def test_the_same_look_finds_an_engine_that_is_loaded(workspace: Path) -> None:
    """The test above could not fail if this one did not pass."""
    loaded = loaded_by("replay", "-w", str(workspace))
    assert loaded & HEAVY == set(), "the engine lives in a process of its own"
    program = "import tieout.executor.worker, sys; print(sorted(sys.modules))"
    assert {"duckdb", "sqlglot"} <= set(json.loads(python("-c", program).replace("'", '"')))


def test_opening_a_row_of_a_table_loads_no_engine(workspace: Path) -> None:
    shown = python("-m", "tieout", "show", "ask/bank", "-w", str(workspace), "--json")
    address = json.loads(shown)["figure"]["address"]
    assert loaded_by("show", address, "-w", str(workspace)) & HEAVY == set()


def test_the_package_alone_loads_nothing() -> None:
    program = "import tieout, sys; print(*sys.modules, sep='\\n')"
    loaded = {name.split(".")[0] for name in python("-c", program).split()}
    assert loaded & FOREIGN == set()


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_alone_loads_nothing(room: str) -> None:
    program = f"import tieout.{room}, sys; print(*sys.modules, sep='\\n')"
    loaded = {name.split(".")[0] for name in python("-c", program).split()}
    assert loaded & FOREIGN == set()


def test_the_auditor_loads_nothing_that_wrote() -> None:
    program = "import tieout.ledger.audit.fsck, sys; print(*sys.modules, sep='\\n')"
    loaded = set(python("-c", program).split())
    assert {name.split(".")[0] for name in loaded} & (HEAVY | {"apsw", "cyclopts"}) == set()
    assert {n for n in loaded if n.startswith(("tieout.executor", "tieout.planner"))} == set()


@pytest.mark.parametrize("package", list(PUBLIC))
def test_what_a_package_offers(package: str) -> None:
    module = importlib.import_module(package)
    offered = sorted(getattr(module, "__all__", []))
    assert offered == PUBLIC[package]
    assert package != "tieout" or set(offered) <= set(dir(module))
    for name in offered:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name
