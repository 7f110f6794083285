"""Exact numbers by their bound types: how many digits, how many of them behind the point."""

from __future__ import annotations

from dataclasses import dataclass

from tieout.executor.sql.shape import Json, Node, as_node, nodes, word

DIGITS_MAX = 38
"""Of the engine's DECIMAL."""
PLACES = 12
"""Behind the point of a quotient or an average: DECIMAL keeps them all, and processors agree."""
WHOLE_DIGITS_MIN = 12
"""Before the point of a numerator; where fewer are left, the division stays as it was."""

INTEGERS = {
    "TINYINT": 3,
    "SMALLINT": 5,
    "INTEGER": 10,
    "BIGINT": 19,
    "HUGEINT": 38,
    "UTINYINT": 3,
    "USMALLINT": 5,
    "UINTEGER": 10,
    "UBIGINT": 20,
    "UHUGEINT": 38,
}
"""Digits that hold every value; a HUGEINT of 39 digits does not fit, and its cast then raises."""


@dataclass(frozen=True, slots=True)
class Exact:
    """A DECIMAL(digits, places), or an integer (decimal: False)."""

    digits: int
    places: int
    decimal: bool

    def __str__(self) -> str:
        return f"DECIMAL({self.digits},{self.places})"


def exact_type(kind: Json) -> Exact | None:
    """A type of the bound plan; None when it is no integer and no DECIMAL."""
    if not isinstance(kind, dict):
        return None
    name = word(kind, "id")
    if name in INTEGERS:
        return Exact(INTEGERS[name], 0, decimal=False)
    if name != "DECIMAL":
        return None
    info = as_node(kind.get("type_info") or {})
    digits, places = info.get("width"), info.get("scale", 0)
    if not isinstance(digits, int) or not isinstance(places, int):
        return None
    return Exact(digits, places, decimal=True)


def return_type(node: Node) -> Json:
    """The type that a bound expression gives; a constant carries it in its value."""
    if word(node, "expression_class") == "BOUND_CONSTANT":
        return as_node(node.get("value") or {}).get("type")
    return node.get("return_type")


def averaged(kind: Exact) -> Exact:
    """What a DECIMAL is cast to before it is averaged."""
    return Exact(DIGITS_MAX, max(kind.places, PLACES), decimal=True)


def divided(over: Exact, under: Exact) -> tuple[Exact, Exact] | None:
    """What numerator and denominator are cast to; None when too few digits would be left.

    The engine asks that digits - places + the other's places + PLACES fit in a DECIMAL. The
    numerator gives up leading digits for that: a value that has them raises sql.overflow.
    """
    whole = min(over.digits - over.places, DIGITS_MAX - PLACES - under.places)
    if whole < min(WHOLE_DIGITS_MIN, over.digits - over.places):
        return None
    digits = min(DIGITS_MAX, max(whole + over.places, 1))
    return Exact(digits, over.places, decimal=True), Exact(under.digits, under.places, decimal=True)


def arguments_of(node: Node) -> list[Node]:
    """The types that a bound call takes."""
    return nodes(node.get("arguments"))
