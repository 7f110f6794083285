"""What the entries of a ledger, taken together, say of artifacts: made, named and read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tieout.ledger.audit.contents import (
    SHAPES,
    Document,
    manifest_addresses,
    stated_sizes,
    stated_tables,
)
from tieout.ledger.audit.tables import TABLE_MEDIA, TableClaim


@dataclass(frozen=True, slots=True)
class Claim:
    """What one entry says of one artifact; None and "" where it only names it."""

    index: int
    place: str
    sha256: str | None = None
    size: int | None = None
    media_type: str = ""
    retention: str = ""
    table: TableClaim | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """An artifact that a step read. shown: to a model, in a request."""

    index: int
    place: str
    address: str
    shown: bool


class Record:
    """claims: by address. recorded: the first entry that recorded an address. holes: entries
    that may have recorded more than can be read; what they recorded is unknown."""

    def __init__(self) -> None:
        self.claims: dict[str, list[Claim]] = {}
        self.recorded: dict[str, int] = {}
        self.documents: list[Document] = []
        self.readings: list[Reading] = []
        self.holes: list[int] = []

    def take(self, index: int, document: dict[str, object]) -> None:
        """Note what the entry names, what it stored, and what it read without storing it."""
        made = list(_artifacts(index, document))
        here = {address for address, claim in made if claim.place.startswith("attachments")}
        shown = document["kind"] == "model_request"
        for place, address in _named(document):
            self.name(address, Claim(index, place))
            if place.startswith("inputs") and (shown or address not in here):
                self.readings.append(Reading(index, place, address, shown))
        for address, claim in made:
            self.name(address, claim)
            self.recorded.setdefault(address, index)
            if claim.media_type in SHAPES:
                self.documents.append(_document(index, address, claim, document))

    def name(self, address: str, claim: Claim) -> None:
        """Note what is said of an artifact."""
        self.claims.setdefault(address, []).append(claim)

    def follow(self, manifest: dict[str, object], source: Document) -> None:
        """What a manifest names was recorded with it, and must be there as it says."""
        for address in manifest_addresses(manifest):
            self.name(address, Claim(source.index, "named by its manifest"))
            first = self.recorded.get(address, source.index)
            self.recorded[address] = min(first, source.index)
        for address, table in stated_tables(manifest):
            self.name(address, Claim(source.index, "the manifest", table=table))
        for address, size in stated_sizes(manifest):
            self.name(address, Claim(source.index, "the manifest", size=size))

    def is_recorded_before(self, index: int, address: str) -> bool:
        """Whether an earlier entry recorded it."""
        return self.recorded.get(address, index) < index

    def is_unknown_before(self, index: int) -> bool:
        """Whether an earlier entry may have recorded what cannot be read any more."""
        return any(hole < index for hole in self.holes)


def _document(index: int, address: str, claim: Claim, entry: dict[str, object]) -> Document:
    output = entry["deterministic_output"]
    if claim.place != "deterministic_output" or not isinstance(output, dict):
        return Document(index, address, claim.media_type)
    said = TableClaim.of(output)
    return Document(index, address, claim.media_type, True, said.rows, said.totals or ())


def _artifacts(index: int, document: dict[str, object]) -> Iterator[tuple[str, Claim]]:
    """What the step stored, with what the entry says of it; the shape was checked."""
    output = document["deterministic_output"]
    if isinstance(output, dict):
        table = TableClaim.of(output) if output["media_type"] == TABLE_MEDIA else None
        yield output["address"], _claim(index, "deterministic_output", output, table)
    attachments = document["attachments"]
    assert isinstance(attachments, list)
    for number, item in enumerate(attachments):
        yield item["address"], _claim(index, f"attachments[{number}]", item, None)


def _claim(index: int, place: str, item: dict[str, object], table: TableClaim | None) -> Claim:
    size = item["size"]
    return Claim(
        index=index,
        place=place,
        sha256=str(item["sha256"]),
        size=size if isinstance(size, int) else None,
        media_type=str(item["media_type"]),
        retention=str(item["class"]),
        table=table,
    )


def _named(document: dict[str, object]) -> Iterator[tuple[str, str]]:
    """(place, address) of what the entry only names."""
    inputs = document["inputs"]
    assert isinstance(inputs, list)
    for number, item in enumerate(inputs):
        yield f"inputs[{number}]", item["address"]
    if isinstance(document["executed"], str):
        yield "executed", document["executed"]
    asked = document["raw_llm_instruction"]
    if isinstance(asked, dict):
        yield "raw_llm_instruction", asked["address"]
