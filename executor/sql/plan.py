"""The third gate: the bound plan, in which every name is resolved and every type is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tieout.executor.sql import functions
from tieout.executor.sql.plan_columns import Reach, reached
from tieout.executor.sql.refusal import Text
from tieout.executor.sql.shape import Json, Node, as_node, children, location, nodes, word

OPERATORS = frozenset(
    {
        *("LOGICAL_PROJECTION", "LOGICAL_FILTER", "LOGICAL_AGGREGATE_AND_GROUP_BY"),
        *("LOGICAL_WINDOW", "LOGICAL_UNNEST", "LOGICAL_LIMIT", "LOGICAL_ORDER_BY"),
        *("LOGICAL_TOP_N", "LOGICAL_DISTINCT", "LOGICAL_GET", "LOGICAL_CHUNK_GET"),
        *("LOGICAL_DELIM_GET", "LOGICAL_EXPRESSION_GET", "LOGICAL_DUMMY_SCAN"),
        *("LOGICAL_EMPTY_RESULT", "LOGICAL_CTE_REF", "LOGICAL_JOIN", "LOGICAL_DELIM_JOIN"),
        *("LOGICAL_COMPARISON_JOIN", "LOGICAL_ANY_JOIN", "LOGICAL_CROSS_PRODUCT"),
        *("LOGICAL_ASOF_JOIN", "LOGICAL_DEPENDENT_JOIN", "LOGICAL_UNION", "LOGICAL_EXCEPT"),
        *("LOGICAL_INTERSECT", "LOGICAL_RECURSIVE_CTE", "LOGICAL_MATERIALIZED_CTE"),
        *("LOGICAL_PIVOT", "LOGICAL_UNPIVOT"),
    }
)
EXPRESSIONS = frozenset(
    {
        *("BOUND_REF", "BOUND_COLUMN_REF", "BOUND_CONSTANT", "BOUND_FUNCTION"),
        *("BOUND_AGGREGATE", "BOUND_WINDOW", "BOUND_CASE", "BOUND_CAST", "BOUND_COMPARISON"),
        *("BOUND_CONJUNCTION", "BOUND_OPERATOR", "BOUND_BETWEEN", "BOUND_UNNEST"),
        *("BOUND_LAMBDA", "BOUND_LAMBDA_REF", "BOUND_SUBQUERY", "BOUND_PARAMETER"),
    }
)
SCANS = frozenset({"seq_scan", "range", "generate_series", "unnest"})
WRITTEN_OUT = frozenset({"__cast", "__between", "error", "unnest"})
"""Functions that the binder itself puts in: casts, and the guard of a scalar subquery."""

NESTED = frozenset({"ARRAY", "LIST", "MAP", "STRUCT", "UNION", "VARIANT"})
FLOATS = frozenset({"FLOAT", "DOUBLE"})
FLOAT_GROUPS = frozenset({"float_accumulating", "sum_family"})
ORDER_STATISTICS = frozenset({"mad", "median", "quantile", "quantile_cont"})
CONDITIONS = frozenset(
    {"LOGICAL_FILTER", "LOGICAL_COMPARISON_JOIN", "LOGICAL_ANY_JOIN", "LOGICAL_DELIM_JOIN"}
)


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """tables: granted tables it reads (lower case); inexact: whether a value passes through a
    float, of each result column or, where the plan could not be followed, of all of them."""

    tables: frozenset[str]
    inexact: bool | tuple[bool, ...]


def check_plan(text: Text, plan: Node, *, granted: frozenset[str]) -> PlanFacts:
    """Every operator, table, function and type of the bound plan.

    Raises SqlRefused: sql.construct, sql.unknown_table, sql.function and its kin.
    """
    tables: set[str] = set()
    inexact = False
    for node, value in _walk(plan, value=True):
        kind = node.get("type")
        if isinstance(kind, str) and kind.startswith("LOGICAL_"):
            if kind not in OPERATORS:
                raise text.refuse("sql.construct", f"the plan needs {kind.lower()}")
            if kind == "LOGICAL_GET":
                tables |= _scan(text, node, granted)
        elif "expression_class" in node:
            _expression(text, node)
            inexact = inexact or (value and _is_float(node.get("return_type")))
    return PlanFacts(tables=frozenset(tables), inexact=inexact and _inexact(plan))


def _inexact(plan: Node) -> bool | tuple[bool, ...]:
    """The columns on whose way a float stands; all where that is not known."""
    floats = Reach(
        table=lambda _table, _column: False,
        expression=lambda node: _is_float(node.get("return_type")),
        conditions=False,
    )
    found = reached(plan, floats)
    return True if found is None else found


def _walk(node: Json, *, value: bool) -> Iterator[tuple[Node, bool]]:
    """All objects below, each with whether it is on the way of a value (not of a condition)."""
    open_ = [(node, value)]
    while open_:  # a stack: a generator in a generator costs for each level above
        here, value = open_.pop()
        if isinstance(here, dict):
            yield here, value
            kind = word(here, "type")
            condition, scan = kind in CONDITIONS, kind == "LOGICAL_GET"
            open_ += [
                (
                    child,
                    value
                    and not (condition and key in ("expressions", "conditions"))
                    and not (scan and key != "children"),
                )
                for key, child in reversed(here.items())
                if isinstance(child, dict | list)
            ]
        elif isinstance(here, list):
            open_ += [(child, value) for child in reversed(here) if isinstance(child, dict | list)]


def _is_float(kind: Json) -> bool:
    """Whether a type is, or holds, a binary floating point number."""
    if isinstance(kind, dict):
        return kind.get("id") in FLOATS or any(_is_float(v) for v in kind.values())
    return any(_is_float(v) for v in children(kind))


def _path(node: Node) -> list[str]:
    path = as_node(node.get("qname") or {}).get("path")
    return [str(p) for p in path] if isinstance(path, list) else []


def _scan(text: Text, node: Node, granted: frozenset[str]) -> set[str]:
    path = _path(node)
    name = path[-1] if path else ""
    if name not in SCANS:
        code = functions.code_of(name, table=True)
        raise text.refuse(code, f"the plan reads through {name}", word=name)
    if name != "seq_scan":
        return set()
    source = as_node(as_node(node.get("function_data") or {}).get("qualified_name") or {}).get(
        "path"
    )
    parts = [str(p) for p in source] if isinstance(source, list) else []
    if len(parts) != 3 or parts[1] != "main" or parts[2].lower() not in granted:
        raise text.refuse("sql.unknown_table", "the plan reads a table that was not granted")
    return {parts[2].lower()}


def _expression(text: Text, node: Node) -> None:
    kind = word(node, "expression_class")
    if kind not in EXPRESSIONS:
        raise text.refuse("sql.construct", f"the plan needs {kind.lower()}")
    path = _path(node)
    if not path:
        return
    name = path[-1]
    if name == "__cast":
        _flattens(text, node)
    if len(path) not in (1, 3) or (len(path) == 3 and path[:2] != ["system", "main"]):
        raise text.refuse("sql.function", f"the function {name} is not the engine's own", word=name)
    if name not in WRITTEN_OUT and not functions.is_open(name) and name.isidentifier():
        code = functions.code_of(name, table=False)
        raise text.refuse(code, f"the function {name} is not admitted", word=name)


def _flattens(text: Text, node: Node) -> None:
    """A list, map or struct as a text: brackets, names of fields and all, that no source holds."""
    target = _nested(node.get("return_type"))
    for child in nodes(node.get("children")):
        lost = _nested(child.get("return_type")) - target
        if lost:
            kind = min(lost).lower()
            message = f"a {kind} cannot be turned into a text"
            remedy = f"Take the values out of the {kind} first, by its elements."
            place = location(node)
            raise text.refuse("sql.type", message, location=place, remedy=remedy)


def _nested(kind: Json) -> Counter[str]:
    """How often each kind of nesting stands in a type."""
    found: Counter[str] = Counter()
    if isinstance(kind, dict) and kind.get("id") in NESTED:
        found[str(kind["id"])] += 1
    for value in children(kind):
        found += _nested(value)
    return found


def accumulations(plan: Node) -> tuple[Node, ...]:
    """Bound calls that add up floats, whose sum depends on an order of rows that is not given.

    Order statistics and their interpolations are no sums.
    """
    return tuple(
        node
        for node, _value in _walk(plan, value=True)
        if word(node, "expression_class") in ("BOUND_AGGREGATE", "BOUND_WINDOW")
        and functions.groups((_path(node) or [""])[-1]) & FLOAT_GROUPS
        and (_path(node) or [""])[-1] not in ORDER_STATISTICS
        and _is_float(node.get("arguments"))
        and not nodes(as_node(node.get("order_bys") or {}).get("orders"))
        and not nodes(node.get("arg_orders"))
    )
