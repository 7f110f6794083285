"""`tieout doctor`: what this machine and this workspace are, and what is weak."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from tieout.artifacts.errors import Exit, RoomError
from tieout.executor.sandbox import LAYERS, layers_of, meaning
from tieout.ledger.canon import Json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tieout.executor.catalog import Source
    from tieout.workspace import Workspace

PACKAGES = (
    "tieout",
    "duckdb",
    "sqlglot",
    "pyarrow",
    "apsw",
    "blake3",
    "pydantic",
    "anthropic",
    "boto3",
)
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
FREE_BYTES_MIN = 1 << 30


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. state: ok, weak (works, but less is promised) or broken."""

    name: str
    state: str
    said: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that was looked at."""

    checks: tuple[Check, ...]
    settings: tuple[tuple[str, str, str], ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is broken; it says nothing of the record."""
        return all(check.state != "broken" for check in self.checks)

    def document(self) -> dict[str, Json]:
        """As JSON values."""
        return {
            "sound": self.sound,
            "checks": [{"name": c.name, "state": c.state, "said": c.said} for c in self.checks],
            "settings": [{"name": n, "value": v, "origin": o} for n, v, o in self.settings],
        }

    def text(self) -> str:
        """As text."""
        lines = [f"{c.state:<7} {c.name:<10} {c.said}" for c in self.checks]
        lines += [
            f"setting {name:<10} {value}  (from {origin})" for name, value, origin in self.settings
        ]
        usable = "Usable; `tieout verify` checks the record."
        lines.append(usable if self.sound else "Something is broken; see above.")
        return "\n".join(lines)


def examine(workspace: Workspace) -> Diagnosis:
    """Look at versions, engine, store, ledger, sources, the model's key, disk."""
    checks = [
        Check("python", "ok", f"{platform.python_version()} on {platform.platform()}"),
        *(_package(name) for name in PACKAGES),
        _guarded("engine", lambda: _engine(workspace)),
        _guarded("sandbox", lambda: _sandbox(workspace)),
        _guarded("store", lambda: _store(workspace)),
        _guarded("ledger", lambda: _ledger(workspace)),
        *(_source(workspace, source) for source in workspace.catalog.sources.values()),
        _key(os.environ),
        _disk(workspace),
    ]
    settings = tuple((s.name, s.value, s.origin) for s in workspace.settings.values.values())
    return Diagnosis(tuple(checks), settings)


def _package(name: str) -> Check:
    try:
        return Check(name, "ok", version(name))
    except PackageNotFoundError:
        needed = name not in {"boto3", "anthropic"}
        return Check(name, "broken" if needed else "weak", "not installed")


def _guarded(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except RoomError as error:
        return Check(name, "broken", f"{error.code}: {error}")


def _engine(workspace: Workspace) -> Check:
    info = workspace.engine.info
    said = f"{info.name} {info.version} ({info.build}), {info.libc}, cpu {' '.join(info.cpu)}"
    if not sys.platform.startswith("linux"):
        return Check("engine", "weak", f"{said}; only Linux bounds a step by its process")
    return Check("engine", "ok", said)


def _sandbox(workspace: Workspace) -> Check:
    """As a child of the engine's worker found it, not as the kernel's version lets one hope."""
    mode = workspace.engine.info.sandbox
    whole = layers_of(mode) == LAYERS
    return Check("sandbox", "ok" if whole else "weak", f"{mode}: {meaning(mode)}")


def _store(workspace: Workspace) -> Check:
    count = 0
    for _ in workspace.store.addresses():
        count += 1
    return Check("store", "ok", f"{workspace.store.location}: {count} objects")


def _ledger(workspace: Workspace) -> Check:
    """Opened for writing, as the next run will: its guards and its end are looked at then."""
    state, aside = "ok", ""
    try:
        log = workspace.log(write=True)
    except RoomError as error:
        if error.exit_code is not Exit.LOCKED:
            raise
        log, state, aside = workspace.log(), "weak", "; another process writes to it now"
    said = f"{workspace.ledger_path}: {log.size()} entries, root {log.root().hex()}"
    return Check("ledger", state, said + aside)


def _source(workspace: Workspace, source: Source) -> Check:
    table = source.table
    what = "folder" if table.file is None else "file"
    path = workspace.catalog.root / (table.file or table.folder or "")
    try:
        there = path.is_dir() if what == "folder" else path.is_file()
    except OSError:  # a folder on the way that may not be entered
        there = False
    if there:
        return Check("source", "ok", f"{source.name}: {path}")
    return Check("source", "weak", f"{source.name}: the {what} {path} is not there")


def _key(environ: Mapping[str, str]) -> Check:
    named = [name for name in KEYS if environ.get(name)]
    if named:
        return Check("model key", "ok", f"{named[0]} is set")
    return Check("model key", "weak", f"no {KEYS[0]}: questions without a plan need one")


def _disk(workspace: Workspace) -> Check:
    free = shutil.disk_usage(workspace.catalog.root).free
    said = f"{free // (1 << 20)} MiB free below {workspace.catalog.root}"
    return Check("disk", "ok" if free >= FREE_BYTES_MIN else "weak", said)
