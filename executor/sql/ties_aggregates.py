"""Aggregates that depend on the order of rows: ORDER BY inside the call, by its arguments.

Rows that agree in all arguments are interchangeable to one aggregate, so that an order by them
leaves nothing open; what several calls of a block need together is said in ties_rows.py. Measured
on the engine: among rows that tie in y, arg_max(x, y ORDER BY ...) keeps the first in that order,
as first, any_value and mode do; last keeps the last.
"""

from __future__ import annotations

from tieout.executor.sql import functions
from tieout.executor.sql.edits import Edit
from tieout.executor.sql.keys import Block
from tieout.executor.sql.literals import same
from tieout.executor.sql.needs import Need
from tieout.executor.sql.orders_places import Places
from tieout.executor.sql.orders_texts import Ordering
from tieout.executor.sql.shape import Node, arguments, as_node, column_refs, names, nodes, word
from tieout.executor.sql.ties_blocks import covered, own_parts
from tieout.executor.sql.vocabulary import ORDERED_GROUPS

ORDERED_AGGREGATE = "ordered_aggregate"
LISTS = frozenset({"list", "array_agg", "string_agg", "group_concat", "listagg"})
"""Give back a value of each row."""
_KEEPS_ORDER = LISTS | {"first", "last"}
"""Give back the order of rows, so that an order of the query below is meant for them."""
INNER_ORDER = (
    "Put the ORDER BY of the inner query inside the call, or inside OVER (...): a query around it "
    "does not keep it."
)
_OUTSIDE = "Write the call in the query whose rows it is over, outside the subquery."
_SUMS = frozenset({"float_accumulating", "sum_family"})
_EXACT = ("DECIMAL", "INT", "HUGEINT")


def depends_on_order(name: str) -> bool:
    """Whether a function depends on the order in which rows arrive.

    The list_ macros walk a list, which has an order of its own.
    """
    entries = functions.of_name(name, table=False)
    walks_list = all(e.kind == "macro" for e in entries) and name.lower().startswith("list_")
    return bool({e.group for e in entries} & ORDERED_GROUPS) and not walks_list


def orders_of(node: Node) -> list[Node]:
    """The expressions of the ORDER BY inside a FUNCTION node."""
    orders = as_node(node.get("order_bys") or {}).get("orders")
    return [as_node(o["expression"]) for o in nodes(orders)]


def is_open(node: Node, block: Block, groups: list[Node] | None) -> bool:
    """Whether rows that tie in the ORDER BY of a FUNCTION node, if any, can change its value."""
    name, given, orders = word(node, "function_name").lower(), arguments(node), orders_of(node)
    ordered_sum = bool(orders) and bool(functions.groups(name) & _SUMS)
    if not depends_on_order(name) and not (ordered_sum and not _exact(given, block)):
        return False
    if is_outside(node, block):
        return not covered(given, orders, block, grouped=False)
    together = [*orders, *(groups or ())]
    settled = covered(given, together, block, grouped=False)
    return not settled and not block.total(block.plain(together))


def aggregate_need(
    places: Places, node: Node, block: Block, groups: list[Node] | None
) -> Need | None:
    """What a FUNCTION node needs to be a function of the rows; None when nothing."""
    if not is_open(node, block, groups):
        return None
    if is_outside(node, block):
        name = word(node, "function_name").lower()
        message = f"{name} in a subquery is over the rows of the query around it"
        code, where = "unordered_aggregate", places.offset(node)
        return Need(code, "sql.unordered_aggregate", message, where, remedy=_OUTSIDE)
    return need_of(places, node, block, by_arguments(places, node))


def need_of(
    places: Places, node: Node, block: Block, order: Ordering | None, remedy: str = ""
) -> Need:
    """The need of an open call. order: what continues its ORDER BY; None, or no texts: refuse."""
    name, orders = word(node, "function_name").lower(), orders_of(node)
    reason = "aggregate_ties" if orders else "unordered_aggregate"
    verb = "depends on the order of rows"
    message = f"{name} {verb}, and its ORDER BY can leave ties" if orders else f"{name} {verb}"
    where, code = places.offset(node), "sql.unordered_aggregate"
    if block.ordered and not orders and name in _KEEPS_ORDER:
        return Need(reason, code, message, where, remedy=INNER_ORDER)
    return Need(reason, code, message, where, _put(places, node, order), remedy)


def _exact(given: list[Node], block: Block) -> bool:
    """Whether all arguments are columns of exact numbers, whose sum has no order."""
    kinds = []
    for argument in given:
        column = block.resolve(names(argument)) if names(argument) else None
        kinds.append(block.kind(column).upper() if column is not None else "")
    return all(any(kind.startswith(n) or n in kind for n in _EXACT) for kind in kinds)


def is_outside(node: Node, block: Block) -> bool:
    """Whether a call names columns, but none of its own block.

    The engine takes it for an aggregate over the rows of a query around it (measured).
    """
    parts = list(own_parts(node))
    stars = [word(p, "relation_name").lower() for p in parts if word(p, "class") == "STAR"]
    if stars:
        aliases = {relation.alias.lower() for relation in block.relations}
        return not any(star in aliases or (not star and aliases) for star in stars)
    refs = [names(part) for part in parts if word(part, "class") == "COLUMN_REF"]
    lambdas = [p for part in parts if word(part, "class") == "LAMBDA" for p in column_refs(part)]
    bound = {names_[0].lower() for names_ in lambdas if len(names_) == 1}
    free = [r for r in refs if not (len(r) == 1 and r[0].lower() in bound)]
    return bool(free) and not any(_own(r, block, frozenset()) for r in free)


def _own(parts: list[str], block: Block, passed: frozenset[str]) -> bool:
    """Whether a reference can be to a column of FROM, by itself or by what an alias stands for."""
    first = parts[0].lower()
    for relation in block.relations:
        if relation.columns is None or first in relation.columns:
            return True
        if relation.alias.lower() == first:
            return True
    alias = block.aliases.get(first)
    if alias is None or first in passed:
        return False
    return any(_own(inner, block, passed | {first}) for inner in column_refs(alias))


def own_texts(places: Places, node: Node) -> list[tuple[Node, str]] | None:
    """The arguments that are no constants, each with its text; None where it is no plain call."""
    given, call = arguments(node), places.call(node)
    if call is None or len(call.arguments) != len(given):
        return None
    pairs = zip(given, call.arguments, strict=True)
    return [(a, text) for a, text in pairs if word(a, "class") != "CONSTANT"]


def by_arguments(places: Places, node: Node) -> Ordering | None:
    """The arguments that the order inside the call does not name yet."""
    found, orders = own_texts(places, node), orders_of(node)
    if found is None:
        return None
    return Ordering(tuple(t for a, t in found if not any(same(a, o) for o in orders)))


def _put(places: Places, node: Node, order: Ordering | None) -> tuple[Edit, ...]:
    """ORDER BY inside the call, or after the order that is there."""
    call = places.call(node)
    if call is None or order is None or not order.texts or bool(orders_of(node)) != call.ordered:
        return ()
    return (order.put(call.at, ORDERED_AGGREGATE, after=call.ordered),)
