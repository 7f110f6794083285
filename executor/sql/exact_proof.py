"""Taking exact arithmetic out of a tree again, so that the proof can compare the rest."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from tieout.executor.sql.edits import Edit, apply, in_order
from tieout.executor.sql.exact_places import place
from tieout.executor.sql.shape import Node, arguments, as_node, walk, word

EXACT_AVERAGE = "exact_average"
EXACT_DIVISION = "exact_division"
ORDERED_SUM = "ordered_sum"
EXACT = frozenset({EXACT_AVERAGE, EXACT_DIVISION, ORDERED_SUM})
MADE_EXACT = frozenset({"/", "avg", "mean"})
"""What an exact call may stand in the place of."""


def undone(after: Node, sql: str, edits: Sequence[Edit]) -> Node:
    """A tree without exact averages, exact quotients and ordered sums. sql: the text before.

    Only calls at the places of the edits are changed back, and only when they have the very parts
    that the edits put in; any other tree stays, and the proof then fails.
    """
    ours = [e for e in edits if e.rewrite in EXACT]
    if not ours:
        return after
    tree: Node = copy.deepcopy(after)
    calls = [(p, n) for n in walk(tree) if word(n, "function_name") and (p := place(n))]
    starting: dict[int, list[Node]] = {}
    for found, node in calls:
        starting.setdefault(found[0], []).append(node)
    changed, shift = apply(sql, edits), 0
    plain = changed.isascii()
    for edit in in_order(edits):
        start = edit.start + shift
        start = start if plain else len(changed[:start].encode())
        shift += len(edit.text) - (edit.end - edit.start)
        if edit not in ours:
            continue
        if edit.rewrite == ORDERED_SUM:
            holding = [(p[1], n) for p, n in calls if p[0] < start < p[0] + p[1] and "class" in n]
            for _length, node in sorted(holding, key=lambda held: held[0])[:1]:
                _without_order(node)
        for node in starting.get(start, ()):
            if edit.text.partition("(")[0] == word(node, "function_name"):
                _inexact(node, sql[edit.start : edit.end])
    return tree


def _without_order(node: Node) -> None:
    if "arg_orders" in node:
        node["arg_orders"] = []
    else:
        as_node(node["order_bys"])["orders"] = []


def _inexact(node: Node, named: str) -> None:
    """The call that the text had in this place: / for a quotient, its own name for an average."""
    casts = [as_node(a) for a in arguments(node)[: 2 if not named else 1]]
    if not all(word(c, "class") == "CAST" and not c.get("try_cast") for c in casts):
        return
    name = named.strip('"').lower() or "/"
    if name not in MADE_EXACT:
        return
    node["function_name"] = name
    node["qualified_name"] = {"path": [name]}
    node["arguments"] = [{"name": "", "expression": cast["child"]} for cast in casts]
    if not named:
        node["is_operator"] = True
