"""The outermost ORDER BY: what it names, and whether that is the whole row."""

from __future__ import annotations

from collections.abc import Sequence

from tieout.executor.sql.shape import Node, as_node, names, nodes, word
from tieout.executor.sql.ties_blocks import takes_all


def order_of(root: Node) -> list[Node]:
    """The expressions of the outermost ORDER BY."""
    found: list[Node] = []
    for modifier in nodes(root.get("modifiers")):
        if word(modifier, "type") == "ORDER_MODIFIER":
            found += [as_node(o["expression"]) for o in nodes(modifier.get("orders"))]
    return found


def is_total(orders: Sequence[Node], columns: Sequence[str]) -> bool:
    """Whether an ORDER BY names each column of the result, or ALL. A name of two names neither."""
    low = [c.lower() for c in columns]
    named: set[int] = set()
    for expression in orders:
        if takes_all(expression):
            return True
        if expression.get("class") == "COLUMN_REF" and len(names(expression)) == 1:
            name = names(expression)[0].lower()
            named |= {low.index(name)} if low.count(name) == 1 else set()
        literal = expression.get("literal")
        if isinstance(literal, dict) and literal.get("kind") == "INTEGER":
            named.add(int(str(literal["text"])) - 1)
    return set(range(len(low))) <= named
