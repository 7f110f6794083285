"""The determinism verdict: is a query a function of the data; if not, why; what was rewritten.

Source: DESIGN §8. A reason is named; each reason that has a rewrite has its name from REWRITES.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Standing(StrEnum):
    """FUNCTION: as asked, up to the sequence of rows. REWRITTEN: once the rewrites are applied."""

    FUNCTION = "function_of_data"
    REWRITTEN = "function_of_data_as_rewritten"
    REFUSED = "not_a_function_of_data"


REASONS = {
    "clock": "it reads the clock",
    "random": "it draws random numbers",
    "session": "it reads the session or the machine",
    "sample": "it takes a sample",
    "collation": "it compares by a collation that versions of a library change",
    "layout": "it reads how the rows are stored",
    "approximate": "it estimates by a sketch that depends on how the rows are split",
    "hash_order": "it gives elements in the order of a hash table",
    "processor": "its last digits depend on the processor",
    "unordered_limit": "LIMIT, OFFSET or DISTINCT ON takes whatever rows come first",
    "limit_ties": "rows can tie where LIMIT, OFFSET or DISTINCT ON cuts",
    "unordered_window": "a window that numbers or walks rows has no order",
    "window_ties": "rows can tie in the order of a window that numbers or walks them",
    "unordered_aggregate": "an aggregate depends on the order in which rows arrive",
    "aggregate_ties": "rows can tie in an aggregate that keeps one of them or their order",
    "asof_ties": "rows can tie in an ASOF join",
    "float_accumulation": "binary floating point numbers are added up in any order",
    "equal_values": "it keeps one of values that are equal and not alike, such as 0.0 and -0.0",
    "inexact_average": "the average of DECIMAL is binary floating point",
    "inexact_division": "the quotient of exact numbers is binary floating point",
    "outside_range": "a literal lies outside the range that its column declares",
    "sequence": "ORDER BY leaves ties, so that the sequence of equal rows is open",
}
"""Names of reasons, each with what it means; a closed list."""

REWRITES = {
    "as_of": "the clock is the question's as_of",
    "total_order": "the outermost ORDER BY is continued by all result columns",
    "ordered_limit": "the order under a LIMIT or DISTINCT ON is continued by all result columns",
    "ordered_window": "the order of a window is continued by the key, or all columns, of FROM",
    "ordered_aggregate": (
        "rows that an aggregate reads are put in the order of the key, or all columns, of FROM, "
        "or of its arguments"
    ),
    "ordered_sum": "binary floating point numbers are added up in their own order",
    "exact_average": "avg became decimal_average with a stated scale",
    "exact_division": "/ became decimal_division with a stated scale",
    "clamped_range": "a literal outside a column's declared range moved to its nearest end",
}
"""Names of rewrites, each with what it does; a closed list."""


REASON_OF_CODE = {
    "sql.clock": "clock",
    "sql.random": "random",
    "sql.catalog": "session",
    "sql.setting": "session",
    "sql.sample": "sample",
    "sql.collation": "collation",
    "sql.rowid": "layout",
    "sql.libm": "processor",
}
"""Refusals of the gates that are reasons of the verdict too."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why the text as asked is no function of the data. line, column: 1-based places in it."""

    name: str
    detail: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One change of text. line, column: where in the text as asked; removed, inserted: texts.

    round: from 1; those of a round are made at once, in the text that the rounds before it left.
    at: the character there, from 0.
    """

    name: str
    removed: str
    inserted: str
    line: int
    column: int
    round: int
    at: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """reasons: of the text as asked; rewrites: what was done about them, in order of place."""

    standing: Standing
    reasons: tuple[Reason, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rewrites, each once, sorted."""
        return tuple(sorted({r.name for r in self.rewrites}))


def derived(asked: str, rewrites: Sequence[Rewrite]) -> str | None:
    """The text as asked after its rewrites, round by round; None where one does not fit it.

    Of several that put something in at one character, the one listed first comes first.
    """
    text = asked
    for number in sorted({rewrite.round for rewrite in rewrites}):
        parts, place = list[str](), 0
        made = (rewrite for rewrite in rewrites if rewrite.round == number)
        for rewrite in sorted(made, key=lambda r: (r.at, r.at + len(r.removed))):
            end = rewrite.at + len(rewrite.removed)
            if not place <= rewrite.at <= len(text) or text[rewrite.at : end] != rewrite.removed:
                return None
            parts += [text[place : rewrite.at], rewrite.inserted]
            place = end
        text = "".join([*parts, text[place:]])
    return text
