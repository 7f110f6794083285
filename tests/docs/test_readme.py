"""Every console example of the README is run and its output compared; README_UPDATE=1 writes it.

Run ids, times and temporary paths differ from run to run and are masked; addresses and figures
do not and are not.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.S)


def masked(text, folder):
    text = text.replace(str(folder), "…")
    text = re.sub(r"\b([rs])-\d{8}-\d{6}-[0-9a-f]{10}\b", r"\1-20260630-120000-0000000000", text)
    return re.sub(r"(\d+ entries|SIZE|expect \d+):[0-9a-f]{64}", r"\1:ROOT", text)


def examples():
    (block,) = BLOCK.findall(README.read_text("utf-8"))
    commands = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in commands]


def test_the_worked_example_prints_what_the_readme_says(tmp_path):
    folder = tmp_path / "close"
    shutil.copytree(ROOT / "fixtures" / "close", folder, ignore=shutil.ignore_patterns(".tieout"))
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("TIEOUT_", "ANTHROPIC_"))}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    environ["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    printed = []
    for command, expected in examples():
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        found = masked(done.stdout.rstrip("\n"), folder)
        printed.append(f"$ {command}\n{found}".rstrip())
        if not os.environ.get("README_UPDATE"):
            assert (done.returncode, done.stderr) == (0, ""), command
            assert expected.rstrip() == found, command
    if os.environ.get("README_UPDATE"):
        text = README.read_text("utf-8")
        block = "```console\n" + "\n".join(printed) + "\n```"
        README.write_text(BLOCK.sub(lambda _: block, text), "utf-8")


@pytest.mark.parametrize("number", [0, 1])
def test_the_toml_examples_are_accepted(number, tmp_path):
    from tieout.executor.catalog import ColumnTable, SourceTable, parse_catalog
    from tieout.planner.questions import load_questions

    blocks = re.findall(r"```toml\n(.*?)```", README.read_text("utf-8"), re.S)
    assert len(blocks) == 2
    block = blocks[number]
    if number == 0:
        catalog = parse_catalog(block.encode(), root=tmp_path, place="README.md")
        assert set(catalog.sources) == {"bank", "news"}
        text = README.read_text("utf-8")
        listed = text[text.index("Keys of a source:") : text.index("Questions stand in a file")]
        named = set(re.findall(r"`(\w+)`", listed))
        assert named == set(SourceTable.model_fields) | set(ColumnTable.model_fields)
    else:
        (tmp_path / "plans").mkdir()
        (tmp_path / "plans" / "bank-1010.json").write_text('{"turns":[{}]}')
        (tmp_path / "questions.toml").write_text(block)
        file = load_questions(tmp_path / "questions.toml", frozenset({"bank", "gl"}))
        assert [q.id for q in file.questions] == ["bank-1010"]


def test_numbers_and_names_of_the_readme_are_those_of_the_project():
    from tieout.artifacts.errors import Exit
    from tieout.cli import app

    text = README.read_text("utf-8")
    questions = tomllib.loads((ROOT / "fixtures/close/questions.toml").read_text("utf-8"))
    assert f"{len(questions['question'])} questions" in text
    commands = text[text.index("## Commands") :]
    listed = re.findall(r"`([a-z]+)`", commands[: commands.index("; each with")])
    assert set(listed) == {name for name in app if not name.startswith("-")}
    codes = re.findall(r"^\| ([\d, ]+) \|", commands, re.M)
    assert {int(c) for row in codes for c in row.split(",")} == {int(e) for e in Exit}
    for path in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / path).exists(), path


def test_the_version_is_said_once():
    from tieout import __version__

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["version"] == __version__


def test_the_plan_in_the_format_is_one():
    import json

    from tieout.executor.grammar import parse_turn
    from tieout.planner.written import WrittenModel

    text = (ROOT / "docs" / "FORMAT.md").read_text("utf-8")
    section = text[text.index("## 10.") : text.index("## 11.")]
    plan = section[section.index('    {"turns": [\n') :].strip()
    assert [parse_turn(turn).asked for turn in WrittenModel(plan.encode(), place="FORMAT").turns]
    assert list(json.loads(plan)["turns"][1]["answer"]["figures"]) == ["cash"]
