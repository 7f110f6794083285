"""Sums of binary floating point numbers: put in the order of what is added, or refused.

Equal arguments are interchangeable, so that their own order is an order of the rows that matters.
Measured on the pinned build: each function of the list is then the same over 1, 2 and 8 threads
and three layouts, as an aggregate (FILTER and DISTINCT too) and as a window.
"""

from __future__ import annotations

from collections.abc import Sequence

from tieout.executor.sql.edits import Edit
from tieout.executor.sql.exact_places import Call, Places, raw_place
from tieout.executor.sql.exact_proof import ORDERED_SUM
from tieout.executor.sql.needs import Need
from tieout.executor.sql.plan import accumulations
from tieout.executor.sql.reading import Reading
from tieout.executor.sql.shape import Node, arguments, as_node, names, nodes, word


def sums(reading: Reading, places: Places) -> tuple[Need, ...]:
    """An ORDER BY in each call that adds up floats and has none; a refusal where it cannot be."""
    bound = accumulations(reading.plan)
    if not bound:
        return ()
    called = {_name(b) for b in bound}
    written = [
        (node, call)
        for node in places.expressions
        if word(node, "function_name").lower() in called and _unordered(node)
        if (call := places.call(node)) is not None
    ]
    chosen = [(n, c) for n, c in written if any(_matches(b, n) for b in bound)]
    missed = any(not any(_matches(b, n) for n, _call in chosen) for b in bound)
    chosen = _innermost(written if missed else chosen)
    if not chosen:
        return (_need(min(called), None, ()),)
    return tuple(
        _need(word(node, "function_name").lower(), call.name.start, (_ordered(reading, call),))
        for node, call in chosen
    )


def _need(name: str, offset: int | None, edits: tuple[Edit, ...]) -> Need:
    message = f"{name} adds binary floating point numbers, whose sum depends on their order"
    return Need("float_accumulation", "sql.float_sum", message, offset=offset, edits=edits)


def _name(bound: Node) -> str:
    path = as_node(bound.get("qname") or {}).get("path")
    return str(path[-1]).lower() if isinstance(path, list) and path else ""


def _unordered(node: Node) -> bool:
    if word(node, "class") == "WINDOW":
        return not node.get("arg_orders")
    return word(node, "class") == "FUNCTION" and not as_node(node.get("order_bys") or {}).get(
        "orders"
    )


def _matches(bound: Node, node: Node) -> bool:
    """Whether a written call may be a bound one: the same function of the same place or column."""
    given = arguments(node)
    parts = nodes(bound.get("children"))
    if word(node, "function_name").lower() != _name(bound) or not given or not parts:
        return False
    at = raw_place(parts[0])
    if at is not None:
        return raw_place(given[0]) == at
    column = word(given[0], "class") == "COLUMN_REF"
    return column and names(given[0])[-1].lower() == word(parts[0], "alias").lower()


def _innermost(chosen: Sequence[tuple[Node, Call]]) -> list[tuple[Node, Call]]:
    """Those that hold no other one; sums of windows of sums go one nesting at a time."""
    return [
        (node, call)
        for node, call in chosen
        if not any(
            other is not call and call.start <= other.name.start and other.end <= call.end
            for _node, other in chosen
        )
    ]


def _ordered(reading: Reading, call: Call) -> Edit:
    listed = ", ".join(reading.text.sql[a.start : a.end] for a in call.arguments)
    return Edit(call.end, call.end, f" ORDER BY {listed}", ORDERED_SUM)
