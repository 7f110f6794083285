"""Where an order stands, or can be put, in a text: found by the house's own tokens.

The engine's tree tells where expressions begin, not where clauses end. What is found here is only
a proposal: proof.py shows on the engine's tree of the changed text that it was the right place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tieout.executor.sql.refusal import NO_LOCATION, Text
from tieout.executor.sql.shape import Json, Node, location, locations
from tieout.executor.sql.text import Token

CUTS = frozenset({"limit", "offset", "fetch"})
UNIONS = frozenset({"union", "except", "intersect"})
FRAMES = frozenset({"rows", "range", "groups"})
_NULLS = frozenset({"ignore", "respect"})
_ENDS = CUTS | UNIONS | {";"}
_LIST_ENDS = _ENDS | {"from", "where", "group", "having", "window", "qualify", "order"}
_CLOSE = frozenset(")]}")


@dataclass(frozen=True, slots=True)
class Call:
    """A call f(...): its arguments as texts, and where an ORDER BY stands or can be put.

    at: character offset after which to insert; ordered: an ORDER BY is there already. distinct:
    DISTINCT stands before the arguments. close: place of the closing bracket among the tokens.
    """

    arguments: tuple[str, ...]
    at: int
    ordered: bool
    distinct: bool
    close: int


@dataclass(frozen=True, slots=True)
class Spec:
    """What stands in the brackets of OVER or of a WINDOW definition, as texts ("" when absent).

    base: the name of the window that it continues. order_end: character offset after the order,
    or where one can be put. start, end: characters of the whole, the brackets or the name.
    """

    base: str
    partition: str
    order: str
    frame: str
    order_end: int
    start: int
    end: int


class Places:
    """The tokens of one text, asked by the engine's byte locations."""

    def __init__(self, text: Text, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = list(tokens)
        self._starts = [t.start for t in self.tokens]

    def word(self, place: int) -> str:
        """A token in lower case when it is a bare word or a mark, else ""."""
        if not 0 <= place < len(self.tokens):
            return ""
        token = self.tokens[place]
        return token.text.lower() if token.kind in ("word", "mark") else ""

    def offset(self, node: Json) -> int | None:
        """The first character that any part of a tree node is said to begin at."""
        found = min(locations(node), default=None)
        return None if found is None else self.text.from_bytes(found)

    def at(self, offset: int) -> int:
        """The place of the first token that begins at a character or after it."""
        return bisect_left(self._starts, offset)

    def slice(self, first: int, last: int) -> str:
        """The text of the tokens first to last, both included; "" when there are none."""
        if last < first:
            return ""
        return self.text.sql[self.tokens[first].start : self.tokens[last].end]

    def close(self, opened: int) -> int | None:
        """The place of the bracket that closes the one at a place."""
        depth = self.tokens[opened].depth
        for place in range(opened + 1, len(self.tokens)):
            token = self.tokens[place]
            if token.depth == depth and token.text in _CLOSE and token.kind == "mark":
                return place
        return None

    def call(self, node: Node) -> Call | None:
        """The call that a FUNCTION or WINDOW node stands for; None when it is no plain call."""
        found = self._opened(node)
        if found is None:
            return None
        opened, closed = found
        depth = self.tokens[opened].depth + 1
        inside = [p for p in range(opened + 1, closed) if self.tokens[p].depth == depth]
        order = next((p for p in inside if self._order_by(p)), None)
        last = next((p for p in inside if self.word(p) in _NULLS and self._nulls(p)), closed) - 1
        first = opened + 1
        distinct = self.word(first) == "distinct"
        if self.word(first) in ("distinct", "all"):
            first += 1
        stop = (order if order is not None else last + 1) - 1
        arguments = tuple(self._split(first, stop, depth))
        return Call(arguments, self.tokens[last].end, order is not None, distinct, closed)

    def _opened(self, node: Node) -> tuple[int, int] | None:
        where = location(node)
        if where is None or where == NO_LOCATION:
            return None
        opened = self.at(self.text.from_bytes(where)) + 1
        if self.word(opened) != "(":
            return None
        closed = self.close(opened)
        return None if closed is None else (opened, closed)

    def _order_by(self, place: int) -> bool:
        return self.word(place) == "order" and self.word(place + 1) == "by"

    def _nulls(self, place: int) -> bool:
        return self.word(place + 1) == "nulls"

    def _split(self, first: int, last: int, depth: int, *, named: bool = False) -> Iterator[str]:
        """The texts between the commas of one depth. named: AS and a name may end each."""
        begin = first
        for place in range(first, last + 2):
            comma = place <= last and self.word(place) == "," and self.tokens[place].depth == depth
            if not comma and place <= last:
                continue
            end = place - 1
            if named and self.word(end - 1) == "as":
                end -= 2
            if begin <= end:
                yield self.slice(begin, end)
            begin = place + 1

    def over(self, node: Node) -> Spec | None:
        """What OVER says of a WINDOW node."""
        call = self.call(node)
        if call is None:
            return None
        place = call.close + 1
        if self.word(place) == "filter":
            closed = self.close(place + 1)
            place = len(self.tokens) if closed is None else closed + 1
        if self.word(place) != "over" or place + 1 >= len(self.tokens):
            return None
        token = self.tokens[place + 1]
        if self.word(place + 1) == "(":
            return self.spec(place + 1)
        return Spec(token.text, "", "", "", token.end, token.start, token.end)

    def spec(self, opened: int) -> Spec | None:
        """The parts of a window between brackets; opened: the place of the opening one."""
        closed = self.close(opened)
        if closed is None:
            return None
        depth = self.tokens[opened].depth + 1
        inside = [p for p in range(opened + 1, closed) if self.tokens[p].depth == depth]
        first = opened + 1
        frame = next((p for p in inside if self._frame(p, opened)), closed)
        order = next((p for p in inside if self._order_by(p)), frame)
        part = next((p for p in inside if self.word(p) == "partition"), order)
        base = self.tokens[first].text if first < part else ""
        start, end = self.tokens[opened].start, self.tokens[closed].end
        return Spec(
            base,
            self.slice(part + 2, order - 1),
            self.slice(order + 2, frame - 1),
            self.slice(frame, closed - 1),
            self.tokens[frame - 1].end,
            start,
            end,
        )

    def _frame(self, place: int, opened: int) -> bool:
        """Whether a frame begins at a place: ROWS and its like may be names of columns too."""
        if self.word(place) not in FRAMES or self.word(place + 1) in ("(", ",", ".", ")"):
            return False
        return place == opened + 1 or self.word(place - 1) not in ("by", ",", ".", "(")

    def definition(self, name: str, used: int) -> Spec | None:
        """The nearest WINDOW definition of a name, as seen from a character offset."""
        found = None
        depth = self.tokens[min(self.at(used), len(self.tokens) - 1)].depth
        for place in range(len(self.tokens) - 2):
            token = self.tokens[place]
            if token.text.lower() != name.lower() or token.depth > depth:
                continue
            if self.word(place - 1) not in ("window", ",") or self.word(place + 1) != "as":
                continue
            if self.word(place + 2) == "(" and (found is None or token.start < used):
                found = self.spec(place + 2)
            elif self.word(place + 2) == "(" and found is not None and found.start < used:
                return self.spec(place + 2)
        return found

    def order_end(self, orders: Sequence[Node]) -> int | None:
        """The end of the ORDER BY that some expressions stand in, in characters."""
        begin = self._order_list(orders)
        if begin is None:
            return None
        depth = self.tokens[begin].depth
        last = begin
        for place in range(begin + 1, len(self.tokens)):
            token = self.tokens[place]
            if token.depth < depth:
                break
            if token.depth == depth and self.word(place) in _ENDS:
                break
            last = place
        return self.tokens[last].end

    def _order_list(self, orders: Sequence[Node]) -> int | None:
        """The place of BY in the ORDER BY that some expressions stand in."""
        offset = self.offset(list(orders))
        if offset is None:
            return None
        return self._back(offset, lambda p: self.word(p) == "by" and self.word(p - 1) == "order")

    def _back(self, offset: int, wanted: object) -> int | None:
        """The nearest token before a character, not inside closed brackets, that is wanted."""
        assert callable(wanted)
        place = min(self.at(offset), len(self.tokens) - 1)
        depth = self.tokens[place].depth
        for at in range(place, -1, -1):
            token = self.tokens[at]
            depth = min(depth, token.depth)
            if token.depth <= depth and wanted(at):
                return at
        return None

    def cut(self, modifier: Node) -> int | None:
        """The character offset at which the words before LIMIT, OFFSET or FETCH end."""
        found = []
        for key in ("limit", "offset"):
            offset = self.offset(modifier.get(key)) if modifier.get(key) else None
            place = None
            if offset is not None:
                place = self._back(offset, lambda p: self.word(p) in CUTS)
            if place is not None:
                found.append(place)
        if not found:
            found = [p for p in range(len(self.tokens)) if self.word(p) == "fetch"]
            found = found if len(found) == 1 else []
        if not found:
            return None
        first = min(found)
        if self.word(first - 1) in ("all", "null") and self.word(first - 2) == "limit":
            first -= 2
        return self.tokens[first - 1].end if first > 0 else None

    def distinct_on(self, targets: Sequence[Node]) -> tuple[int, int, bool] | None:
        """First and last character of a SELECT DISTINCT ON, and whether it is part of a union."""
        offset = self.offset(list(targets))
        found = None
        if offset is not None:
            found = self._back(
                offset, lambda p: self.word(p) == "distinct" and self.word(p + 1) == "on"
            )
        if found is None or self.word(found - 1) != "select":
            return None
        depth = self.tokens[found].depth
        last, united = found, False
        for place in range(found + 1, len(self.tokens)):
            token = self.tokens[place]
            if token.depth < depth or (token.depth == depth and self.word(place) in _ENDS):
                united = token.depth == depth and self.word(place) in UNIONS
                break
            last = place
        earlier = {self.word(p) for p in range(max(0, found - 4), found - 1)}
        united = united or bool(earlier & UNIONS and self.tokens[found - 2].depth == depth)
        return self.tokens[found - 1].start, self.tokens[last].end, united

    def item_texts(self, items: Sequence[Node]) -> tuple[str, ...]:
        """The expressions of a select list as texts, without their names; empty when not plain."""
        offset = self.offset(list(items))
        found = None if offset is None else self._back(offset, lambda p: self.word(p) == "select")
        if found is None:
            return ()
        depth = self.tokens[found].depth
        first = found + 1 + (self.word(found + 1) in ("distinct", "all"))
        last = found
        for place in range(first, len(self.tokens)):
            token = self.tokens[place]
            if token.depth < depth or (token.depth == depth and self.word(place) in _LIST_ENDS):
                break
            last = place
        texts = tuple(self._split(first, last, depth, named=True))
        return texts if len(texts) == len(items) else ()

    def group_texts(self, groups: Sequence[Node]) -> tuple[str, ...]:
        """The expressions of a GROUP BY as texts; empty when it is no plain list."""
        offset = self.offset(list(groups))
        found = None
        if offset is not None:
            found = self._back(
                offset, lambda p: self.word(p) == "by" and self.word(p - 1) == "group"
            )
        if found is None:
            return ()
        depth = self.tokens[found].depth
        ends = _ENDS | {"having", "window", "qualify", "order"}
        last = found
        for place in range(found + 1, len(self.tokens)):
            token = self.tokens[place]
            if token.depth < depth or (token.depth == depth and self.word(place) in ends):
                break
            last = place
        texts = tuple(self._split(found + 1, last, depth))
        return texts if len(texts) == len(groups) else ()
