"""Nothing is left to load once a child is shut in: all that the gates import is there before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tieout.executor.engine import Engine, EngineLimits

HERE = Path(__file__).parent / "sql"

PROGRAM = """
import json, sys
from tieout.executor import worker
from tieout.executor.sql import functions, session
from tieout.executor.sql.examine import examine
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.validate import GrantedColumn, GrantedTable

columns = {"id": "INTEGER", "amt": "DECIMAL(18,2)", "memo": "VARCHAR", "dt": "DATE"}
bank = GrantedTable("bank", tuple(GrantedColumn(c, k) for c, k in columns.items()), ("id",))
functions.classes()  # as the server does
engine = session.connect()
session.declare(engine, "bank", columns)
session.lock(engine, memory_bytes=1 << 30)
examine(engine, "SELECT id, memo FROM bank ORDER BY memo", {"bank": bank}, chars_max=32768)
before = set(sys.modules)
for sql in json.load(sys.stdin):
    try:
        examine(engine, sql, {"bank": bank}, chars_max=32768, as_of="2026-06-30")
    except SqlRefused:
        pass
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_no_text_makes_the_gates_load_a_module():
    lines = [
        line
        for name in ("usual.jsonl", "attacks.jsonl")
        for line in (HERE / name).read_text("utf-8").splitlines()
    ]
    texts = [json.loads(line)["sql"] for line in lines] + ["SELECT [1, 2][1] AS n"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize("sql", ["SELECT [1, 2][1] AS n", "SELECT {'a': 2}.a AS n"])
def test_a_text_that_the_formatter_has_to_think_about(sql):
    with Engine(cache=None, limits=EngineLimits()) as engine:
        validated = engine.validate(sql, {})
        assert engine.run(validated, {}).table.num_rows == 1


def test_a_compiled_parser_beside_ours_is_named(tmp_path):
    installed = tmp_path / "sqlglotc-30.30.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: sqlglotc\nVersion: 30.30.0\n")
    program = (
        "from tieout.executor.engine import Engine, EngineLimits\n"
        "from tieout.executor.errors import ExecutorError\n"
        "try:\n    Engine(cache=None, limits=EngineLimits())\n"
        "except ExecutorError as error:\n    print(error.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "engine.other_parser\n"
