"""The tracer's run over query nodes: what FROM brings, what each clause leaves, how rows come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tieout.executor.sql.conditions import NOTHING_CHOSEN, chosen
from tieout.executor.sql.expressions import Expressions, aggregates
from tieout.executor.sql.flow import (
    EARLIER,
    NONE,
    ONE_ROW,
    SETS,
    Choice,
    Flow,
    Literals,
    NotUnderstoodError,
    Relation,
    Scope,
    joined,
)
from tieout.executor.sql.literals import all_literals, marked, unnested
from tieout.executor.sql.shape import Json, Node, as_node, children, nodes, word
from tieout.executor.sql.stars import name_list, own_name, starred


@dataclass(slots=True)
class From:
    """What FROM brings: relations in order, (place, column) that USING hides, its conditions."""

    relations: list[Relation] = field(default_factory=list)
    hidden: set[tuple[int, str]] = field(default_factory=set)
    choice: Choice = NOTHING_CHOSEN


class Tracer:
    """One run over one tree. tables: lower-case granted name to its relation."""

    def __init__(self, tables: Mapping[str, Relation], *, conditions_count: bool) -> None:
        self.conditions_count = conditions_count
        self.tables = tables
        self.expressions = Expressions(self)
        self.ctes: list[dict[str, Relation]] = []

    def relation(self, node: Node, outer: Scope | None, *, nested: bool) -> Relation:
        """The relation of a query node; nested ones pay for their LIMIT in every column."""
        self.ctes.append({})
        try:
            for entry in nodes(as_node(node.get("cte_map") or {}).get("map")):
                self._define(entry, outer)
            kind = word(node, "type")
            if kind == "SELECT_NODE":
                found = self._select(node, outer)
            elif kind == "SET_OPERATION_NODE":
                found = self._set_operation(node, outer)
            else:
                raise NotUnderstoodError(kind)
            return self._limited(found, node, outer, nested=nested)
        finally:
            self.ctes.pop()

    def _limited(
        self, found: Relation, node: Node, outer: Scope | None, *, nested: bool
    ) -> Relation:
        """LIMIT and OFFSET say how many rows there are. LIMIT 1 is the first: no factor."""
        counts = found.counts
        for modifier in nodes(node.get("modifiers")):
            kind = word(modifier, "type")
            if not kind.startswith("LIMIT"):
                continue
            limit = as_node(modifier.get("limit") or {})
            one = as_node(limit.get("literal") or {}).get("text") == "1"
            literals = frozenset(all_literals(modifier))
            for part in (limit, as_node(modifier.get("offset") or {})):
                if part and part.get("class") != "CONSTANT":
                    scope = Scope(relations=[], outer=outer)
                    literals |= self.expressions.flow(part, scope).literals
            first = frozenset(all_literals(limit)) if one and kind == "LIMIT_MODIFIER" else NONE
            counts |= {ONE_ROW} | (literals - first) if first else literals
            columns = tuple(
                (name, flow.plus(literals) if nested or flow.generated else flow)
                for name, flow in found.columns
            )
            rows = found.rows.plus(literals) if nested else found.rows
            found = replace(found, columns=columns, rows=rows)
        return replace(found, counts=counts)

    def _define(self, entry: Node, outer: Scope | None) -> None:
        body = as_node(entry["value"])
        query = as_node(body["query_node"])
        name = word(entry, "key").lower()
        if word(query, "type") == "RECURSIVE_CTE_NODE":
            found = self._recursive(query, outer, name)
        else:
            found = self.relation(query, outer, nested=True)
        self.ctes[-1][name] = found.renamed(name, name_list(body.get("aliases")))

    def _recursive(self, node: Node, outer: Scope | None, name: str) -> Relation:
        """Rows make rows: each literal and source below may flow into each column."""
        first = self.relation(as_node(node["left"]), outer, nested=True)
        first = first.renamed(name, name_list(node.get("aliases")))
        sources = _named_tables(node)
        whole = [self.tables[t].whole() for t in sorted(sources) if t in self.tables]
        whole += [r[t].whole() for r in self.ctes for t in sorted(sources) if t in r]
        flow = joined([*whole, first.whole()], "recursion").plus(frozenset(all_literals(node)))
        flow = replace(flow, generated=True)
        columns = tuple((n, flow) for n, _ in first.columns)
        return Relation(columns=columns, rows=flow, alias=name, shape="union")

    def _set_operation(self, node: Node, outer: Scope | None) -> Relation:
        kind = word(node, "setop_type")
        if kind not in ("UNION", "EXCEPT", "INTERSECT"):
            raise NotUnderstoodError("set operation")
        parts = nodes(node.get("children")) or [as_node(node["left"]), as_node(node["right"])]
        branches = [self.relation(p, outer, nested=True) for p in parts]
        if len({len(b.columns) for b in branches}) != 1:
            raise NotUnderstoodError("branches of different width")
        bare = any(not b.rows.roots or ONE_ROW in b.counts for b in branches)
        number = frozenset({(EARLIER, str(len(branches)))}) if bare else NONE
        rows = joined([b.rows for b in branches]).plus(
            number if any(not b.rows.roots for b in branches) else NONE
        )
        counts = frozenset(x for b in branches for x in b.counts if x != ONE_ROW) | number
        columns = []
        for place, (name, flow) in enumerate(branches[0].columns):
            flows = [b.columns[place][1] for b in branches]
            alike = all(f == flow for f in flows)
            united = replace(joined(flows, "union"), null=all(f.null for f in flows))
            columns.append((name, flow if alike else united))
        if kind != "UNION" or not node.get("setop_all"):
            counts |= frozenset(x for _, flow in columns for x in flow.literals)
        if any(flow.generated for _, flow in columns):
            picked = frozenset(x for part in choosing(node) for x in all_literals(part))
            columns = [(name, flow.plus(picked)) for name, flow in columns]
        shape = SETS if any(b.shape == SETS for b in branches) else "union"
        return Relation(tuple(columns), rows, counts=counts, shape=shape)

    def _select(self, node: Node, outer: Scope | None) -> Relation:
        if node.get("from_table") is None:
            raise NotUnderstoodError("from")
        brought = self._from(as_node(node["from_table"]), outer)
        scope = Scope(brought.relations, outer, repeated=_sets(node))
        columns: list[tuple[str, Flow]] = []
        for item in nodes(node.get("select_list")):
            if word(item, "class") == "STAR":
                columns += starred(item, scope, brought.hidden)
                continue
            flow = self.expressions.flow(item, scope)
            name = word(item, "alias") or own_name(item)
            if word(item, "alias"):
                scope.aliases[name.lower()] = flow
            columns.append((name, flow))
        choice = brought.choice
        for clause in ("where_clause", "having", "qualify"):
            if node.get(clause):
                choice = choice.and_(self.expressions.choice(as_node(node[clause]), scope))
        for part in nodes(node.get("group_expressions")) + choosing(node):
            placed = _placed(part, nodes(node.get("select_list")))
            choice = choice.and_(self.expressions.ordering(placed, scope))
        picked = bool(choice.literals)
        made = frozenset(x for s in nodes(node.get("select_list")) for x in unnested(s))
        choice = choice.and_(Choice(made | scope.rows().literals))
        listed = tuple((name, flow.settled(choice)) for name, flow in columns)
        found = self._rows(node, scope, listed, choice)
        generated = found.rows.generated or picked
        return replace(found, rows=replace(found.rows, generated=generated))

    def _rows(
        self, node: Node, scope: Scope, columns: tuple[tuple[str, Flow], ...], choice: Choice
    ) -> Relation:
        """How many rows a SELECT gives: those of FROM, chosen, grouped, made distinct."""
        rows = scope.rows().plus(choice.literals, choice.conditions)
        counts = scope.counts() | choice.counts
        shape = scope.shape()
        groups = nodes(node.get("group_expressions"))
        by_all = word(node, "aggregate_handling") not in ("", "STANDARD_HANDLING")
        if groups or by_all:
            shape = ""
            flows = [self.expressions.flow(g, scope) for g in groups if not _is_place(g)]
            if by_all or len(flows) < len(groups):
                flows += [flow for _, flow in columns]
            counts |= frozenset(x for flow in flows for x in flow.literals)
            counts |= scope.repeated
            shape = SETS if scope.repeated else ""
        elif _aggregated(node.get("select_list")) or node.get("having"):
            shape, counts = "", frozenset({ONE_ROW})
            rows = replace(rows, literals=NONE)
        if any(word(m, "type") == "DISTINCT_MODIFIER" for m in nodes(node.get("modifiers"))):
            counts |= frozenset(x for _, flow in columns for x in flow.literals)
        return Relation(columns=columns, rows=rows, counts=counts, shape=shape)

    def _from(self, node: Node, outer: Scope | None) -> From:
        kind = word(node, "type")
        if kind == "JOIN":
            return self._join(node, outer)
        if kind == "EMPTY":
            return From()
        listed = name_list(node.get("column_name_alias"))
        alias = word(node, "alias")
        if kind == "BASE_TABLE":
            name = word(node, "table_name")
            found = self._table(name.lower()).renamed(alias or name, listed)
        elif kind == "SUBQUERY":
            found = self.relation(as_node(as_node(node["subquery"])["node"]), outer, nested=True)
            found = found.renamed(alias, listed)
        elif kind == "EXPRESSION_LIST":
            found = self._values(node, outer).renamed(alias, listed)
        elif kind == "TABLE_FUNCTION":
            found = self._rows_made(node, outer, alias, listed)
        else:
            raise NotUnderstoodError(kind)
        return From([found])

    def _join(self, node: Node, outer: Scope | None) -> From:
        left = self._from(as_node(node["left"]), outer)
        right = self._from(as_node(node["right"]), Scope(relations=left.relations, outer=outer))
        using = {name.lower() for name in name_list(node.get("using_columns"))}
        if word(node, "ref_type") == "NATURAL":
            mine = {n.lower() for r in left.relations for n, _ in r.columns}
            using |= mine & {n.lower() for r in right.relations for n, _ in r.columns}
        both = Scope(relations=left.relations + right.relations, outer=outer)
        choice = left.choice.and_(right.choice)
        if node.get("condition"):
            choice = choice.and_(self.expressions.choice(as_node(node["condition"]), both))
        for name in sorted(using):
            choice = choice.and_(chosen({}, both.find([name])))
        if word(node, "join_type") in ("SEMI", "ANTI"):
            rows = joined([r.rows for r in right.relations])
            choice = choice.and_(Choice(conditions=rows.literals | rows.conditions))
            return From(left.relations, left.hidden, choice)
        if word(node, "join_type") == "RIGHT" and using:
            raise NotUnderstoodError("right join using")
        start = len(left.relations)
        hidden = left.hidden | {(place + start, name) for place, name in right.hidden}
        hidden |= {(place + start, n) for n in using for place in range(len(right.relations))}
        return From(left.relations + right.relations, hidden, choice)

    def _table(self, name: str) -> Relation:
        for defined in reversed(self.ctes):
            if name in defined:
                return defined[name]
        if name not in self.tables:
            raise NotUnderstoodError(name)
        return self.tables[name]

    def _values(self, node: Node, outer: Scope | None) -> Relation:
        """VALUES: each column has its own literals, the number of rows all of them."""
        lists = node.get("values")
        rows = [nodes(r) for r in lists] if isinstance(lists, list) else []
        scope = Scope(relations=[], outer=outer)
        flows = [[self.expressions.flow(e, scope) for e in row] for row in rows]
        width = len(flows[0]) if flows else 0
        count = frozenset({(EARLIER, str(len(rows)))})
        everything = joined([f for row in flows for f in row]).plus(count)
        columns = tuple(
            (f"col{place}", joined([row[place] for row in flows], "values"))
            for place in range(width)
        )
        rows_flow = replace(everything, generated=False, truth=False)
        return Relation(columns=columns, rows=rows_flow)

    def _rows_made(
        self, node: Node, outer: Scope | None, alias: str, listed: list[str]
    ) -> Relation:
        call = as_node(node["function"])
        name = word(call, "function_name").lower()
        flow = self.expressions.flow(call, Scope(relations=[], outer=outer))
        made = replace(flow.plus(frozenset(all_literals(call))), generated=True)
        found = Relation(columns=((name, made),), rows=made)
        return found.renamed(alias or name, listed)


def _sets(node: Node) -> Literals:
    """What stands for the number of grouping sets, where there are several, or one repeated."""
    sets = node.get("group_sets")
    if not isinstance(sets, list) or len(sets) <= 1:
        return NONE
    return marked(node, "grouping") | {(EARLIER, str(len(sets)))}


def choosing(node: Node) -> list[Node]:
    """The expressions of an ORDER BY or DISTINCT ON that decides which rows there are."""
    modifiers = nodes(node.get("modifiers"))
    targets = [t for m in modifiers for t in nodes(m.get("distinct_on_targets"))]
    if not targets and not any(word(m, "type").startswith("LIMIT") for m in modifiers):
        return []
    orders = [o for m in modifiers for o in nodes(m.get("orders"))]
    return targets + [as_node(order["expression"]) for order in orders]


def _placed(node: Node, items: list[Node]) -> Node:
    """An expression, or the select item whose place stands for it (GROUP BY 2)."""
    literal = as_node(node.get("literal") or {})
    place = int(str(literal["text"])) if literal.get("kind") == "INTEGER" else 0
    return items[place - 1] if 0 < place <= len(items) else node


def _is_place(node: Node) -> bool:
    """GROUP BY 2: a place in the select list."""
    return word(node, "class") == "CONSTANT"


def _aggregated(node: Json) -> bool:
    """Whether an aggregate stands in a select list, subqueries and windows aside."""
    if isinstance(node, dict):
        if node.get("class") in ("SUBQUERY", "WINDOW"):
            return False
        if node.get("class") == "FUNCTION" and aggregates(word(node, "function_name").lower()):
            return True
    return any(_aggregated(child) for child in children(node))


def _named_tables(node: Json) -> set[str]:
    found = {word(node, "table_name").lower()} if isinstance(node, dict) else set()
    for child in children(node):
        found |= _named_tables(child)
    return found - {""}


def weigh(relation: Relation, literals: Literals, *, generated: bool) -> Relation:
    """A relation each of whose columns, and whose number of rows, may hold some literals."""
    columns = tuple(
        (name, replace(flow.plus(literals), generated=flow.generated or generated))
        for name, flow in relation.columns
    )
    rows = relation.rows.plus(literals)
    return replace(relation, columns=columns, rows=rows)
