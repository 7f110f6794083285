"""A literal of the engine's tree with the type that is written around it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from tieout.executor.sql.declared_values import Kind, Value, cast, kind_of, read
from tieout.executor.sql.refusal import NO_LOCATION
from tieout.executor.sql.shape import Node, as_node, location, nodes, word

_PLAIN = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_DECIMALS = frozenset({"DECIMAL", "NUMERIC", "DEC"})
_DECIMAL_DEFAULT = ("18", "3")


@dataclass(frozen=True, slots=True)
class TypedLiteral:
    """text: of the constant. kind: of a cast around it, None where it is bare.

    location: in bytes, of the constant where the engine gives it, else of the cast before it;
    within: it is that of the cast.
    """

    text: str
    is_number: bool
    kind: Kind | None
    location: int | None
    within: bool

    @property
    def shown(self) -> str:
        """As a message quotes it."""
        return self.text if self.is_number else f"'{self.text}'"

    @property
    def scale(self) -> int:
        """Digits after the point of a number."""
        return len(self.text.partition(".")[2])

    def read_as(self, other: Kind) -> Kind | None:
        """The kind that the literal has beside a value of another kind."""
        if self.kind is not None:
            families = {self.kind.family, other.family}
            alike = len(families) == 1 or families == {"date", "moment"}
            return self.kind if alike else None
        if not self.is_number:
            return other
        wide = Kind("number", scale=max(self.scale, other.scale))
        return wide if other.family == "number" else None

    def value(self, other: Kind) -> Value | None:
        """The value that it has beside a value of another kind; None when that is not certain."""
        kind = self.read_as(other)
        if kind is None:
            return None
        if not self.is_number:
            return read(self.text, kind)
        return cast(Decimal(self.text), Kind("number", scale=self.scale), kind)


def typed_literal(node: Node) -> TypedLiteral | None:
    """The literal that an expression is, under one cast at most."""
    kind, place = None, None
    if word(node, "class") == "CAST":
        kind, place = cast_kind(as_node(node["type_expr"])), location(node)
        node = as_node(node["child"])
        if kind is None:
            return None
    literal = as_node(node.get("literal") or {})
    text, sort = str(literal.get("text", "")), literal.get("kind")
    number = sort in ("INTEGER", "NUMERIC") and _PLAIN.fullmatch(text) is not None
    if word(node, "class") != "CONSTANT" or not (number or sort == "STRING"):
        return None
    own = location(node)
    within = own in (None, NO_LOCATION)
    return TypedLiteral(text, number, kind, place if within else own, within)


def cast_kind(node: Node) -> Kind | None:
    """The kind of a cast's type, as the tree names it."""
    name = word(node, "type_name").upper()
    given = [as_node(c.get("literal") or {}).get("text") for c in nodes(node.get("children"))]
    if name not in _DECIMALS:
        return None if given else kind_of(name)
    sizes = [str(g) for g in given] or [*_DECIMAL_DEFAULT]
    return kind_of(f"DECIMAL({sizes[0]},{sizes[1] if len(sizes) > 1 else '0'})")
