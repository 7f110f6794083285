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
    arguments,
    as_node,
    children,
    column_refs,
    names,
    nodes,
    word,
)
from tieout.executor.sql.stars import name_list
from tieout.executor.sql.vocabulary import MAKES_ROWS

_LISTS = frozenset({"list_value", "range", "generate_series", "string_split", "list_distinct"})
"""Functions that give a list."""
_OPEN: Node = {"class": "OPEN"}
"""An expression that is not known, and so like no other."""
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
    open_ = [node]
    while open_:
        here = open_.pop()
        if isinstance(here, dict) and "cte_map" not in here:
            yield here
            open_ += reversed(here.values())
        elif isinstance(here, list):
            open_ += reversed(here)


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
    return any(word(part, "function_name").lower() in MAKES_ROWS for part in parts)


def groups_of(node: Node, items: list[Node], block: Block) -> list[Node] | None:
    """What the rows of a grouped block are told apart by; None when it is not grouped.

    A name is a column of FROM before it is one of the result's; where FROM is not known, neither.
    """
    given = nodes(node.get("group_expressions"))
    if word(node, "aggregate_handling") not in ("", "STANDARD_HANDLING"):
        return [i for i in items if not _holds_aggregate(i) and not _holds_window(i)]
    if not given:
        return [] if node.get("having") or any(map(_holds_aggregate, items)) else None
    found = []
    for group in given:
        literal = as_node(group.get("literal") or {})
        place = int(str(literal["text"])) if literal.get("kind") == "INTEGER" else 0
        alone = names(group)[0].lower() if len(names(group)) == 1 else ""
        if 0 < place <= len(items):
            found.append(items[place - 1])
        elif alone in block.aliases and not block.holds(alone):
            found.append(block.aliases[alone] if block.known else _OPEN)
        else:
            found.append(group)
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
            found.append(_output(place, item, block))
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
    return None if _repeated(items, block) else found


def written_of(items: list[Node], block: Block) -> list[Output] | None:
    """The result columns beside those of stars; None when a star gives names of its own."""
    renaming = any(item.get(key) for item in items for key in ("replace_list", "rename_list"))
    pairs = [(n, i) for n, i in enumerate(items) if word(i, "class") != "STAR" or word(i, "alias")]
    opaque = renaming or _repeated(items, block)
    return None if opaque else [_output(n, i, block) for n, i in pairs]


def _output(place: int, item: Node, block: Block) -> Output:
    column = block.resolve(names(item)) if word(item, "class") == "COLUMN_REF" else None
    own = names(item)[-1].lower() if names(item) else f"?{place}"
    return Output(word(item, "alias").lower() or own, column, item)


def _repeated(items: list[Node], block: Block) -> bool:
    """Whether an expression may stand for several columns, which have names of their own.

    upper(COLUMNS(...)) does, and unnest of a struct.
    """
    return any(
        (word(part, "class") == "STAR" and part is not item) or _spreads(part, block)
        for item in items
        for part in own_parts(item)
    )


def _spreads(call: Node, block: Block) -> bool:
    """Whether it is an unnest(...) of what is not seen to be a list."""
    if word(call, "function_name").lower() != "unnest":
        return False
    given = arguments(call)
    if len(given) != 1:
        return True
    column = block.resolve(names(given[0])) if names(given[0]) else None
    kind = block.kind(column) if column is not None else ""
    return not kind.endswith("]") and word(given[0], "function_name").lower() not in _LISTS


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
    named = {place for place, output in enumerate(outputs) if output.constant}
    for expression in orders:
        if takes_all(expression):
            return True
        literal = as_node(expression.get("literal") or {})
        if literal.get("kind") == "INTEGER":
            named |= {int(str(literal["text"])) - 1}
        elif by_name(expression, outputs):
            called = by_name(expression, outputs)
            named |= set(called) if len(called) == 1 else set()
        else:
            given = ((place, output.expression) for place, output in enumerate(outputs))
            named |= {place for place, e in given if e is not None and same(e, expression)}
    found = {output.name for place, output in enumerate(outputs) if place in named}
    return named >= set(range(len(outputs))) or any(key <= found for key in keys)


def by_name(expression: Node, outputs: list[Output]) -> list[int]:
    """The places of the result columns that an ORDER BY expression names.

    A name alone is a column of the result before it is one of FROM; inside an expression it is
    one of FROM (measured).
    """
    if word(expression, "class") != "COLUMN_REF" or len(names(expression)) != 1:
        return []
    name = names(expression)[0].lower()
    return [place for place, output in enumerate(outputs) if output.name == name]


def sources(orders: list[Node], outputs: list[Output]) -> tuple[list[Node], set[Column]]:
    """What an ORDER BY means in terms of FROM: expressions there, and columns.

    A name alone that several result columns have is left out.
    """
    expressions, columns = list[Node](), set[Column]()
    for expression in orders:
        called = by_name(expression, outputs)
        if not called:
            expressions.append(expression)
        elif len(called) == 1:
            output = outputs[called[0]]
            expressions += [output.expression] if output.expression is not None else []
            columns |= {output.column} if output.column is not None else set()
    return expressions, columns


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
