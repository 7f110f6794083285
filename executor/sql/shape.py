"""Reading the engine's trees, which are JSON: the few shapes they have, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from tieout.executor.sql.refusal import NO_LOCATION, SqlRefused

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Node: TypeAlias = "dict[str, Json]"


def children(node: Json) -> Iterator[Json]:
    """The values of an object or list of the tree."""
    if isinstance(node, dict):
        yield from node.values()
    elif isinstance(node, list):
        yield from node


def walk(node: Json) -> Iterator[Node]:
    """All objects of a tree, each before its parts, in their order."""
    open_ = [node]
    while open_:  # a stack: a generator in a generator costs for each level above
        here = open_.pop()
        if isinstance(here, dict):
            yield here
            open_.extend([v for v in here.values() if isinstance(v, dict | list)][::-1])
        elif isinstance(here, list):
            open_.extend([v for v in here if isinstance(v, dict | list)][::-1])


def as_node(value: Json) -> Node:
    """A value that must be an object; anything else is not the tree we know."""
    if not isinstance(value, dict):
        raise SqlRefused(
            "sql.construct", "the parse tree has an unknown shape", remedy="Write plainer SQL."
        )
    return value


def nodes(value: Json) -> list[Node]:
    """The objects in a list."""
    return [as_node(v) for v in value] if isinstance(value, list) else []


def arguments(node: Node) -> list[Node]:
    """The argument expressions of a function or window."""
    return [as_node(a["expression"]) for a in nodes(node.get("arguments"))]


def location(node: Node) -> int | None:
    """The byte location the engine gives."""
    place = node.get("query_location")
    return place if isinstance(place, int) else None


def locations(node: Json) -> Iterator[int]:
    """The byte locations of all that stands below, and of the node itself."""
    if isinstance(node, dict):
        where = location(node)
        if where is not None and where != NO_LOCATION:
            yield where
    for child in children(node):
        yield from locations(child)


def word(node: Node, key: str) -> str:
    """A text field, empty when absent."""
    value = node.get(key)
    return value if isinstance(value, str) else ""


def names(node: Node) -> list[str]:
    """The parts of a column reference."""
    value = node.get("column_names")
    return [str(v) for v in value] if isinstance(value, list) else []


def column_refs(node: Json) -> Iterator[list[str]]:
    """The parts of all column references below a node."""
    if isinstance(node, dict) and node.get("class") == "COLUMN_REF":
        yield names(node)
    for child in children(node):
        yield from column_refs(child)
