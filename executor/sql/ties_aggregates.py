"""Aggregates that keep one row, or the order of rows: ORDER BY inside the call, by its arguments.

Rows that agree in all arguments are interchangeable to the aggregate, so that an order by them
leaves nothing open. Measured on the engine: among rows that tie in y, arg_max(x, y ORDER BY ...)
keeps the first in that order, as first, any_value and mode do; last keeps the last.
"""

from __future__ import annotations

from tieout.executor.sql import functions
from tieout.executor.sql.edits import Edit
from tieout.executor.sql.keys import Block
from tieout.executor.sql.literals import same
from tieout.executor.sql.needs import Need
from tieout.executor.sql.orders_places import Places
from tieout.executor.sql.orders_texts import Ordering
from tieout.executor.sql.shape import Node, arguments, as_node, names, nodes, word
from tieout.executor.sql.ties_blocks import covered
from tieout.executor.sql.vocabulary import ORDERED_GROUPS

ORDERED_AGGREGATE = "ordered_aggregate"
_KEEPS_ORDER = frozenset({"first", "last", "list", "array_agg"})
_KEEPS_ORDER |= {"string_agg", "group_concat", "listagg"}
"""Give back the order of rows, so that an order of the query below is meant for them."""
INNER_ORDER = (
    "Put the ORDER BY of the inner query inside the call, or inside OVER (...): a query around it "
    "does not keep it."
)
_SUMS = frozenset({"float_accumulating", "sum_family"})
_EXACT = ("DECIMAL", "INT", "HUGEINT")


def depends_on_order(name: str) -> bool:
    """Whether a function depends on the order in which rows arrive.

    The list_ macros walk a list, which has an order of its own.
    """
    entries = functions.of_name(name, table=False)
    walks_list = all(e.kind == "macro" for e in entries) and name.lower().startswith("list_")
    return bool({e.group for e in entries} & ORDERED_GROUPS) and not walks_list


def aggregate_need(
    places: Places, node: Node, block: Block, groups: list[Node] | None
) -> Need | None:
    """What a FUNCTION node needs to be a function of the rows; None when nothing."""
    name = word(node, "function_name").lower()
    given = arguments(node)
    orders = [
        as_node(o["expression"]) for o in nodes(as_node(node.get("order_bys") or {}).get("orders"))
    ]
    ordered_sum = bool(orders) and bool(functions.groups(name) & _SUMS)
    if not depends_on_order(name) and not (ordered_sum and not _exact(given, block)):
        return None
    together = [*orders, *(groups or ())]
    if covered(given, together, block, grouped=False) or block.total(block.plain(together)):
        return None
    reason = "aggregate_ties" if orders else "unordered_aggregate"
    verb = "depends on the order of rows"
    message = f"{name} {verb}, and its ORDER BY can leave ties" if orders else f"{name} {verb}"
    if block.ordered and not orders and name in _KEEPS_ORDER:
        where = places.offset(node)
        return Need(reason, "sql.unordered_aggregate", message, where, remedy=INNER_ORDER)
    edits = _by_arguments(places, node, orders)
    return Need(reason, "sql.unordered_aggregate", message, places.offset(node), edits)


def _exact(given: list[Node], block: Block) -> bool:
    """Whether all arguments are columns of exact numbers, whose sum has no order."""
    kinds = []
    for argument in given:
        column = block.resolve(names(argument)) if names(argument) else None
        kinds.append(block.kind(column).upper() if column is not None else "")
    return all(any(kind.startswith(n) or n in kind for n in _EXACT) for kind in kinds)


def _by_arguments(places: Places, node: Node, orders: list[Node]) -> tuple[Edit, ...]:
    """ORDER BY the arguments inside the call, or after the order that is there."""
    given = arguments(node)
    call = places.call(node)
    if call is None or len(call.arguments) != len(given) or bool(orders) != call.ordered:
        return ()
    texts = [
        text
        for argument, text in zip(given, call.arguments, strict=True)
        if word(argument, "class") != "CONSTANT" and not any(same(argument, o) for o in orders)
    ]
    if not texts:
        return ()
    return (Ordering(tuple(texts)).put(call.at, ORDERED_AGGREGATE, after=call.ordered),)
