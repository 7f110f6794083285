"""Which literals and columns may flow into the value of one expression of the engine's tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from tieout.executor.sql import functions
from tieout.executor.sql.flow import (
    EVERY_ROW,
    NOTHING,
    Flow,
    Literal,
    NotUnderstoodError,
    Relation,
    Scope,
    joined,
)
from tieout.executor.sql.refusal import NO_LOCATION
from tieout.executor.sql.shape import (
    Json,
    Node,
    arguments,
    as_node,
    children,
    column_refs,
    location,
    names,
    nodes,
    word,
)

PARAMETERS: dict[str, int] = {
    **dict.fromkeys(["round", "round_even", "roundbankers", "trunc"], 1),
    "decimal_division": 2,
    **dict.fromkeys(["date_trunc", "datetrunc", "date_part", "datepart"], 0),
    **dict.fromkeys(["date_diff", "datediff", "date_sub", "datesub"], 0),
}
"""Arguments, counted from 0, that steer precision or name a part of a date and are no value."""

OPERATIONS = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "//": "divide",
    "%": "remainder",
    "||": "concat",
    "count_star": "count",
}


class Queries(Protocol):
    """What an expression needs of the tracer around it."""

    conditions_count: bool

    def relation(self, node: Node, outer: Scope | None, *, nested: bool) -> Relation:
        """The relation of a query node."""
        ...


def literal_of(node: Node) -> Literal | None:
    """A constant's literal; NULL is none."""
    literal = as_node(node.get("literal") or {})
    if literal.get("kind") == "NULL_LITERAL":
        return None
    place = location(node)
    return (-1 if place in (None, NO_LOCATION) else int(place or 0), str(literal.get("text", "")))


def all_literals(node: Json) -> Iterator[Literal]:
    """Every literal below a node, those of types (precision, scale) left out."""
    if isinstance(node, dict):
        if node.get("class") == "TYPE":
            return
        if node.get("class") == "CONSTANT":
            found = literal_of(node)
            if found is not None:
                yield found
            return
    for child in children(node):
        yield from all_literals(child)


class Expressions:
    """Flow of expressions; a class of expression that is not known is NotUnderstoodError."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries

    def flow(self, node: Node, scope: Scope) -> Flow:
        """What may flow into the value of a node."""
        kind = word(node, "class")
        if kind == "COLUMN_REF":
            return scope.find(names(node))
        if kind == "CONSTANT":
            found = literal_of(node)
            return Flow(frozenset({found}) if found else frozenset(), operation="literal")
        if kind == "FUNCTION":
            return self._function(node, scope)
        if kind == "WINDOW":
            return self._window(node, scope)
        if kind == "CASE":
            return self._case(node, scope)
        if kind == "CAST":
            inner = self.flow(as_node(node["child"]), scope)
            return joined([inner], inner.operation or "cast")
        if kind == "SUBQUERY":
            return self._subquery(node, scope)
        return joined([self.flow(part, scope) for part in self._parts(node, kind)])

    def _parts(self, node: Node, kind: str) -> list[Node]:
        if kind == "COMPARISON":
            return [as_node(node["left"]), as_node(node["right"])]
        if kind == "BETWEEN":
            return [as_node(node[k]) for k in ("input", "lower", "upper")]
        if kind in ("CONJUNCTION", "OPERATOR"):
            return nodes(node.get("children"))
        raise NotUnderstoodError(kind)

    def condition(self, node: Node, scope: Scope) -> Flow:
        """A condition on a column leaves no literal; a constant one does."""
        if word(node, "class") == "CONJUNCTION" or word(node, "type") == "OPERATOR_NOT":
            return joined([self.condition(part, scope) for part in nodes(node.get("children"))])
        if self.queries.conditions_count or next(column_refs(node), None) is None:
            return Flow(frozenset(all_literals(node)))
        return NOTHING

    def _function(self, node: Node, scope: Scope) -> Flow:
        name = word(node, "function_name").lower()
        given = arguments(node)
        steering = PARAMETERS.get(name)
        flows: list[Flow] = []
        bound = frozenset(x for a in given if a.get("class") == "LAMBDA" for x in _lambda_names(a))
        for place, argument in enumerate(given):
            if argument.get("class") == "STAR":
                flows.append(scope.rows())
            elif argument.get("class") == "LAMBDA":
                inner = Scope(relations=[], outer=scope, locals=bound)
                flows.append(self.flow(as_node(argument["expr"]), inner))
            elif place == steering and argument.get("class") == "CONSTANT":
                continue
            elif name == "nullif" and place == 1 and next(column_refs(given[0]), None):
                flows.append(self.condition(argument, scope) if _has_refs(argument) else NOTHING)
            else:
                flows.append(self.flow(argument, scope))
        if name in ("if", "iff") and len(given) == 3:
            flows[0] = self.condition(given[0], scope)
        if node.get("filter"):
            flows.append(self.condition(as_node(node["filter"]), scope))
        if not given and not _aggregates(name):  # pi() is a constant without a literal
            flows.append(Flow(frozenset({(location(node) or 0, f"{name}()")})))
        if _aggregates(name):
            flows.append(_rows_of(scope, bare=not given))
        return joined(flows, OPERATIONS.get(name, name if name.isidentifier() else "expression"))

    def _window(self, node: Node, scope: Scope) -> Flow:
        name = word(node, "function_name").lower()
        given = [a for a in arguments(node) if a.get("class") != "STAR"]
        flows = [self.flow(a, scope) for a in given]
        extra = [node.get(k) for k in ("offset_expr", "default_expr", "start_expr", "end_expr")]
        flows += [self.flow(as_node(e), scope) for e in extra if e]
        if node.get("filter_expr"):
            flows.append(self.condition(as_node(node["filter_expr"]), scope))
        flows.append(_rows_of(scope, bare=not given))
        return joined(flows, OPERATIONS.get(name, name))

    def _case(self, node: Node, scope: Scope) -> Flow:
        flows: list[Flow] = []
        for check in nodes(node.get("case_checks")):
            flows.append(self.condition(as_node(check["when_expr"]), scope))
            flows.append(self.flow(as_node(check["then_expr"]), scope))
        if node.get("else_expr"):
            flows.append(self.flow(as_node(node["else_expr"]), scope))
        return joined(flows)

    def _subquery(self, node: Node, scope: Scope) -> Flow:
        query = as_node(as_node(node["subquery"])["node"])
        scalar = word(node, "subquery_type") == "SCALAR"
        relation = self.queries.relation(query, scope, nested=True)
        if scalar and len(relation.columns) == 1:
            flow = relation.columns[0][1]
            return joined([flow], flow.operation or "expression")
        flows = [relation.whole()]
        if node.get("child"):
            flows.append(self.flow(as_node(node["child"]), scope))
        return joined(flows)


def _aggregates(name: str) -> bool:
    return any(entry.kind == "aggregate" for entry in functions.of_name(name, table=False))


def _rows_of(scope: Scope, *, bare: bool) -> Flow:
    """The number of rows: its literals always, its tables only for a call without arguments."""
    rows = scope.rows()
    return rows if bare else Flow(rows.literals)


def base_rows(table: str) -> Flow:
    """The number of rows of a granted table."""
    return Flow(sources=frozenset({(table, EVERY_ROW)}))


def _has_refs(node: Node) -> bool:
    return next(column_refs(node), None) is not None


def _lambda_names(node: Node) -> Iterator[str]:
    for parts in column_refs(node.get("lhs")):
        yield parts[-1].lower()
