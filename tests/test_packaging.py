"""The wheel and the sdist: what they hold, and that they run away from the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import tieout

ROOMS = ("planner", "executor", "ledger", "artifacts")
SDIST_ALSO = {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", ".gitignore", "PKG-INFO"}


def run(*command: object, cwd: Path) -> str:
    """Run a program that knows nothing of the repository; return what it printed."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=kept,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def tracked(repository: Path) -> set[str]:
    """Tracked files of the product, as the wheel names them."""
    listed = run("git", "ls-files", "-s", "--", *ROOMS, "src/tieout", cwd=repository)
    lines = [line.split(maxsplit=3) for line in listed.splitlines()]
    names = [name for mode, _, _, name in lines if mode != "120000"]
    return {f"tieout/{name.removeprefix('src/tieout/')}" for name in names}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """The tracked files as they are now, and nothing else: links stay links."""
    folder = tmp_path_factory.mktemp("source") / "tieout"
    listed = run("git", "ls-files", "-z", cwd=repository)
    for name in filter(None, listed.split("\0")):
        if (repository / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repository / name, folder / name, follow_symlinks=False)
    return folder


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist."""
    out = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-d", out, cwd=source)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def wheel_of_sdist(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the unpacked sdist builds."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(built[1]) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=root)
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_the_version_is_said_once(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    assert tieout.__version__ == project["version"]


def test_the_locks_are_hashed_pinned_and_hold_what_is_declared(repository: Path) -> None:
    document = tomllib.loads((repository / "pyproject.toml").read_text())
    declared = [*document["project"]["dependencies"]]
    for extra in ("run", "s3"):
        declared += document["project"]["optional-dependencies"][extra]
    runtime = pins(repository / "requirements.txt")
    dev = pins(repository / "requirements-dev.txt")
    for line in declared:
        assert_pinned(line, runtime)
    for line in [*declared, *document["dependency-groups"]["dev"]]:
        assert_pinned(line, dev)
    assert {name: dev.get(name) for name in runtime} == runtime


def pins(path: Path) -> dict[str, str]:
    found = {}
    for entry in path.read_text().replace("\\\n", " ").splitlines():
        if entry.strip() and not entry.startswith("#"):
            assert "--hash=sha256:" in entry, f"{path.name}: {entry[:60]} has no hash"
            name, _, rest = entry.partition("==")
            found[name] = rest.split()[0]
    return found


def assert_pinned(line: str, found: dict[str, str]) -> None:
    wanted = Requirement(line)
    assert wanted.specifier.contains(found[wanted.name.lower()], prereleases=True), line


@pytest.mark.slow
def test_the_archives_hold_the_tracked_files_and_nothing_else(
    built: tuple[Path, Path], wheel_of_sdist: Path, repository: Path
) -> None:
    expected = tracked(repository)
    assert len(expected) > 100
    for wheel in (built[0], wheel_of_sdist):
        with zipfile.ZipFile(wheel) as archive:
            held = {n for n in archive.namelist() if ".dist-info/" not in n}
            assert held == expected
            assert archive.read("tieout/py.typed") == b""
    with tarfile.open(built[1]) as archive:
        members = [m for m in archive.getmembers() if not m.isdir()]
    assert all(member.isfile() for member in members)
    names = {member.name.partition("/")[2] for member in members}
    product = {n for n in names if n.startswith(tuple(f"{r}/" for r in (*ROOMS, "src")))}
    assert {f"tieout/{n.removeprefix('src/tieout/')}" for n in product} == expected
    assert names - product <= SDIST_ALSO


@pytest.mark.slow
def test_building_twice_gives_the_same_bytes(
    built: tuple[Path, Path], wheel_of_sdist: Path, source: Path, tmp_path: Path
) -> None:
    run(sys.executable, "-m", "hatchling", "build", "-d", tmp_path, cwd=source)
    for path in built:
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    assert wheel_of_sdist.read_bytes() == built[0].read_bytes()


def environment(folder: Path) -> Path:
    """A fresh virtual environment; returns its folder of programs."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    return folder / "bin"


def install(programs: Path, *what: object) -> None:
    flags = ("--disable-pip-version-check", "--no-input", "--quiet")
    run(programs / "python", "-m", "pip", "install", *flags, *what, cwd=programs)


@pytest.mark.slow
def test_the_wheels_run_where_only_the_lock_is_installed(
    built: tuple[Path, Path], wheel_of_sdist: Path, repository: Path, tmp_path: Path
) -> None:
    programs = environment(tmp_path / "whole")
    install(programs, "--require-hashes", "-r", repository / "requirements.txt")
    for number, wheel in enumerate((built[0], wheel_of_sdist)):
        install(programs, "--no-deps", "--force-reinstall", wheel)
        use(programs, repository, tmp_path / f"use{number}")
    run(programs / "python", "-m", "pip", "check", cwd=tmp_path)


def use(programs: Path, repository: Path, folder: Path) -> None:
    """Start, ask and replay in a folder of its own."""
    tool = programs / "tieout"
    shutil.copytree(
        repository / "fixtures" / "text", folder, ignore=shutil.ignore_patterns(".tieout")
    )
    where = "import tieout; print(tieout.__file__)"
    assert str(programs.parent) in run(programs / "python", "-c", where, cwd=folder)
    assert run(tool, "--version", cwd=folder).strip() == tieout.__version__
    run(tool, "init", cwd=folder)
    ask = (tool, "ask", "45 times 12?", "--plan", "plans/product.json")
    assert "540" in run(*ask, cwd=folder)
    assert "Every address and every content digest agreed." in run(tool, "replay", cwd=folder)
    assert "The record holds" in run(tool, "verify", cwd=folder)


@pytest.mark.slow
def test_the_base_install_is_the_verifier(
    built: tuple[Path, Path], repository: Path, tmp_path: Path
) -> None:
    """blake3 and pydantic alone: the auditor checks a ledger and a store made elsewhere."""
    made = tmp_path / "made"
    shutil.copytree(
        repository / "fixtures" / "text", made, ignore=shutil.ignore_patterns(".tieout")
    )
    plan = (made / "plans" / "product.json").read_bytes()
    with tieout.init_workspace(made) as workspace:
        workspace.ask("45 times 12?", plan=plan)
    programs = environment(tmp_path / "base")
    base = tmp_path / "base.txt"
    base.write_text(locked(repository, "blake3", "pydantic"))
    install(programs, "--require-hashes", "-r", base)
    install(programs, "--no-deps", built[0])
    run(programs / "python", "-m", "pip", "check", cwd=tmp_path)
    ledger, store = made / ".tieout" / "ledger.sqlite", made / ".tieout" / "store"
    audit = (programs / "python", "-m", "tieout.ledger.audit", "--ledger", ledger, "--store", store)
    assert "The record holds" in run(*audit, cwd=tmp_path)
    spoiled = next(path for path in (store / "objects").rglob("*") if path.is_file())
    payload = spoiled.read_bytes()
    spoiled.chmod(0o644)
    spoiled.write_bytes(bytes([payload[0] ^ 1]) + payload[1:])
    found = subprocess.run(audit, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 1, found.stderr
    assert "The record does not hold" in found.stdout
    missing = subprocess.run([programs / "tieout", "log"], capture_output=True, text=True)
    assert missing.returncode == 5
    assert "pip install 'tieout[run]'" in missing.stderr


def locked(repository: Path, *wanted: str) -> str:
    """The lock's entries of some packages and of what they need."""
    needed = {*wanted, "annotated-types", "pydantic-core", "typing-extensions", "typing-inspection"}
    entries = (repository / "requirements.txt").read_text().replace("\\\n", " ").splitlines()
    return "\n".join(entry for entry in entries if entry.partition("==")[0] in needed) + "\n"


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_a_python_that_was_named_and_is_too_old_stops_make(
    repository: Path, tmp_path: Path
) -> None:
    old = tmp_path / "python3.8"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for python, code in ((str(old), 2), ("no-such-python", 2), (sys.executable, 0)):
        done = subprocess.run(
            ["make", f"PYTHON={python}", "help"],
            cwd=repository,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code
        assert (f"PYTHON={python} is not a Python 3.11 or newer" in done.stderr) == (code == 2)
