"""What an answer cites, and how far each of its numbers can be traced.

Source: DESIGN §7. A label says whether a number is traceable, never that it is right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tieout.artifacts.values import cell_reference
from tieout.ledger.canon import Json


class Label(StrEnum):
    """How far a number can be traced; weakest first."""

    UNSOURCED = "unsourced"
    CONVENTION = "convention"
    QUESTION = "question"
    SOURCED = "sourced"

    @property
    def strength(self) -> int:
        """0 for the weakest."""
        return list(Label).index(self)


def weakest(labels: list[Label]) -> Label:
    """The label of a value with these origins: the weakest of them; unsourced without any."""
    return min(labels, key=lambda label: label.strength, default=Label.UNSOURCED)


class Reason(StrEnum):
    """Why a number is unsourced."""

    UNCITED = "uncited"
    MISCITED = "miscited"
    AMBIGUOUS = "ambiguous"
    LITERAL = "literal"
    ALTERED = "altered"
    """What stands around a filled figure changes how it reads."""


class Flag(StrEnum):
    """What else is to be known of a number, beside any label."""

    COMPUTED = "computed"
    PARTIAL = "partial"
    INEXACT = "inexact"
    TIED = "tied"
    """Rows tie, and an order that was added to the query chose which of them it was read from."""
    NO_VALUE = "no_value"
    """The cell is NULL, NaN or infinite: nothing is shown as a number."""
    ROUNDED = "rounded"
    """The prose shows fewer digits than the cell has: the stored value differs."""
    UNIT_TYPED = "unit_typed"
    """The currency or per cent beside it was chosen by the plan, not read from the data."""


@dataclass(frozen=True, slots=True)
class CellCitation:
    """A cell of a table artifact. address: of the artifact; row: the text of the row's key."""

    address: str
    row: str
    column: str

    @property
    def text(self) -> str:
        """`ADDRESS#ROWKEY:COLUMN`."""
        return cell_reference(self.address, self.row, self.column)

    def document(self) -> dict[str, Json]:
        """The citation as JSON values."""
        return {"kind": "cell", "address": self.address, "row": self.row, "column": self.column}


@dataclass(frozen=True, slots=True)
class SpanCitation:
    """A passage. snapshot: address of the raw bytes; text: address of the text T.

    start, end: code points of T, half-open; quote: T[start:end].
    """

    snapshot: str
    text: str
    document_name: str
    start: int
    end: int
    quote: str

    @property
    def reference(self) -> str:
        """`ADDRESS@START-END` over the text artifact."""
        return f"{self.text}@{self.start}-{self.end}"

    def document(self) -> dict[str, Json]:
        """The citation as JSON values."""
        return {
            "kind": "span",
            "snapshot": self.snapshot,
            "text": self.text,
            "document": self.document_name,
            "start": self.start,
            "end": self.end,
            "quote": self.quote,
        }


@dataclass(frozen=True, slots=True)
class Figure:
    """A placeholder of an answer, filled.

    value: the exact text of the cited cell, None for null. shown: what stands in the prose.
    operation: how it was computed, "" for a copy. literals: what a plan typed that flowed in.
    span: for an extracted value, the passage.
    """

    name: str
    value: str | None
    shown: str
    type: str
    label: Label
    reason: Reason | None
    flags: tuple[Flag, ...]
    step: str
    citation: CellCitation | None
    span: SpanCitation | None = None
    operation: str = ""
    literals: tuple[str, ...] = ()

    def document(self) -> dict[str, Json]:
        """The figure as JSON values."""
        cell = self.citation
        return {
            "name": self.name,
            "value": self.value,
            "shown": self.shown,
            "type": self.type,
            "label": str(self.label),
            "reason": None if self.reason is None else str(self.reason),
            "flags": [str(flag) for flag in self.flags],
            "step": self.step,
            "address": None if cell is None else cell.address,
            "row": None if cell is None else cell.row,
            "column": None if cell is None else cell.column,
            "span": None if self.span is None else self.span.document(),
            "operation": self.operation,
            "literals": list(self.literals),
        }


@dataclass(frozen=True, slots=True)
class NumberInProse:
    """A number-like token of the final prose. figure: the placeholder it came from, or "".

    candidates: cells that hold the same value, for a number that was typed.
    """

    start: int
    end: int
    text: str
    label: Label
    reason: Reason | None
    flags: tuple[Flag, ...] = ()
    figure: str = ""
    candidates: tuple[str, ...] = ()

    def document(self) -> dict[str, Json]:
        """The token as JSON values."""
        return {
            "start": self.start,
            "end": self.end,
            "text": self.text,
            "label": str(self.label),
            "reason": None if self.reason is None else str(self.reason),
            "flags": [str(flag) for flag in self.flags],
            "figure": self.figure,
            "candidates": list(self.candidates),
        }


class AnswerStatus(StrEnum):
    """How an answer was delivered."""

    ANSWERED = "answered"
    UNSOURCED = "answered_with_unsourced"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as delivered: the filled prose and what is known of each number in it."""

    status: AnswerStatus
    prose: str
    figures: tuple[Figure, ...] = ()
    quotes: tuple[tuple[str, SpanCitation], ...] = ()
    numbers: tuple[NumberInProse, ...] = ()
    problems: tuple[str, ...] = field(default=())


REPORT_FORMAT: Final = "tieout.report/1"
REPORT_MEDIA: Final = "application/vnd.tieout.report+json"
