"""A literal that cuts a column's values outside its range moves to the range's nearest end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final

from tieout.executor.sql.declared_values import Kind, Value, below, moved, outward, shown
from tieout.executor.sql.edits import Edit
from tieout.executor.sql.reading import Reading
from tieout.executor.sql.shape import Json, Node, as_node
from tieout.executor.sql.text import Token
from tieout.executor.sql.typed_literals import TypedLiteral

CLAMPED: Final = "clamped_range"
OUTSIDE: Final = "outside_range"
WORDS_OF_TYPE_MAX: Final = 4
"""Between the place of DATE '…' or TIMESTAMP '…' and its text."""


class Cut(Enum):
    """On which side of the literal's own value a comparison cuts."""

    BELOW = "below"
    ABOVE = "above"


def clamped(
    reading: Reading,
    literal: TypedLiteral,
    cut: Cut,
    kinds: Sequence[Kind],
    bounds: tuple[Value | None, Value | None],
) -> Edit | None:
    """The edit that moves a cut into the range; None where it lies there, or cannot be placed.

    kinds: of the column and of each cast around it. bounds: lowest and highest, None where open.
    """
    kind = literal.read_as(kinds[-1])
    value = literal.value(kinds[-1])
    if kind is None or value is None:
        return None
    low, high = bounds
    if low is not None and cut is Cut.ABOVE:
        low = moved(low, kinds[-1], -1)
    if high is not None and cut is Cut.BELOW:
        high = moved(high, kinds[-1], 1)
    target = None
    if low is not None and below(value, low):
        target = outward(low, kind, up=False)
        target = target if target is not None and below(value, target) else None
    elif high is not None and below(high, value):
        target = outward(high, kind, up=True)
        target = target if target is not None and below(target, value) else None
    if target is None:
        return None
    return _edit(reading, literal, shown(target, kind))


def _edit(reading: Reading, literal: TypedLiteral, text: str) -> Edit | None:
    span = _span(reading, literal)
    if span is None:
        return None
    start, end = span
    if not literal.is_number:
        return Edit(start, end, f"'{text}'", CLAMPED)
    # A minus right behind an operator could be read as part of it.
    apart = " " if text.startswith("-") and not reading.text.sql[start - 1].isspace() else ""
    return Edit(start, end, apart + text, CLAMPED)


def _span(reading: Reading, literal: TypedLiteral) -> tuple[int, int] | None:
    """Where the token of a literal stands, its minus included; None when that is not certain."""
    if literal.location is None:
        return None
    start = reading.text.from_bytes(literal.location)
    ahead = [t for t in reading.tokens if t.start >= start][: WORDS_OF_TYPE_MAX + 1]
    if not ahead or ahead[0].start != start:
        return None
    if literal.is_number:
        return _number_span(ahead, literal.text)
    written = "'" + literal.text.replace("'", "''") + "'"
    first = next((t for t in ahead if t.kind == "string"), None) if literal.within else ahead[0]
    return (first.start, first.end) if first is not None and first.text == written else None


def _number_span(ahead: Sequence[Token], text: str) -> tuple[int, int] | None:
    first = ahead[0]
    if first.text == text:
        return first.start, first.end
    if first.text == "-" and len(ahead) > 1 and f"-{ahead[1].text}" == text:
        return first.start, ahead[1].end
    return None


def only_moved(before: Node, after: Node, sql: str, edits: Sequence[Edit]) -> bool:
    """Whether two trees differ in nothing but the constants of some clamps. sql: the text before.

    Each constant that differs must be one of the edits, and each edit must be found.
    """
    wanted = {(_bare(sql[e.start : e.end]), _bare(e.text)) for e in edits}
    found = set[tuple[str, str]]()
    for one, other in _differences(before, after):
        if one is None or other is None:
            return False
        found.add((one, other))
    return found == wanted


def _bare(token: str) -> str:
    text = token.strip()
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    return "".join(text.split())


def _differences(one: Json, other: Json) -> Iterator[tuple[str | None, str | None]]:
    """Pairs of texts of constants that differ; a pair of None for any other difference."""
    if isinstance(one, dict) and isinstance(other, dict):
        if one.get("class") == other.get("class") == "CONSTANT":
            texts = (_text(one), _text(other))
            if texts[0] != texts[1]:
                yield texts
                return
        if one.keys() != other.keys():
            yield None, None
            return
        for key in one:
            if not key.startswith("query_location"):
                yield from _differences(one[key], other[key])
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for left, right in zip(one, other, strict=True):
            yield from _differences(left, right)
    elif one != other:
        yield None, None


def _text(node: Node) -> str:
    return str(as_node(node.get("literal") or {}).get("text"))
