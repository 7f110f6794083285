"""Constants that a bound plan converts: each is tried on the engine before anything runs.

A text that is no date fails in a run, and only once a row is compared with it; a query that is
admitted over tables without rows would not show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext

import duckdb

from tieout.executor.sql.refusal import NO_LOCATION, SqlRefused, Text
from tieout.executor.sql.shape import Json, Node, as_node, children, location, nodes, word

TRIED_AT_ONCE = 200
"""Conversions in one statement; the tokens of a text bound how many there are."""
SHOWN_CHARS_MAX = 60
WHOLE = frozenset(
    {
        *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
    }
)
DIGITS = {"TINYINT": 2, "SMALLINT": 4, "INTEGER": 9, "BIGINT": 18, "HUGEINT": 38}
"""Digits that every number with so many has room for; the engine need not be asked about those."""
NUMBERS = WHOLE | {"DECIMAL", "FLOAT", "DOUBLE"}
MOMENTS = frozenset(
    {
        *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
        "TIMESTAMP WITH TIME ZONE",
    }
)
TARGETS = NUMBERS | MOMENTS | {"DATE", "TIME", "BOOLEAN", "INTERVAL", "UUID"}
"""Types to which a constant may fail to convert; everything becomes a VARCHAR."""
FORMS = {
    **dict.fromkeys(NUMBERS, "Write a number without quotes and separators, such as 1000.00."),
    **dict.fromkeys(MOMENTS, "Write it as TIMESTAMP 'YYYY-MM-DD HH:MM:SS', of a day that exists."),
    "DATE": "Write a date as DATE 'YYYY-MM-DD', of a day that exists.",
    "TIME": "Write it as TIME 'HH:MM:SS'.",
    "BOOLEAN": "Write true or false.",
    "INTERVAL": "Write it as INTERVAL 3 DAY.",
    "UUID": "Write all 32 digits of it.",
}
WIDER = "Cast to a type that holds it, such as DECIMAL(38,2) or BIGINT."


@dataclass(frozen=True, slots=True)
class _Conversion:
    """value: text of the constant; types: its own and those that it is cast to, in their order;
    place: byte offset in the text."""

    value: str
    types: tuple[str, ...]
    place: int | None


def check_constants(engine: duckdb.DuckDBPyConnection, text: Text, plan: Node) -> None:
    """Refuse a text in which a constant cannot become the type that it is cast to.

    TRY_CAST and TRY(...) give NULL for one, and stay. Raises SqlRefused sql.conversion.
    """
    found = list(dict.fromkeys(_conversions(plan)))
    for start in range(0, len(found), TRIED_AT_ONCE):
        tried = found[start : start + TRIED_AT_ONCE]
        asked = ", ".join(_fails(c, number) for number, c in enumerate(tried, 1))
        row = engine.execute(f"SELECT {asked}", [c.value for c in tried]).fetchone()
        assert row is not None
        failed = [c for c, fails in zip(tried, row, strict=True) if fails]
        if failed:
            raise _refused(text, min(failed, key=lambda c: c.place or 0))


def _fails(conversion: _Conversion, number: int) -> str:
    """An expression that is true when the last cast fails; a NULL on the way is no failure."""
    before = f"${number}::VARCHAR"
    for kind in conversion.types[:-1]:
        before = f"TRY_CAST({before} AS {kind})"
    last = conversion.types[-1]
    return f"{before} IS NOT NULL AND TRY_CAST({before} AS {last}) IS NULL"


def _conversions(plan: Json) -> Iterator[_Conversion]:
    """Every cast of a constant that could fail, outside of TRY."""
    open_: list[Json] = [plan]
    while open_:
        here = open_.pop()
        if isinstance(here, dict):
            if word(here, "type") == "OPERATOR_TRY":
                continue
            if _is_cast(here) and not _tries(here):
                yield from _of_cast(here)
        open_ += [child for child in children(here) if isinstance(child, dict | list)]


def _of_cast(cast: Node) -> Iterator[_Conversion]:
    (given,) = nodes(cast.get("children"))[:1] or [{}]
    target = as_node(cast.get("return_type") or {})
    elements = [(given, target)]
    while elements:
        element, kind = elements.pop()
        if kind.get("id") == "LIST" and _called(element) == "list_value":
            inner = as_node(as_node(kind.get("type_info") or {}).get("child_type") or {})
            elements += [(e, inner) for e in nodes(element.get("children"))]
            continue
        steps, name = _steps(element), _name(kind)
        if steps is None or name is None or steps.types[-1] == name or _fits(steps, kind):
            continue
        place = steps.place if steps.place is not None else _place(cast)
        yield _Conversion(steps.value, (*steps.types, name), place)


def _fits(constant: _Conversion, kind: Node) -> bool:
    """Whether a whole or DECIMAL number plainly has room: this is what most casts are."""
    source, target = constant.types[0].split("(")[0], str(kind.get("id"))
    if len(constant.types) != 1 or source not in {*WHOLE, "DECIMAL"}:
        return False
    facts = as_node(kind.get("type_info") or {})
    width, scale = facts.get("width"), facts.get("scale")
    room = DIGITS.get(target, 0)
    if target == "DECIMAL" and isinstance(width, int) and isinstance(scale, int):
        room = width - scale
    # One digit is left for what rounding may carry.
    return len(constant.value.lstrip("-").split(".")[0]) < room or target in ("FLOAT", "DOUBLE")


def _steps(node: Node) -> _Conversion | None:
    """A constant, below any casts; None for anything else."""
    if _is_cast(node):
        (given,) = nodes(node.get("children"))[:1] or [{}]
        inner, name = _steps(given), _name(as_node(node.get("return_type") or {}), text=True)
        if inner is None or name is None:
            return None
        place = inner.place if inner.place is not None else _place(node)
        return _Conversion(inner.value, (*inner.types, name), place)
    if word(node, "expression_class") != "BOUND_CONSTANT":
        return None
    constant = as_node(node.get("value") or {})
    kind = as_node(constant.get("type") or {})
    value, name = _text(constant.get("value"), kind), _name(kind, text=True)
    if constant.get("is_null") or value is None or name is None:
        return None
    return _Conversion(value, (name,), _place(node))


def _text(value: Json, kind: Node) -> str | None:
    """The text of a constant as the engine's plan holds it."""
    name = str(kind.get("id"))
    if name == "VARCHAR":
        return value if isinstance(value, str) else None
    if isinstance(value, dict):  # 128 bits
        upper, lower = value.get("upper"), value.get("lower")
        if not isinstance(upper, int) or not isinstance(lower, int):
            return None
        value = (upper << 64) + lower
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    if name == "DECIMAL" and isinstance(value, int):
        scale = as_node(kind.get("type_info") or {}).get("scale")
        with localcontext(prec=40):
            return f"{Decimal(value).scaleb(-scale):f}" if isinstance(scale, int) else None
    return repr(value) if name in NUMBERS else None


def _name(kind: Node, *, text: bool = False) -> str | None:
    """A type as SQL; None for one that is not tried. text: VARCHAR too."""
    name = str(kind.get("id"))
    if name == "DECIMAL":
        facts = as_node(kind.get("type_info") or {})
        return f"DECIMAL({facts.get('width')},{facts.get('scale')})"
    return name if name in TARGETS or (text and name == "VARCHAR") else None


def _called(node: Node) -> str:
    path = as_node(node.get("qname") or {}).get("path")
    return str(path[-1]) if isinstance(path, list) and path else ""


def _is_cast(node: Node) -> bool:
    return _called(node) == "__cast"


def _tries(cast: Node) -> bool:
    return bool(as_node(cast.get("function_data") or {}).get("try_cast"))


def _place(node: Node) -> int | None:
    place = location(node)
    return None if place == NO_LOCATION else place


def _refused(text: Text, conversion: _Conversion) -> SqlRefused:
    kind = conversion.types[-1]
    plain = "".join(c if c.isprintable() else " " for c in conversion.value)
    cut = plain if len(plain) <= SHOWN_CHARS_MAX else plain[:SHOWN_CHARS_MAX] + "…"
    written = conversion.types[0] == "VARCHAR"
    said = f"the text '{cut}'" if written else f"the number {cut}"
    own = FORMS[kind.split("(")[0]]
    return text.refuse(
        "sql.conversion",
        f"{said} cannot be converted to {kind}",
        location=conversion.place,
        remedy=WIDER if not written and kind.split("(")[0] in NUMBERS else own,
    )
