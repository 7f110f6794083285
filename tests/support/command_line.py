"""The command line as tests call it: one call with what it printed, one document, one workspace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from end_to_end.small import make

from tieout.cli import start


def workspace_with_a_run(folder: Path) -> Path:
    """A small workspace, made and run once."""
    made = make(folder / "w")
    assert start(["init", str(made)]) == 0
    assert start(["run", str(made / "questions.toml"), "-w", str(made)]) == 0
    return made


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    code = start(list(arguments))
    return (code, *capsys.readouterr())


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The one document of a command that succeeds."""
    code, out, err = called(capsys, *arguments, "--json")
    assert code == 0, err
    found = json.loads(out)  # fails on a second document
    assert isinstance(found, dict)
    return found
