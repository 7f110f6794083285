"""The clock of a question: each word and call that reads the clock becomes the as_of date.

A moment is the last of that day in UTC, so that all of the day counts. What has no date in it
(current_time, localtime) has no such reading, and stays for the gates to refuse.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from tieout.executor.sql.edits import Edit
from tieout.executor.sql.needs import Need
from tieout.executor.sql.refusal import NO_LOCATION, Text
from tieout.executor.sql.shape import Json, Node, arguments, as_node, children, names, word
from tieout.executor.sql.tree import Granted

AS_OF = "as_of"
LAST_MOMENT = "23:59:59.999999"
"""Of a day, in the microseconds that the engine counts."""

_DAY = "CAST('{day}' AS DATE)"
_MOMENT = f"CAST('{{day}} {LAST_MOMENT}+00' AS TIMESTAMPTZ)"
_LOCAL = f"CAST('{{day}} {LAST_MOMENT}' AS TIMESTAMP)"
WORDS = {"current_date": _DAY, "current_timestamp": _MOMENT, "localtimestamp": _LOCAL}
"""Words that the engine's tree has as columns."""
CALLS = {
    "current_date": _DAY,
    "today": _DAY,
    "now": _MOMENT,
    "get_current_timestamp": _MOMENT,
    "transaction_timestamp": _MOMENT,
    "current_localtimestamp": _LOCAL,
}
"""Functions without arguments."""


def clock_needs(text: Text, root: Node, granted: Granted, as_of: str | None) -> tuple[Need, ...]:
    """Edits for all that reads the clock; none without as_of (the gates refuse it then).

    as_of: ISO date. A word that some table, alias or WITH query has as a name is that name, which
    the gates judge. Raises SqlRefused sql.clock when as_of is no date.
    """
    if as_of is None:
        return ()
    try:
        day = dt.date.fromisoformat(as_of).isoformat()
    except ValueError as error:
        raise text.refuse("sql.clock", "the question's as_of is not a date") from error
    taken = {name for columns in granted.columns.values() for name in columns}
    taken |= set(_made(root))
    return tuple(
        Need("clock", "sql.clock", f"{name} reads the clock", offset=edit.start, edits=(edit,))
        for node in _walk(root)
        for name, edit in _readings(text, node, day, taken)
    )


def _readings(text: Text, node: Node, day: str, taken: set[str]) -> Iterator[tuple[str, Edit]]:
    """The name of what reads the clock in this node, and its edit."""
    start, length = node.get("query_location"), node.get("query_location_length")
    if not isinstance(start, int) or not isinstance(length, int) or start == NO_LOCATION:
        return
    begin, end = text.from_bytes(start), text.from_bytes(start + length)
    if word(node, "class") == "COLUMN_REF":
        parts = [p.lower() for p in names(node)]
        if len(parts) == 1 and parts[0] in WORDS and parts[0] not in taken:
            yield parts[0], Edit(begin, end, WORDS[parts[0]].format(day=day), AS_OF)
    elif word(node, "class") == "FUNCTION" and _plain(node):
        name, given = word(node, "function_name").lower(), arguments(node)
        if name in CALLS and not given:
            yield name, Edit(begin, end, CALLS[name].format(day=day), AS_OF)
        opened = text.sql.find("(", begin, end)
        if name == "age" and len(given) == 1 and opened > 0:
            # the engine counts from midnight
            yield name, Edit(opened + 1, opened + 1, _DAY.format(day=day) + ", ", AS_OF)


def _plain(node: Node) -> bool:
    """A call of the bare name; anything beside it is for the gates to refuse."""
    path = as_node(node.get("qualified_name") or {}).get("path")
    qualified = isinstance(path, list) and len(path) > 1
    return not (qualified or node.get("filter") or node.get("distinct") or word(node, "schema"))


def only_clock_read(before: Node, after: Node, as_of: str, readings: int) -> bool:
    """Whether the tree after is the tree before with that many readings as literals of the day.

    as_of: ISO date. Which nodes may have become literals, and which literals, is told by their
    names alone: no edit is asked.
    """
    found: list[Node] = []
    day = dt.date.fromisoformat(as_of).isoformat()
    return _same(before, after, day, found) and len(found) == readings


def _same(before: Json, after: Json, day: str, found: list[Node]) -> bool:
    """Equality but for places in the text and readings of the clock, which are put into found."""
    if isinstance(before, dict) and isinstance(after, dict):
        wanted = _literal(before, day)
        if wanted and word(after, "class") == "CAST":
            found.append(before)
            return _written(after) == wanted and word(after, "alias") == word(before, "alias")
        if word(before, "class") == "FUNCTION" and _age_of_one(before):
            given = arguments(after)
            if len(given) == 2 and _written(given[0]) == _DAY.format(day=day):
                found.append(before)
                after = {**after, "arguments": _rest(after)}
        keys = {k for k in before if not k.startswith("query_location")}
        return keys == {k for k in after if not k.startswith("query_location")} and all(
            _same(before[key], after[key], day, found) for key in sorted(keys)
        )
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(
            _same(one, other, day, found) for one, other in zip(before, after, strict=True)
        )
    return before == after


def _literal(node: Node, day: str) -> str:
    """What stands for a reading of the clock without arguments; "" where the node is none."""
    if word(node, "class") == "COLUMN_REF":
        parts = names(node)
        return WORDS.get(parts[0].lower(), "").format(day=day) if len(parts) == 1 else ""
    if word(node, "class") == "FUNCTION" and _plain(node) and not arguments(node):
        return CALLS.get(word(node, "function_name").lower(), "").format(day=day)
    return ""


def _age_of_one(node: Node) -> bool:
    called = word(node, "function_name").lower() == "age"
    return called and _plain(node) and len(arguments(node)) == 1


def _rest(node: Node) -> Json:
    given = node.get("arguments")
    return given[1:] if isinstance(given, list) else given


def _written(node: Node) -> str:
    """A cast of a text to a type without parameters as it is written here; "" for any other."""
    if word(node, "class") != "CAST" or node.get("try_cast"):
        return ""
    child, kind = as_node(node.get("child")), as_node(node.get("type_expr"))
    literal = as_node(child.get("literal") or {})
    if kind.get("children") or word(literal, "kind") != "STRING":
        return ""
    return f"CAST('{word(literal, 'text')}' AS {word(kind, 'type_name')})"


def _made(root: Node) -> Iterator[str]:
    """Names that the query itself gives, in lower case."""
    for node in _walk(root):
        yield word(node, "alias").lower()
        for key in ("column_name_alias", "aliases"):
            listed = node.get(key)
            yield from (str(n).lower() for n in listed) if isinstance(listed, list) else ()


def _walk(node: Json) -> Iterator[Node]:
    if isinstance(node, dict):
        yield node
    for child in children(node):
        yield from _walk(child)
