"""What a new user meets first: causes, remedies, short ways to say things, what doctor looks at."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from end_to_end.small import ANSWER, TOTALS, make, plan, questions, steps, tieout
from support.command_line import called, document, workspace_with_a_run
from support.messages_server import MessagesServer

from tieout import open_workspace
from tieout.cli import start


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one run."""
    return workspace_with_a_run(tmp_path_factory.mktemp("cli"))


def test_a_program_finds_one_line_on_standard_error(here, capsys):
    for arguments in (["nonsense"], ["run"], ["show", "--rows", "many"], ["replay", "r-unknown"]):
        code, out, err = called(capsys, *arguments, "--json")
        assert (code in (2, 4), out) == (True, "")
        (line,) = err.splitlines()
        assert json.loads(line)["remedy"]
    assert "many" in json.loads(called(capsys, "show", "--rows", "many", "--json")[2])["message"]
    assert called(capsys, "run", "questions.toml", "--json")[2] == ""


def test_a_failed_question_names_the_key_and_the_server(tmp_path, capsys, monkeypatch):
    folder = make(tmp_path / "w")
    (folder / "tieout.toml").write_text(
        (folder / "tieout.toml").read_text() + "[model]\nretries = 0\n"
    )
    assert tieout(folder, "init").code == 0
    done = tieout(folder, "ask", "Do they tie?")
    assert done.code == 3
    assert "Set ANTHROPIC_API_KEY" in done.out
    with MessagesServer([]) as server:
        gone = server.base_url
    done = tieout(folder, "ask", "x", "--base-url", gone, ANTHROPIC_API_KEY="x")
    assert done.code == 3
    assert gone in done.out
    assert "Check the base URL" in done.out
    assert tieout(folder, "replay", "--json").document["agrees"] is True


def test_every_bad_source_is_told_at_once(tmp_path):
    folder = make(tmp_path / "w")
    assert tieout(folder, "init").code == 0
    (folder / "bank.csv").unlink()
    (folder / "gl.csv").write_text("")
    done = tieout(folder, "snapshot")
    assert (done.code, done.out) == (4, "")
    first, second = done.err.splitlines()
    assert first.startswith("tieout: source.missing: ")
    assert second.startswith("tieout: csv.empty: ")
    done = tieout(folder, "run", "questions.toml", "--json")
    assert (done.code, done.error["code"]) == (4, "source.missing")
    assert [other["code"] for other in done.error["others"]] == ["csv.empty"]
    assert len(done.err.splitlines()) == 1
    entries = tieout(folder, "log", "--json").document["entries"]
    assert [(e["snapshots"], e["ended"]) for e in entries] == [(0, "source.missing")] * 2


def test_log_has_headings_and_takes_a_run_or_a_snapshot(tmp_path):
    folder = make(tmp_path / "w")
    assert tieout(folder, "init").code == 0
    assert tieout(folder, "snapshot").code == 0
    heads, line = tieout(folder, "log").out.splitlines()
    assert heads.split() == ["run", "at", "questions", "snapshots", "rows", "ended"]
    assert heads.index("ended") == line.index("pinned")
    snapshot = line.split()[0]
    assert snapshot.startswith("s-")
    rows = tieout(folder, "log", snapshot, "--json").document["entries"]
    assert [row["kind"] for row in rows] == ["snapshot"] * 3
    assert tieout(folder, "log", "--run", snapshot, "--json").document["entries"] == rows
    assert max(map(len, tieout(folder, "log", snapshot).out.splitlines())) < 160


def test_a_plan_may_be_given_as_bytes_or_as_a_file(here, monkeypatch):
    import tieout as package

    (here / "ask.json").write_text(plan(steps(*TOTALS), ANSWER))
    with package.open_workspace(here) as workspace:
        for given in ("ask.json", Path("ask.json"), Path("ask.json").read_bytes()):
            assert workspace.ask("Do they tie?", sources=["bank", "gl"], plan=given).complete
        for wrong, code in (("nothing.json", "plan.missing"), (5, "plan.kind")):
            with pytest.raises(package.Error) as caught:
                workspace.ask("Do they tie?", plan=wrong)
            assert caught.value.code == code
        (here / "bad.json").write_text("{")
        with pytest.raises(package.Error) as caught:
            workspace.ask("Do they tie?", plan="bad.json")
        assert (caught.value.code, "bad.json" in caught.value.place) == ("plan.not_json", True)
    with pytest.raises(package.Error) as caught:
        package.open_workspace("nope")
    assert caught.value.code == "workspace.missing"
    assert "'nope'" in caught.value.message


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose run was followed by a question of its own, by a run that found a source
    missing, and by a run that was interrupted after its first question."""
    folder = make(tmp_path_factory.mktemp("later") / "w")
    (folder / "notes" / "dos.txt").write_bytes(b"\xef\xbb\xbfOne line.\r\n")
    assert start(["init", str(folder)]) == 0
    at = ["-w", str(folder)]
    assert start(["run", str(folder / "questions.toml"), *at]) == 0
    (folder / "ask.json").write_text(plan(steps(*TOTALS), ANSWER))
    ask = ["ask", "Do they tie?", "--plan", str(folder / "ask.json"), "--source", "bank"]
    assert start([*ask, "--source", "gl", *at]) == 0
    (folder / "gl.csv").rename(folder / "away.csv")
    assert start(["run", str(folder / "questions.toml"), *at]) == 4
    (folder / "away.csv").rename(folder / "gl.csv")

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with open_workspace(folder) as workspace, pytest.raises(KeyboardInterrupt):
        workspace.run(folder / "questions.toml", told=interrupt)
    return folder


@pytest.fixture
def there(later: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(later)
    monkeypatch.setenv("NO_COLOR", "1")
    return later


def test_show_finds_the_newest_run_that_has_the_question(there, capsys):
    runs = [r["run"] for r in document(capsys, "log")["entries"] if r["questions"]]
    first, asked, cut = runs
    assert document(capsys, "show", "people")["run"] == first
    assert called(capsys, "show", "people")[1].startswith(f"Of run {first}, not of the latest.\n")
    assert document(capsys, "show", "people/people")["run"] == first
    assert document(capsys, "show", "ask/bank")["run"] == asked
    assert document(capsys, "show", "tie/bank")["run"] == cut
    assert "not of the latest" not in called(capsys, "show", "tie/bank")[1]
    assert document(capsys, "show", f"{first}/tie/bank")["run"] == first
    assert document(capsys, "show", "latest")["ended"]["code"] == "run.interrupted"
    code, _, err = called(capsys, "show", "latest/people")
    assert code == 4
    assert "RUN/QUESTION" in err
    _, _, err = called(capsys, "show", f"{first}/none")
    assert err.count(first) == 3, "once as the run, twice in what there is"
    assert f"{first}/people" in err
    _, _, err = called(capsys, "show", "tie/none")
    assert "bank, book, difference" in err
    assert "RUN/QUESTION/FIGURE" in err


def test_show_tells_a_source_a_document_and_a_snapshot(there, capsys):
    bank = document(capsys, "show", "bank")
    table = bank["manifest"]["table"]["address"]
    text = called(capsys, "show", "bank")[1]
    assert f"table     {table}" in text
    assert "5 lines" in text or "4 lines" in text
    notes = document(capsys, "show", "notes")
    bay = next(d for d in notes["manifest"]["documents"] if d["name"] == "bay.txt")
    shown = document(capsys, "show", bay["text"])
    assert (shown["document"], shown["what"]) == ("bay.txt", "text")
    assert "12,345 people" in shown["text"]
    short = bay["text"][:19] + "…"
    assert called(capsys, "show", short)[1] == called(capsys, "show", bay["text"])[1]
    assert (
        called(capsys, "show", f"{short}@3-7")[1] == called(capsys, "show", f"{bay['text']}@3-7")[1]
    )
    dos = next(d for d in notes["manifest"]["documents"] if d["name"] == "dos.txt")
    received = document(capsys, "show", dos["raw"])
    assert (received["what"], received["text_address"]) == ("file as received", dos["text"])
    assert "no run, question, source or address" in called(capsys, "show", "nowhere")[2]
    assert called(capsys, "show", "0123456789")[0] == 4
    assert called(capsys, "show", bank["run"])[1].startswith(f"Run {bank['run']}\n")
    for form in ("RUN/QUESTION/FIGURE", "SOURCE", "ADDRESS#ROW:COLUMN", "ADDRESS@START-END"):
        assert form in called(capsys, "show", "--help")[1]


def test_doctor_looks_at_sources_key_and_guards(tmp_path, capsys, monkeypatch):
    folder = make(tmp_path / "w")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    assert start(["init", str(folder)]) == 0
    (folder / "gl.csv").unlink()
    capsys.readouterr()
    at = ["-w", str(folder)]

    def checks() -> list[tuple[str, str, str]]:
        _, out, _ = called(capsys, "doctor", "--json", *at)
        return [(c["name"], c["state"], c["said"]) for c in json.loads(out)["checks"]]

    sources = [(state, said.split(":")[0]) for name, state, said in checks() if name == "source"]
    assert sources == [("ok", "bank"), ("weak", "gl"), ("ok", "notes")]
    assert ("model key", "weak") in [check[:2] for check in checks()]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-of-mine")
    assert ("model key", "ok", "ANTHROPIC_API_KEY is set") in checks()
    code, out, _ = called(capsys, "doctor", *at)
    assert (code, out.splitlines()[-1]) == (0, "Usable; `tieout verify` checks the record.")
    assert "secret-of-mine" not in out
    with open_workspace(folder) as other:
        other.log(write=True)
        (ledger,) = [check for check in checks() if check[0] == "ledger"]
        assert ledger[1] == "weak"
    with sqlite3.connect(folder / ".tieout" / "ledger.sqlite") as connection:
        (guard,) = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger' LIMIT 1"
        ).fetchone()
        connection.execute(f"DROP TRIGGER {guard}")
    connection.close()
    code, out, _ = called(capsys, "doctor", *at)
    assert code == 5
    assert f"changed: {guard}" in out


def test_a_run_for_people_shows_short_addresses_that_show_takes(here, capsys):
    out = called(capsys, "run", "questions.toml")[1]
    assert re.search(r"blake3:[0-9a-f]{13}", out) is None
    reference = re.search(r"blake3:[0-9a-f]{12}…#\S+", out)
    assert reference is not None
    assert called(capsys, "show", reference[0])[0] == 0
    passage = re.search(r"blake3:[0-9a-f]{12}…@\d+-\d+", out)
    assert passage is None or called(capsys, "show", passage[0])[0] == 0
    report = called(capsys, "show", "tie")[1]
    assert re.search(r"blake3:[0-9a-f]{64}", report), "what is stored is whole"


def test_an_expectation_that_finds_nothing_says_so(tmp_path):
    folder = make(tmp_path / "w")
    expect = '[question.expect]\nnone = "1.00"\n'
    (folder / "questions.toml").write_text(
        questions(("tie", "tie.json", ["bank", "gl"]), expect=expect)
    )
    assert tieout(folder, "init").code == 0
    done = tieout(folder, "run", "questions.toml")
    assert done.code == 1
    assert "found nothing" in done.out
    assert "None" not in done.out


def test_a_cell_without_a_value_is_shown_as_null(tmp_path, capsys):
    folder = make(tmp_path / "w", bank="line_id,booked,amount\nB1,,1.00\nB2,2026-06-01,2.00\n")
    assert start(["init", str(folder)]) == 0
    assert start(["snapshot", "bank", "-w", str(folder)]) == 0
    capsys.readouterr()
    table = document(capsys, "show", "bank", "-w", str(folder))["manifest"]["table"]["address"]
    out = called(capsys, "show", table, "-w", str(folder))[1]
    assert "booked=NULL" in out
    assert "None" not in out
    listed = document(capsys, "show", table, "-w", str(folder))["table"]["first_rows"]
    out = called(capsys, "show", f"{table}#{listed[0]['row']}:booked", "-w", str(folder))[1]
    assert "value     NULL" in out


@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["people", "program"])
def test_what_is_not_installed_is_named(flags):
    program = (
        "import sys; sys.modules['cyclopts'] = None; sys.argv = ['tieout', 'log', *sys.argv[1:]]; "
        "from tieout.__main__ import main; main()"
    )
    command = [sys.executable, "-c", program, *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (5, "")
    (line,) = done.stderr.splitlines()
    assert "cyclopts is not installed" in (json.loads(line)["message"] if flags else line)
