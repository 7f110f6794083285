"""Where expressions stand in the text: the engine's places of nodes, and the tokens between.

The engine tells no place for the inner ones of a chain such as a / b / c; they end before the
operator that follows them.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from tieout.executor.sql.reading import Reading
from tieout.executor.sql.refusal import NO_LOCATION
from tieout.executor.sql.shape import Node, arguments, nodes, walk, word
from tieout.executor.sql.text import Token

CHAINED = frozenset({"*", "/", "%", "//"})
"""Operators of one rank, that are read from left to right."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Characters start to end of the text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Call:
    """A call in the text: its name, and its arguments from first to last without DISTINCT."""

    name: Token
    start: int
    end: int
    arguments: tuple[Extent, ...]


def raw_place(node: Node) -> tuple[int, int] | None:
    """Start and length in bytes, as the engine tells them; None when it does not.

    Of a sum it tells the operator's start, and no length.
    """
    start, length = node.get("query_location"), node.get("query_location_length")
    if not isinstance(start, int) or not isinstance(length, int) or start == NO_LOCATION:
        return None
    return start, length


def place(node: Node) -> tuple[int, int] | None:
    """The place of an expression that has an extent."""
    found = raw_place(node)
    return found if found is not None and found[1] else None


class Places:
    """The expressions of one text by their places."""

    def __init__(self, reading: Reading) -> None:
        self.text = reading.text
        self.tokens = reading.tokens
        self._starts = [t.start for t in self.tokens]
        fixed = _named_by_text(reading.root)
        self.expressions = [n for n in walk(reading.root) if "class" in n and id(n) not in fixed]
        self.at: dict[tuple[int, int], list[Node]] = {}
        self._extents: dict[int, Extent] = {}
        for node in self.expressions:
            found = raw_place(node)
            if found is not None:
                self.at.setdefault(found, []).append(node)
            if found is not None and found[1]:
                self._extend(node, self._characters(found))

    def _characters(self, found: tuple[int, int]) -> Extent:
        start, length = found
        return Extent(self.text.from_bytes(start), self.text.from_bytes(start + length))

    def _extend(self, node: Node, extent: Extent) -> None:
        """The extent of a node, and of those of its chain that have no place of their own."""
        while True:
            self._extents[id(node)] = extent
            given = arguments(node) if word(node, "class") == "FUNCTION" else []
            if word(node, "function_name") not in CHAINED or len(given) != 2:
                return
            operator = self.operator(extent, word(node, "function_name"))
            node = given[0]
            if operator is None or raw_place(node) or word(node, "function_name") not in CHAINED:
                return
            inside = self._inside(Extent(extent.start, operator.start))
            extent = Extent(extent.start, inside[-1].end if inside else operator.start)

    def extent(self, node: Node) -> Extent | None:
        """Where an expression stands, if that is known."""
        return self._extents.get(id(node))

    def _inside(self, extent: Extent) -> list[Token]:
        first = bisect_left(self._starts, extent.start)
        last = bisect_left(self._starts, extent.end, lo=first)
        return [t for t in self.tokens[first:last] if t.end <= extent.end]

    def operator(self, extent: Extent, name: str) -> Extent | None:
        """The last operator of the chain that an extent is; None when it is another one."""
        inside = self._inside(extent)
        level, cases, last = inside[0].depth if inside else 0, 0, None
        skip = False
        for number, token in enumerate(inside):
            word_of = token.text.lower() if token.kind == "word" else ""
            cases += (word_of == "case") - (word_of == "end")
            if token.depth < level:
                return None
            if skip or token.kind != "mark" or token.depth != level or cases:
                skip = False
                continue
            follows = inside[number + 1] if number + 1 < len(inside) else None
            double = follows is not None and follows.start == token.end and token.text in "/*"
            skip = double and follows is not None and follows.text == token.text
            text = token.text * 2 if skip else token.text
            if text in CHAINED:
                last = (text, Extent(token.start, token.start + len(text)))
        return last[1] if last is not None and last[0] == name and not cases else None

    def operands(self, extent: Extent, operator: Extent) -> tuple[Extent, Extent] | None:
        """What stands before and behind an operator."""
        before = self._inside(Extent(extent.start, operator.start))
        behind = self._inside(Extent(operator.end, extent.end))
        if not before or not behind:
            return None
        return (
            Extent(before[0].start, before[-1].end),
            Extent(behind[0].start, behind[-1].end),
        )

    def call(self, node: Node) -> Call | None:
        """The parts of a call; None when it is not written as name(arguments)."""
        extent = self.extent(node)
        inside = self._inside(extent) if extent is not None else []
        if len(inside) < 4 or inside[1].text != "(":
            return None
        level, given = inside[1].depth, list[Token]()
        for token in inside[2:]:
            if token.depth == level:
                break
            given.append(token)
        flat = [t.text.lower() if t.depth == level + 1 else "" for t in given]
        if flat[:1] in (["distinct"], ["all"]):
            given, flat = given[1:], flat[1:]
        if "order" in flat or not given:
            return None
        cuts = [n for n, word_of in enumerate(flat) if word_of == ","]
        spans = zip([0, *(n + 1 for n in cuts)], [*cuts, len(given)], strict=True)
        listed = [given[a:b] for a, b in spans]
        if not all(listed):
            return None
        parts = tuple(Extent(part[0].start, part[-1].end) for part in listed)
        return Call(inside[0], given[0].start, given[-1].end, parts)


def _named_by_text(root: Node) -> frozenset[int]:
    """Nodes that give a column its name where columns meet by name: they must not be changed."""
    if not any(_meets_by_name(n) for n in walk(root)):
        return frozenset()
    return frozenset(
        id(inner)
        for query in walk(root)
        for item in nodes(query.get("select_list"))
        if not word(item, "alias")
        for inner in walk(item)
    )


def _meets_by_name(node: Node) -> bool:
    star = word(node, "class") == "STAR" and bool(node.get("columns") or node.get("expr"))
    joined = word(node, "ref_type") == "NATURAL" or "BY_NAME" in word(node, "setop_type")
    return star or joined or word(node, "type") == "PIVOT"
