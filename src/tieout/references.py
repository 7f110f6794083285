"""What a reference to `tieout show` names when the ledger has no such address.

Reads the ledger and the store through the drill alone. A question or source without a run means
the newest there is of it, whatever was recorded after that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from tieout.artifacts.address import Address
from tieout.executor.errors import ExecutorError
from tieout.ledger.audit.drill import PREFIX_MIN, Drill, Use
from tieout.ledger.errors import LedgerError
from tieout.ledger.log import Entry
from tieout.ledger.row import Kind

LISTED_MAX: Final = 12
NOT_FOUND: Final = "show.not_found"
_CUT: Final = re.compile(r"((?:blake3:)?[0-9a-fA-F]{8,64})…")


@dataclass(frozen=True, slots=True)
class Delivered:
    """A question's report. entry: its ledger row; report: its document."""

    entry: Entry
    report: dict[str, Any]

    @property
    def run(self) -> str:
        """The run that delivered it."""
        return self.entry.row.trace_id


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document of a text source. role: text or raw, whichever the reference meant."""

    name: str
    source: str
    role: str
    text: Address
    map: Address
    raw: Address
    used_by: tuple[Use, ...] = ()


def uncut(reference: str) -> str:
    """The reference without the mark that a shortened address ends with."""
    return _CUT.sub(r"\1", reference, count=1) if _CUT.match(reference) else reference


def report_entries(drill: Drill, question: str = "", *, run: str = "") -> list[Entry]:
    """The rows of reports, oldest first: of one question or all, of one run or all."""
    entries = drill.log.of_trace(run) if run else drill.log.entries()
    return [
        entry
        for entry in entries
        if entry.row.kind is Kind.REPORT
        and entry.row.subject != "batch"
        and (not question or entry.row.subject == question)
        and entry.row.deterministic_output is not None
    ]


def read_report(drill: Drill, entry: Entry) -> Delivered:
    """The report of a row."""
    output = entry.row.deterministic_output
    assert output is not None, "report_entries gives rows with a report"
    return Delivered(entry, json.loads(drill.store.get(output.address)))


def delivered(drill: Drill, question: str, figure: str = "", *, run: str = "") -> Delivered:
    """The newest report of a question that has this figure, of one run or of all.

    Raises ExecutorError show.no_question, show.no_figure.
    """
    entries = report_entries(drill, question, run=run) if question else []
    newest: Delivered | None = None
    for entry in reversed(entries):
        found = read_report(drill, entry)
        if not figure or any(f["name"] == figure for f in found.report["figures"]):
            return found
        newest = newest or found
    if newest is not None:
        names = ", ".join(f["name"] for f in newest.report["figures"]) or "none"
        raise ExecutorError(
            "show.no_figure",
            f"the answer to {question!r} has no figure {figure!r}",
            place=newest.run,
            remedy=f"It has: {names}. Write QUESTION/FIGURE or RUN/QUESTION/FIGURE.",
        )
    where = f"run {run} has delivered no" if run else "no run has delivered a"
    raise ExecutorError(
        "show.no_question",
        f"{where} question {question!r}",
        remedy=f"Write QUESTION or RUN/QUESTION; there is: {_listed(drill, run) or 'none yet'}.",
    )


def _listed(drill: Drill, run: str) -> str:
    """What may be asked for, as RUN/QUESTION: of this run, or of the newest that has something."""
    entries = report_entries(drill, run=run)
    last = entries[-1].row.trace_id if entries else ""
    names = [
        f"{last}/{entry.row.subject}" for entry in entries if last and entry.row.trace_id == last
    ]
    more = len(names) - LISTED_MAX
    return ", ".join(names[:LISTED_MAX]) + (f" and {more} more" if more > 0 else "")


def newest_snapshot(drill: Drill, source: str) -> Entry | None:
    """The row of a source's newest snapshot, or None."""
    found = None
    for entry in drill.log.entries():
        row = entry.row
        if row.kind is Kind.SNAPSHOT and row.subject == f"source/{source}":
            found = entry
    return found


def resolve(drill: Drill, text: str) -> tuple[Address, NamedDocument | None]:
    """The address of a whole or shortened name; with the document where a snapshot's manifest,
    not the ledger, names it. Raises LedgerError show.not_found, show.ambiguous."""
    digits = text.removeprefix("blake3:").lower()
    try:
        address = drill.resolve(text)
        origin = drill.origin(address)
    except LedgerError as error:
        found = dict(_documents(drill, digits)) if error.code == NOT_FOUND else {}
        if len(found) != 1:
            raise
        return next(iter(found.items()))
    if origin.made_by:
        return address, None
    # No row made it: a document's text that a search or an extract read.
    document = dict(_documents(drill, address.hex)).get(address)
    return address, None if document is None else replace(document, used_by=origin.used_by)


def _documents(drill: Drill, digits: str) -> Iterator[tuple[Address, NamedDocument]]:
    """Texts and files of documents whose address begins so, the newest snapshot last."""
    if len(digits) < PREFIX_MIN:
        return
    for manifest_address in drill.manifests():
        manifest = json.loads(drill.store.get(manifest_address))
        for document in manifest.get("documents", []):
            text, positions, raw = (Address.parse(document[p]) for p in ("text", "map", "raw"))
            # A file that is its own text has one address: the text is said last, and kept.
            for role, address in (("raw", raw), ("text", text)):
                if address.hex.startswith(digits):
                    name, source = document["name"], manifest["source"]
                    yield address, NamedDocument(name, source, role, text, positions, raw)
