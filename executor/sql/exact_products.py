"""Quotients that are factors of others, by the text alone: which products cannot be exact.

A quotient has places, and so an absolute error; times another quotient, divided by what is no
literal, or as a denominator, nothing bounds what is left of its digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tieout.executor.sql.shape import Node, arguments, as_node, word

POWER_OF_TEN = re.compile(r"1(0*)(?:\.0*)?", re.ASCII)
_NO_VALUE = frozenset({"COMPARISON", "CONJUNCTION", "BETWEEN", "SUBQUERY"})
"""Classes below which no factor stands: a truth value, or a query with columns of its own."""


def power_of_ten(node: Node) -> int | None:
    """The k of a literal 10^k, such as 100.0, that is written out; None for anything else."""
    found = POWER_OF_TEN.fullmatch(word(as_node(node.get("literal") or {}), "text"))
    constant = word(node, "class") == "CONSTANT"
    return len(found[1]) if constant and found is not None else None


def in_lossy_products(expressions: Sequence[Node], quotients: Sequence[Node]) -> frozenset[int]:
    """Ids of those quotients (and averages) that stand in a product or quotient with no bound.

    expressions: all of the text. All quotients of such a product go together: it is a float, and
    would be one of fewer digits if a part of it were rounded first.
    """
    if not quotients:
        return frozenset()
    known = {id(node) for node in quotients}
    found: set[int] = set()
    for node in expressions:
        if word(node, "class") != "FUNCTION" or word(node, "function_name") not in ("*", "/"):
            continue
        given = arguments(node)
        if len(given) != 2:
            continue
        left, right = (set(_factors(part, known)) for part in given)
        if word(node, "function_name") == "*":
            found |= (left | right) if left and right else set()
        elif right or (left and not _is_literal(given[1])):
            found |= left | right | ({id(node)} & known)
    return frozenset(found)


def _factors(node: Node, known: set[int]) -> Iterator[int]:
    """Ids of the quotients that flow into the value of an expression, those that give no more
    places than they need left out."""
    open_: list[object] = [node]
    while open_:
        here = open_.pop()
        if isinstance(here, list):
            open_ += here
        elif isinstance(here, dict) and word(here, "class") not in _NO_VALUE:
            if id(here) in known and not _is_exact(here):
                yield id(here)
            open_ += [v for v in here.values() if isinstance(v, dict | list)]


def _is_exact(node: Node) -> bool:
    given = arguments(node)
    division = word(node, "function_name") == "/" and len(given) == 2
    return division and power_of_ten(given[1]) is not None


def _is_literal(node: Node) -> bool:
    """A number as written, with a sign or a cast."""
    while word(node, "class") != "CONSTANT":
        given = arguments(node) if word(node, "class") == "FUNCTION" else []
        if word(node, "function_name") in ("-", "+") and len(given) == 1:
            node = given[0]
        elif word(node, "class") == "CAST":
            node = as_node(node.get("child") or {})
        else:
            return False
    return True
