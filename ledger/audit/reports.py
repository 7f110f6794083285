"""A question's report against what it cites and what it says of itself; a run's list of reports.

Source: docs/FORMAT.md §9. Called for documents of the right shape only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from tieout.ledger.audit.cells import NoSuchCell, TableCells
from tieout.ledger.audit.contents import Document
from tieout.ledger.audit.evidence import Evidence, Unavailable
from tieout.ledger.audit.findings import Finding
from tieout.ledger.audit.tables import MalformedTable

# A document whose shape was checked.
Checked: TypeAlias = Mapping[str, Any]

PROSE_CHARS_MAX: Final = 60_000
_PLACEHOLDER: Final = re.compile(r"\{([a-zA-Z][a-zA-Z0-9_]{0,39})\}")
# How the prose shows a character that a reader would not see.
_ESCAPE: Final = re.compile(r"\\u\{(10[0-9A-F]{4}|[0-9A-F]{1,5})\}")
_SAID_ELSEWHERE: Final = "The object has a finding of its own; check again when it is back."


class Cited:
    """What reports cite, read once: figures of one answer mostly lie in the same few tables."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._table: tuple[str, TableCells] | None = None
        self._text: tuple[str, str] | None = None

    def cell(self, address: str, row: str, column: str) -> str | None:
        """Raises Unavailable, NoSuchCell, MalformedTable, MemoryError, ImportError."""
        if self._table is None or self._table[0] != address:
            self._table = (address, TableCells(self._evidence.load(address)))
        return self._table[1].find(row, column)

    def text(self, address: str) -> str:
        """Raises Unavailable, UnicodeDecodeError."""
        if self._text is None or self._text[0] != address:
            self._text = (address, self._evidence.load(address).decode("utf-8"))
        return self._text[1]


def check_report(report: Checked, cited: Cited, source: Document) -> Iterator[Finding]:
    """Compare each figure with its cell, each quote with its passage, the prose with both."""
    for figure in report["figures"]:
        if figure["address"] is not None:
            yield from _check_figure(figure, cited, source)
        if figure["span"] is not None:
            yield from _check_span(figure["span"], cited, source)
    for quote in report["quotes"]:
        yield from _check_span(quote, cited, source)
    yield from _check_prose(report, source)
    yield from _check_numbers(report, source)
    labels = {item["label"] for item in (*report["figures"], *report["numbers"])}
    if report["status"] != "failed":
        status = "answered_with_unsourced" if "unsourced" in labels else "answered"
        if report["status"] != status:
            message = f"its status is {report['status']}, its labels say {status}"
            yield source.finding("report.status", message)


def _check_figure(figure: Checked, cited: Cited, source: Document) -> Iterator[Finding]:
    name = f"figure {figure['name'][:60]!r}"
    cell = f"{figure['address']}#{figure['row']}:{figure['column']}"
    try:
        value = cited.cell(figure["address"], figure["row"], figure["column"])
    except ImportError:
        message = f"pyarrow is not installed: {name} was not compared with its cell"
        yield source.unchecked("report.unchecked", message, "Install pyarrow and check again.")
    except (Unavailable, MemoryError):
        message = f"{name} was not compared with {cell}: the table cannot be read"
        yield source.unchecked("report.unchecked", message, _SAID_ELSEWHERE)
    except (NoSuchCell, MalformedTable) as error:
        yield source.finding("report.cell", f"{name}: {cell}: {error!s:.200}")
    else:
        if value != figure["value"]:
            stated = str(figure["value"])[:80]
            yield source.finding("report.value", f"{name} is {stated}, {cell} holds {value}")


def _check_span(span: Checked, cited: Cited, source: Document) -> Iterator[Finding]:
    start, end = span["start"], span["end"]
    place = f"{span['text']}@{start}-{end}"
    try:
        text = cited.text(span["text"])
    except Unavailable:
        message = f"the quote of {place} was not compared: the text cannot be read"
        yield source.unchecked("report.unchecked", message, _SAID_ELSEWHERE)
        return
    except UnicodeDecodeError:
        yield source.finding("report.quote", f"{span['text']} is no text")
        return
    if not 0 <= start < end <= len(text) or text[start:end] != span["quote"]:
        yield source.finding("report.quote", f"{place} does not hold the quote")


def _check_prose(report: Checked, source: Document) -> Iterator[Finding]:
    """The prose is the template with every placeholder filled; a failed one may be cut off."""
    filled = {quote["name"]: quote["quote"] for quote in report["quotes"]}
    filled |= {figure["name"]: figure["shown"] for figure in report["figures"]}
    template, prose = report["template"], report["prose"]
    if report["status"] == "failed":
        named = set(_PLACEHOLDER.findall(template)) if len(prose) < PROSE_CHARS_MAX else set()
        for figure in report["figures"]:
            if figure["name"] in named and figure["shown"] not in prose:
                message = f"figure {figure['name'][:60]!r} is not in the prose as it is shown"
                yield source.finding("report.prose", message)
        return
    for name in dict.fromkeys(_PLACEHOLDER.findall(template)):
        if name not in filled:
            message = f"the template names {name!r}, which is neither figure nor quote"
            yield source.finding("report.prose", message)
            return
    wanted = _PLACEHOLDER.sub(lambda found: filled[found[1]], template)
    if prose != wanted and _bare(prose) != _bare(wanted):
        message = "the prose is not the template filled with what its figures show"
        yield source.finding("report.prose", message)


def _bare(text: str) -> str:
    """The text with the characters themselves in the place of their escapes."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


def _check_numbers(report: Checked, source: Document) -> Iterator[Finding]:
    """Each number stands where it says, and has the label of the figure that it came from."""
    labels = {quote["name"]: "sourced" for quote in report["quotes"]}
    labels |= {figure["name"]: figure["label"] for figure in report["figures"]}
    prose = report["prose"]
    for number in report["numbers"]:
        start, end, name = number["start"], number["end"], number["figure"]
        place = f"number {number['text'][:40]!r} at {start}-{end}"
        if not 0 <= start < end <= len(prose) or prose[start:end] != number["text"]:
            yield source.finding("report.number", f"{place} is not what the prose has there")
        if name and name not in labels:
            yield source.finding("report.number", f"{place}: there is no figure {name[:60]!r}")
        elif name and labels[name] != number["label"]:
            message = f"{place} is {number['label']}, its figure {labels[name]}"
            yield source.finding("report.label", message)


def check_batch(
    batch: Checked, reports: Mapping[str, Checked | None], source: Document
) -> Iterator[Finding]:
    """Compare a run's list with its reports; None stands for one that could not be read."""
    for question in batch["questions"]:
        place = f"question {question['id'][:60]!r}"
        if question["report"] not in reports:
            message = f"{place}: {question['report']} is no report that was recorded before"
            yield source.finding("batch.report", message)
            continue
        report = reports[question["report"]]
        if report is None:
            continue
        said = (question["id"], question["status"], question["ties"])
        ties = all(expectation["holds"] for expectation in report["expectations"])
        if said != (report["question"]["id"], report["status"], ties):
            message = f"{place}: id, status or whether it ties differ from its report"
            yield source.finding("batch.differs", message)
