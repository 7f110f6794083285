"""Ties: the walk over all blocks of a query for whatever depends on the order of rows.

row_number, lag and their like, ROWS frames, string_agg and its like, LIMIT and DISTINCT ON stand
as they are when their ORDER BY (with PARTITION BY, or the groups) holds a key of every table in
FROM, as far as joins and WHERE do not settle it, or all columns. Else each is a need, with the
order that is to be put in. A table without a declared key is told apart by all of its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tieout.executor.sql import functions
from tieout.executor.sql.keys import UNKNOWN, Block, Keyed
from tieout.executor.sql.needs import Need
from tieout.executor.sql.orders_places import Places
from tieout.executor.sql.shape import (
    Json,
    Node,
    arguments,
    as_node,
    children,
    column_refs,
    names,
    nodes,
    word,
)
from tieout.executor.sql.ties_aggregates import aggregate_need, depends_on_order
from tieout.executor.sql.ties_blocks import (
    Output,
    groups_of,
    keyed_of_select,
    listed,
    one_grouping,
    outputs_of,
    own_parts,
)
from tieout.executor.sql.ties_joins import asof_need
from tieout.executor.sql.ties_limits import Cut, cuts_of, limit_needs
from tieout.executor.sql.ties_rows import row_needs
from tieout.executor.sql.ties_windows import window_need

_QUERIES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE"})
_ONE_COLUMN = {"range": "range", "generate_series": "generate_series", "unnest": "unnest"}
"""Table functions of one column, and what the engine calls it."""


def order_needs(
    places: Places, root: Node, tables: Mapping[str, Keyed], columns: Sequence[str]
) -> tuple[Need, ...]:
    """All that depends on the order of rows, in any block, each once.

    tables: lower-case name of each granted table to its columns and key. columns: names of the
    result's. A part of the tree that the walk does not reach is a need without a rewrite.
    """
    walk = _Ties(places, tables)
    walk.query(root, columns=columns)
    for part in _all(root):
        if id(part) not in walk.seen and _sensitive(part):
            walk.needs.append(_unreached(places, part))
    return tuple(dict.fromkeys(walk.needs))


def _all(node: Json) -> Iterator[Node]:
    if isinstance(node, dict):
        yield node
    for child in children(node):
        yield from _all(child)


def _sensitive(node: Node) -> bool:
    kind = node.get("class")
    if kind == "FUNCTION":
        return depends_on_order(word(node, "function_name"))
    if kind == "WINDOW":
        return True
    return any(cuts_of([node]))


def _unreached(places: Places, node: Node) -> Need:
    message = "a part of the query whose rows cannot be told apart depends on their order"
    codes = {"WINDOW": "sql.unordered_window", "FUNCTION": "sql.unordered_aggregate"}
    code = codes.get(word(node, "class"), "sql.unordered_limit")
    return Need(code.removeprefix("sql."), code, message, places.offset(node))


class _Ties:
    def __init__(self, places: Places, tables: Mapping[str, Keyed]) -> None:
        self.places = places
        self.tables = tables
        self.ctes: list[dict[str, Keyed]] = []
        self.needs: list[Need] = []
        self.seen: set[int] = set()
        self.rows: dict[int, Need | None] = {}
        self.outer = 0
        """How many references so far were to nothing in their own FROM: correlation, likely."""

    def query(
        self, node: Node, *, columns: Sequence[str] | None = None, counted: bool = False
    ) -> Keyed:
        """The columns and keys of a query, all orders inside it checked.

        columns: names of the result, of the outermost query. counted: only whether it has rows
        matters, or how many.
        """
        self.ctes.append({})
        try:
            for entry in nodes(as_node(node.get("cte_map") or {}).get("map")):
                self._with(entry)
            found = self._body(node, columns, counted=counted)
        finally:
            self.ctes.pop()
        kinds = (word(m, "type") for m in nodes(node.get("modifiers")))
        return replace(found, ordered="ORDER_MODIFIER" in kinds)

    def _body(self, node: Node, columns: Sequence[str] | None, *, counted: bool) -> Keyed:
        kind = word(node, "type")
        if kind == "SELECT_NODE":
            return self._select(node, columns, counted=counted)
        if kind == "SET_OPERATION_NODE":
            return self._set_operation(node, columns, counted=counted)
        return self._recursive(node) if kind == "RECURSIVE_CTE_NODE" else UNKNOWN

    def _with(self, entry: Node) -> None:
        name = word(entry, "key").lower()
        body = as_node(entry["value"])
        self.ctes[-1][name] = UNKNOWN
        found = self.query(as_node(body["query_node"]))
        self.ctes[-1][name] = found.named(name, listed(body.get("aliases")))
        if body.get("key_targets"):
            message = "USING KEY keeps the row that comes last"
            remedy = "Write the recursion with UNION, and take the rows wanted from its result."
            where = self.places.offset(body["key_targets"])
            self.needs.append(
                Need("unordered_aggregate", "sql.construct", message, where, remedy=remedy)
            )

    def _recursive(self, node: Node) -> Keyed:
        """Both parts; the result has the columns of the first."""
        first = self.query(as_node(node["left"]))
        name = word(node, "cte_name").lower()
        found = Keyed(None if first.columns is None else dict.fromkeys(first.columns, ""))
        found = found.named(name, listed(node.get("aliases")))
        self.ctes[-1][name] = found
        self.query(as_node(node["right"]))
        outputs = [Output(n, None, None) for n in found.columns] if found.columns else None
        self._limits(node, Block([found]), outputs, found, None, counted=False)
        return found

    def _set_operation(self, node: Node, columns: Sequence[str] | None, *, counted: bool) -> Keyed:
        parts = nodes(node.get("children")) or [as_node(node["left"]), as_node(node["right"])]
        branches = [self.query(part) for part in parts]
        named = branches[:1]
        if "BY_NAME" in word(node, "setop_type"):
            named = branches
        known = all(branch.columns is not None for branch in named)
        names_ = dict.fromkeys((n for b in named for n in b.columns or ()), "")
        found = Keyed(names_) if known else UNKNOWN
        block = Block([found])
        self._expressions(node.get("modifiers"), Block([UNKNOWN]), None)
        for modifier in nodes(node.get("modifiers")):
            self._outer_of([modifier.get("limit"), modifier.get("offset")], Block())
        outputs = [Output(name, None, None) for name in names_] if known else None
        self._limits(node, block, outputs, found, columns, counted=counted)
        return found

    def _select(self, node: Node, columns: Sequence[str] | None, *, counted: bool) -> Keyed:
        block = Block()
        if node.get("from_table"):
            self._from(as_node(node["from_table"]), block)
        if node.get("where_clause"):
            block.equate(as_node(node["where_clause"]), set(), set(), "INNER")
        items = nodes(node.get("select_list"))
        block.aliases = {word(i, "alias").lower(): i for i in items if word(i, "alias")}
        outputs = outputs_of(items, block)
        groups = groups_of(node, items, block)
        once = groups if one_grouping(node) else None  # a total spans all groups
        parts = [node.get(part) for part in ("select_list", "having", "qualify", "modifiers")]
        self.rows |= row_needs(self.places, parts, block, once)
        for part in ("select_list", "where_clause", "having", "qualify", "modifiers"):
            self._expressions(node.get(part), block, groups, of=node)
        self._expressions(node.get("group_expressions"), block, None)
        self._count_outer(node, block)
        found = keyed_of_select(node, block, outputs, groups)
        cut = self._limits(node, block, outputs, found, columns, counted=counted, groups=groups)
        return replace(found, one=True) if cut else found

    def _count_outer(self, node: Node, block: Block) -> None:
        """References of this block to nothing in its own FROM, whose parts counted their own."""
        for key, value in node.items():
            if key not in ("cte_map", "from_table"):
                self._outer_of(value, block)

    def _outer_of(self, value: Json, block: Block) -> None:
        """References of an expression to nothing in FROM, as far as it is known here.

        A name that the select list gives is none, unless it is given to what reads that name.
        """
        for part in own_parts(value):
            if word(part, "class") != "COLUMN_REF" or block.resolve(names(part)) is not None:
                continue
            own = names(part)[0].lower() if len(names(part)) == 1 else ""
            given = block.aliases.get(own)
            inner = [[p.lower() for p in r] for r in column_refs(given)] if given else [[own]]
            self.outer += [own] in inner

    def _limits(
        self,
        node: Node,
        block: Block,
        outputs: list[Output] | None,
        found: Keyed,
        columns: Sequence[str] | None,
        *,
        counted: bool,
        groups: list[Node] | None = None,
    ) -> bool:
        """The needs of LIMIT, OFFSET, DISTINCT ON and the outermost order; whether LIMIT 1 cuts."""
        modifiers = nodes(node.get("modifiers"))
        self.seen |= {id(m) for m in modifiers}
        cut = Cut(node, block, outputs, groups, found, columns)
        if not counted and not found.one:
            self.needs += limit_needs(self.places, cut)
        return any(map(_takes_one, modifiers))

    def _from(self, node: Node, block: Block) -> set[int]:
        """Put the relations of FROM into a block; their places."""
        kind = word(node, "type")
        if kind == "JOIN":
            return self._join(node, block)
        if kind == "EMPTY":
            return set()
        renamed, alias = listed(node.get("column_name_alias")), word(node, "alias")
        if kind == "BASE_TABLE":
            name = word(node, "table_name")
            found = self._table(name.lower()).named(alias or name, renamed)
        elif kind == "SUBQUERY":
            before = self.outer
            found = self.query(as_node(as_node(node["subquery"])["node"])).named(alias, renamed)
            if block.relations and self.outer > before:  # may be lateral: keys hold per row only
                found = replace(found, keys=(), one=False)
        else:
            made, parts = Block([UNKNOWN]), [v for k, v in node.items() if k != "function"]
            self.rows |= row_needs(self.places, parts, made, None)
            self._expressions(parts, made, None)
            given = arguments(as_node(node.get("function") or {}))
            for argument in given:
                self._expressions(argument, block, None)
            for part in [*parts, *given]:
                self._outer_of(part, block)
            found = _made(node).named(alias, renamed)
        block.relations.append(found)
        return {len(block.relations) - 1}

    def _join(self, node: Node, block: Block) -> set[int]:
        left = self._from(as_node(node["left"]), block)
        start = len(block.relations)
        right = self._from(as_node(node["right"]), block)
        join = word(node, "join_type")
        using = {name.lower() for name in listed(node.get("using_columns"))}
        if word(node, "ref_type") == "NATURAL":
            sides = [
                {n for p in side for n in block.relations[p].columns or {}}
                for side in (left, right)
            ]
            using |= sides[0] & sides[1]
        need = asof_need(self.places, node, block, right, using)
        self.needs += [need] if need is not None else []
        if node.get("condition"):
            self._expressions(node["condition"], block, None)
        self._outer_of(node.get("condition"), block)
        if join in ("SEMI", "ANTI"):
            block.forget(start)
            return left
        if join != "INNER":
            on = as_node(node["condition"]) if node.get("condition") else None
            block.extend(left, right, join, block.equal(on, using, [left, right]))
        if node.get("condition"):
            block.equate(as_node(node["condition"]), left, right, join)
        block.merge(using, left, right, join)
        return left | right

    def _table(self, name: str) -> Keyed:
        for defined in reversed(self.ctes):
            if name in defined:
                return defined[name]
        return self.tables.get(name, UNKNOWN)

    def _expressions(
        self, node: Json, block: Block, groups: list[Node] | None, of: Node | None = None
    ) -> None:
        """Every window, ordered aggregate and query in the expressions of a block (of)."""
        if isinstance(node, dict):
            if "cte_map" in node and word(node, "type") in _QUERIES:
                self.query(node)
                return
            if node.get("class") == "SUBQUERY":
                counted = word(node, "subquery_type") in ("EXISTS", "NOT_EXISTS")
                self.query(as_node(as_node(node["subquery"])["node"]), counted=counted)
                self._expressions(node.get("child"), block, groups, of)
                return
            need = None
            if node.get("class") == "WINDOW":
                self.seen.add(id(node))
                need = window_need(self.places, node, block, groups, of or {})
            elif node.get("class") == "FUNCTION" and functions.groups(word(node, "function_name")):
                self.seen.add(id(node))
                once = groups if one_grouping(of or {}) else None  # a total spans all groups
                need = aggregate_need(self.places, node, block, once)
                need = self.rows.get(id(node), need)  # in one order with others
            self.needs += [need] if need is not None else []
        for child in children(node):
            self._expressions(child, block, groups, of)


def _made(node: Node) -> Keyed:
    """The columns of VALUES, and of table functions that have one; else not known."""
    if word(node, "type") == "EXPRESSION_LIST":
        rows = node.get("values")
        first = rows[0] if isinstance(rows, list) and rows else None
        width = len(first) if isinstance(first, list) else 0
        given = listed(node.get("expected_names")) or [f"col{n}" for n in range(width)]
        return Keyed(dict.fromkeys(given, "")) if width and len(given) == width else UNKNOWN
    name = word(as_node(node.get("function") or {}), "function_name").lower()
    return Keyed({_ONE_COLUMN[name]: ""}) if name in _ONE_COLUMN else UNKNOWN


def _takes_one(modifier: Node) -> bool:
    """Whether a modifier is LIMIT 1."""
    limit = modifier.get("limit")
    literal = as_node(as_node(limit).get("literal") or {}) if limit else {}
    percent = word(modifier, "limit_type") == "PERCENTAGE" or "PERCENT" in word(modifier, "type")
    return literal.get("kind") == "INTEGER" and literal.get("text") == "1" and not percent
