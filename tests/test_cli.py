"""The command line: one JSON document on standard output, exit codes, settings and their origin."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from end_to_end.small import ANSWER, TOTALS, make, plan, steps, tieout
from support.command_line import called, document, workspace_with_a_run
from support.messages_server import MessagesServer, bad_request


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one run."""
    return workspace_with_a_run(tmp_path_factory.mktemp("cli"))


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
