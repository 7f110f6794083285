"""Values that compare equal and are not alike: 0.0 and -0.0, 30 days and a month.

What groups, compares or puts in order keeps either, as the rows come. That makes no difference
where they are only compared, added up or stored (-0.0 is stored as 0.0); it does where they are
shown as a text or divided by, or a span is added to a date. So a query is refused in whose bound
plan such a use stands over such a choice, unless the two are seen to reach other columns.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator

from tieout.executor.sql import functions
from tieout.executor.sql.needs import Need
from tieout.executor.sql.plan_columns import Reach, reached
from tieout.executor.sql.reading import Reading
from tieout.executor.sql.shape import Json, Node, as_node, children, location, nodes, walk, word
from tieout.executor.sql.vocabulary import ORDERED_GROUPS

_FLOATS = frozenset({"FLOAT", "DOUBLE"})
_SPANS = frozenset({"INTERVAL"})
_NUMBERS = frozenset(
    {
        *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT"),
        *("UINTEGER", "UBIGINT", "UHUGEINT", "DECIMAL", "BOOLEAN", "FLOAT", "DOUBLE"),
        *("TIMESTAMP", "DATE", "TIME"),
    }
)
"""Types in which the two zeros are one, or that are no other than a float's own."""
TELLS_ZEROS = frozenset(
    {"signbit", "atan2", "cot", "gamma", "pow", "power", "^", "**", "format", "printf"}
)
"""Functions that give 0.0 and -0.0 different values, beside texts of them and divisions by them;
found by trying all that are admitted."""
DIVIDES = frozenset({"/", "fdiv"})
_SUMS = frozenset({"float_accumulating", "sum_family", "exact_decimal"})
_PICKS = frozenset({"median", "quantile", "quantile_cont", "mad"})
_COUNTS = frozenset({"count", "count_star", "count_if", "countif", "regr_count", "bool_and"})
_DISTINCT = frozenset({"LOGICAL_EXCEPT", "LOGICAL_INTERSECT", "LOGICAL_RECURSIVE_CTE"})
_ORDERS = frozenset({"LOGICAL_ORDER_BY", "LOGICAL_TOP_N"})
_CUTS = frozenset({"LOGICAL_LIMIT", "LOGICAL_TOP_N"})
_OVER_ROWS = frozenset({"BOUND_AGGREGATE", "BOUND_WINDOW"})


def needs(reading: Reading) -> tuple[Need, ...]:
    """A refusal where one of several equal values is kept, and it shows which."""
    for kinds, what in ((_FLOATS, "0.0 and -0.0"), (_SPANS, "30 days and 1 month")):
        if not _holds(reading.plan, kinds):
            continue
        use = next(_shown(reading.plan, kinds, kept=_shared(reading.plan, kinds)), None)
        if use is not None and not _apart(reading.plan, kinds):
            at = location(use)
            message = f"equal values that are not alike, such as {what}, are chosen between"
            place = None if at is None or at >= len(reading.text.sql.encode()) else at
            offset = None if place is None else reading.text.from_bytes(place)
            return (Need("equal_values", "sql.equal_values", message, offset),)
    return ()


def _apart(plan: Node, kinds: frozenset[str]) -> bool:
    """Whether the choices, and what tells equal values apart, are seen to reach other columns."""
    kept = [choice for node in walk(plan) for choice in _choices(node, kinds)]
    if not all("expression_class" in choice for choice in kept):
        return False
    chosen, used = {id(c) for c in kept}, {id(n) for n in walk(plan) if _tells(n, kinds)}
    one, other = _reached(plan, chosen), _reached(plan, used)
    return one is not None and other is not None and not any(map(operator.and_, one, other))


def _reached(plan: Node, ids: set[int]) -> tuple[bool, ...] | None:
    """The result columns that some expressions, by their ids, reach."""
    return reached(plan, Reach(_no_table, lambda node: id(node) in ids, conditions=True))


def _no_table(_table: str, _column: str) -> bool:
    return False


def _shared(plan: Node, kinds: frozenset[str]) -> bool:
    """Whether a query of WITH, which its references do not hold, keeps one of equal values."""
    return any(
        any(_choices(node, kinds))
        for common in walk(plan)
        if word(common, "type") == "LOGICAL_MATERIALIZED_CTE"
        for node in walk(nodes(common.get("children"))[0])
    )


def _shown(node: Json, kinds: frozenset[str], *, kept: bool) -> Iterator[Node]:
    """Uses that tell equal values apart, each over, or in, a choice between them."""
    if isinstance(node, dict) and word(node, "type").startswith("LOGICAL_"):
        parts = {key: value for key, value in node.items() if key != "children"}
        uses = [n for n in walk(parts) if _tells(n, kinds)]
        if uses and (kept or any(any(_choices(n, kinds)) for n in walk(node))):
            yield uses[0]
    for child in children(node):
        yield from _shown(child, kinds, kept=kept)


def _tells(node: Node, kinds: frozenset[str]) -> bool:
    """Whether an expression may differ for equal values of some types."""
    if word(node, "expression_class") != "BOUND_FUNCTION":
        return False
    name, given = _name(node), nodes(node.get("children"))
    holding = [part for part in given if _type(part, kinds)]
    if not holding or name.startswith("COMPARE"):
        return False
    if kinds is _SPANS:
        return not word(node, "type").startswith("COMPARE") and not _type(node, kinds)
    if name == "__cast":
        kept = set(_ids(given[0].get("return_type"))) & kinds
        found = set(_ids(node.get("return_type")))
        return not found <= _NUMBERS and not (kept & found and not found - kept - _NUMBERS)
    if name in DIVIDES:
        return len(given) == 2 and _type(given[1], kinds) and not _no_zero(given[1])
    return name in TELLS_ZEROS


def _no_zero(node: Node) -> bool:
    """Whether a divisor is never a zero with a sign: a whole number, a literal, nullif(x, 0)."""
    if word(node, "expression_class") == "BOUND_CONSTANT":
        return True
    if _name(node) == "__cast":
        return all(not _type(p, _FLOATS) or _no_zero(p) for p in nodes(node.get("children")))
    checks = nodes(node.get("case_checks"))
    if len(checks) != 1:
        return False
    compared = as_node(checks[0]["when_expr"])
    sides = nodes(compared.get("children"))
    zero = len(sides) == 2 and any(
        as_node(n.get("value") or {}).get("value") in (0, 0.0, "0") for n in walk(sides[1])
    )
    return zero and word(compared, "type") == "COMPARE_EQUAL" and node.get("else_expr") == sides[0]


def _choices(node: Node, kinds: frozenset[str]) -> list[Node]:
    """The expressions by which an operator or a call keeps one of several equal values.

    An operator that has none is its own.
    """
    kind = word(node, "type")
    if kind == "LOGICAL_AGGREGATE_AND_GROUP_BY":
        return [group for group in nodes(node.get("groups")) if _type(group, kinds)]
    if kind == "LOGICAL_DISTINCT":
        return [t for t in nodes(node.get("distinct_targets")) if _type(t, kinds)]
    if kind in _DISTINCT:
        return [node] if _holds(node.get("children"), kinds) else []
    if kind in _CUTS:
        orders = [by for n in walk(node) if word(n, "type") in _ORDERS for by in _orders(n)]
        return [by for by in orders if _type(by, kinds)]
    if word(node, "expression_class") not in _OVER_ROWS:
        return []
    name = _name(node)
    by = [*_orders(node), *_orders(as_node(node.get("order_bys") or {}))]
    by += nodes(node.get("partitions"))
    own = nodes(node.get("children")) if _picks(name) else []
    sums = word(node, "expression_class") == "BOUND_AGGREGATE" and not _depends(name)
    return [node] if any(_type(part, kinds) for part in (own if sums else [*own, *by])) else []


def _orders(node: Node) -> list[Node]:
    """The expressions of an ORDER BY of an operator or a call."""
    listed = [*nodes(node.get("orders")), *nodes(node.get("arg_orders"))]
    return [as_node(order["expression"]) for order in listed]


def _depends(name: str) -> bool:
    """Whether a function gives back a row, or rows, by their order."""
    return bool(functions.groups(name) & ORDERED_GROUPS)


def _picks(name: str) -> bool:
    """Whether a function gives back one of several equal values that it was given.

    Which row is taken by an order is said by the order; what moves or ranks rows takes one too.
    """
    if name in _PICKS:
        return True
    known = functions.of_name(name, table=False)
    taken = _depends(name) or not any(entry.kind == "aggregate" for entry in known)
    return not (taken or functions.groups(name) & _SUMS or name in _COUNTS)


def _name(node: Node) -> str:
    path = as_node(node.get("qname") or {}).get("path")
    return str(path[-1]) if isinstance(path, list) and path else ""


def _type(node: Node, kinds: frozenset[str]) -> bool:
    """Whether the type of an expression is, or holds, one of some types."""
    return any(name in kinds for name in _ids(node.get("return_type")))


def _ids(kind: Json) -> Iterator[str]:
    """The names of a type and of all types inside it."""
    for part in walk(kind):
        if "id" in part:
            yield word(part, "id")


def _holds(node: Json, kinds: frozenset[str]) -> bool:
    """Whether a type of some names stands anywhere below."""
    return any(word(part, "id") in kinds for part in walk(node))
