"""Settings of a workspace, each with where it came from.

Order: flag, then TIEOUT_* variable, then tieout.toml found upwards, then
$XDG_CONFIG_HOME/tieout/config.toml, then the default. Secrets are no settings: keys come from the
environment of the model's own client and are never written down.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tieout.executor.catalog import CATALOG_NAME, Catalog, load_catalog
from tieout.executor.errors import ExecutorError, Exit

DEFAULT_MODEL: Final = "claude-opus-5-5"
_DEFAULTS: Final[Mapping[str, str]] = {
    "store": ".tieout/store",
    "ledger": ".tieout/ledger.sqlite",
    "cache": "",
    "model": DEFAULT_MODEL,
    "base_url": "",
    "retries": "4",
    "timeout_s": "600",
}
NAMES: Final = tuple(_DEFAULTS)


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it came from: flag, environment, tieout.toml, config.toml, default."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting by name."""

    values: Mapping[str, Setting]

    def __getitem__(self, name: str) -> str:
        return self.values[name].value

    def number(self, name: str) -> int:
        """A setting that counts. Raises ExecutorError settings.number."""
        setting = self.values[name]
        if not setting.value.isascii() or not setting.value.isdigit():
            raise ExecutorError(
                "settings.number",
                f"{name} = {setting.value!r} is not a number",
                place=setting.origin,
                remedy="Give whole digits.",
                exit_code=Exit.USAGE,
            )
        return int(setting.value)


def find_catalog(start: Path) -> Path:
    """The tieout.toml in this folder or above it. Raises ExecutorError workspace.missing."""
    folder = start.resolve()
    for candidate in (folder, *folder.parents):
        path = candidate / CATALOG_NAME
        if path.is_file():
            return path
    raise ExecutorError(
        "workspace.missing",
        f"there is no {CATALOG_NAME} here or in a folder above",
        place=str(folder),
        remedy="`tieout init` makes a workspace; --workspace DIR names another.",
        exit_code=Exit.NO_WORKSPACE,
    )


def resolve(
    catalog: Catalog, *, flags: Mapping[str, str | None], environ: Mapping[str, str]
) -> Settings:
    """Every setting in the order of the module's first lines. environ: os.environ or a stand-in."""
    declared = {
        "store": _given(catalog, "store"),
        "ledger": _given(catalog, "ledger"),
        "model": catalog.model.name,
        "base_url": catalog.model.base_url,
        "retries": _text(catalog.model.retries),
        "timeout_s": _text(catalog.model.timeout_s),
    }
    config, config_path = _config(environ)
    values = {}
    for name in NAMES:
        variable = f"TIEOUT_{name.upper()}"
        if flags.get(name) is not None:
            value, origin = str(flags[name]), "flag"
        elif environ.get(variable):
            value, origin = environ[variable], variable
        elif declared.get(name) is not None:
            value, origin = str(declared[name]), str(catalog.root / CATALOG_NAME)
        elif name in config:
            value, origin = config[name], str(config_path)
        else:
            value, origin = _default(name, environ), "default"
        values[name] = Setting(name, value, origin)
    return Settings(values)


def _given(catalog: Catalog, name: str) -> str | None:
    """A key of [workspace], only if the file has it: its default comes last in the order."""
    if name not in catalog.workspace.model_fields_set:
        return None
    return str(getattr(catalog.workspace, name))


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _default(name: str, environ: Mapping[str, str]) -> str:
    if name != "cache":
        return _DEFAULTS[name]
    home = environ.get("HOME", "/tmp")  # noqa: S108  a cache: anybody may throw it away
    base = environ.get("XDG_CACHE_HOME") or str(Path(home) / ".cache")
    return str(Path(base) / "tieout" / "engine")


def _config(environ: Mapping[str, str]) -> tuple[dict[str, str], Path]:
    base = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "/")) / ".config")
    path = Path(base) / "tieout" / "config.toml"
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}, path
    except (OSError, ValueError) as error:
        raise _bad_config(path, str(error)) from error
    unknown = sorted(set(document) - set(NAMES))
    if unknown:
        raise _bad_config(path, f"the key {unknown[0]} is not known")
    return {name: str(value) for name, value in document.items()}, path


def _bad_config(path: Path, message: str) -> ExecutorError:
    return ExecutorError(
        "settings.config",
        f"the configuration cannot be read: {message}",
        place=str(path),
        remedy=f"Correct it; it may hold {', '.join(NAMES)}.",
        exit_code=Exit.USAGE,
    )


def catalog_at(workspace: Path | None) -> Catalog:
    """The catalog of a workspace folder, or of the one found upwards from here.

    Raises ExecutorError workspace.missing, and what `load_catalog` raises.
    """
    if workspace is not None:
        if not (workspace / CATALOG_NAME).exists():
            raise ExecutorError(
                "workspace.missing",
                f"there is no {CATALOG_NAME} in {str(workspace)!r}",
                place=str(workspace.absolute()),
                remedy=f"`tieout init {shlex.quote(str(workspace))}` makes a workspace there.",
                exit_code=Exit.NO_WORKSPACE,
            )
        return load_catalog(workspace / CATALOG_NAME)
    return load_catalog(find_catalog(Path.cwd()))
