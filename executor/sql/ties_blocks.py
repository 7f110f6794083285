"""What one block of a query gives: result columns, groups, and what tells its rows apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tieout.executor.sql.expressions import aggregates
from tieout.executor.sql.flow import NotUnderstoodError
from tieout.executor.sql.keys import Block, Column, Keyed
from tieout.executor.sql.literals import same
from tieout.executor.sql.shape import (
    Json,
    Node,
    as_node,
    children,
    column_refs,
    names,
    nodes,
    word,
)
from tieout.executor.sql.stars import name_list

_MAKES_ROWS = frozenset({"unnest", "generate_subscripts"})
_STAR_PARTS = ("columns", "expr", "replace_list", "rename_list")


@dataclass(frozen=True, slots=True)
class Output:
    """A result column of a block: its name, and the column of FROM that it copies, if any.

    name: "?" and its place where the engine names an expression. expression: None under a star.
    """

    name: str
    column: Column | None
    expression: Node | None

    @property
    def constant(self) -> bool:
        """Whether it has one value in all rows."""
        return self.expression is not None and word(self.expression, "class") == "CONSTANT"


def listed(value: Json) -> list[str]:
    """Names in a list; one that fits nothing where the shape is not known."""
    try:
        return name_list(value)
    except NotUnderstoodError:
        return ["?"]


def own_parts(node: Json) -> Iterator[Node]:
    """All objects below a node that belong to its own query, not to one inside it."""
    if isinstance(node, dict):
        if "cte_map" in node:
            return
        yield node
    for child in children(node):
        yield from own_parts(child)


def _holds_aggregate(node: Json) -> bool:
    if isinstance(node, dict):
        if node.get("class") in ("SUBQUERY", "WINDOW"):
            return False
        if node.get("class") == "FUNCTION" and aggregates(word(node, "function_name").lower()):
            return True
    return any(_holds_aggregate(child) for child in children(node))


def _holds_window(node: Node) -> bool:
    return any(word(part, "class") == "WINDOW" for part in own_parts(node))


def makes_rows(items: list[Node]) -> bool:
    """Whether a select list turns one row into several."""
    parts = (part for item in items for part in own_parts(item))
    return any(word(part, "function_name").lower() in _MAKES_ROWS for part in parts)


def groups_of(node: Node, items: list[Node]) -> list[Node] | None:
    """What the rows of a grouped block are told apart by; None when it is not grouped."""
    given = nodes(node.get("group_expressions"))
    if word(node, "aggregate_handling") not in ("", "STANDARD_HANDLING"):
        return [i for i in items if not _holds_aggregate(i) and not _holds_window(i)]
    if not given:
        return [] if node.get("having") or any(map(_holds_aggregate, items)) else None
    found = []
    aliases = {word(i, "alias").lower(): i for i in items if word(i, "alias")}
    for group in given:
        literal = as_node(group.get("literal") or {})
        place = int(str(literal["text"])) if literal.get("kind") == "INTEGER" else 0
        by_name = aliases.get(names(group)[0].lower()) if len(names(group)) == 1 else None
        found.append(items[place - 1] if 0 < place <= len(items) else by_name or group)
    return found


def one_grouping(node: Node) -> bool:
    """Whether rows are grouped once; ROLLUP and its like repeat rows with NULL in their groups."""
    sets = node.get("group_sets")
    return not (isinstance(sets, list) and len(sets) > 1)


def outputs_of(items: list[Node], block: Block) -> list[Output] | None:
    """The result columns; None when a star stands for columns that are not known."""
    found: list[Output] = []
    for place, item in enumerate(items):
        if word(item, "class") != "STAR":
            column = block.resolve(names(item)) if word(item, "class") == "COLUMN_REF" else None
            own = names(item)[-1].lower() if names(item) else f"?{place}"
            found.append(Output(word(item, "alias").lower() or own, column, item))
            continue
        if any(item.get(k) for k in _STAR_PARTS):
            return None
        only = word(item, "relation_name").lower()
        excluded = {x.lower() for x in listed(item.get("exclude_list"))}
        excluded |= {x.lower() for x in listed(item.get("qualified_exclude_list"))}
        for at, relation in enumerate(block.relations):
            if only and relation.alias.lower() != only:
                continue
            if relation.columns is None:
                return None
            merged = block.merged if not only else set[Column]()
            shown = (n for n in relation.columns if n not in excluded and (at, n) not in merged)
            found += [
                Output(n, None if n in block.opaque and not only else (at, n), None) for n in shown
            ]
    return found


def keyed_of_select(
    node: Node, block: Block, outputs: list[Output] | None, groups: list[Node] | None
) -> Keyed:
    """Columns and keys of a SELECT's result."""
    items = nodes(node.get("select_list"))
    repeats = makes_rows(items)
    one = (groups == [] or not block.relations) and not repeats
    if outputs is None or len({o.name for o in outputs}) != len(outputs):
        return Keyed(None, one=one)
    columns = {o.name: block.kind(o.column) if o.column else "" for o in outputs}
    if repeats:
        return Keyed(columns)
    if groups is not None:
        named = [
            next((o.name for o in outputs if o.expression and same(o.expression, g)), None)
            for g in groups
        ]
        key = frozenset(n for n in named if n is not None)
        told = one_grouping(node) and None not in named and key
        return Keyed(columns, (key,) if told else (), one=one)
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


def takes_all(expression: Node) -> bool:
    """Whether an ORDER BY expression is ALL, or another star over all result columns."""
    if word(expression, "class") != "STAR":
        return False
    limits = ("expr", "relation_name", "exclude_list", "qualified_exclude_list", *_STAR_PARTS[2:])
    return not any(expression.get(key) for key in limits)


def covers(orders: list[Node], outputs: list[Output], keys: tuple[frozenset[str], ...]) -> bool:
    """Whether an ORDER BY names every output column, or a key of the result, or ALL."""
    named = {output.name for output in outputs if output.constant}
    for expression in orders:
        if takes_all(expression):
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
    return {o.name for o in outputs} <= named or any(key <= named for key in keys)


def covered(given: list[Node], orders: list[Node], block: Block, *, grouped: bool) -> bool:
    """Whether rows that tie in some orders agree in all given arguments, too.

    grouped: the rows are groups, where a column under an aggregate is not that column.
    """
    have = set[Column]() if grouped else block.closure(block.plain(orders))[0]
    words = {_low(names(o)) for o in orders if word(o, "class") == "COLUMN_REF"}
    return all(
        word(argument, "class") == "CONSTANT"
        or any(same(argument, order) for order in orders)
        or (not grouped and _follows(argument, block, have, words))
        for argument in given
    )


def _follows(argument: Node, block: Block, have: set[Column], words: set[tuple[str, ...]]) -> bool:
    """Whether an expression is made of columns that are settled, and of nothing else."""
    if any("cte_map" in p or word(p, "class") == "STAR" for p in _parts(argument)):
        return False
    return all(block.resolve(r) in have or _low(r) in words for r in column_refs(argument))


def _parts(node: Json) -> Iterator[Node]:
    if isinstance(node, dict):
        yield node
    for child in children(node):
        yield from _parts(child)


def _low(parts: list[str]) -> tuple[str, ...]:
    return tuple(p.lower() for p in parts)
