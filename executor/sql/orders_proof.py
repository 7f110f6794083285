"""Proof that a changed text is the one before, with orders added: tree against tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tieout.executor.sql.edits import Edit, apply, in_order
from tieout.executor.sql.shape import Json, Node, as_node, locations, word

ORDERS = frozenset({"orders", "arg_orders"})
_ALL = "ORDER BY ALL"


def only_orders_added(before: Node, after: Node, sql: str, edits: Sequence[Edit]) -> bool:
    """Whether the tree after is the tree before, but for expressions at the ends of orders.

    sql: the text before. Each expression that is more must stand in what the edits put in; one
    without a place is the ALL of an ORDER BY ALL that they put in. Nothing else may differ: no
    frame, no direction of an earlier order, no column.
    """
    added: list[Node] = []
    if not _same(before, after, added):
        return False
    spans = list(_spans(sql, edits))
    whole = sum(edit.text.count(_ALL) for edit in edits)
    placeless = 0
    for expression in added:
        found = list(locations(expression))
        if not found:
            placeless += 1
            if word(expression, "class") != "STAR":
                return False
        if not all(any(start <= place < end for start, end in spans) for place in found):
            return False
    return bool(added) and placeless <= whole


def _spans(sql: str, edits: Sequence[Edit]) -> Iterator[tuple[int, int]]:
    """First and last byte of what each edit put into the text after."""
    after, shift = apply(sql, edits), 0
    for edit in in_order(edits):
        start = edit.start + shift
        first = len(after[:start].encode())
        yield first, first + len(edit.text.encode())
        shift += len(edit.text) - (edit.end - edit.start)


def _same(before: Json, after: Json, added: list[Node]) -> bool:
    """Equality but for places in the text and longer orders, which are put into added."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = {k for k in before if not k.startswith("query_location")}
        if keys != {k for k in after if not k.startswith("query_location")}:
            return False
        return all(_same_value(key, before[key], after[key], added) for key in sorted(keys))
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(
            _same(one, other, added) for one, other in zip(before, after, strict=True)
        )
    return before == after


def _same_value(key: str, before: Json, after: Json, added: list[Node]) -> bool:
    if not isinstance(before, list) or not isinstance(after, list):
        return _same(before, after, added)
    if key == "modifiers":
        return _same_modifiers(before, after, added)
    if key in ORDERS:
        more = after[len(before) :]
        added += [as_node(as_node(o)["expression"]) for o in more]
        return len(more) == len(after) - len(before) and _same(before, after[: len(before)], added)
    return _same(before, after, added)


def _same_modifiers(before: list[Json], after: list[Json], added: list[Node]) -> bool:
    """ORDER BY may be new among the modifiers of a query; the rest stays, in its sequence."""
    waiting = list(before)
    for modifier in after:
        node = as_node(modifier)
        kind = word(node, "type")
        if waiting and word(as_node(waiting[0]), "type") == kind:
            if not _same(waiting.pop(0), modifier, added):
                return False
        elif kind == "ORDER_MODIFIER":
            orders = node.get("orders")
            found = orders if isinstance(orders, list) else []
            added += [as_node(as_node(o)["expression"]) for o in found]
        else:
            return False
    return not waiting
