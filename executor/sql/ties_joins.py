"""ASOF joins: the nearest row of the right side must be one row."""

from __future__ import annotations

from collections.abc import Iterator

from tieout.executor.sql.keys import Block, Column
from tieout.executor.sql.needs import Need
from tieout.executor.sql.orders_places import Places
from tieout.executor.sql.shape import Node, as_node, names, nodes, word

_PLAIN = frozenset({"", "REGULAR", "CROSS", "NATURAL", "DEPENDENT"})


def asof_need(
    places: Places, node: Node, block: Block, right: set[int], using: set[str]
) -> Need | None:
    """A need without a rewrite, unless the condition names a key of the right side.

    node: a JOIN. right: the places of its right side. using: the columns that both sides share.
    """
    if word(node, "ref_type") in _PLAIN:
        return None
    given = {(p, n) for p in right for n in using if n in (block.relations[p].columns or {})}
    if node.get("condition"):
        given |= {c for c in _compared(as_node(node["condition"]), block) if c[0] in right}
    alone = Block([block.relations[p] for p in sorted(right)])
    moved = {p: at for at, p in enumerate(sorted(right))}
    if word(node, "ref_type") == "ASOF" and alone.total({(moved[p], n) for p, n in given}):
        return None
    message = "rows of the right side can tie in an ASOF join"
    offset = places.offset(node.get("condition") or node)
    return Need("asof_ties", "sql.asof_ties", message, offset)


def _compared(node: Node, block: Block) -> Iterator[Column]:
    """The plain columns that an AND of comparisons compares."""
    if word(node, "type") == "CONJUNCTION_AND":
        for part in nodes(node.get("children")):
            yield from _compared(part, block)
    if word(node, "class") == "COMPARISON" and word(node, "type") != "COMPARE_NOTEQUAL":
        for side in ("left", "right"):
            operand = as_node(node[side])
            column = block.resolve(names(operand)) if names(operand) else None
            if column is not None:
                yield column
