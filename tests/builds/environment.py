"""The second environment: another engine build and another pyarrow, from their own hashed lock."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LOCK = ROOT / "requirements-builds.txt"
FOLDER = ROOT / ".venv-builds"
INSTALL_SECONDS_MAX = 900


def second_environment() -> Path:
    """The Python of `.venv-builds`, made first if it is missing or of another lock.

    It holds requirements-builds.txt and nothing of ours: run scripts with `run_second`. Where it
    cannot be made the test skips with the reason; in CI it fails.
    """
    python = FOLDER / "bin" / "python"
    wanted = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    # Workers that want it at the same time wait for the one that makes it.
    with LOCK.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = FOLDER / "installed"
        if not (stamp.exists() and stamp.read_text() == wanted and python.exists()):
            _make(python)
            stamp.write_text(wanted)
    return python


def run_second(script: Path, *arguments: str) -> str:
    """Standard output of a script in the second environment; it sees `tieout.artifacts`."""
    return run_in(second_environment(), script, *arguments)


def run_in(python: Path, script: Path, *arguments: str) -> str:
    """Standard output of a script run by this Python over the working tree; warnings are errors."""
    done = subprocess.run(
        [str(python), "-W", "error", str(script), *arguments],
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS_MAX,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _make(python: Path) -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(FOLDER)])
    (FOLDER / ".gitignore").write_text("*\n")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    fast = ["--quiet", "--retries", "1", "--timeout", "30"]
    _run([*pip, "install", *fast, "--require-hashes", "-r", str(LOCK)])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX)
    if done.returncode == 0:
        return
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    reason = f"the second build cannot be installed: {last}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
