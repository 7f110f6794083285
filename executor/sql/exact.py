"""Exact arithmetic: averages and quotients of DECIMAL that the engine would make DOUBLE.

Each is changed by edits of the text around the operands, one nesting per round, so that the types
of the inner ones are known when the outer ones are looked at. What cannot be placed or typed stays
as it is, and its figures are inexact. Source: DESIGN §8.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from tieout.executor.sql import functions
from tieout.executor.sql.edits import Edit
from tieout.executor.sql.exact_places import CHAINED, Places, place, raw_place
from tieout.executor.sql.exact_products import in_lossy_products, power_of_ten
from tieout.executor.sql.exact_proof import EXACT_AVERAGE, EXACT_DIVISION, ORDERED_SUM
from tieout.executor.sql.exact_sums import sums
from tieout.executor.sql.exact_types import (
    DIGITS_MAX,
    INTEGERS,
    Exact,
    arguments_of,
    averaged,
    divided,
    exact_type,
    return_type,
)
from tieout.executor.sql.needs import Need
from tieout.executor.sql.proof import bare
from tieout.executor.sql.reading import Reading
from tieout.executor.sql.shape import Node, arguments, as_node, names, nodes, walk, word

AVERAGES = frozenset({"avg", "mean"})
DIVISIONS = frozenset({"/"})
EXACT_NAMES = frozenset(
    {
        *INTEGERS,
        *("DECIMAL", "NUMERIC", "DEC", "INT", "INT1", "INT2", "INT4", "INT8"),
        *("INT16", "INT32", "INT64", "INT128", "LONG", "SHORT", "SIGNED"),
    }
)
"""Names of exact types, as a text may write them."""
Types = tuple[Exact, Exact]


def needs(reading: Reading) -> tuple[Need, ...]:
    """Exact averages and quotients first, since they change types; then sums of floats.

    The former are optional: where the changed text does not bind, the text stays.
    """
    if not _has_floats(reading.plan):
        return ()
    places = Places(reading)
    if any(e.rewrite == ORDERED_SUM for _sql, edits in reading.text.earlier for e in edits):
        return sums(reading, places)  # an order that was put in stays the one of what is added
    given_up = reading.given_up
    listed = [
        (node, need)
        for node, need in (*_divisions(reading, places), *_averages(reading, places))
        if (need.reason, reading.text.asked_offset(need.offset or 0)) not in given_up
    ]
    lossy = in_lossy_products(places.expressions, [node for node, _need in listed])
    found = [need for node, need in listed if id(node) not in lossy]
    return _innermost(found) if found else sums(reading, places)


def _has_floats(plan: Node) -> bool:
    return any(n.get("id") in ("DOUBLE", "FLOAT") for n in walk(plan))


def _innermost(found: Sequence[Need]) -> tuple[Need, ...]:
    """Those that hold no other one: their edits do not cross."""
    spans = [(n.edits[0].start, n.edits[-1].end) for n in found]
    return tuple(
        need
        for need, (start, end) in zip(found, spans, strict=True)
        if not any((a, b) != (start, end) and start <= a and b <= end for a, b in spans)
    )


def _divisions(reading: Reading, places: Places) -> Iterator[tuple[Node, Need]]:
    for node, (over, under) in _agreed(_typed_divisions(reading, places), places, DIVISIONS):
        extent = places.extent(node)
        operator = places.operator(extent, "/") if extent is not None else None
        operands = places.operands(extent, operator) if extent and operator else None
        how = divided(over, under, power=power_of_ten(arguments(node)[1]))
        if operator is None or operands is None or how is None:
            continue
        left, right = operands
        yield (
            node,
            Need(
                "inexact_division",
                "sql.bind",
                "the quotient of exact numbers is binary floating point",
                offset=operator.start,
                edits=(
                    Edit(left.start, left.start, "decimal_division(CAST(", EXACT_DIVISION),
                    Edit(left.end, right.start, f" AS {how.over}), CAST(", EXACT_DIVISION),
                    Edit(right.end, right.end, f" AS {how.under}), {how.places})", EXACT_DIVISION),
                ),
                optional=True,
            ),
        )


def _typed_divisions(reading: Reading, places: Places) -> dict[int, set[Types | None]]:
    """Types of both operands of each / that the plan has at a known place, by node."""
    found: dict[int, set[Types | None]] = {}
    for bound in walk(reading.plan):
        at = place(bound)
        if at is None or word(bound, "expression_class") != "BOUND_FUNCTION":
            continue
        for node in places.at.get(at, ()):
            if word(node, "class") == "FUNCTION" and name_of(bound) in CHAINED:
                _pair(bound, node, places, found)
    return found


def _pair(bound: Node, node: Node, places: Places, found: dict[int, set[Types | None]]) -> None:
    """A bound chain beside the same chain of the text, from the last operator inwards."""
    while word(node, "function_name") == name_of(bound) in CHAINED:
        given, parts = arguments(node), nodes(bound.get("children"))
        if len(given) != 2 or len(parts) != 2:
            return
        if word(node, "function_name") == "/":
            over, under = (_operand(b, n, places) for b, n in zip(parts, given, strict=True))
            types = (over, under) if over is not None and under is not None else None
            found.setdefault(id(node), set()).add(types)
        if raw_place(given[0]) is not None:
            return
        bound, node = _uncast(parts[0]), given[0]


def _uncast(bound: Node) -> Node:
    parts = nodes(bound.get("children"))
    return parts[0] if name_of(bound) == "__cast" and len(parts) == 1 else bound


def _operand(bound: Node, node: Node, places: Places) -> Exact | None:
    """The type of an operand before the engine cast it; None when that is not certain.

    A cast that the engine put in stands at the place of what it casts; a written cast at its own.
    """
    if name_of(bound) != "__cast":
        return exact_type(return_type(bound))
    inner, at = _uncast(bound), raw_place(bound)
    if at is None:
        chained = word(node, "function_name") == name_of(inner) and raw_place(node) is None
        return exact_type(return_type(inner)) if chained else None
    written = places.at.get(at, ())
    if not written:
        return None
    casts = [n for n in written if word(n, "class") == "CAST"]
    if casts:  # the engine's own is told by its type: the written one may have left no trace
        engine = not any(_is_float_cast(n) for n in casts)
        return exact_type(return_type(inner if engine else bound))
    if any(_is_macro(n) for n in written) and raw_place(inner) != at:
        return None
    return exact_type(return_type(inner))


def _is_float_cast(node: Node) -> bool:
    """Whether a written cast is one to a float, or to a type that is not known here."""
    kind = as_node(node.get("type_expr") or {})
    return word(kind, "type_name").upper() not in EXACT_NAMES


def _is_macro(node: Node) -> bool:
    """Whether a call may be written out by the engine into casts of its own."""
    if word(node, "class") != "FUNCTION":
        return False
    entries = functions.of_name(word(node, "function_name"), table=False)
    return any("macro" in e.kind for e in entries)


def name_of(bound: Node) -> str:
    """The function of a bound expression."""
    path = as_node(bound.get("qname") or {}).get("path")
    return str(path[-1]) if isinstance(path, list) and path else ""


def _agreed(
    typed: dict[int, set[Types | None]], places: Places, called: frozenset[str]
) -> Iterator[tuple[Node, Types]]:
    """Nodes whose types are certain: their own, else those of the same expression elsewhere.

    The engine keeps one place of an expression that a GROUP BY and a select list both have.
    """
    listed = [n for n in places.expressions if word(n, "function_name").lower() in called]
    twins: dict[str, set[Types | None]] = {}
    for node in listed:
        twins.setdefault(spelled(node), set()).update(typed.get(id(node), ()))
    for node in listed:
        own = list(typed.get(id(node)) or twins[spelled(node)])
        if len(own) == 1 and own[0] is not None:
            yield node, own[0]


def spelled(node: Node) -> str:
    """An expression without places and its own alias, to be compared."""
    plain = bare(node)
    assert isinstance(plain, dict)
    return json.dumps({**plain, "alias": ""}, sort_keys=True)


def _averages(reading: Reading, places: Places) -> Iterator[tuple[Node, Need]]:
    for node, (kind, _same) in _agreed(_typed_averages(reading, places), places, AVERAGES):
        call = places.call(node)
        if (
            call is None
            or len(call.arguments) != 1
            or not (kind.decimal or kind.digits < DIGITS_MAX)
        ):
            continue
        cast = averaged(kind)
        (argument,) = call.arguments
        yield (
            node,
            Need(
                "inexact_average",
                "sql.bind",
                "the average of exact numbers is binary floating point",
                offset=call.name.start,
                edits=(
                    Edit(call.name.start, call.name.end, "decimal_average", EXACT_AVERAGE),
                    Edit(argument.start, argument.start, "CAST(", EXACT_AVERAGE),
                    Edit(argument.end, argument.end, f" AS {cast})", EXACT_AVERAGE),
                ),
                optional=True,
            ),
        )


def _typed_averages(reading: Reading, places: Places) -> dict[int, set[Types | None]]:
    """The type that each average is taken of. The plan has no place for the call itself.

    Its argument has one, or is a bare column, that then is known by its name.
    """
    by_place: dict[tuple[int, int], set[Exact | None]] = {}
    by_name: dict[str, set[Exact | None]] = {}
    for bound in walk(reading.plan):
        aggregate = word(bound, "expression_class") in ("BOUND_AGGREGATE", "BOUND_WINDOW")
        if not aggregate or name_of(bound) not in AVERAGES:
            continue
        for kind, part in zip(arguments_of(bound), nodes(bound.get("children")), strict=False):
            at = raw_place(part)
            exact = exact_type(kind)
            if at is not None:
                by_place.setdefault(at, set()).add(exact)
            else:
                by_name.setdefault(word(part, "alias").lower(), set()).add(exact)
    found: dict[int, set[Types | None]] = {}
    for node in places.expressions:
        given = arguments(node) if word(node, "class") in ("FUNCTION", "WINDOW") else []
        if word(node, "function_name").lower() not in AVERAGES or len(given) != 1:
            continue
        at = raw_place(given[0])
        kinds: set[Exact | None] = by_place.get(at, set()) if at is not None else set()
        if not kinds and word(given[0], "class") == "COLUMN_REF":
            kinds = by_name.get(names(given[0])[-1].lower(), set())
        if kinds:
            found[id(node)] = {None if k is None else (k, k) for k in kinds}
    return found
