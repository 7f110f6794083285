"""The command line: one JSON document on standard output, exit codes, settings and their origin."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from end_to_end.small import ANSWER, TOTALS, make, plan, questions, steps, tieout
from support.messages_server import MessagesServer, bad_request

from tieout import open_workspace
from tieout.cli import start


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one run."""
    folder = make(tmp_path_factory.mktemp("cli") / "w")
    assert start(["init", str(folder)]) == 0
    assert start(["run", str(folder / "questions.toml"), "-w", str(folder)]) == 0
    return folder


@pytest.fixture
def here(made: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(made)
    monkeypatch.setenv("NO_COLOR", "1")
    return made


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = start(list(arguments))
    return (code, *capsys.readouterr())


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The one document of a command that succeeds."""
    code, out, err = called(capsys, *arguments, "--json")
    assert code == 0, err
    found = json.loads(out)  # fails on a second document
    assert isinstance(found, dict)
    return found


def test_init_prints_one_document(capsys, tmp_path):
    (tmp_path / "bank.csv").write_text("a,b\n1,2\n")
    found = document(capsys, "init", str(tmp_path))
    assert found["sources"] == ["bank"]
    assert Path(found["ledger"]).is_file()
    before = (tmp_path / "tieout.toml").read_bytes()
    assert document(capsys, "init", str(tmp_path)) == found
    assert (tmp_path / "tieout.toml").read_bytes() == before


def test_snapshot_prints_one_document(here, capsys):
    found = document(capsys, "snapshot", "bank", "gl")
    assert [(s["source"], s["rows"], s["fresh"]) for s in found["snapshots"]] == [
        ("bank", 3, False),
        ("gl", 3, False),
    ]


def test_run_prints_one_document(here, capsys):
    found = document(capsys, "run", "questions.toml")
    assert found["run"].startswith("r-")
    tie, people = found["questions"]
    assert (tie["id"], tie["status"]) == ("tie", "answered")
    assert tie["prose"] == "The statement has GBP 72.50, the ledger GBP 72.49: 0.01 apart."
    figure = next(f for f in tie["figures"] if f["name"] == "difference")
    assert {
        "name",
        "value",
        "shown",
        "label",
        "reason",
        "flags",
        "address",
        "row",
        "column",
    } <= set(figure)
    assert (figure["value"], figure["label"]) == ("0.01", "sourced")
    assert people["prose"] == "12,345 people live there."


def test_ask_with_a_plan_prints_one_document(here, capsys):
    (here / "ask.json").write_text(plan(steps(*TOTALS), ANSWER))
    found = document(
        capsys, "ask", "Do they tie?", "--plan", "ask.json", "--source", "bank", "--source", "gl"
    )
    (question,) = found["questions"]
    assert question["status"] == "answered"


def test_replay_verify_log_show_doctor_print_one_document_each(here, capsys):
    assert document(capsys, "replay")["agrees"] is True
    verified = document(capsys, "verify")
    assert verified["holds"] is True
    assert verified["findings"] == []
    expected = f"{verified['entries']}:{verified['root']}"
    assert document(capsys, "verify", "--expect", expected)["holds"] is True
    runs = document(capsys, "log")["entries"]
    assert len(runs) >= 1
    rows = document(capsys, "log", "--run", "latest", "--last", "3")["entries"]
    assert [row["kind"] for row in rows][-1] == "report"
    assert document(capsys, "doctor")["sound"] is True


def test_show_leads_from_a_run_to_the_line_of_the_file(here, capsys):
    assert document(capsys, "show")["questions"]
    figure = document(capsys, "show", f"{first_run(here, capsys)}/tie/bank")
    assert figure["figure"]["value"] == "72.50"
    (source,) = figure["source_rows"]
    assert [line["text"] for line in source["lines"]] == [
        "B1,2026-06-01,100.00",
        "B2,2026-06-13,-40.25",
        "B3,2026-06-30,12.75",
    ]
    line = source["lines"][1]
    row = document(capsys, "show", f"{line['table']}#{line['row']}")
    told = row["source_line"]
    assert (told["file"], told["lines"]) == ("bank.csv", [3, 3])
    first, last = told["bytes"]
    assert (here / "bank.csv").read_bytes()[first:last].decode().strip() == told["text"]


def first_run(here: Path, capsys: pytest.CaptureFixture[str]) -> str:
    return next(r["run"] for r in document(capsys, "log")["entries"] if r["questions"] == 2)


def test_the_places_of_people_and_programs_agree(here, capsys):
    """Without --json the same values stand in the text."""
    found = document(capsys, "verify")
    _, out, err = called(capsys, "verify")
    assert found["root"] in out
    assert err == ""


def test_a_failure_tells_a_program_last_on_standard_error(here, capsys):
    code, out, err = called(capsys, "show", "blake3:" + "0" * 64, "--json")
    assert code != 0
    assert out == ""
    error = json.loads(err.splitlines()[-1])
    assert set(error) >= {"type", "code", "message", "place", "remedy"}
    code, _, err = called(capsys, "show", "blake3:" + "0" * 64)
    assert not err.splitlines()[-1].startswith("{")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["verify", "--expect", "nonsense"], 2),
        (["verify", "--expect", "1:" + "0" * 64], 1),
        (["replay", "r-unknown"], 4),
        (["show", "tie/nothing"], 4),
        (["run", "nothing.toml"], 4),
        (["ask", " "], 4),
        (["ask", "x", "--source", "payroll"], 4),
        (["ask", "x", "--plan", "nothing.json"], 4),
        (["ask", "x", "--as-of", "yesterday"], 4),
        (["ask", "x", "--base-url", "nonsense"], 2),
        (["snapshot", "payroll"], 4),
        (["nonsense"], 2),
        (["run"], 2),
    ],
    ids=str,
)
def test_exit_codes(here, capsys, arguments, code):
    found, out, err = called(capsys, *arguments, "--json")
    assert found == code, err
    error = json.loads(err.splitlines()[-1])
    assert error["type"] == "error"
    assert error["remedy"]
    assert out == "" or json.loads(out)


def test_a_bad_setting_is_found_before_anything_is_recorded(here, capsys):
    before = len(document(capsys, "log")["entries"])
    assert called(capsys, "ask", "x", "--base-url", "nonsense")[0] == 2
    assert len(document(capsys, "log")["entries"]) == before


def test_help_and_version(here, capsys):
    code, out, _ = called(capsys, "--help")
    assert code == 0
    for command in ("init", "snapshot", "run", "ask", "replay", "verify", "show", "log", "doctor"):
        assert command in out
    assert called(capsys, "--version")[1].strip() == "0.1.0"


# --- colours --------------------------------------------------------------------------------


def test_colours_are_forced_and_forbidden(here, capsys, monkeypatch):
    shutil.copytree(here, here.parent / "red")
    monkeypatch.chdir(here.parent / "red")
    victim = next(p for p in sorted(Path(".tieout/store/objects").rglob("*")) if p.is_file())
    victim.chmod(0o644)
    victim.write_bytes(b"")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[31m" in called(capsys, "verify")[1]
    assert "\x1b" not in called(capsys, "verify", "--no-color")[1]
    assert "\x1b" not in called(capsys, "verify", "--json")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in called(capsys, "verify")[1]


# --- settings -------------------------------------------------------------------------------


def test_settings_come_from_flag_variable_workspace_configuration_default(tmp_path):
    folder = make(tmp_path / "w")
    assert tieout(folder, "init").code == 0
    catalog = (folder / "tieout.toml").read_text()

    def setting(name: str, *flags: str, **more: str) -> tuple[str, str]:
        done = tieout(folder, "doctor", "--json", *flags, **more)
        return next(
            (s["value"], s["origin"]) for s in done.document["settings"] if s["name"] == name
        )

    assert setting("model") == ("claude-opus-5-5", "default")
    config = folder / "config" / "tieout" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('model = "from-config"\nretries = 1\n')
    assert setting("model") == ("from-config", str(config))
    (folder / "tieout.toml").write_text(f'{catalog}\n[model]\nname = "from-workspace"\n')
    assert setting("model") == ("from-workspace", str(folder / "tieout.toml"))
    assert setting("retries") == ("1", str(config))
    assert setting("model", TIEOUT_MODEL="from-variable") == ("from-variable", "TIEOUT_MODEL")
    assert (
        setting("ledger", "--ledger", str(folder / ".tieout/ledger.sqlite"), TIEOUT_LEDGER="no")[1]
        == "flag"
    )
    config.write_text('modle = "x"\n')
    done = tieout(folder, "doctor", "--json")
    assert done.code == 2
    assert (done.error["code"], done.error["place"]) == ("settings.config", str(config))


def test_a_workspace_is_found_upwards(here, capsys, monkeypatch):
    (here / "below" / "deep").mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(here / "below" / "deep")
    assert document(capsys, "log")["entries"]


# --- a model --------------------------------------------------------------------------------


def test_ask_of_a_model_from_the_command_line(tmp_path):
    folder = make(tmp_path / "w")
    assert tieout(folder, "init").code == 0
    script = [steps(*TOTALS), ANSWER]
    with MessagesServer(script) as server:
        done = tieout(
            folder,
            "ask",
            "Do they tie?",
            "--base-url",
            server.base_url,
            "--json",
            ANTHROPIC_API_KEY="x",
        )
        assert done.code == 0, done.err
        (question,) = done.document["questions"]
        assert question["prose"].endswith("0.01 apart.")
        assert len(server.requests) == 2
        assert "Do they tie?" in server.requests[0].user
    assert tieout(folder, "replay", "--json").document["agrees"] is True
    keys = [p for p in folder.rglob("*") if p.is_file() and b"ANTHROPIC_API_KEY" in p.read_bytes()]
    assert keys == []


def test_ask_without_a_key_is_an_outcome_with_the_next_step(tmp_path):
    folder = make(tmp_path / "w")
    assert tieout(folder, "init").code == 0
    done = tieout(folder, "ask", "Do they tie?", "--json")
    assert done.code == 3
    (question,) = done.document["questions"]
    assert question["status"] == "failed"
    assert "ANTHROPIC_API_KEY" in question["prose"]
    assert tieout(folder, "verify", "--json").document["holds"] is True


@pytest.mark.slow
def test_ask_of_a_server_that_refuses(tmp_path):
    folder = make(tmp_path / "w")
    assert tieout(folder, "init").code == 0
    with MessagesServer([bad_request("model: unknown")]) as server:
        done = tieout(
            folder, "ask", "x", "--base-url", server.base_url, "--json", ANTHROPIC_API_KEY="x"
        )
    assert done.code == 3
    assert "model.bad_request" in done.document["questions"][0]["prose"]
    assert os.path.exists(folder / ".tieout" / "ledger.sqlite")


# --- what a new user meets first --------------------------------------------------------------


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
    assert "booked=null" in out
    assert "None" not in out
    listed = document(capsys, "show", table, "-w", str(folder))["table"]["first_rows"]
    out = called(capsys, "show", f"{table}#{listed[0]['row']}:booked", "-w", str(folder))[1]
    assert "value     null" in out
