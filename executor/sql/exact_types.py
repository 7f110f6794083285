"""Exact numbers by their bound types: how many digits, how many of them behind the point."""

from __future__ import annotations

from dataclasses import dataclass

from tieout.executor.sql.shape import Json, Node, as_node, nodes, word

DIGITS_MAX = 38
"""Of the engine's DECIMAL."""
PLACES = 20
"""Behind the point of a quotient, as far as its types leave room for them."""
AVERAGE_PLACES = 18
"""Behind the point of an average: totals up to 1.7e20 pass, and larger ones raise an overflow."""
PLACES_MIN = 12
"""Behind the point of a quotient; where fewer are left, the division stays as it was."""
WHOLE_DIGITS_MAX = 18
"""Before the point of a wider numerator; a value that has more raises an overflow."""
COUNTED_DIGITS_MAX = 19
"""Of types that keep all digits, and have a place for their smallest quotient: up to BIGINT."""

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


@dataclass(frozen=True, slots=True)
class Divided:
    """What numerator and denominator are cast to, and the places of the quotient."""

    over: Exact
    under: Exact
    places: int


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
    """What an exact number is cast to before it is averaged."""
    return Exact(DIGITS_MAX, max(kind.places, AVERAGE_PLACES), decimal=True)


def divided(over: Exact, under: Exact, *, power: int | None = None) -> Divided | None:
    """How one type is divided by another; None when too few places would be left.

    The engine asks that whole digits of the numerator, places of the denominator and of the result
    fit in a DECIMAL. A wider numerator gives up leading digits for that.
    Of types of COUNTED_DIGITS_MAX digits no quotient but that of 0 rounds to 0.
    power: of ten that the denominator is known to be; the quotient then needs no more places.
    """
    whole = over.digits - over.places
    if over.digits > COUNTED_DIGITS_MAX:
        whole = min(whole, WHOLE_DIGITS_MAX)
    room = DIGITS_MAX - whole - under.places
    wanted = PLACES
    if power is not None and over.places + power <= min(PLACES, room):
        return _divided(over, under, whole, over.places + power)
    if max(over.digits, under.digits) <= COUNTED_DIGITS_MAX:
        wanted = max(PLACES, over.places + under.digits - under.places)
    places = min(room, wanted)
    return _divided(over, under, whole, places) if places >= PLACES_MIN else None


def _divided(over: Exact, under: Exact, whole: int, places: int) -> Divided:
    digits = max(whole + over.places, 1)
    return Divided(
        Exact(digits, over.places, decimal=True),
        Exact(under.digits, under.places, decimal=True),
        places,
    )


def arguments_of(node: Node) -> list[Node]:
    """The types that a bound call takes."""
    return nodes(node.get("arguments"))
