"""A pinned source for people and as JSON: what was received and how it was read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tieout.artifacts.printable import one_line
from tieout.artifacts.store import Store
from tieout.ledger.canon import Json

if TYPE_CHECKING:
    from tieout.executor.pinning import PinnedSource

VALUES_SHOWN = 8
# As a file has them, from its beginning to what is set apart.
LINE_KINDS = ("preamble", "header", "data", "blank", "footer", "rejected")


def pinned_data(store: Store, pinned: PinnedSource) -> dict[str, Json]:
    """The snapshot and its manifest."""
    return {
        "source": pinned.name,
        "snapshot": str(pinned.manifest),
        "fresh": pinned.fresh,
        "rows": pinned.rows,
        "manifest": json.loads(store.get(pinned.manifest)),
    }


def pinned_lines(store: Store, pinned: PinnedSource) -> list[str]:
    """A few lines: name and address, lines accounted for, dialect, rules, control totals."""
    manifest = json.loads(store.get(pinned.manifest))
    state = "pinned" if pinned.fresh else "as before"
    head = f"{pinned.name}  {state}  {pinned.manifest}"
    return [head, *manifest_lines(manifest)]


def manifest_lines(manifest: Mapping[str, Any]) -> list[str]:
    """How a snapshot was read, from its manifest."""
    if manifest["kind"] == "text":
        return [f"  {len(manifest['documents'])} documents"]
    return [one_line(line) for line in _table_lines(manifest)]


def _declared_lines(columns: Mapping[str, Any]) -> list[str]:
    """What columns are declared to hold: a domain's values, the ends of a range."""
    lines = []
    for name, column in sorted(columns.items()):
        if values := column.get("domain"):
            more = f" and {len(values) - VALUES_SHOWN} more" if len(values) > VALUES_SHOWN else ""
            lines.append(f"  holds   {name}: {', '.join(values[:VALUES_SHOWN])}{more}")
        if bounds := column.get("range"):
            low, high = (bound or "anything" for bound in bounds)
            lines.append(f"  holds   {name}: {low} to {high}")
    return lines


def _table_lines(manifest: Mapping[str, Any]) -> list[str]:
    reading = manifest["reading"]
    lines = reading["lines"]
    parts = [f"{lines[kind]} {kind}" for kind in LINE_KINDS if lines.get(kind)]
    counted = f"{lines['all']} lines = {' + '.join(parts)}"
    dialect = f"{reading['encoding']}, delimiter {reading['delimiter']!r}"
    said = [f"  {manifest['file']['name']}: {counted}; {manifest['table']['rows']} rows; {dialect}"]
    columns = [f"{c['name']} {c['type']}" for c in reading["columns"]]
    said.append(f"  columns {', '.join(columns)}")
    said += _declared_lines(json.loads(manifest["declaration"]).get("column", {}))
    totals = [f"{name} {value}" for name, value in manifest["table"]["control_totals"]]
    if totals:
        said.append(f"  totals  {', '.join(totals)}")
    return said
