"""The one rewrite: a total order. Text is inserted; the query is never written anew."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tieout.executor.sql.refusal import Text
from tieout.executor.sql.shape import Json, Node, as_node, names, nodes, word
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


def with_total_order(text: Text, tokens: Sequence[Token], columns_count: int) -> str:
    """The text with ", 1, 2, ..., n" at the end of its outermost ORDER BY.

    Raises SqlRefused sql.order_form when that ORDER BY is not outside all brackets.
    """
    flat = [t for t in tokens if t.depth == 0]
    start = None
    for before, after in itertools.pairwise(flat):
        words = (before.text.lower(), after.text.lower())
        if before.kind == after.kind == "word" and words == ("order", "by"):
            start = after
    if start is None:
        raise text.refuse("sql.order_form", "the ORDER BY stands inside brackets", word="order")
    end = start.end
    for token in flat:
        if token.start < start.end:
            continue
        if token.text.lower() in _AFTER_ORDER:
            break
        end = token.end
    end = max([end, *(t.end for t in tokens if start.end <= t.end and t.end <= end)])
    places = ", ".join(str(n) for n in range(1, columns_count + 1))
    return f"{text.sql[:end]}, {places}{text.sql[end:]}"


def same_but_ordered(before: Node, after: Node, columns_count: int) -> bool:
    """Whether the second tree is the first with exactly the positions appended to its order."""
    extended = _bare(after)
    for modifier in nodes(as_node(extended).get("modifiers")):
        orders = modifier.get("orders")
        if word(modifier, "type") == "ORDER_MODIFIER" and isinstance(orders, list):
            extra = [as_node(as_node(o)["expression"]) for o in orders[-columns_count:]]
            texts = [as_node(e.get("literal") or {}).get("text") for e in extra]
            if texts != [str(n) for n in range(1, columns_count + 1)]:
                return False
            del orders[-columns_count:]
    return extended == _bare(before)


def _bare(node: Json) -> Json:
    """A copy without places in the text."""
    if isinstance(node, dict):
        return {k: _bare(v) for k, v in node.items() if not k.startswith("query_location")}
    return [_bare(v) for v in node] if isinstance(node, list) else node
