"""Literals of the engine's tree: reading them, and marking what stands for one."""

from __future__ import annotations

from collections.abc import Iterator

from tieout.executor.sql.flow import EARLIER, Literal, Literals
from tieout.executor.sql.refusal import NO_LOCATION
from tieout.executor.sql.shape import Json, Node, as_node, children, location, names, word
from tieout.executor.sql.vocabulary import MAKES_ROWS

_WIDTH = "width of "
_PLACES = frozenset({"query_location", "query_location_length", "alias"})


def _place(node: Node) -> int:
    place = location(node)
    return EARLIER if place in (None, NO_LOCATION) else int(place or 0)


def literal_of(node: Node) -> Literal | None:
    """A constant's literal; NULL is none."""
    literal = as_node(node.get("literal") or {})
    if literal.get("kind") == "NULL_LITERAL":
        return None
    return _place(node), str(literal.get("text", ""))


def all_literals(node: Json) -> Iterator[Literal]:
    """Every literal below a node, those of types (precision, scale) left out.

    UNPIVOT turns the names of columns into values: they are literals of their own kind.
    """
    if isinstance(node, dict):
        if node.get("class") == "TYPE":
            return
        if node.get("class") == "CONSTANT":
            found = literal_of(node)
            if found is not None:
                yield found
            return
        if node.get("type") == "PIVOT" and node.get("unpivot_names"):
            yield _place(node), "names of columns"
    for child in children(node):
        yield from all_literals(child)


def constants(node: Json) -> Literals:
    """The literals inside a type: precision, scale, length."""
    if isinstance(node, dict) and node.get("class") == "CONSTANT":
        found = literal_of(node)
        return frozenset({found}) if found else frozenset()
    return frozenset(x for child in children(node) for x in constants(child))


def marked(node: Node, text: str) -> Literals:
    """What stands for a literal that nobody wrote: no number, so that it has no better label."""
    return frozenset({(_place(node), text)})


def width(node: Node, name: str) -> Literals:
    """The width that a cast or a function gives to a text."""
    return marked(node, f"{_WIDTH}{name.lower()}")


def is_width(literal: Literal) -> bool:
    """Whether a parameter is a width, which counts only once it is measured."""
    return literal[1].startswith(_WIDTH)


def glued(literals: Literals) -> Literals:
    """In quotes: part of a longer text, so that the text is no number of its own any more."""
    return frozenset(
        (place, text if text.startswith("'") and text.endswith("'") else f"'{text}'")
        for place, text in literals
    )


def same(left: Json, right: Json) -> bool:
    """Whether two expressions read alike, whatever the case and qualification of their names."""
    if isinstance(left, dict) and isinstance(right, dict):
        if left.get("class") == right.get("class") == "COLUMN_REF":
            return _same_column(names(left), names(right))
        keys = left.keys() - _PLACES
        if keys != right.keys() - _PLACES or left.get("literal") != right.get("literal"):
            return False  # of a literal, case counts
        return all(same(left[k], right[k]) for k in keys)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, str) and isinstance(right, str) and left.lower() == right.lower():
        return True
    return left == right


def _same_column(left: list[str], right: list[str]) -> bool:
    parts = min(len(left), len(right))
    return [p.lower() for p in left[-parts:]] == [p.lower() for p in right[-parts:]]


def unnested(node: Json) -> Iterator[Literal]:
    """Literals inside unnest(...) and its like in a select list: they set the number of rows."""
    if isinstance(node, dict) and word(node, "function_name").lower() in MAKES_ROWS:
        yield from all_literals(node)
        return
    for child in children(node):
        yield from unnested(child)
