"""Which literals and columns may flow into the value of one expression of the engine's tree."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Protocol

from tieout.executor.sql import functions
from tieout.executor.sql.conditions import NOTHING_CHOSEN, chosen
from tieout.executor.sql.effects import (
    ARITIES,
    BOOLEANS,
    COPIES,
    COUNTS_OF_TRUTH,
    FIXED,
    MEASURES,
    ONE_GIVEN,
    OPERATIONS,
    PARAMETERS,
    PART_FUNCTIONS,
    PARTS,
    ROW_VALUES,
    RULERS,
    SQUARES,
    TEXTS,
    TRANSPARENT,
    TRUTH_OPERATORS,
    TRUTHS,
    UNITS,
    UNTOUCHED_BY_COPIES,
    VALUE_AGGREGATES,
    WIDTHS,
)
from tieout.executor.sql.flow import (
    NONE,
    SETS,
    SHAPES,
    Choice,
    Flow,
    Literals,
    NotUnderstoodError,
    Relation,
    Scope,
    joined,
)
from tieout.executor.sql.literals import (
    all_literals,
    constants,
    glued,
    is_width,
    literal_of,
    marked,
    same,
    width,
)
from tieout.executor.sql.shape import Node, arguments, as_node, column_refs, names, nodes, word


class Queries(Protocol):
    """What an expression needs of the tracer around it."""

    conditions_count: bool

    def relation(self, node: Node, outer: Scope | None, *, nested: bool) -> Relation:
        """The relation of a query node."""
        ...


class Expressions:
    """Flow of expressions; a class of expression that is not known is NotUnderstoodError."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries

    def flow(self, node: Node, scope: Scope) -> Flow:
        """What may flow into the value of a node; a value out of nothing is a literal."""
        found = self._flow(node, scope)
        if found.null or found.literals or found.roots:
            return found
        return found.plus(marked(node, "constant"))

    def _flow(self, node: Node, scope: Scope) -> Flow:
        kind = word(node, "class")
        if kind == "COLUMN_REF":
            return scope.find(names(node))
        if kind == "CONSTANT":
            found = literal_of(node)
            truth = as_node(node.get("literal") or {}).get("kind") == "BOOLEAN"
            literals = frozenset({found}) if found else NONE
            return Flow(literals, operation="literal", truth=truth, null=found is None)
        if kind == "FUNCTION":
            return self._function(node, scope)
        if kind == "WINDOW":
            return self._window(node, scope)
        if kind == "CASE":
            return self._case(node, scope)
        if kind == "CAST":
            return self._cast(node, scope)
        if kind == "SUBQUERY":
            return self._subquery(node, scope)
        return self._operator(node, kind, scope)

    def _operator(self, node: Node, kind: str, scope: Scope) -> Flow:
        what = word(node, "type")
        found = joined([self.flow(part, scope) for part in parts_of(node, kind)])
        if kind in ("COMPARISON", "BETWEEN", "CONJUNCTION") or what in TRUTH_OPERATORS:
            return replace(found, truth=True)
        if what == "GROUPING_FUNCTION":
            return replace(found.plus(marked(node, "grouping")), generated=True)
        if what == "ARRAY_CONSTRUCTOR":
            return found.plus(marked(node, f"list of {len(parts_of(node, kind))}"))
        return found

    def _cast(self, node: Node, scope: Scope) -> Flow:
        """The parameters of the type, and the width of a text, wait until they are measured."""
        inner = self.flow(as_node(node["child"]), scope)
        target = as_node(node["type_expr"])
        found = replace(
            joined([inner], inner.operation or "cast"),
            null=inner.null,
            parameters=inner.parameters | constants(target),
        )
        name = word(target, "type_name").upper()
        if name in BOOLEANS:
            return replace(found, truth=True)
        if name in TEXTS:
            found = replace(_measured(found), parameters=found.parameters | width(node, name))
        return found

    def choice(self, node: Node, scope: Scope) -> Choice:
        """What WHERE, ON, HAVING or QUALIFY leaves; ON true keeps all rows and leaves nothing."""
        constant = next(column_refs(node), None) is None and not self.flow(node, scope).roots
        if constant and not self.queries.conditions_count:
            return NOTHING_CHOSEN
        return self.condition(node, scope)

    def condition(self, node: Node, scope: Scope) -> Choice:
        """What a condition leaves behind; see `Choice`."""
        if word(node, "class") == "CONJUNCTION" or word(node, "type") == "OPERATOR_NOT":
            found = NOTHING_CHOSEN
            for part in nodes(node.get("children")):
                found = found.and_(self.condition(part, scope))
            return found
        if self.queries.conditions_count:
            return Choice(frozenset(all_literals(node)))
        return chosen(node, self.flow(node, scope))

    def ordering(self, node: Node, scope: Scope) -> Choice:
        """What GROUP BY, PARTITION BY or an ORDER BY that chooses leaves behind.

        GROUP BY n <= 42 over a numbering makes the 42, as WHERE would; over a source it chooses.
        """
        if word(node, "class") in ("CONSTANT", "STAR"):
            return NOTHING_CHOSEN
        flow, found = self.flow(node, scope), frozenset(all_literals(node))
        if flow.generated:
            return Choice(found | flow.literals, flow.conditions)
        return Choice(conditions=found)

    def _function(self, node: Node, scope: Scope) -> Flow:
        name = word(node, "function_name").lower()
        given = arguments(node)
        flows = self._arguments(name, given, scope)
        choice = NOTHING_CHOSEN
        if name in ("if", "iff") and len(given) == 3:
            choice, flows[0] = self.condition(given[0], scope), Flow()
        if name in ("count_if", "countif") and given:
            choice, flows[0] = self.condition(given[0], scope), replace(flows[0], literals=NONE)
        if name == "nullif" and len(given) == 2:
            choice, flows[1] = self.condition(_equal(given), scope), Flow()
        if node.get("filter"):
            choice = choice.and_(self.condition(as_node(node["filter"]), scope))
        found = joined(flows, OPERATIONS.get(name, name if name.isidentifier() else "expression"))
        found = _affected(node, name, len(given), found)
        if aggregates(name):
            found = _aggregated(found, name, scope, choice, bare=not given)
        elif not given:  # pi() is a constant without a literal
            found = found.plus(marked(node, f"{name}()"))
        if name not in SQUARES and _repeated(given):
            found = found.plus(marked(node, "both sides the same"))
        return found.settled(choice)

    def _arguments(self, name: str, given: list[Node], scope: Scope) -> list[Flow]:
        steering = PARAMETERS.get(name)
        flows: list[Flow] = []
        for place, argument in enumerate(given):
            if argument.get("class") == "STAR":
                flows.append(scope.rows())
            elif argument.get("class") == "LAMBDA":
                flows.append(self._lambda(name, argument, joined(flows), scope))
            elif place == steering and _steers(name, argument):
                found = literal_of(argument)
                whole = word(as_node(argument["literal"]), "kind") == "INTEGER"
                flows.append(Flow(parameters=frozenset({found}) if found and whole else NONE))
            else:
                flows.append(self.flow(argument, scope))
        return flows

    def _lambda(self, name: str, node: Node, elements: Flow, scope: Scope) -> Flow:
        """The body, its parameters standing for the elements; a second one counts places."""
        bound = [parts[-1].lower() for parts in column_refs(node.get("lhs"))]
        value = replace(elements, generated=elements.generated or len(bound) > 1)
        inner = Scope(relations=[], outer=scope, locals=dict.fromkeys(bound, value))
        found = self.flow(as_node(node["expr"]), inner)
        return replace(found, truth=False) if name.endswith("filter") else found

    def _window(self, node: Node, scope: Scope) -> Flow:
        name = word(node, "function_name").lower()
        given = [a for a in arguments(node) if a.get("class") != "STAR"]
        flows = [self.flow(a, scope) for a in given]
        extra = [node.get(k) for k in ("offset_expr", "default_expr", "start_expr", "end_expr")]
        flows += [self.flow(as_node(e), scope) for e in extra if e]
        choice = NOTHING_CHOSEN
        orders = [as_node(o["expression"]) for o in nodes(node.get("orders"))]
        for part in nodes(node.get("partitions")) + orders:
            choice = choice.and_(self.ordering(part, scope))
        if node.get("filter_expr"):
            choice = choice.and_(self.condition(as_node(node["filter_expr"]), scope))
        found = _affected(node, name, len(given), joined(flows, OPERATIONS.get(name, name)))
        found = _aggregated(found, name, scope, choice, bare=not given)
        if name not in UNTOUCHED_BY_COPIES | ROW_VALUES:
            found = found.plus(scope.repeated)
        counts = name not in VALUE_AGGREGATES | ROW_VALUES
        running = bool(node.get("orders")) and (counts or not any(map(_has_refs, given)))
        return replace(found, generated=found.generated or running).settled(choice)

    def _case(self, node: Node, scope: Scope) -> Flow:
        flows: list[Flow] = []
        choice = NOTHING_CHOSEN
        for check in nodes(node.get("case_checks")):
            choice = choice.and_(self.condition(as_node(check["when_expr"]), scope))
            flows.append(self.flow(as_node(check["then_expr"]), scope))
        if node.get("else_expr"):
            flows.append(self.flow(as_node(node["else_expr"]), scope))
        found = joined(flows).settled(choice)
        return replace(found, null=all(f.null for f in flows) and not choice.literals)

    def _subquery(self, node: Node, scope: Scope) -> Flow:
        query = as_node(as_node(node["subquery"])["node"])
        scalar = word(node, "subquery_type") == "SCALAR"
        relation = self.queries.relation(query, scope, nested=True)
        if scalar and len(relation.columns) == 1:
            flow = relation.columns[0][1]
            found = joined([flow], flow.operation or "expression")
            return replace(found, null=flow.null)
        flows = [relation.whole()]
        if node.get("child"):
            flows.append(self.flow(as_node(node["child"]), scope))
        found = replace(joined(flows), truth=True)
        exists = "EXISTS" in word(node, "subquery_type")
        return found.plus(relation.counts) if exists else found


def parts_of(node: Node, kind: str) -> list[Node]:
    """The operands of an expression that is no function. Raises NotUnderstoodError."""
    if kind == "COMPARISON":
        return [as_node(node["left"]), as_node(node["right"])]
    if kind == "BETWEEN":
        return [as_node(node[k]) for k in ("input", "lower", "upper")]
    if kind in ("CONJUNCTION", "OPERATOR"):
        return nodes(node.get("children"))
    raise NotUnderstoodError(kind)


def aggregates(name: str) -> bool:
    """Whether a function name is an aggregate's."""
    return any(entry.kind == "aggregate" for entry in functions.of_name(name, table=False))


def _aggregated(found: Flow, name: str, scope: Scope, choice: Choice, *, bare: bool) -> Flow:
    """A value over rows: their literals always, their tables only for a call without arguments."""
    rows = scope.rows()
    shape = scope.shape()
    counting = name not in VALUE_AGGREGATES | ROW_VALUES or (name == "sum" and found.truth)
    literals = rows.literals
    if counting and (shape == "join" or scope.outer is not None):
        found = replace(found, generated=True)  # counts over pairs of rows number them
    if counting or shape == "join" or (shape == SETS and name not in UNTOUCHED_BY_COPIES):
        literals |= scope.counts()
    if counting:
        literals |= choice.counts
    if bare:
        found = joined([found, replace(rows, literals=NONE)], found.operation)
    if name in COUNTS_OF_TRUTH:
        found = replace(found, truth=False)
    if shape and name not in UNTOUCHED_BY_COPIES | ROW_VALUES:
        found = replace(found, operation=f"{found.operation} over {SHAPES[shape]}")
    return found.plus(literals, rows.conditions)


def _affected(node: Node, name: str, given_count: int, found: Flow) -> Flow:
    """What the function itself does to the literals below it."""
    if name not in TRANSPARENT:
        found = replace(_measured(found), literals=glued(found.literals | _plain(found.parameters)))
    if name in MEASURES:
        found = found.plus(frozenset(x for x in found.parameters if is_width(x)))
    if name in ARITIES:
        found = found.plus(marked(node, f"list of {given_count}"))
    if name in FIXED:
        found = found.plus(marked(node, f"{name}()"))
    if name in WIDTHS:
        found = replace(found, parameters=found.parameters | width(node, name))
    if name in RULERS:
        found = replace(found, generated=True)
    return replace(found, truth=True) if name in TRUTHS else found


def _measured(found: Flow) -> Flow:
    """The same value with the parameters of its casts among its literals."""
    return found.plus(_plain(found.parameters))


def _plain(parameters: Literals) -> Literals:
    return frozenset(x for x in parameters if not is_width(x))


def _steers(name: str, argument: Node) -> bool:
    """Whether an argument only states a precision or a usual part of a date."""
    literal = literal_of(argument) if argument.get("class") == "CONSTANT" else None
    if literal is None:
        return False
    text = literal[1].lower()
    if word(as_node(argument["literal"]), "kind") == "INTEGER":
        return text.isdigit()
    return text in (PARTS if name in PART_FUNCTIONS else UNITS)


def _equal(given: list[Node]) -> Node:
    """nullif(x, y) compares x with y."""
    left, right = given
    return {"class": "COMPARISON", "type": "COMPARE_EQUAL", "left": left, "right": right}


def _repeated(given: list[Node]) -> bool:
    """Whether two arguments are one thing that is no constant."""
    copied = [c for c in map(_copied, given) if _has_refs(c)]
    return any(same(one, other) for one, other in itertools.combinations(copied, 2))


def _copied(node: Node) -> Node:
    """What an expression is a copy of, up to its sign."""
    while True:
        name, given = word(node, "function_name").lower(), arguments(node)
        if word(node, "class") == "CAST":
            node = as_node(node["child"])
        elif word(node, "type") in ("OPERATOR_COALESCE", "OPERATOR_NULLIF"):
            node = nodes(node.get("children"))[0]
        elif name in COPIES and given and (len(given) == 1 or name not in ONE_GIVEN):
            node = given[0]
        else:
            return node


def _has_refs(node: Node) -> bool:
    return next(column_refs(node), None) is not None
