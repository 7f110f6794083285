"""Per result column: the literals and source columns that may flow into it, never too few.

An abstract run over the engine's own parse tree, so that it reads what will run. Whatever it does
not know (PIVOT, COLUMNS(), BY NAME) ends in the sound answer: every literal to every column.
Literals in WHERE, ON, HAVING, QUALIFY, GROUP BY and ORDER BY choose rows and are not counted, but
where rows come from no table (range, unnest, recursion) choosing is making, and they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tieout.executor.sql.expressions import Expressions, all_literals, base_rows
from tieout.executor.sql.flow import Flow, Literal, NotUnderstoodError, Relation, Scope, joined
from tieout.executor.sql.shape import Json, Node, as_node, children, nodes, word
from tieout.executor.sql.tree import Seen
from tieout.executor.sql.validate import ColumnOrigin, GrantedTable

EARLIER = -1


def trace(
    root: Node,
    tables: Mapping[str, GrantedTable],
    columns: Sequence[tuple[str, str]],
    seen: Seen,
    *,
    inexact: bool,
) -> tuple[tuple[ColumnOrigin, ...], tuple[str, ...]]:
    """The origin of each result column, and all literals of the text in order.

    columns: bound (name, type) of the result; a derived list of other names falls back.
    inexact: a float stands somewhere on the way of some value (from the bound plan).
    """
    literals = frozenset(all_literals(root))
    try:
        flows = _flows(root, tables, [name.lower() for name, _ in columns], seen)
    except (NotUnderstoodError, KeyError):
        flows = [_everything(tables, seen, literals)] * len(columns)
    if seen.generates or not seen.tables:
        flows = [flow.plus(literals) for flow in flows]
    found = tuple(
        _origin(name, kind, flow, inexact=inexact)
        for (name, kind), flow in zip(columns, flows, strict=True)
    )
    return found, _texts(literals)


def _flows(
    root: Node, tables: Mapping[str, GrantedTable], bound: Sequence[str], seen: Seen
) -> list[Flow]:
    """One flow per column, if the tracer arrives at the same columns as the binder."""
    relation = _Tracer(tables, seen).relation(root, None, nested=False)
    names = [name.lower() for name, _ in relation.columns]
    if len(names) != len(bound):
        raise NotUnderstoodError("width")
    if any(name not in ("", other) for name, other in zip(names, bound, strict=True)):
        raise NotUnderstoodError("names")
    return [flow for _, flow in relation.columns]


def _texts(literals: frozenset[Literal]) -> tuple[str, ...]:
    """Texts in the order of their places, each once."""
    return tuple(dict.fromkeys(text for _, text in sorted(literals)))


def _origin(name: str, kind: str, flow: Flow, *, inexact: bool) -> ColumnOrigin:
    """A plain copy is inexact by its type alone; anything else by the plan's."""
    floats = "DOUBLE" in kind or "FLOAT" in kind
    return ColumnOrigin(
        name=name,
        literals=_texts(flow.literals),
        sources=tuple(sorted(flow.sources)),
        operation=flow.operation,
        inexact=floats or (inexact and flow.operation != ""),
    )


def _granted_relation(name: str, table: GrantedTable) -> Relation:
    columns = tuple(
        (
            c.name,
            Flow(
                literals=frozenset((EARLIER, text) for text in c.literals),
                sources=frozenset({(name, c.name)}),
                operation="",
            ),
        )
        for c in table.columns
        if not c.name.startswith("__")
    )
    return Relation(columns=columns, rows=base_rows(name), alias=name)


def _everything(
    tables: Mapping[str, GrantedTable], seen: Seen, literals: frozenset[Literal]
) -> Flow:
    used = [_granted_relation(n, t).whole() for n, t in tables.items() if n.lower() in seen.tables]
    return joined(used).plus(literals)


class _Tracer:
    """One run over one tree."""

    def __init__(self, tables: Mapping[str, GrantedTable], seen: Seen) -> None:
        self.conditions_count = seen.generates or not seen.tables
        self.tables = {n.lower(): _granted_relation(n, t) for n, t in tables.items()}
        self.seen = seen
        self.expressions = Expressions(self)
        self.ctes: list[dict[str, Relation]] = []

    def relation(self, node: Node, outer: Scope | None, *, nested: bool) -> Relation:
        """The relation of a query node; nested ones pay for their LIMIT."""
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
        finally:
            self.ctes.pop()
        if nested:
            found = _weighed(found, frozenset(_limit_literals(node)))
        return found

    def _define(self, entry: Node, outer: Scope | None) -> None:
        body = as_node(entry["value"])
        query = as_node(body["query_node"])
        name = word(entry, "key").lower()
        if word(query, "type") == "RECURSIVE_CTE_NODE":
            found = self._recursive(query, outer, name)
        else:
            found = self.relation(query, outer, nested=True)
        aliases = body.get("aliases")
        listed = [str(a) for a in aliases] if isinstance(aliases, list) else []
        self.ctes[-1][name] = found.renamed(name, listed)

    def _recursive(self, node: Node, outer: Scope | None, name: str) -> Relation:
        """Rows make rows: each literal and source below may flow into each column."""
        first = self.relation(as_node(node["left"]), outer, nested=True)
        aliases = node.get("aliases")
        listed = [str(a) for a in aliases] if isinstance(aliases, list) else []
        first = first.renamed(name, listed)
        sources = _named_tables(node)
        whole = [self.tables[t].whole() for t in sorted(sources) if t in self.tables]
        whole += [r[t].whole() for r in self.ctes for t in sorted(sources) if t in r]
        flow = joined([*whole, first.whole()], "recursion").plus(frozenset(all_literals(node)))
        return Relation(columns=tuple((n, flow) for n, _ in first.columns), rows=flow, alias=name)

    def _set_operation(self, node: Node, outer: Scope | None) -> Relation:
        if word(node, "setop_type") not in ("UNION", "EXCEPT", "INTERSECT"):
            raise NotUnderstoodError("set operation")
        parts = nodes(node.get("children")) or [as_node(node["left"]), as_node(node["right"])]
        branches = [self.relation(p, outer, nested=True) for p in parts]
        if len({len(b.columns) for b in branches}) != 1:
            raise NotUnderstoodError("branches of different width")
        bare = any(not b.rows.sources for b in branches)
        made = frozenset({(EARLIER, str(len(branches)))}) if bare else frozenset()
        rows = joined([b.rows for b in branches]).plus(made)
        columns = []
        for place, (name, flow) in enumerate(branches[0].columns):
            flows = [b.columns[place][1] for b in branches]
            same = all(f == flow for f in flows)
            columns.append((name, flow if same else joined(flows, "union")))
        return Relation(columns=tuple(columns), rows=rows)

    def _select(self, node: Node, outer: Scope | None) -> Relation:
        if node.get("from_table") is None:
            raise NotUnderstoodError("from")
        relations, hidden = self._from(as_node(node["from_table"]), outer)
        scope = Scope(relations=relations, outer=outer)
        made = frozenset(lit for s in nodes(node.get("select_list")) for lit in _unnested(s))
        columns: list[tuple[str, Flow]] = []
        for item in nodes(node.get("select_list")):
            if word(item, "class") == "STAR":
                columns += self._star(item, scope, hidden)
                continue
            flow = self.expressions.flow(item, scope)
            name = word(item, "alias") or _own_name(item)
            if word(item, "alias"):
                scope.aliases[name.lower()] = flow
            columns.append((name, flow))
        weighed = frozenset(made | scope.rows().literals)
        listed = tuple((name, flow.plus(weighed)) for name, flow in columns)
        return Relation(columns=listed, rows=scope.rows().plus(weighed))

    def _star(
        self, node: Node, scope: Scope, hidden: set[tuple[int, str]]
    ) -> list[tuple[str, Flow]]:
        """The columns of * or t.*, with EXCLUDE; REPLACE, RENAME and COLUMNS() are not known."""
        if any(node.get(k) for k in ("columns", "expr", "replace_list", "rename_list")):
            raise NotUnderstoodError("star")
        if node.get("qualified_exclude_list") and word(node, "relation_name"):
            raise NotUnderstoodError("star")
        only = word(node, "relation_name").lower()
        excluded = {str(x).lower() for x in _strings(node.get("exclude_list"))}
        excluded |= {str(x).lower() for x in _strings(node.get("qualified_exclude_list"))}
        found: list[tuple[str, Flow]] = []
        for place, relation in enumerate(scope.relations):
            if only and relation.alias.lower() != only:
                continue
            for name, flow in relation.columns:
                low = name.lower()
                if low in excluded or (not only and (place, low) in hidden):
                    continue
                merged = any(p != place and n == low for p, n in hidden) and not only
                found.append((name, scope.find([name]) if merged else flow))
        return found

    def _from(self, node: Node, outer: Scope | None) -> tuple[list[Relation], set[tuple[int, str]]]:
        """The relations of FROM in order, and (place, column) that USING hides from a star."""
        kind = word(node, "type")
        if kind == "JOIN":
            return self._join(node, outer)
        if kind == "EMPTY":
            return [], set()
        listed = [str(x) for x in _strings(node.get("column_name_alias"))]
        alias = word(node, "alias")
        if kind == "BASE_TABLE":
            found = self._table(word(node, "table_name").lower())
            return [found.renamed(alias or word(node, "table_name"), listed)], set()
        if kind == "SUBQUERY":
            found = self.relation(as_node(as_node(node["subquery"])["node"]), outer, nested=True)
            return [found.renamed(alias, listed)], set()
        if kind == "EXPRESSION_LIST":
            return [self._values(node, outer).renamed(alias, listed)], set()
        if kind == "TABLE_FUNCTION":
            return [self._rows_made(node, outer, alias, listed)], set()
        raise NotUnderstoodError(kind)

    def _join(self, node: Node, outer: Scope | None) -> tuple[list[Relation], set[tuple[int, str]]]:
        left, hidden = self._from(as_node(node["left"]), outer)
        lateral = Scope(relations=left, outer=outer)
        right, more = self._from(as_node(node["right"]), lateral)
        hidden |= {(place + len(left), name) for place, name in more}
        using = {str(x).lower() for x in _strings(node.get("using_columns"))}
        if word(node, "ref_type") == "NATURAL":
            mine = {n.lower() for r in left for n, _ in r.columns}
            using |= mine & {n.lower() for r in right for n, _ in r.columns}
        if word(node, "join_type") in ("SEMI", "ANTI"):
            return left, hidden
        if word(node, "join_type") == "RIGHT" and using:
            raise NotUnderstoodError("right join using")
        hidden |= {(place + len(left), n) for n in using for place in range(len(right))}
        return left + right, hidden

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
        return Relation(columns=columns, rows=everything)

    def _rows_made(
        self, node: Node, outer: Scope | None, alias: str, listed: list[str]
    ) -> Relation:
        call = as_node(node["function"])
        name = word(call, "function_name").lower()
        flow = self.expressions.flow(call, Scope(relations=[], outer=outer))
        made = flow.plus(frozenset(all_literals(call)))
        found = Relation(columns=((name, made),), rows=made)
        return found.renamed(alias or name, listed)


def _own_name(item: Node) -> str:
    """The name the engine gives a plain column; "" stands for any other."""
    parts = item.get("column_names")
    return str(parts[-1]) if isinstance(parts, list) and len(parts) <= 2 else ""


def _weighed(relation: Relation, literals: frozenset[Literal]) -> Relation:
    if not literals:
        return relation
    columns = tuple((name, flow.plus(literals)) for name, flow in relation.columns)
    return Relation(columns=columns, rows=relation.rows.plus(literals), alias=relation.alias)


def _limit_literals(node: Node) -> list[Literal]:
    found: list[Literal] = []
    for modifier in nodes(node.get("modifiers")):
        if word(modifier, "type").startswith("LIMIT"):
            found += all_literals(modifier)
    return found


def _unnested(node: Json) -> list[Literal]:
    """Literals inside unnest(...) of a select list: they set the number of rows."""
    if isinstance(node, dict) and node.get("function_name") in ("unnest", "generate_subscripts"):
        return list(all_literals(node))
    return [lit for child in children(node) for lit in _unnested(child)]


def _named_tables(node: Json) -> set[str]:
    found = {word(node, "table_name").lower()} if isinstance(node, dict) else set()
    for child in children(node):
        found |= _named_tables(child)
    return found - {""}


def _strings(value: Json) -> list[str]:
    """Names in a list, each a text or an object with one; any other shape is not known."""
    if not value:
        return []
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return [str(v) for v in value]
    raise NotUnderstoodError("names")
