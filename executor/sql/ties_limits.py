"""LIMIT, OFFSET, DISTINCT ON and the outermost ORDER BY: continued by all result columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tieout.executor.sql.edits import Edit
from tieout.executor.sql.keys import Block, Keyed
from tieout.executor.sql.literals import same
from tieout.executor.sql.needs import Need
from tieout.executor.sql.order import is_total
from tieout.executor.sql.orders_places import Places
from tieout.executor.sql.orders_texts import TURNED, Ordering
from tieout.executor.sql.shape import Node, as_node, nodes, word
from tieout.executor.sql.ties_blocks import (
    Output,
    covers,
    makes_rows,
    one_grouping,
    sources,
    takes_all,
    written_of,
)

ORDERED_LIMIT = "ordered_limit"
TOTAL_ORDER = "total_order"
_ALL = "ALL"
_REMEDY = "Add the key columns of the tables, or all output columns, to it."


@dataclass(frozen=True, slots=True)
class Cut:
    """A query node with what is known of its rows.

    outputs: its result columns, None when not known. columns: the names of the result, of the
    outermost query; None of any other.
    """

    node: Node
    block: Block
    outputs: list[Output] | None
    groups: list[Node] | None
    found: Keyed
    columns: Sequence[str] | None

    @property
    def width(self) -> int | None:
        """How many result columns there are, when that is known."""
        known = self.columns if self.columns is not None else self.outputs
        return None if known is None else len(known)


def cuts_of(modifiers: Sequence[Node]) -> Iterator[Node]:
    """The modifiers that take some rows by their order."""
    for modifier in modifiers:
        limited = word(modifier, "type") in ("LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER")
        if limited or modifier.get("distinct_on_targets"):
            yield modifier


def limit_needs(places: Places, cut: Cut) -> list[Need]:
    """What the modifiers of a query need; one for each ORDER BY that is put in or continued."""
    modifiers = nodes(cut.node.get("modifiers"))
    orders = [m for m in modifiers if word(m, "type") == "ORDER_MODIFIER"]
    last = orders[-1] if orders else None
    found: dict[int, Need] = {}
    for modifier in cuts_of(modifiers):
        order = _order_for(modifier, modifiers)
        if order is None:
            before = _earlier_cut(modifier, modifiers)
            if before is None:
                found[id(modifier)] = _unordered(places, modifier)
        elif not _tells(cut, _listed(order)) and id(order) not in found:
            name = TOTAL_ORDER if order is last and cut.columns is not None else ORDERED_LIMIT
            found[id(order)] = _tied(places, cut, modifier, order, name)
    if cut.columns is not None and last is not None and id(last) not in found:
        found |= {id(last): n for n in _sequence(places, cut, last)}
    return list(found.values())


def _order_for(modifier: Node, modifiers: list[Node]) -> Node | None:
    """The ORDER BY by which a modifier takes rows: before LIMIT, after DISTINCT ON."""
    place = next(n for n, m in enumerate(modifiers) if m is modifier)
    if modifier.get("distinct_on_targets"):
        after = modifiers[place + 1 :]
        found = next((m for m in after if word(m, "type") != "DISTINCT_MODIFIER"), None)
        return found if found is not None and word(found, "type") == "ORDER_MODIFIER" else None
    before = [m for m in modifiers[:place] if word(m, "type") == "ORDER_MODIFIER"]
    return before[-1] if before else None


def _earlier_cut(modifier: Node, modifiers: list[Node]) -> Node | None:
    """The LIMIT whose new ORDER BY serves this modifier too."""
    place = next(n for n, m in enumerate(modifiers) if m is modifier)
    if modifier.get("distinct_on_targets"):
        after = list(cuts_of(modifiers[place + 1 :]))
        return after[0] if after else None
    before = [m for m in cuts_of(modifiers[:place]) if not m.get("distinct_on_targets")]
    return before[-1] if before else None


def _listed(order: Node) -> list[Node]:
    return [as_node(o["expression"]) for o in nodes(order.get("orders"))]


def _tells(cut: Cut, orders: list[Node]) -> bool:
    """Whether no two different rows of the result tie in an ORDER BY."""
    if any(map(takes_all, orders)):
        return True
    if cut.columns is not None and is_total(orders, cut.columns):
        return True
    if cut.columns is not None and len({c.lower() for c in cut.columns}) < len(cut.columns):
        return False  # which of two columns a name means is the engine's to say
    if cut.outputs is not None and covers(orders, cut.outputs, cut.found.keys):
        return True
    if word(cut.node, "type") != "SELECT_NODE":
        return False
    outputs = cut.outputs or written_of(nodes(cut.node.get("select_list")), cut.block)
    if outputs is None:
        return False
    given, columns = sources(orders, outputs)
    if cut.groups is not None:
        settled = all(any(same(g, o) for o in given) for g in cut.groups)
        return bool(cut.groups) and settled and one_grouping(cut.node)
    distinct = any(
        word(m, "type") == "DISTINCT_MODIFIER" and not m.get("distinct_on_targets")
        for m in nodes(cut.node.get("modifiers"))
    )
    return (
        not distinct
        and not makes_rows(nodes(cut.node.get("select_list")))
        and cut.block.total(columns | cut.block.plain(given))
    )


def _unordered(places: Places, modifier: Node) -> Need:
    """ORDER BY ALL before a LIMIT, or after a DISTINCT ON."""
    message = "LIMIT, OFFSET or DISTINCT ON without ORDER BY takes whatever rows come first"
    offset = places.offset(modifier)
    edits: tuple[Edit, ...] = ()
    if modifier.get("distinct_on_targets"):
        edits = _after_distinct(places, modifier)
    else:
        at = places.cut(modifier)
        if at is not None:
            edits = (Ordering((_ALL,)).put(at, ORDERED_LIMIT, after=False),)
            offset = at if offset is None else offset
    return Need("unordered_limit", "sql.unordered_limit", message, offset, edits)


def _after_distinct(places: Places, modifier: Node) -> tuple[Edit, ...]:
    """At the end of the SELECT; with brackets of its own where it is part of a union."""
    found = places.distinct_on(nodes(modifier["distinct_on_targets"]))
    if found is None:
        return ()
    start, end, united = found
    if not united:
        return (Ordering((_ALL,)).put(end, ORDERED_LIMIT, after=False),)
    text = f" ORDER BY {_ALL}"
    return (
        Edit(start, start, "(", ORDERED_LIMIT, "("),
        Edit(end, end, f"{text})", ORDERED_LIMIT, f"{text}{TURNED})"),
    )


def _places_of(cut: Cut) -> Ordering | None:
    """All result columns by their places."""
    width = cut.width
    return None if width is None else Ordering(tuple(str(n) for n in range(1, width + 1)))


def _tied(places: Places, cut: Cut, modifier: Node, order: Node, rewrite: str) -> Need:
    message = "the ORDER BY under a LIMIT, OFFSET or DISTINCT ON can leave ties"
    at, added = places.order_end(_listed(order)), _places_of(cut)
    edits: tuple[Edit, ...] = ()
    if at is not None and added is not None:
        edits = (added.put(at, rewrite, after=True),)
    offset = places.offset(modifier)
    return Need("limit_ties", "sql.unordered_limit", message, offset, edits, _REMEDY)


def _sequence(places: Places, cut: Cut, order: Node) -> list[Need]:
    """The outermost ORDER BY, when two different rows of the result may tie in it."""
    orders = _listed(order)
    if _tells(cut, orders):
        return []
    at, added = places.order_end(orders), _places_of(cut)
    edits: tuple[Edit, ...] = ()
    if at is not None and added is not None:
        edits = (added.put(at, TOTAL_ORDER, after=True, chooses=False),)
    message = "ORDER BY leaves the sequence of equal rows open"
    return [Need("sequence", "sql.order_form", message, at, edits)]
