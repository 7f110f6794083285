"""Proof that a rewrite changed only what it says: with its parts taken out, the trees are equal."""

from __future__ import annotations

from collections.abc import Sequence

from tieout.executor.sql.edits import Edit
from tieout.executor.sql.exact_proof import undone
from tieout.executor.sql.orders_proof import only_orders_added
from tieout.executor.sql.range_cuts import CLAMPED, only_moved
from tieout.executor.sql.shape import Json, Node

ORDERS_ADDED = frozenset({"total_order", "ordered_limit", "ordered_window", "ordered_aggregate"})


def same_but_for(before: Node, after: Node, sql: str, edits: Sequence[Edit]) -> bool:
    """Whether the tree after is the tree before and the edits. sql: the text before."""
    if edits and all(edit.rewrite == CLAMPED for edit in edits):
        return only_moved(before, after, sql, edits)
    if edits and all(edit.rewrite in ORDERS_ADDED for edit in edits):
        return only_orders_added(before, after, sql, edits)
    return bare(undone(after, sql, edits)) == bare(before)


def bare(node: Json) -> Json:
    """A copy without places in the text."""
    if isinstance(node, dict):
        return {k: bare(v) for k, v in node.items() if not k.startswith("query_location")}
    return [bare(v) for v in node] if isinstance(node, list) else node
