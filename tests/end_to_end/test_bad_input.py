"""Bad input by the command line: a clear error, its exit code, a row, a next step, nothing lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from end_to_end.small import (
    CATALOG,
    TOTALS,
    Done,
    answer,
    figure,
    finish,
    make,
    plan,
    questions,
    sql,
    start,
    steps,
    tieout,
)
from support.ledger_rows import unguarded
from support.messages_server import MessagesServer

from tieout.artifacts.address import Address
from tieout.executor.ending import ENDING_SUBJECT
from tieout.ledger.log import Entry
from tieout.ledger.row import Kind
from tieout.workspace import open_workspace

TRIES_MAX = 8


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with its store and ledger, nothing pinned."""
    made = make(tmp_path / "w")
    with open_workspace(made) as workspace:
        workspace.create()
    return made


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one whole run; tests copy it before they break it."""
    made = make(tmp_path_factory.mktemp("ran") / "w")
    with open_workspace(made) as workspace:
        workspace.create()
        assert workspace.run(made / "questions.toml").complete
    return made


@pytest.fixture
def broken(ran: Path, tmp_path: Path) -> Path:
    """A copy of a workspace with one whole run."""
    subprocess.run(["cp", "-r", str(ran), str(tmp_path / "w")], check=True)
    return tmp_path / "w"


def entries(folder: Path) -> list[Entry]:
    with open_workspace(folder) as workspace:
        return list(workspace.log().entries())


def ended(folder: Path) -> list[str]:
    """The codes of the runs that ended early."""
    return [e.row.outcome.code for e in entries(folder) if e.row.subject == ENDING_SUBJECT]


def sound(folder: Path) -> None:
    """Nothing was lost: the record holds."""
    with open_workspace(folder) as workspace:
        report = workspace.verify()
    assert report.holds, [str(finding) for finding in report.findings]


def refused(done: Done, *, exit_code: int, code: str, place: str) -> None:
    """The error is told for people and for programs, with its place and the next step."""
    assert done.code == exit_code, done.err
    assert done.out == ""
    error = done.error
    assert error["type"] == "error"
    assert error["code"] == code
    assert place in error["place"]
    assert error["message"]
    assert error["remedy"]
    assert len(done.err.splitlines()) == 1, "nothing else for a program"
    assert "Traceback" not in done.err


def test_a_missing_file(folder):
    (folder / "bank.csv").unlink()
    done = tieout(folder, "run", "questions.toml", "--json")
    refused(done, exit_code=4, code="source.missing", place=str(folder / "bank.csv"))
    assert "'bank'" in done.error["message"]
    assert ended(folder) == ["source.missing"]
    assert tieout(folder, "log").out.rstrip().endswith("source.missing")
    sound(folder)


def test_an_empty_file(folder):
    (folder / "gl.csv").write_text("")
    done = tieout(folder, "snapshot", "--json")
    refused(done, exit_code=4, code="csv.empty", place="gl.csv")
    assert ended(folder) == ["csv.empty"]
    assert [e for e in entries(folder) if e.row.kind is Kind.SNAPSHOT] == []


def test_a_file_that_changes_while_it_is_read(folder):
    (folder / "bank.csv").write_text("line_id,booked,amount\n" + "B,2026-06-30,1.00\n" * 3_000_000)
    writing = (
        "import sys, time\n"
        "with open(sys.argv[1], 'ab', buffering=0) as file:\n"
        "    for _ in range(1_000_000):\n"
        "        file.write(b'B,2026-06-30,1.00\\n')\n"
        "        time.sleep(0.0005)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", writing, str(folder / "bank.csv")])
    try:
        size = (folder / "bank.csv").stat().st_size
        while (folder / "bank.csv").stat().st_size == size:
            assert writer.poll() is None
        done = tieout(folder, "snapshot", "bank", "--json")
    finally:
        writer.kill()
        writer.wait()
    refused(done, exit_code=5, code="source.changed", place=str(folder / "bank.csv"))
    assert ended(folder) == ["source.changed"]
    assert not any((folder / ".tieout" / "store" / "objects").rglob("*.zst"))
    sound(folder)


def test_two_sources_with_one_name(folder):
    (folder / "tieout.toml").write_text(CATALOG + '[source.bank]\nfile = "gl.csv"\n')
    done = tieout(folder, "snapshot", "--json")
    refused(done, exit_code=4, code="catalog.not_toml", place=str(folder / "tieout.toml"))
    assert "line 20" in done.error["message"]
    assert "names of their own" in done.error["remedy"]


def test_a_plan_that_is_not_json(folder):
    (folder / "people.json").write_text('{"turns": [\n  {"steps": [}\n]}')
    done = tieout(folder, "run", "questions.toml", "--json")
    refused(done, exit_code=4, code="plan.not_json", place="people.json, line 2, column 14")
    # It was found before anything was begun: no run was under way, the other question included.
    assert entries(folder) == []


BAD_SQL = {
    "column": ("SELECT sum(amonut) AS x FROM bank", "sql.unknown_column"),
    "write": ("INSERT INTO bank VALUES ('B9', DATE '2026-06-30', 1)", "sql.write"),
    "file": ("SELECT * FROM read_csv('gl.csv')", "sql.file_access"),
    "clock": ("SELECT now() AS x", "sql.clock"),
    "two": ("SELECT 1 AS x; SELECT 2 AS x", "sql.two_statements"),
    "endless": (
        "SELECT count(*) AS x FROM " + " CROSS JOIN ".join(f"bank AS b{n}" for n in range(40)),
        "limit.seconds",
    ),
}


@pytest.fixture(scope="module")
def bad_sql(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """One batch in which each question asks for something else that must not be."""
    folder = make(tmp_path_factory.mktemp("sql") / "w", limits="step_seconds_max = 2\n")
    for name, (text, _) in BAD_SQL.items():
        bad = answer("It is {x}.", x=figure("bad", "x"))
        (folder / f"{name}.json").write_text(plan(steps(sql("bad", text)), bad))
    (folder / "questions.toml").write_text(
        questions(
            *[(name, f"{name}.json", ["bank"]) for name in BAD_SQL],
            ("tie", "tie.json", ["bank", "gl"]),
        )
    )
    assert tieout(folder, "init").code == 0
    return folder, tieout(folder, "run", "questions.toml", "--json")


@pytest.mark.parametrize("name", BAD_SQL)
def test_sql_that_must_not_be(bad_sql, name):
    folder, done = bad_sql
    text, code = BAD_SQL[name]
    assert done.code == 3
    assert done.error["code"] == "exit.incomplete"
    delivered = next(q for q in done.document["questions"] if q["id"] == name)
    assert delivered["status"] == "failed"
    row = next(e.row for e in entries(folder) if e.row.subject == f"{name}/t1/bad")
    assert row.kind is (Kind.FAILURE if name == "endless" else Kind.REFUSAL)
    # Which of the two bounds a query without end reaches first is the machine's matter.
    assert row.outcome.code in {code, "limit.memory" if name == "endless" else code}
    assert json.loads(row.raw_llm_instruction)["sql"] == text
    (told,) = [p for p in row.attachments if p.role == "refusal"]
    with open_workspace(folder) as workspace:
        seen = json.loads(workspace.store.get(told.address))
    assert seen["message"]
    assert seen["way_out"]
    if name != "endless":
        assert row.outcome.position is not None
        assert (seen["line"], seen["column"]) == (
            row.outcome.position.line,
            row.outcome.position.column,
        )


def test_the_other_questions_of_a_bad_batch_are_answered(bad_sql):
    folder, done = bad_sql
    assert done.document["questions"][-1]["status"] == "answered"
    sound(folder)


@pytest.mark.slow
@pytest.mark.root("mount", "umount")
def test_a_full_disk(folder, tmp_path):
    small = tmp_path / "disk"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)], check=True)
    try:
        rows = "".join(
            f"L{n:06d},2026-06-30,{n * 7919 % 100_003}.{n % 100:02d}\n" for n in range(30_000)
        )
        where = ["--store", str(small / "store"), "--json"]
        # init makes the store where the run will look for it.
        assert tieout(folder, "init", *where).code == 0
        (folder / "bank.csv").write_text("line_id,booked,amount\n" + rows)
        done = tieout(folder, "run", "questions.toml", *where)
        refused(done, exit_code=5, code="disk.full", place=str(small))
        assert ended(folder) == ["disk.full"]
        subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
        assert tieout(folder, "verify", *where).document["holds"]
        assert tieout(folder, "run", "questions.toml", *where).code == 0
        assert tieout(folder, "verify", *where).document["holds"]
    finally:
        subprocess.run(["umount", str(small)], check=True)


@pytest.mark.slow
@pytest.mark.root("mount", "umount")
def test_a_full_disk_under_the_ledger(folder, tmp_path):
    """The row that would say so has no room either: the error is told, and the record holds."""
    small = tmp_path / "disk"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)], check=True)
    try:
        where = ["--ledger", str(small / "ledger.sqlite"), "--json"]
        assert tieout(folder, "init", *where).code == 0
        room = os.statvfs(small)
        (small / "filler").write_bytes(b"x" * room.f_frsize * room.f_bavail)
        done = tieout(folder, "run", "questions.toml", *where)
        assert done.code == 5, done.err
        assert done.error["code"].startswith(("ledger.", "disk."))
        subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
        assert tieout(folder, "run", "questions.toml", *where).code == 0
        assert tieout(folder, "verify", *where).document["holds"]
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_second_process_on_the_same_workspace(folder):
    with open_workspace(folder) as first:
        first.log(write=True)
        done = tieout(folder, "run", "questions.toml", "--json")
        refused(done, exit_code=11, code="ledger.locked", place="ledger.sqlite")
        assert tieout(folder, "log", "--json").code == 0  # readers are not locked out
        assert [p.fresh for p in first.snapshot()] == [True, True, True]
    assert tieout(folder, "snapshot").code == 0


def flip(folder: Path, address: Address) -> None:
    """Turn one bit of an object at rest."""
    (path,) = (folder / ".tieout" / "store").glob(f"{address.key}*")
    path.chmod(0o644)
    payload = bytearray(path.read_bytes())
    payload[len(payload) // 2] ^= 0x10
    path.write_bytes(payload)


def address_of(folder: Path, subject: str, part: str) -> Address:
    row = next(e.row for e in entries(folder) if e.row.subject == subject)
    if part == "output":
        assert row.deterministic_output is not None
        return row.deterministic_output.address
    return next(p.address for p in row.attachments if p.role == part)


def test_a_flipped_bit_is_found_by_whoever_reads_it(broken):
    table = address_of(broken, "source/bank", "table")
    flip(broken, table)
    shown = tieout(broken, "show", str(table), "--json")
    refused(shown, exit_code=1, code="object.corrupt", place=str(table))
    verified = tieout(broken, "verify", "--json")
    assert verified.code == 1
    assert verified.error["code"] == "exit.does_not_hold"
    assert [f["address"] for f in verified.document["findings"]] == [str(table)]
    run = tieout(broken, "run", "questions.toml", "--pinned", "--json")
    refused(run, exit_code=1, code="object.corrupt", place=str(table))
    assert ended(broken) == ["object.corrupt"]


def test_a_flipped_bit_in_what_a_replay_reads(broken):
    raw = address_of(broken, "source/bank", "raw")
    flip(broken, raw)
    refused(tieout(broken, "replay", "--json"), exit_code=1, code="object.corrupt", place=str(raw))


@pytest.mark.parametrize("what", ["entry", "hash"])
def test_a_ledger_row_edited_by_hand(broken, what):
    ledger = broken / ".tieout" / "ledger.sqlite"
    changes = {
        "entry": "entry = CAST(replace(CAST(entry AS TEXT), 'bank', 'bonk') AS BLOB)",
        "hash": "sha256_hash = zeroblob(32)",
    }
    with unguarded(ledger) as connection:
        assert connection.execute(f"UPDATE entry SET {changes[what]} WHERE idx = 4").rowcount == 1
    done = tieout(broken, "verify", "--json")
    assert done.code == 1
    findings = done.document["findings"]
    assert 4 in {finding["index"] for finding in findings}
    assert "entry 4" in tieout(broken, "verify").out


def test_there_is_no_workspace(tmp_path):
    done = tieout(tmp_path, "run", "questions.toml", "--json")
    refused(done, exit_code=10, code="workspace.missing", place=str(tmp_path))
    assert "tieout init" in done.error["remedy"]
    made = make(tmp_path / "w")
    done = tieout(made, "log", "--json")
    refused(done, exit_code=10, code="ledger.missing", place="ledger.sqlite")
    assert "tieout init" in done.error["remedy"]


@pytest.mark.parametrize("arguments", [["frob"], ["verify", "--frob"], ["show", "--rows", "many"]])
def test_a_command_line_that_is_not_understood(folder, arguments):
    done = tieout(folder, *arguments, "--json")
    assert done.code == 2
    assert done.out == ""
    assert done.error["code"] == "exit.usage"


class Waiting:
    """A model that says when it is asked, and then takes its time."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, seen: dict[str, Any]) -> str:
        self.asked.set()
        self.go_on.wait(60)
        return steps(TOTALS[0])


@pytest.fixture
def waiting() -> Iterator[tuple[Waiting, MessagesServer]]:
    model = Waiting()
    with MessagesServer([model]) as server:
        yield model, server
        model.go_on.set()


@pytest.mark.parametrize("whole_group", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_an_interrupted_run(folder, waiting, whole_group):
    """From a terminal the interruption reaches the engine's processes too."""
    model, server = waiting
    (folder / "questions.toml").write_text(
        questions(("tie", "tie.json", ["bank", "gl"]), ("asked", "", ["bank"]))
    )
    arguments = ["run", "questions.toml", "--base-url", server.base_url, "--json"]
    running = start(folder, *arguments, ANTHROPIC_API_KEY="x")
    assert model.asked.wait(60)
    (os.killpg if whole_group else os.kill)(running.pid, signal.SIGINT)
    done = finish(running)
    assert done.code == 130, done.err
    assert done.error["code"] == "exit.interrupted"
    assert "Traceback" not in done.err
    assert ended(folder) == ["run.interrupted"]
    sound(folder)
    again = tieout(folder, "replay", "--json")
    assert again.code == 3, again.out
    assert again.document["differences"] == []
    assert again.document["rows"] > 8
