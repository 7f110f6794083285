"""The first tieout.toml of a workspace: its CSV files as sources, and what may be added."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tieout.executor.catalog import SOURCE_NAME

_HEAD = """\
# What this workspace may read. Every key is described in the README.
[workspace]
name = {name}
store = ".tieout/store"
ledger = ".tieout/ledger.sqlite"
"""
_NONE = """
# [source.bank]
# file = "bank.csv"
# key = ["line_id"]
# [source.bank.column.amount]
# type = "DECIMAL(18,2)"
"""


def catalog_template(root: Path) -> bytes:
    """The catalog for a folder: a source for each CSV file in it."""
    text = _HEAD.format(name=json.dumps(root.resolve().name or "workspace"))
    names: set[str] = set()
    for path in sorted(root.glob("*.csv")):
        name = _free(_source_name(path.stem), names)
        names.add(name)
        text += f"\n[source.{name}]\nfile = {json.dumps(path.name)}\n"
    return (text if names else text + _NONE).encode("utf-8")


def _source_name(stem: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")[:36]
    return name if SOURCE_NAME.fullmatch(name) else f"t_{name}".rstrip("_")


def _free(name: str, taken: set[str]) -> str:
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free
