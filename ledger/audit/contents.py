"""What recorded documents name: a snapshot's manifest, an answer's report, a run's batch.

All three were written by code (docs/FORMAT.md §8, §9); here they are believed in nothing. What
they name is read even from one that is malformed, as far as it goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from tieout.ledger.audit import document_shapes
from tieout.ledger.audit.findings import Finding, Level
from tieout.ledger.audit.forms import ADDRESS, NotOfTheProfile, Shape, read_json
from tieout.ledger.audit.tables import TableClaim

MANIFEST_MEDIA: Final = "application/vnd.tieout.snapshot+json"
REPORT_MEDIA: Final = "application/vnd.tieout.report+json"
BATCH_MEDIA: Final = "application/vnd.tieout.batch+json"
SHAPES: Final[Mapping[str, Shape]] = {
    MANIFEST_MEDIA: document_shapes.manifest,
    REPORT_MEDIA: document_shapes.REPORT,
    BATCH_MEDIA: document_shapes.BATCH,
}
PROBLEMS_MAX: Final = 20
_REMEDY: Final = "Compare with a copy, and replay the run: it makes the document anew."


@dataclass(frozen=True, slots=True)
class Document:
    """A recorded document that names others.

    index: of the entry that recorded it. rows, totals: what that entry says of it, when it is
    the entry's output.
    """

    index: int
    address: str
    media_type: str
    is_output: bool = False
    rows: int | None = None
    totals: tuple[tuple[str, str], ...] = ()

    def finding(self, code: str, message: str) -> Finding:
        """Something in it that does not hold."""
        return Finding(Level.BROKEN, code, message, _REMEDY, index=self.index, address=self.address)

    def unchecked(self, code: str, message: str, remedy: str) -> Finding:
        """Something in it that could not be compared here."""
        return Finding(
            Level.UNCHECKED, code, message, remedy, index=self.index, address=self.address
        )


def read_document(payload: bytes, media_type: str) -> tuple[dict[str, object], list[str]]:
    """The JSON object of these bytes, {} if they are none, and what is wrong with its shape."""
    try:
        value, canonical = read_json(payload)
    except NotOfTheProfile as error:
        return {}, [f"it is not JSON of the profile: {error}"]
    problems = list(islice(SHAPES[media_type](value, ""), PROBLEMS_MAX))
    if not canonical:
        problems.append("it is not in canonical form")
    return (value if isinstance(value, dict) else {}), problems


def manifest_addresses(manifest: dict[str, object]) -> Iterator[str]:
    """What a snapshot consists of. Only the places that are addresses by their meaning: the
    text of a header or a note may look like one, and is a stranger's."""
    for name in ("file", "table", "records"):
        yield from _addresses(manifest.get(name), "address")
    yield from _addresses(manifest, "index", "index_manifest")
    for document in objects_in(manifest.get("documents")):
        yield from _addresses(document, "raw", "text", "map")


def report_addresses(report: Mapping[str, object]) -> Iterator[str]:
    """What a report rests on: cited tables and texts, results and inputs of its steps."""
    for figure in objects_in(report.get("figures")):
        yield from _addresses(figure, "address")
        yield from _addresses(figure.get("span"), "snapshot", "text")
    for quote in objects_in(report.get("quotes")):
        yield from _addresses(quote, "snapshot", "text")
    for step in objects_in(report.get("steps")):
        yield from _addresses(step, "address")
        for item in objects_in(step.get("inputs")):
            yield from _addresses(item, "address")


def batch_addresses(batch: Mapping[str, object]) -> Iterator[str]:
    """The reports of a run."""
    for question in objects_in(batch.get("questions")):
        yield from _addresses(question, "report")


def _addresses(value: object, *names: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    for name in names:
        item = value.get(name)
        if isinstance(item, str) and not any(ADDRESS(item, name)):
            yield item


def stated_tables(manifest: dict[str, object]) -> Iterator[tuple[str, TableClaim]]:
    """(address, what the manifest says of it) of each table of a snapshot."""
    for name in ("table", "records"):
        part = manifest.get(name)
        if not isinstance(part, dict) or not any(_addresses(part, "address")):
            continue
        digest, rows = part.get("content_digest"), part.get("rows")
        claim = TableClaim(
            digest if isinstance(digest, str) else None,
            rows if type(rows) is int else None,
            stated_totals(part),
        )
        yield part["address"], claim


def stated_totals(part: dict[str, object]) -> tuple[tuple[str, str], ...] | None:
    """The control totals of a manifest's table, None where it has none."""
    totals = part.get("control_totals")
    if not isinstance(totals, list) or any(document_shapes.totals(totals, "")):
        return None
    return tuple((name, value) for name, value in totals)


def stated_sizes(manifest: dict[str, object]) -> Iterator[tuple[str, int]]:
    """(address, bytes) of each file of a snapshot, as received."""
    file = manifest.get("file")
    parts = [(file, "address")] if isinstance(file, dict) else []
    parts += [(document, "raw") for document in objects_in(manifest.get("documents"))]
    for part, name in parts:
        size = part.get("size")
        for address in _addresses(part, name):
            if type(size) is int:
                yield address, size


def objects_in(value: object) -> list[dict[str, object]]:
    """The objects in a list, none if it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
