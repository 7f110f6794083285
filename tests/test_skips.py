"""What may skip itself: in CI neither a root test, nor the sandbox, nor what is shared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import must_run

PROGRAM = "import pytest\ndef test_it():\n    pytest.skip('{}')\n"


@pytest.mark.parametrize(
    ("reason", "root", "must"),
    [
        ("Skipped: this kernel offers landlock-3", False, True),
        ("Skipped: root: needs strace", True, True),
        ("Skipped: the numbers are those of x86-64", False, False),
    ],
)
def test_which_reasons_count(reason, root, must):
    assert must_run(reason, root=root) is must


def ran(repository: Path, folder: Path, reason: str, **settings: str) -> tuple[int, str]:
    """How a run ends over one test that skips itself, under the rules of these tests."""
    (folder / "conftest.py").write_text((repository / "tests" / "conftest.py").read_text("utf-8"))
    (folder / "test_it.py").write_text(PROGRAM.format(reason))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "."],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if k != "CI"} | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_in_ci_a_weaker_kernel_fails(repository, tmp_path):
    assert ran(repository, tmp_path, "this kernel offers none")[0] == pytest.ExitCode.OK
    code, said = ran(repository, tmp_path, "this kernel offers none", CI="true")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "must run in CI, it was skipped: Skipped: this kernel offers none" in said
    assert ran(repository, tmp_path, "another reason", CI="true")[0] == pytest.ExitCode.OK


def test_in_ci_a_shared_folder_that_is_named_is_there(repository, tmp_path):
    lost = str(tmp_path / "lost")
    code, said = ran(repository, tmp_path, "why", CI="true", TIEOUT_SHARED=lost)
    assert (code, lost in said) == (pytest.ExitCode.USAGE_ERROR, True)
    there = ran(repository, tmp_path, "why", CI="true", TIEOUT_SHARED=str(tmp_path))
    assert there[0] == pytest.ExitCode.OK
