"""Literals compared with a column that declares a domain or a range are held to what it declares.

An unknown value is refused with the known ones, and so is equality with a value outside a range:
nothing could match, or everything would. A comparison by order cuts the values in two; a cut
outside the range is moved to its nearest end, so that the same rows stay on either side. The data
were held to the declaration when they were pinned, so that a clamp cannot change a result.

The column is found through aliases, WITH queries and subqueries that only copy it, and through
casts. Where the tracer does not know a shape (PIVOT), the literals there are not checked.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from tieout.executor.sql.blocks import Tracer
from tieout.executor.sql.declared_values import Kind, Value, below, cast, kind_of, read
from tieout.executor.sql.expressions import Expressions
from tieout.executor.sql.flow import Flow, NotUnderstoodError, Scope
from tieout.executor.sql.needs import Need
from tieout.executor.sql.origins import granted_relation
from tieout.executor.sql.range_cuts import OUTSIDE, Cut, clamped
from tieout.executor.sql.reading import Reading
from tieout.executor.sql.refusal import NO_LOCATION, SqlRefused
from tieout.executor.sql.shape import Node, arguments, as_node, location, names, nodes, word
from tieout.executor.sql.typed_literals import TypedLiteral, cast_kind, typed_literal
from tieout.executor.sql.validate import GrantedColumn

VALUES_SHOWN_MAX: Final = 20
BEGINNING: Final = 2
"""Characters of a literal that tell it from a word or bracket in its place."""
_EQUALITIES: Final = frozenset(
    {
        *("COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_DISTINCT_FROM"),
        "COMPARE_NOT_DISTINCT_FROM",
    }
)
_MEMBERSHIPS: Final = frozenset({"COMPARE_IN", "COMPARE_NOT_IN"})
_ORDERS: Final = {
    "COMPARE_LESSTHAN": Cut.BELOW,
    "COMPARE_GREATERTHANOREQUALTO": Cut.BELOW,
    "COMPARE_GREATERTHAN": Cut.ABOVE,
    "COMPARE_LESSTHANOREQUALTO": Cut.ABOVE,
}
"""x < 5 and x >= 5 cut the values just below 5, x > 5 and x <= 5 just above."""
_TURNED: Final = {Cut.BELOW: Cut.ABOVE, Cut.ABOVE: Cut.BELOW}
_LIKES: Final = frozenset({"~~", "~~*", "!~~", "!~~*"})
_LIST_MEMBERSHIPS: Final = frozenset(
    {"contains", "list_contains", "array_contains", "list_has", "array_has"}
)


@dataclass(frozen=True, slots=True)
class Held:
    """A declared column under the casts around it. kinds: of the column, then of each cast."""

    table: str
    column: GrantedColumn
    kinds: tuple[Kind, ...]

    @property
    def kind(self) -> Kind:
        """Of the value that is compared."""
        return self.kinds[-1]

    def value(self, text: str) -> Value | None:
        """A declared value as it is compared; None where a cast does not surely keep it."""
        found = read(text, self.kinds[0])
        for source, target in zip(self.kinds, self.kinds[1:], strict=False):
            found = None if found is None else cast(found, source, target)
        return found

    def domain(self) -> tuple[Value, ...]:
        """The known values; empty when none are declared or one is not certain."""
        found = [self.value(text) for text in self.column.domain]
        return tuple(v for v in found if v is not None) if None not in found else ()

    def bound(self, place: int) -> Value | None:
        """The lowest (0) or highest (1) value, None where open or not certain."""
        text = self.column.range[place]
        return self.value(text) if text and all(k.ordered for k in self.kinds) else None


def needs(reading: Reading) -> tuple[Need, ...]:
    """The clamps that the text needs. Raises SqlRefused sql.unknown_value, sql.outside_range."""
    tables = reading.tables
    used = [tables[n] for n in tables if n.lower() in reading.seen.tables]
    if not any(c.domain or any(c.range) for t in used for c in t.columns):
        return ()
    known = {n.lower(): granted_relation(n, t) for n, t in tables.items()}
    tracer = Tracer(known, conditions_count=False)
    watch = _Watch(tracer, reading)
    tracer.expressions = watch
    # Where it stops, what was seen until then is held to what is declared.
    with contextlib.suppress(NotUnderstoodError, KeyError):
        tracer.relation(reading.root, None, nested=False)
    return tuple(watch.found[place] for place in sorted(watch.found))


@dataclass
class _Watch(Expressions):
    """The tracer's expressions, each comparison looked at in the scope in which it stands."""

    queries: Tracer
    reading: Reading
    found: dict[int, Need] = field(default_factory=dict)

    def flow(self, node: Node, scope: Scope) -> Flow:
        """What flows into a node, after its literals were held to what is declared."""
        if location(node) is not None:  # nullif is handed on as a comparison that nobody wrote
            self._look(node, scope)
        return super().flow(node, scope)

    def _look(self, node: Node, scope: Scope) -> None:
        kind, what = word(node, "class"), word(node, "type")
        if kind == "COMPARISON":
            self._compared(as_node(node["left"]), as_node(node["right"]), what, scope)
        elif kind == "BETWEEN":
            column = as_node(node["input"])
            self._cut(column, as_node(node["lower"]), Cut.BELOW, scope)
            self._cut(column, as_node(node["upper"]), Cut.ABOVE, scope)
        elif what in _MEMBERSHIPS:
            column, *values = nodes(node.get("children"))
            for value in values:
                self._equal(column, value, scope)
        elif kind == "FUNCTION":
            self._called(word(node, "function_name").lower(), arguments(node), scope)
        elif kind == "SUBQUERY" and node.get("child"):
            for value in _listed(node):
                self._equal(as_node(node["child"]), value, scope)

    def _called(self, name: str, given: list[Node], scope: Scope) -> None:
        if name in _LIKES and len(given) == 2:
            self._like(given[0], given[1], scope, folded=name.endswith("*"))
        elif name in _LIST_MEMBERSHIPS and len(given) == 2:
            for value in _elements(given[0]):
                self._equal(given[1], value, scope)

    def _compared(self, left: Node, right: Node, what: str, scope: Scope) -> None:
        if what in _EQUALITIES:
            self._equal(left, right, scope)
            self._equal(right, left, scope)
        elif what in _ORDERS:
            self._cut(left, right, _ORDERS[what], scope)
            self._cut(right, left, _TURNED[_ORDERS[what]], scope)

    def _equal(self, left: Node, right: Node, scope: Scope) -> None:
        rows = [arguments(n) for n in (left, right) if word(n, "function_name") == "row"]
        if len(rows) == 2 and len(rows[0]) == len(rows[1]):
            for one, other in zip(*rows, strict=True):
                self._equal(one, other, scope)
        column, literal = self._held(left, scope), self._literal(right)
        if column is None or literal is None:
            return
        domain, value = column.domain(), literal.value(column.kind)
        if domain and literal.is_number and column.kind.family == "text":
            # The engine casts the column's texts to numbers; it can where all of them are some.
            numbers = [read(str(v), Kind("number", scale=literal.scale)) for v in domain]
            domain = tuple(n for n in numbers if n is not None) if None not in numbers else ()
            value = Decimal(literal.text)
        if value is None:
            return
        if domain and value not in domain:
            raise self._unknown(column, literal)
        if _is_outside(column, value):
            message = f"{literal.shown} lies outside the range of {_range_text(column)}"
            raise self._refuse("sql.outside_range", message, literal)

    def _like(self, left: Node, right: Node, scope: Scope, *, folded: bool) -> None:
        column, literal = self._held(left, scope), self._literal(right)
        if column is None or literal is None or literal.is_number or literal.kind is not None:
            return
        values = [str(v) for v in column.domain()] if column.kind.family == "text" else []
        parts = (".*" if c == "%" else "." if c == "_" else re.escape(c) for c in literal.text)
        like = re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if folded else 0))
        if values and not any(like.fullmatch(value) for value in values):
            raise self._unknown(column, literal)

    def _cut(self, left: Node, right: Node, cut: Cut, scope: Scope) -> None:
        column, literal = self._held(left, scope), self._literal(right)
        if column is None or literal is None:
            return
        low, high = column.bound(0), column.bound(1)
        edit = clamped(self.reading, literal, cut, column.kinds, (low, high))
        if edit is not None:
            message = f"{literal.shown} lies outside the range of {_range_text(column)}"
            self.found[edit.start] = Need(
                OUTSIDE, "sql.outside_range", message, offset=edit.start, edits=(edit,)
            )

    def _literal(self, node: Node) -> TypedLiteral | None:
        """The literal that an expression is; one that a rewrite put in is the question's as_of."""
        literal, text = typed_literal(node), self.reading.text
        if literal is None or literal.location is None:
            return literal
        here = text.from_bytes(literal.location)
        there = text.asked_offset(here)
        written = text.sql[here : here + BEGINNING] == text.asked[there : there + BEGINNING]
        return literal if written else None

    def _held(self, node: Node, scope: Scope) -> Held | None:
        """The declared column that an expression is, casts around it allowed."""
        kinds: list[Kind | None] = []
        while word(node, "class") == "CAST":
            kinds.append(cast_kind(as_node(node["type_expr"])))
            node = as_node(node["child"])
        if word(node, "class") != "COLUMN_REF":
            return None
        try:
            flow = scope.find(names(node))
        except NotUnderstoodError:
            return None
        if flow.operation or len(flow.sources) != 1:
            return None
        ((table, name),) = flow.sources
        columns = self.reading.tables[table].columns
        column = next((c for c in columns if c.name == name), None)
        if column is None or not (column.domain or any(column.range)):
            return None
        known = [k for k in (kind_of(column.type), *reversed(kinds)) if k is not None]
        return Held(table, column, tuple(known)) if len(known) == len(kinds) + 1 else None

    def _unknown(self, column: Held, literal: TypedLiteral) -> SqlRefused:
        named = f"{column.table}.{column.column.name}"
        values = [
            f"'{v}'" if column.kinds[0].family != "number" else v
            for v in _ranked(column, literal.text)
        ]
        more = len(values) - VALUES_SHOWN_MAX
        listed = ", ".join(values[:VALUES_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
        return self._refuse(
            "sql.unknown_value",
            f"{literal.shown} is none of the values of {named}",
            literal,
            f"Use one of the declared values, the nearest first: {listed}.",
        )

    def _refuse(
        self, code: str, message: str, literal: TypedLiteral, remedy: str = ""
    ) -> SqlRefused:
        place = literal.location if literal.location is not None else NO_LOCATION
        return self.reading.text.refuse(code, message, location=place, remedy=remedy)


def _is_outside(column: Held, value: Value) -> bool:
    low, high = column.bound(0), column.bound(1)
    return (low is not None and below(value, low)) or (high is not None and below(high, value))


def _range_text(column: Held) -> str:
    low, high = column.column.range
    named = f"{column.table}.{column.column.name}"
    return f"{named}, {low or 'anything'} to {high or 'anything'}"


def _ranked(column: Held, text: str) -> list[str]:
    """The declared values, the ones most like a text first; ties as declared."""

    def likeness(value: str) -> float:
        return -difflib.SequenceMatcher(None, value.casefold(), text.casefold()).ratio()

    return sorted(column.column.domain, key=likeness)


def _listed(node: Node) -> Iterator[Node]:
    """The elements in x = ANY([...])."""
    query = as_node(as_node(node["subquery"])["node"])
    items = nodes(query.get("select_list"))
    if word(node, "comparison_type") in _EQUALITIES and len(items) == 1:
        call = items[0]
        if word(call, "function_name") == "unnest" and arguments(call):
            yield from _elements(arguments(call)[0])


def _elements(node: Node) -> list[Node]:
    return arguments(node) if word(node, "function_name") == "list_value" else []
