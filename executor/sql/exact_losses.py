"""Where rounded quotients lose digits: bounds of their absolute errors through the bound plan.

A quotient is off by half of its last place at most. Sums, roundings and choices keep that; a
product multiplies it by the other factor. What has no bound, or a larger one than ERROR_MAX, is a
loss: such a figure must not look exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tieout.executor.sql.exact_places import place
from tieout.executor.sql.exact_types import exact_type, return_type
from tieout.executor.sql.needs import Need
from tieout.executor.sql.plan_columns import Reach, reached
from tieout.executor.sql.refusal import Text
from tieout.executor.sql.shape import Json, Node, as_node, nodes, walk, word
from tieout.executor.sql.validate import GrantedColumn, GrantedTable

QUOTIENTS = frozenset({"decimal_division", "decimal_average"})
QUOTIENT_REASONS = frozenset({"inexact_division", "inexact_average"})
ERROR_MAX = Fraction(5, 1_000)
"""Half of the last of 18 places, times a factor of FACTOR_DIGITS_MAX digits."""
FACTOR_DIGITS_MAX = 16
"""Before the point, of a factor that is no literal."""
LITERAL_MAX = 10**9
PLACES_MIN = 12
"""Behind the point of a type that may hold a quotient."""
PRODUCT_PLACES_MAX = 26
"""Of a product with a quotient: twelve digits are left before the point."""
KEEPING = frozenset({"", "sum", "add", "subtract", "divide", "avg", "mean", "min", "max"})
"""Operations of an earlier step whose result is off by no more than a quotient."""
_FLOATS = frozenset({"FLOAT", "DOUBLE"})
_REFERENCES = frozenset({"BOUND_REF", "BOUND_COLUMN_REF", "BOUND_LAMBDA_REF"})
_NONE = Fraction(0)


@dataclass(frozen=True, slots=True)
class Loss:
    """node: the bound product, quotient or cast. places: (start, length) in bytes of what it
    stands in and of the quotients in it."""

    node: Node
    places: tuple[tuple[int, int], ...]


def losses(plan: Node, tables: Mapping[str, GrantedTable]) -> tuple[Loss, ...]:
    """Every product, quotient and cast to a float in which a rounded quotient loses digits.

    tables: what is granted; columns of earlier steps may hold quotients.
    """
    steps = {name.lower(): _of_table(table) for name, table in tables.items()}
    divides = any(_name(node) in QUOTIENTS for node in walk(plan))
    if not divides and not any(steps.values()):
        return ()
    bounds = _Bounds(steps)
    bounds.operator(plan)
    return tuple(bounds.found)


def _of_table(table: GrantedTable) -> Fraction:
    return max((_of_column(column) for column in table.columns), default=_NONE)


def _of_column(column: GrantedColumn) -> Fraction:
    """How far a column may be off: one of a snapshot is as it is."""
    kind, _, rest = column.type.partition("(")
    places = rest.rstrip(")").rpartition(",")[2].strip()
    if column.origin is None or kind != "DECIMAL" or not places.isdigit():
        return _NONE
    if int(places) < PLACES_MIN:
        return _NONE
    return _half(int(places)) if column.origin.operation in KEEPING else ERROR_MAX


def _half(places: int) -> Fraction:
    return Fraction(1, 2 * 10**places)


def _name(node: Node) -> str:
    path = as_node(node.get("qname") or {}).get("path")
    return str(path[-1]) if isinstance(path, list) and path else ""


def _is_fine(kind: Json) -> bool:
    """Whether a type has, or holds, so many places that a quotient may be in it."""
    for node in walk(kind):
        places = as_node(node.get("type_info") or {}).get("scale")
        if node.get("id") == "DECIMAL" and isinstance(places, int) and places >= PLACES_MIN:
            return True
    return False


@dataclass(slots=True)
class _Bounds:
    """One bound for all quotients that an operator hands on, from the lowest operator upwards."""

    steps: Mapping[str, Fraction]
    found: list[Loss] = field(default_factory=list)
    shared: dict[Json, Fraction] = field(default_factory=dict)

    def operator(self, node: Node) -> Fraction:
        """The bound of what an operator gives; its own expressions are judged on the way."""
        kind, parts = word(node, "type"), nodes(node.get("children"))
        if kind in ("LOGICAL_MATERIALIZED_CTE", "LOGICAL_RECURSIVE_CTE") and len(parts) > 1:
            made = self.operator(parts[0])  # a recursion multiplies again and again
            again = kind == "LOGICAL_RECURSIVE_CTE"
            self.shared[node.get("table_index")] = ERROR_MAX if again else made
            return max(self.operator(parts[1]), made if again else _NONE)
        if kind == "LOGICAL_CTE_REF":
            return self.shared.get(node.get("cte_index"), ERROR_MAX)
        if kind == "LOGICAL_DELIM_GET":
            return ERROR_MAX
        if kind == "LOGICAL_GET":
            data = as_node(node.get("function_data") or {})
            path = as_node(data.get("qualified_name") or {}).get("path")
            table = str(path[-1]).lower() if isinstance(path, list) and path else ""
            return self.steps.get(table, _NONE)
        below = max((self.operator(part) for part in parts), default=_NONE)
        own = {key: value for key, value in node.items() if key != "children"}
        made = max((self.error(e, below, ()) for e in _outermost(own)), default=_NONE)
        if kind in ("LOGICAL_PROJECTION", "LOGICAL_AGGREGATE_AND_GROUP_BY"):
            return made
        return max(below, made)

    def error(self, node: Node, below: Fraction, around: tuple[Node, ...]) -> Fraction:
        """How far the value of an expression may be off. around: what it stands in, outermost
        first. below: of what it reads."""
        if word(node, "expression_class") in _REFERENCES:
            return below if below and _is_fine(node.get("return_type")) else _NONE
        around = (*around, node)
        parts = list(_outermost({k: v for k, v in node.items() if k != "expression_class"}))
        errors = [self.error(part, below, around) for part in parts]
        name, whole = _name(node), sum(errors, start=_NONE)
        if name == "__cast" and whole and _is_float(node):
            return self.lost(node, around)
        if name == "*" and len(parts) == 2:
            whole = self.product(node, parts, errors, around)
        elif name == "decimal_division" and len(parts) == 3:
            whole = self.quotient(node, parts, errors, around)
        elif name == "decimal_average":
            kind = exact_type(return_type(node))
            whole += _half(kind.places) if kind is not None else ERROR_MAX
        return whole if _is_fine(node.get("return_type")) else _NONE

    def product(
        self, node: Node, parts: list[Node], errors: list[Fraction], around: tuple[Node, ...]
    ) -> Fraction:
        """The error times the other factor."""
        if not any(errors):
            return _NONE
        other = parts[0] if errors[1] else parts[1]
        literal, digits = _constant(other), _whole_digits(other)
        made = exact_type(return_type(node))
        if all(errors) or made is None or made.places > PRODUCT_PLACES_MAX:
            return self.lost(node, around)
        if literal is not None and abs(literal) <= LITERAL_MAX:
            return sum(errors) * abs(literal)
        if literal is not None or digits is None or digits > FACTOR_DIGITS_MAX:
            return self.lost(node, around)
        whole = sum(errors) * 10**digits
        return whole if whole <= ERROR_MAX else self.lost(node, around)

    def quotient(
        self, node: Node, parts: list[Node], errors: list[Fraction], around: tuple[Node, ...]
    ) -> Fraction:
        """Half of its last place, where it has more; and the error of its numerator."""
        made, over = exact_type(return_type(node)), exact_type(return_type(parts[0]))
        under = _constant(parts[1])
        if made is None or over is None or not _is_fine(node.get("return_type")):
            return _NONE
        bounded = under is not None and Fraction(1, LITERAL_MAX) <= abs(under) <= LITERAL_MAX
        if errors[1] or (errors[0] and not bounded):
            return self.lost(node, around)
        if under is None or not under:
            return _half(made.places)
        step = Fraction(10) ** (made.places - over.places) / under
        rounded = _half(made.places) if step.denominator != 1 else _NONE
        return rounded + errors[0] / abs(under)

    def lost(self, node: Node, around: tuple[Node, ...]) -> Fraction:
        """Take note of a loss; what comes after it is not judged again."""
        standing = [p for p in map(place, reversed(around)) if p is not None][:1]
        inside = [p for n in walk(node) if _name(n) in QUOTIENTS and (p := place(n)) is not None]
        self.found.append(Loss(node, (*standing, *inside)))
        return _NONE


def _outermost(value: Json) -> Iterator[Node]:
    """The bound expressions in a value that are in no other one."""
    open_: list[Json] = [value]
    while open_:
        here = open_.pop(0)
        if isinstance(here, dict):
            if "expression_class" in here:
                yield here
            else:
                open_ += [v for v in here.values() if isinstance(v, dict | list)]
        elif isinstance(here, list):
            open_ += [v for v in here if isinstance(v, dict | list)]


def _is_float(node: Node) -> bool:
    kind = node.get("return_type")
    return isinstance(kind, dict) and kind.get("id") in _FLOATS


def _casts(node: Node) -> Iterator[Node]:
    """An expression, and what its casts are of."""
    yield node
    while _name(node) == "__cast" and len(parts := nodes(node.get("children"))) == 1:
        (node,) = parts
        yield node


def _whole_digits(node: Node) -> int | None:
    """Digits before the point that a factor may have; None when its type is not exact."""
    kinds = [exact_type(return_type(inner)) for inner in _casts(node)]
    found = [kind.digits - kind.places for kind in kinds if kind is not None]
    return min(found) if found else None


def _constant(node: Node) -> Fraction | None:
    """The value of a literal, by its casts to wider types."""
    *_outer, inner = _casts(node)
    if word(inner, "expression_class") != "BOUND_CONSTANT":
        return None
    kind, value = exact_type(return_type(inner)), as_node(inner.get("value") or {}).get("value")
    if kind is None:
        return None
    if isinstance(value, dict):  # of 128 bits, in halves
        upper, lower = value.get("upper"), value.get("lower")
        if not isinstance(upper, int) or not isinstance(lower, int):
            return None
        value = (upper << 64) + lower
    return Fraction(value, 10**kind.places) if isinstance(value, int) else None


def offenders(
    text: Text, found: Sequence[Loss], told: Sequence[Need]
) -> frozenset[tuple[str, int]]:
    """The exact quotients and averages to be given up for these losses: all that stand in them.

    text: the one whose plan has the losses. told: the needs met so far, at their places in the
    asked text. Where none stands in a loss (its factor is a column of another part), all are.
    """
    ours = [need for need in told if need.reason in QUOTIENT_REASONS]
    given_up: set[tuple[str, int]] = set()
    for loss in found:
        spans = [
            [text.asked_offset(text.from_bytes(p)) for p in (start, start + length)]
            for start, length in loss.places
        ]
        inside = [n for n in ours if any(a <= (n.offset or 0) <= b for a, b in spans)]
        given_up |= {(n.reason, n.offset or 0) for n in inside or ours}
    return frozenset(given_up)


def inexact_columns(
    plan: Node, tables: Mapping[str, GrantedTable], floats: bool | tuple[bool, ...]
) -> bool | tuple[bool, ...]:
    """For each result column, or for all, whether a float or a loss that stays flows into it.

    floats: which of them a float reaches. A loss stays where the quotient was made by an earlier
    step, or by the text's own decimal_division.
    """
    found = {id(loss.node) for loss in losses(plan, tables)}
    if not found or floats is True:
        return floats
    reach = Reach(
        table=lambda _table, _column: False,
        expression=lambda node: id(node) in found,
        conditions=False,
    )
    lost = reached(plan, reach)
    if lost is None or isinstance(floats, bool):
        return True if lost is None else lost
    return tuple(a or b for a, b in zip(lost, floats, strict=True))
