"""Ties: whatever depends on the order of rows must have an order in which no two rows are equal.

row_number, lag and their like, ROWS frames, string_agg and its like, and LIMIT or DISTINCT ON
below the top are admitted when their ORDER BY (with PARTITION BY, or the groups) holds a key of
every table in FROM, as far as joins and WHERE do not settle it, or all columns. A table without a
declared key is told apart by all of its columns only. The outermost ORDER BY is made total by a
rewrite (order.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tieout.executor.sql import functions
from tieout.executor.sql.expressions import aggregates
from tieout.executor.sql.flow import NotUnderstoodError
from tieout.executor.sql.keys import UNKNOWN, Block, Column, Keyed
from tieout.executor.sql.literals import same
from tieout.executor.sql.refusal import Text
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
from tieout.executor.sql.stars import name_list
from tieout.executor.sql.vocabulary import ORDERED_GROUPS

_TIED_WINDOWS = frozenset({"window_peer_order", "order_sensitive"})
_SUMS = frozenset({"float_accumulating", "sum_family"})


@dataclass(frozen=True, slots=True)
class Output:
    """A result column of a block: its name, and the column of FROM that it copies, if any."""

    name: str
    column: Column | None
    expression: Node | None


def check_ties(text: Text, root: Node, tables: Mapping[str, Keyed]) -> None:
    """Walk all blocks. tables: lower-case name of each granted table to its columns and key.

    Raises SqlRefused: sql.window_ties, sql.unordered_aggregate, sql.unordered_limit.
    """
    _Ties(text, tables).query(root, nested=False)


class _Ties:
    def __init__(self, text: Text, tables: Mapping[str, Keyed]) -> None:
        self.text = text
        self.tables = tables
        self.ctes: list[dict[str, Keyed]] = []

    def query(self, node: Node, *, nested: bool) -> Keyed:
        """The columns and keys of a query, all orders inside it checked."""
        self.ctes.append({})
        try:
            for entry in nodes(as_node(node.get("cte_map") or {}).get("map")):
                name = word(entry, "key").lower()
                body = as_node(entry["value"])
                self.ctes[-1][name] = UNKNOWN
                found = self.query(as_node(body["query_node"]), nested=True)
                self.ctes[-1][name] = found.named(name, _listed(body.get("aliases")))
            if word(node, "type") == "SELECT_NODE":
                return self._select(node, nested=nested)
            if word(node, "type") == "SET_OPERATION_NODE":
                return self._set_operation(node, nested=nested)
            self._inside(node)
            return UNKNOWN
        finally:
            self.ctes.pop()

    def _inside(self, node: Json) -> None:
        """Check the query nodes below, of which nothing else is wanted."""
        if isinstance(node, dict) and "cte_map" in node and word(node, "type") == "SELECT_NODE":
            self.query(node, nested=True)
            return
        for child in children(node):
            self._inside(child)

    def _set_operation(self, node: Node, *, nested: bool) -> Keyed:
        parts = nodes(node.get("children")) or [as_node(node["left"]), as_node(node["right"])]
        branches = [self.query(part, nested=True) for part in parts]
        columns = branches[0].columns
        if columns is None or "BY_NAME" in word(node, "setop_type"):
            found = UNKNOWN
        else:
            found = Keyed(dict.fromkeys(columns, ""))
        outputs = [Output(name, None, None) for name in found.columns or {}]
        if nested and not (found.columns and self._covers(node, outputs)):
            self._refuse_limit(node)
        return found

    def _select(self, node: Node, *, nested: bool) -> Keyed:
        block = Block()
        if node.get("from_table"):
            self._from(as_node(node["from_table"]), block)
        if node.get("where_clause"):
            block.equate(as_node(node["where_clause"]), set(), set(), "INNER")
        items = nodes(node.get("select_list"))
        block.aliases = {word(i, "alias").lower(): i for i in items if word(i, "alias")}
        outputs = _outputs(items, block)
        groups = _groups(node, items)
        for part in ("select_list", "where_clause", "having", "qualify", "modifiers"):
            self._expressions(node.get(part), block, groups)
        self._expressions(node.get("group_expressions"), block, None)
        found = _keyed(node, block, outputs, groups)
        if nested and not found.one and not self._orders_all(node, block, outputs, groups, found):
            self._refuse_limit(node)
        limits = [m for m in nodes(node.get("modifiers")) if word(m, "type") == "LIMIT_MODIFIER"]
        first = any(as_node(m.get("limit") or {}).get("literal") and _is_one(m) for m in limits)
        return replace(found, one=True) if first else found

    def _orders_all(
        self,
        node: Node,
        block: Block,
        outputs: list[Output] | None,
        groups: list[Node] | None,
        found: Keyed,
    ) -> bool:
        """Whether the ORDER BY of a block under a LIMIT leaves no ties."""
        if outputs is not None and self._covers(node, outputs, found):
            return True
        orders = _orders(node)
        distinct = any(
            word(m, "type") == "DISTINCT_MODIFIER" and not m.get("distinct_on_targets")
            for m in nodes(node.get("modifiers"))
        )
        if groups is not None:
            named = orders + [block.aliases[n] for n in _words(orders) if n in block.aliases]
            return bool(groups) and all(any(same(g, o) for o in named) for g in groups)
        return not distinct and block.total(block.plain(orders))

    def _covers(self, node: Node, outputs: list[Output], found: Keyed | None = None) -> bool:
        """Whether an ORDER BY names every output column, or the key of the result."""
        named = set[str]()
        for expression in _orders(node):
            if word(expression, "class") == "STAR":
                return True
            literal = as_node(expression.get("literal") or {})
            if literal.get("kind") == "INTEGER":
                place = int(str(literal["text"])) - 1
                named |= {outputs[place].name} if 0 <= place < len(outputs) else set()
            for output in outputs:
                names_it = word(expression, "class") == "COLUMN_REF" and (
                    names(expression)[-1].lower() == output.name
                )
                copied = output.expression is not None and same(output.expression, expression)
                if copied or (names_it and len(names(expression)) == 1):
                    named.add(output.name)
        keys = found.keys if found is not None else ()
        return {o.name for o in outputs} <= named or any(key <= named for key in keys)

    def _refuse_limit(self, node: Node) -> None:
        for modifier in nodes(node.get("modifiers")):
            limit = modifier.get("limit") or modifier.get("offset")
            if limit or modifier.get("distinct_on_targets"):
                where = location(as_node(limit)) if limit else None
                message = "the ORDER BY under a LIMIT, OFFSET or DISTINCT ON can leave ties"
                remedy = "Add the key columns of the tables, or all output columns, to it."
                raise self.text.refuse(
                    "sql.unordered_limit", message, location=where, word="distinct", remedy=remedy
                )

    def _from(self, node: Node, block: Block) -> set[int]:
        """Put the relations of FROM into a block; their places."""
        kind = word(node, "type")
        if kind == "JOIN":
            return self._join(node, block)
        if kind == "EMPTY":
            return set()
        listed, alias = _listed(node.get("column_name_alias")), word(node, "alias")
        if kind == "BASE_TABLE":
            name = word(node, "table_name")
            found = self._table(name.lower()).named(alias or name, listed)
        elif kind == "SUBQUERY":
            inner = as_node(as_node(node["subquery"])["node"])
            found = self.query(inner, nested=True).named(alias, listed)
        else:
            self._inside(node)
            found = replace(UNKNOWN, alias=alias)
        block.relations.append(found)
        return {len(block.relations) - 1}

    def _join(self, node: Node, block: Block) -> set[int]:
        left = self._from(as_node(node["left"]), block)
        right = self._from(as_node(node["right"]), block)
        join = word(node, "join_type")
        using = {name.lower() for name in _listed(node.get("using_columns"))}
        if word(node, "ref_type") == "NATURAL":
            sides = [
                {n for p in side for n in block.relations[p].columns or {}}
                for side in (left, right)
            ]
            using |= sides[0] & sides[1]
        if join in ("SEMI", "ANTI"):
            del block.relations[min(right) :]
            return left
        if join == "FULL":
            block.extend(left | right)
        if node.get("condition"):
            self._expressions(node["condition"], block, None)
            block.equate(as_node(node["condition"]), left, right, join)
        block.merge(using, left, right, join)
        return left | right

    def _table(self, name: str) -> Keyed:
        for defined in reversed(self.ctes):
            if name in defined:
                return defined[name]
        return self.tables.get(name, UNKNOWN)

    def _expressions(self, node: Json, block: Block, groups: list[Node] | None) -> None:
        """Every window, ordered aggregate and subquery in the expressions of a block."""
        if isinstance(node, dict):
            if node.get("class") == "SUBQUERY":
                self.query(as_node(as_node(node["subquery"])["node"]), nested=True)
                self._expressions(node.get("child"), block, groups)
                return
            if node.get("class") == "WINDOW":
                self._window(node, block, groups)
            elif node.get("class") == "FUNCTION":
                self._aggregate(node, block, groups)
        for child in children(node):
            self._expressions(child, block, groups)

    def _window(self, node: Node, block: Block, groups: list[Node] | None) -> None:
        name = word(node, "function_name").lower()
        rows = any("_ROWS" in word(node, key) for key in ("start", "end"))
        if not rows and not functions.groups(name) & _TIED_WINDOWS:
            return
        partitions = nodes(node.get("partitions"))
        for key in ("orders", "arg_orders"):
            listed = [as_node(o["expression"]) for o in nodes(node.get(key))]
            if key == "arg_orders" and not listed:
                continue
            if groups is not None:
                told = all(any(same(g, e) for e in listed + partitions) for g in groups)
            else:
                told = block.total(block.plain(listed + partitions))
            if not told:
                message = f"the ORDER BY of {name} can leave ties"
                raise self.text.refuse("sql.window_ties", message, location=location(node))

    def _aggregate(self, node: Node, block: Block, groups: list[Node] | None) -> None:
        """ORDER BY inside the call covers its arguments, or tells the rows of a group apart."""
        name = word(node, "function_name").lower()
        kinds = functions.groups(name)
        listed = nodes(as_node(node.get("order_bys") or {}).get("orders"))
        orders = [as_node(o["expression"]) for o in listed]
        if not (kinds & ORDERED_GROUPS or (orders and kinds & _SUMS)):
            return
        plain = {_known(block, names(e)) for e in orders if word(e, "class") == "COLUMN_REF"}
        wanted = {_known(block, ref) for a in arguments(node) for ref in column_refs(a)}
        if plain and wanted <= plain:
            return
        if not plain or not block.total(block.plain(orders + list(groups or ()))):
            message = f"{name} depends on the order of rows, and its ORDER BY can leave ties"
            raise self.text.refuse("sql.unordered_aggregate", message, location=location(node))


def _known(block: Block, parts: list[str]) -> Column | tuple[str, ...]:
    """A column, or the words of a reference that cannot be told."""
    return block.resolve(parts) or tuple(p.lower() for p in parts)


def _orders(node: Node) -> list[Node]:
    return [
        as_node(order["expression"])
        for modifier in nodes(node.get("modifiers"))
        if word(modifier, "type") == "ORDER_MODIFIER"
        for order in nodes(modifier.get("orders"))
    ]


def _words(expressions: list[Node]) -> Iterator[str]:
    for expression in expressions:
        if word(expression, "class") == "COLUMN_REF" and len(names(expression)) == 1:
            yield names(expression)[0].lower()


def _listed(value: Json) -> list[str]:
    try:
        return name_list(value)
    except NotUnderstoodError:
        return ["?"]


def _is_one(modifier: Node) -> bool:
    literal = as_node(as_node(modifier["limit"]).get("literal") or {})
    return literal.get("kind") == "INTEGER" and literal.get("text") == "1"


def _holds_aggregate(node: Json) -> bool:
    if isinstance(node, dict):
        if node.get("class") in ("SUBQUERY", "WINDOW"):
            return False
        if node.get("class") == "FUNCTION" and aggregates(word(node, "function_name").lower()):
            return True
    return any(_holds_aggregate(child) for child in children(node))


def _groups(node: Node, items: list[Node]) -> list[Node] | None:
    """What the rows of a grouped block are told apart by; None when it is not grouped."""
    listed = nodes(node.get("group_expressions"))
    if word(node, "aggregate_handling") not in ("", "STANDARD_HANDLING"):
        return [i for i in items if not _holds_aggregate(i)]
    if not listed:
        return [] if node.get("having") or any(map(_holds_aggregate, items)) else None
    found = []
    aliases = {word(i, "alias").lower(): i for i in items if word(i, "alias")}
    for group in listed:
        literal = as_node(group.get("literal") or {})
        place = int(str(literal["text"])) if literal.get("kind") == "INTEGER" else 0
        by_name = aliases.get(names(group)[0].lower()) if len(names(group)) == 1 else None
        found.append(items[place - 1] if 0 < place <= len(items) else by_name or group)
    return found


def _outputs(items: list[Node], block: Block) -> list[Output] | None:
    """The result columns; None when a star stands for columns that are not known."""
    found: list[Output] = []
    for place, item in enumerate(items):
        if word(item, "class") != "STAR":
            column = block.resolve(names(item)) if word(item, "class") == "COLUMN_REF" else None
            own = names(item)[-1].lower() if names(item) else f"?{place}"
            found.append(Output(word(item, "alias").lower() or own, column, item))
            continue
        if any(item.get(k) for k in ("columns", "expr", "replace_list", "rename_list")):
            return None
        only = word(item, "relation_name").lower()
        excluded = {x.lower() for x in _listed(item.get("exclude_list"))}
        excluded |= {x.lower() for x in _listed(item.get("qualified_exclude_list"))}
        for at, relation in enumerate(block.relations):
            if only and relation.alias.lower() != only:
                continue
            if relation.columns is None:
                return None
            found += [Output(n, (at, n), None) for n in relation.columns if n not in excluded]
    return found


def _keyed(
    node: Node, block: Block, outputs: list[Output] | None, groups: list[Node] | None
) -> Keyed:
    """Columns and keys of a SELECT's result."""
    one = groups == [] or not block.relations
    if outputs is None or len({o.name for o in outputs}) != len(outputs):
        return Keyed(None, one=one)
    columns = {o.name: block.kind(o.column) if o.column else "" for o in outputs}
    sets = node.get("group_sets")
    if groups is not None:
        named = [
            next((o.name for o in outputs if o.expression and same(o.expression, g)), None)
            for g in groups
        ]
        single = not (isinstance(sets, list) and len(sets) > 1)
        key = frozenset(n for n in named if n is not None)
        return Keyed(columns, (key,) if single and None not in named and key else (), one=one)
    copied = {o.column: o.name for o in outputs if o.column is not None}
    candidates = [[(at, c) for c in key] for at, r in enumerate(block.relations) for key in r.keys]
    firsts = [[(at, c) for c in r.keys[0]] for at, r in enumerate(block.relations) if r.keys]
    candidates.append([column for key in firsts for column in key])
    keys = [
        frozenset(copied[c] for c in key)
        for key in candidates
        if key and all(c in copied for c in key) and block.total(set(key))
    ]
    return Keyed(columns, tuple(dict.fromkeys(keys)), one=one)
