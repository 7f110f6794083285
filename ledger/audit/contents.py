"""What recorded documents say of other artifacts: a snapshot's manifest, an answer's report.

A manifest names every file, text and table of its snapshot, with the digest of its tables. A
report names, for each figure, the cell it was read from, and for each quote the passage
(docs/FORMAT.md §8, §9). Both were written by code; here both are believed in nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tieout.ledger.audit.cells import NoSuchCell, find_cell
from tieout.ledger.audit.findings import Finding, Level
from tieout.ledger.audit.objects import ObjectMissing, ObjectUnreadable
from tieout.ledger.audit.tables import MalformedTable, TableClaim

MANIFEST_MEDIA: Final = "application/vnd.tieout.snapshot+json"
REPORT_MEDIA: Final = "application/vnd.tieout.report+json"
_ADDRESS: Final = re.compile(r"blake3:[0-9a-f]{64}")
_REMEDY: Final = "Compare with a copy, and replay the run: it makes the document anew."

Get = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class Document:
    """A recorded document that names others. index: of the entry that recorded it."""

    index: int
    address: str
    media_type: str

    def finding(self, code: str, message: str) -> Finding:
        """Something in it that does not hold."""
        return Finding(Level.BROKEN, code, message, _REMEDY, index=self.index, address=self.address)


def read_document(payload: bytes) -> dict[str, object] | None:
    """The JSON object of these bytes, None if they are none."""
    try:
        value = json.loads(payload.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def manifest_addresses(manifest: dict[str, object]) -> Iterator[str]:
    """What a snapshot consists of. Only the places that are addresses by their meaning: the
    text of a header or a note may look like one, and is a stranger's."""
    for name in ("file", "table", "records"):
        yield from _addresses(manifest.get(name), "address")
    yield from _addresses(manifest, "index", "index_manifest")
    for document in _objects(manifest.get("documents")):
        yield from _addresses(document, "raw", "text", "map")


def report_addresses(report: dict[str, object]) -> Iterator[str]:
    """What a report rests on: cited tables and texts, results and inputs of its steps."""
    for figure in _objects(report.get("figures")):
        yield from _addresses(figure, "address")
        yield from _addresses(figure.get("span"), "snapshot", "text")
    for quote in _objects(report.get("quotes")):
        yield from _addresses(quote, "snapshot", "text")
    for step in _objects(report.get("steps")):
        yield from _addresses(step, "address")
        for item in _objects(step.get("inputs")):
            yield from _addresses(item, "address")


def _addresses(value: object, *names: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    for name in names:
        item = value.get(name)
        if isinstance(item, str) and _ADDRESS.fullmatch(item):
            yield item


def stated_tables(manifest: dict[str, object]) -> Iterator[tuple[str, TableClaim]]:
    """(address, what the manifest says of it) of each table of a snapshot."""
    for name in ("table", "records"):
        part = manifest.get(name)
        if not isinstance(part, dict) or not isinstance(part.get("address"), str):
            continue
        totals = part.get("control_totals")
        pairs: tuple[tuple[str, str], ...] | None = None
        if isinstance(totals, list) and all(
            isinstance(pair, list) and len(pair) == 2 for pair in totals
        ):
            pairs = tuple((str(pair[0]), str(pair[1])) for pair in totals)
        digest, rows = part.get("content_digest"), part.get("rows")
        claim = TableClaim(
            digest if isinstance(digest, str) else None,
            rows if isinstance(rows, int) else None,
            pairs,
        )
        yield part["address"], claim


def check_report(report: dict[str, object], get: Get, source: Document) -> Iterator[Finding]:
    """Compare each figure with its cell and each quote with its passage."""
    for figure in _objects(report.get("figures")):
        if figure.get("address") is not None:
            yield from _check_figure(figure, get, source)
        if isinstance(figure.get("span"), dict):
            yield from _check_span(figure["span"], get, source)
    for quote in _objects(report.get("quotes")):
        yield from _check_span(quote, get, source)


def _objects(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _check_figure(figure: dict[str, object], get: Get, source: Document) -> Iterator[Finding]:
    name = f"figure {str(figure.get('name'))[:60]!r}"
    address, row, column = figure.get("address"), figure.get("row"), figure.get("column")
    if not (isinstance(address, str) and isinstance(row, str) and isinstance(column, str)):
        yield source.finding("report.malformed", f"{name} names no cell")
        return
    cell = f"{address}#{row}:{column}"
    try:
        value = find_cell(get(address), row, column)
    except ImportError:
        message = f"pyarrow is not installed: {name} was not compared with its cell"
        remedy = "Install pyarrow and check again."
        yield Finding(Level.UNCHECKED, "report.unchecked", message, remedy, index=source.index)
    except (ObjectMissing, ObjectUnreadable):
        yield source.finding("report.cell", f"{name}: the table of {cell} cannot be read")
    except (NoSuchCell, MalformedTable) as error:
        yield source.finding("report.cell", f"{name}: {cell}: {error!s:.200}")
    else:
        if value != figure.get("value"):
            stated = str(figure.get("value"))[:80]
            yield source.finding("report.value", f"{name} is {stated}, {cell} holds {value}")


def _check_span(span: object, get: Get, source: Document) -> Iterator[Finding]:
    found = span if isinstance(span, dict) else {}
    text, start, end = found.get("text"), found.get("start"), found.get("end")
    if not (isinstance(text, str) and type(start) is int and type(end) is int):
        yield source.finding("report.malformed", "a quote names no passage")
        return
    try:
        passage = get(text).decode("utf-8")
    except (ObjectMissing, ObjectUnreadable, UnicodeDecodeError):
        yield source.finding("report.quote", f"the text {text[:80]} cannot be read")
        return
    if not 0 <= start < end <= len(passage) or passage[start:end] != found.get("quote"):
        yield source.finding("report.quote", f"{text}@{start}-{end} does not hold the quote")
