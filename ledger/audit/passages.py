"""From a result to the passages it rests on, and from a passage to the file as received."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tieout.artifacts.address import Address
from tieout.artifacts.text import TextSnapshot
from tieout.ledger.audit.drill import DEPTH_MAX, SOURCE_ROWS_MAX, Drill
from tieout.ledger.errors import LedgerError


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a document and where it stands in the file as received.

    start, end: code points of the text; bytes: ranges of the raw file; line: of the raw file.
    """

    document: str
    text: str
    start: int
    end: int
    quote: str
    raw: str
    bytes: tuple[tuple[int, int], ...]
    line: int
    around: tuple[str, str]


def spans(drill: Drill, table: Address, position: int) -> tuple[tuple[str, int, int], ...]:
    """(text, start, end) of every passage that a result rests on: its own, or of its inputs."""
    found: dict[tuple[str, int, int], None] = {}
    _collect(drill, table, position, 0, found)
    return tuple(found)


def _collect(
    drill: Drill,
    table: Address,
    position: int,
    depth: int,
    found: dict[tuple[str, int, int], None],
) -> None:
    reader = drill.table(table)
    if {"text", "start", "end", "quote"} <= {c.name for c in reader.columns}:
        cell = [reader.text(position, name) or "" for name in ("text", "start", "end")]
        found[(cell[0], int(cell[1]), int(cell[2]))] = None
        return
    entry = drill.made_by(table)
    if entry is None or depth > DEPTH_MAX:
        return
    for item in entry.row.inputs:
        if item.role.startswith("table:") and drill.manifest_of(item.address) is None:
            for below in range(min(drill.table(item.address).rows, SOURCE_ROWS_MAX)):
                _collect(drill, item.address, below, depth + 1, found)


def passage(drill: Drill, text: Address, start: int, end: int) -> Passage:
    """A passage with its document, its bytes and its line in the file as received.

    Raises LedgerError show.passage for a span outside of the text, show.not_found for a text
    that no snapshot names.
    """
    document = _document_of(drill, text)
    body = drill.store.get(text)
    snapshot = TextSnapshot.load(body, drill.store.get(Address.parse(document["map"])))
    if not 0 <= start < end <= len(snapshot.text):
        raise LedgerError(
            "show.passage",
            f"the text has {len(snapshot.text)} characters; {start}-{end} is no part of it",
            place=str(text),
            remedy="Copy the reference of the quote from the report.",
        )
    raw = drill.store.get(Address.parse(document["raw"]))
    return Passage(
        document=document["name"],
        text=str(text),
        start=start,
        end=end,
        quote=snapshot.text[start:end],
        raw=document["raw"],
        bytes=snapshot.byte_ranges(start, end),
        line=snapshot.raw_line(start, raw=raw),
        around=(snapshot.text[max(0, start - 80) : start], snapshot.text[end : end + 80]),
    )


def _document_of(drill: Drill, text: Address) -> Mapping[str, Any]:
    for address in reversed(drill.manifests()):
        manifest = json.loads(drill.store.get(address))
        for document in manifest.get("documents", []):
            if document["text"] == str(text):
                named: Mapping[str, Any] = document
                return named
    raise LedgerError(
        "show.not_found",
        "no snapshot names this text",
        place=str(text),
        remedy="Copy the reference of the quote from the report.",
    )
