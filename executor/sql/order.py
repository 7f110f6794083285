"""The one rewrite: a total order. Text is inserted; the query is never written anew."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence

from tieout.executor.sql.edits import Edit
from tieout.executor.sql.shape import Node, as_node, names, nodes, word
from tieout.executor.sql.text import Token

TOTAL_ORDER = "total_order"
_AFTER_ORDER = frozenset({"limit", "offset", "fetch", ";"})


def order_of(root: Node) -> list[Node]:
    """The expressions of the outermost ORDER BY."""
    found: list[Node] = []
    for modifier in nodes(root.get("modifiers")):
        if word(modifier, "type") == "ORDER_MODIFIER":
            found += [as_node(o["expression"]) for o in nodes(modifier.get("orders"))]
    return found


def is_total(root: Node, columns: Sequence[str]) -> bool:
    """Whether the ORDER BY names each column of the result, or ALL."""
    named: set[str] = set()
    for expression in order_of(root):
        if expression.get("class") == "STAR" and not expression.get("expr"):
            return True
        if expression.get("class") == "COLUMN_REF" and len(names(expression)) == 1:
            named.add(names(expression)[0].lower())
        literal = expression.get("literal")
        if isinstance(literal, dict) and literal.get("kind") == "INTEGER":
            place = int(str(literal["text"]))
            named |= {columns[place - 1].lower()} if 1 <= place <= len(columns) else set()
    return {c.lower() for c in columns} <= named


def total_order(tokens: Sequence[Token], columns_count: int) -> tuple[Edit, ...]:
    """Put ", 1, 2, ..., n" at the end of the outermost ORDER BY; none when that is in brackets."""
    flat = [t for t in tokens if t.depth == 0]
    start = None
    for before, after in itertools.pairwise(flat):
        words = (before.text.lower(), after.text.lower())
        if before.kind == after.kind == "word" and words == ("order", "by"):
            start = after
    if start is None:
        return ()
    end = start.end
    for token in flat:
        if token.start < start.end:
            continue
        if token.text.lower() in _AFTER_ORDER:
            break
        end = token.end
    end = max([end, *(t.end for t in tokens if start.end <= t.end and t.end <= end)])
    places = ", ".join(str(n) for n in range(1, columns_count + 1))
    return (Edit(end, end, f", {places}", TOTAL_ORDER),)


def without_additions(after: Node, sql: str, edits: Sequence[Edit]) -> Node:
    """A tree without the positions that a total order appended. sql: the text before."""
    del sql
    stripped: Node = copy.deepcopy(after)
    for edit in edits:
        added = len(edit.text.split(", ")) - 1
        for modifier in nodes(stripped.get("modifiers")):
            orders = modifier.get("orders")
            if word(modifier, "type") == "ORDER_MODIFIER" and isinstance(orders, list):
                del orders[-added:]
    return stripped
