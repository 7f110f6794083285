"""What the binder said against a text, as a refusal: its place and the columns in question."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tieout.executor.sql.complaints import document_offset, said
from tieout.executor.sql.dialects import CLOCKS, OWN_CLOCKS, UNITS, UNITS_FIRST, instead
from tieout.executor.sql.refusal import NO_LOCATION, SqlRefused, Text
from tieout.executor.sql.shape import (
    Json,
    Node,
    as_node,
    children,
    location,
    names,
    nodes,
    walk,
    word,
)
from tieout.executor.sql.text import Token

NAMES_MAX = 20
"""Columns that a way out lists."""

_NO_COLUMN = re.compile(
    r'(?:Table|Values list) "(?P<table>[^"]+)" does not have a column named "(?P<name>[^"]+)"'
)
_PROPOSED = re.compile(r'"([^"]+)"')
_NOT_THERE = re.compile(
    r'Column "(?P<name>[^"]+)" (?:does not exist on \w+ side of join|in \w+ list not found)'
)
_NO_TABLE = re.compile(r'Referenced table "(?P<table>[^"]+)" not found')
_TWICE = re.compile(r'Ambiguous reference to table "(?P<name>.+?)" \(duplicate')
_NO_ORDER = re.compile(r'Could not ORDER BY column "(?P<name>[^"]+)"')
BIND_REMEDIES = (
    (
        "must appear in the GROUP BY",
        "Add it to GROUP BY, or put it in an aggregate such as min(x).",
    ),
    ("Ambiguous reference to column", "Write it with its table or alias in front."),
    ("WHERE clause cannot contain aggregates", "Put the condition in HAVING."),
    ("WHERE clause cannot contain window", "Put the condition in QUALIFY."),
    ("Subquery returns", "Select one column in the subquery."),
    ("No function matches", "Cast the arguments to what it takes, such as x::DECIMAL(18,2)."),
    ("Could not choose", "Cast the argument, such as DATE '2026-06-30' or x::DECIMAL(18,2)."),
    ("Cannot mix values", "Cast both to one type."),
    ("term out of range", "Name a column of the result, or give the number of one."),
    ("Cannot compare", "Cast one side to the type of the other."),
)
"""What the binder says, by words of its own, and what helps."""
_WIDTHS = re.compile(r"Set operations can only apply|same number of result columns")


@dataclass(frozen=True, slots=True)
class Query:
    """What a complaint is about. columns: by granted table, all in lower case; tables: those that
    the query reads."""

    text: Text
    tokens: tuple[Token, ...]
    root: Node
    columns: Mapping[str, Iterable[str]]
    tables: frozenset[str]


def unbound(query: Query, document: Node) -> SqlRefused:
    """A text that the engine cannot bind: a document of its binder, with a place where there is."""
    text = query.text
    message = said(str(document.get("error_message") or "")) or "the query cannot be bound"
    offset = document_offset(text, document)
    if document.get("error_subtype") == "COLUMN_NOT_FOUND":
        given = str(document.get("candidates") or "").split(",")
        return _unknown(query, str(document.get("name") or ""), offset=offset, given=given)
    if found := _NO_COLUMN.match(message):
        given = _made(query.root, found["table"].lower())
        return _unknown(query, found["name"], offset=offset, table=found["table"], given=given)
    if found := _NOT_THERE.match(message):
        place = _last(query.tokens, found["name"])
        return _unknown(query, found["name"], offset=place)
    if found := _NO_TABLE.match(message):
        return _no_table(query, document, found["table"], offset)
    if found := _TWICE.match(message):
        remedy = "Give each table in FROM a name of its own with AS."
        name = found["name"].strip('"')
        place = _second_of(query, name.lower())
        told = f"two tables in FROM are named {name}"
        return text.refuse("sql.bind", told, location=place, word=name, remedy=remedy)
    if found := _NO_ORDER.match(message):
        name = found["name"].split(".")[-1]
        told = f"the ORDER BY of a set operation cannot use {found['name']}"
        remedy = "Order by a column of the result, by its name or its number."
        place = offset if offset is not None else _last(query.tokens, name)
        return text.refuse("sql.bind", told, offset=place, remedy=remedy)
    if _WIDTHS.search(message):
        return _widths(query, message)
    if offset is None:
        quoted = _PROPOSED.search(message)
        named = quoted[1].split(".")[-1] if quoted else message.split(" ", 1)[0]
        offset = _last(query.tokens, named)
    remedy = next((way for words, way in BIND_REMEDIES if words in message), "")
    return text.refuse(
        "sql.bind", message, offset=offset, word=word(document, "name"), remedy=remedy
    )


def _unknown(
    query: Query,
    name: str,
    *,
    offset: int | None,
    table: str = "",
    given: Iterable[str] = (),
) -> SqlRefused:
    """A column that is not there. table: by whose name or alias it was asked for; given: names
    that the engine proposes, which may be those of a subquery."""
    text = query.text
    if offset is None:
        offset = text.find(name)
    if not table and name.lower() in CLOCKS | OWN_CLOCKS:
        return text.refuse(
            "sql.clock", f"{name} reads the clock", offset=offset, remedy=instead(name)
        )
    asked = table.lower()
    known = _aliases(query.root).get(asked, asked) if asked else ""
    tables = [known] if known in query.columns else []
    if not asked:
        tables = _in_scope(query, offset)
    if any(name.lower() in query.columns[t] for t in tables) and not table:
        message = f"the column {name} cannot be read at this place"
        remedy = "Write a number here, or use the column in a part of the query that FROM feeds."
        return text.refuse("sql.unknown_column", message, offset=offset, remedy=remedy)
    if not table and name.lower() == "rownum":
        return text.refuse(
            "sql.unknown_column", "rownum is no column", offset=offset, remedy=instead(name)
        )
    message = f"{table} has no column {name}" if table else f"no table here has a column {name}"
    remedy = f"{_hint(query, name, offset)}{_listed(query, name, tables, given)}".strip()
    return text.refuse("sql.unknown_column", message, offset=offset, remedy=remedy)


def _made(root: Node, name: str) -> list[str]:
    """The columns that a WITH query or a subquery of that name lists; none where it has a star."""
    for node in walk(root):
        if word(node, "key").lower() == name and isinstance(node.get("value"), dict):
            made = as_node(node["value"]).get("query_node")
        elif word(node, "type") == "SUBQUERY" and word(node, "alias").lower() == name:
            made = as_node(node.get("subquery") or {}).get("node")
        else:
            continue
        listed = nodes(as_node(made or {}).get("select_list"))
        found = [word(item, "alias") or (names(item) or [""])[-1] for item in listed]
        return [] if "" in found else found
    return []


def _in_scope(query: Query, offset: int | None) -> list[str]:
    """The granted tables in FROM of the queries around a place; all that are read where the place
    is no column's own."""
    if offset is None:
        return sorted(query.tables)
    place = len(query.text.sql[:offset].encode())
    for node, around in _within(query.root, ()):
        if node.get("class") == "COLUMN_REF" and node.get("query_location") == place:
            named = {n for query_node in around for n in _fed(query_node.get("from_table"))}
            return sorted(named & set(query.columns))
    return sorted(query.tables)


def _within(node: Json, around: tuple[Node, ...]) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """All objects below, each with the queries around it."""
    open_ = [(node, around)]
    while open_:
        here, around = open_.pop()
        if isinstance(here, dict):
            yield here, around
            around = (*around, here) if "from_table" in here else around
        open_ += [(child, around) for child in children(here) if isinstance(child, dict | list)]


def _fed(source: Json) -> Iterator[str]:
    """The tables that a FROM names itself, not those in its subqueries."""
    open_ = [source]
    while open_:
        here = open_.pop()
        if isinstance(here, dict) and here.get("type") == "BASE_TABLE":
            yield word(here, "table_name").lower()
        elif not (isinstance(here, dict) and "subquery" in here):
            open_ += [child for child in children(here) if isinstance(child, dict | list)]


def _hint(query: Query, name: str, offset: int | None) -> str:
    """What a name that is no column was perhaps meant as."""
    at = next((n for n, t in enumerate(query.tokens) if t.start == offset), None)
    if at is None:
        return ""
    before = [t.text.lower() for t in query.tokens[max(0, at - 2) : at]]
    if len(before) == 2 and before[0] in UNITS_FIRST and before[1] == "(" and name.lower() in UNITS:
        return f"Write the unit as a text: '{name.lower()}'. "
    if query.tokens[at].kind == "quoted":
        return f"A text stands in single quotes: '{said(name)}'. "
    return ""


def _listed(query: Query, name: str, tables: list[str], given: Iterable[str]) -> str:
    """The columns of the tables in question, the nearest first."""
    columns = {c for table in tables for c in query.columns[table]}
    others = [g for g in given if g and g.lower() not in columns]
    if not columns and not others:
        return ""
    ordered = sorted(columns, key=lambda c: (-_near(name, c), c))
    listed = [*ordered, *others] if ordered else others
    shown = ", ".join(listed[:NAMES_MAX])
    more = f" and {len(listed) - NAMES_MAX} more" if len(listed) > NAMES_MAX else ""
    of = f" of {', '.join(tables)}" if tables else ""
    return f"Columns{of}, nearest first: {shown}{more}."


def _near(name: str, other: str) -> float:
    return difflib.SequenceMatcher(None, name.lower(), other).ratio()


def _no_table(query: Query, document: Node, table: str, offset: int | None) -> SqlRefused:
    """A qualified column whose table the binder does not find: often it is there, and the column
    is not, so that the binder looked further out."""
    aliases = _aliases(query.root)
    length = re.fullmatch(r"\[\d+,(\d+)\]", str(document.get("location") or ""))
    if offset is not None and length and table.lower() in aliases:
        start = len(query.text.sql[:offset].encode())
        end = query.text.from_bytes(start + int(length[1]))
        column = query.text.sql[offset:end].rpartition(".")[2].strip().strip('"')
        known = query.columns.get(aliases[table.lower()])
        if known is not None and column.lower() not in {c.lower() for c in known}:
            return _unknown(query, column, offset=offset, table=table)
    there = ", ".join(sorted(a for a in aliases if a)) or "none"
    return query.text.refuse(
        "sql.unknown_table",
        f"no table of that part of the query is named {table}",
        offset=offset,
        remedy=f"Use the names and aliases that its FROM gives; in the whole query: {there}.",
    )


def _aliases(root: Node) -> dict[str, str]:
    """The names by which tables can be meant, each with the table; "" for a subquery."""
    found: dict[str, str] = {}
    for node in walk(root):
        kind = word(node, "type")
        if kind == "BASE_TABLE":
            table = word(node, "table_name").lower()
            found.setdefault(word(node, "alias").lower() or table, table)
        elif kind == "SUBQUERY" and "class" not in node:
            found.setdefault(word(node, "alias").lower(), "")
    return found


def _second_of(query: Query, name: str) -> int | None:
    """Where FROM gives a name for the second time."""
    places = [
        location(node)
        for node in walk(query.root)
        if "class" not in node
        and word(node, "type") in ("BASE_TABLE", "SUBQUERY", "TABLE_FUNCTION")
        and (word(node, "alias") or word(node, "table_name")).lower() == name
    ]
    known = sorted(p for p in places if p is not None and p != NO_LOCATION)
    return known[1] if len(known) > 1 else None


def _widths(query: Query, message: str) -> SqlRefused:
    """A set operation over queries of different width, at the one that differs from the first."""
    remedy = "Give each of its queries the same number of columns; NULL AS c fills one up."
    for node in walk(query.root):
        if word(node, "type") != "SET_OPERATION_NODE":
            continue
        parts = nodes(node.get("children")) or [
            as_node(node[side]) for side in ("left", "right") if isinstance(node.get(side), dict)
        ]
        lists = [nodes(part.get("select_list")) for part in parts]
        for one in lists[1:]:
            stars = any(word(item, "class") == "STAR" for item in (*lists[0], *one))
            if lists[0] and one and (stars or len(one) != len(lists[0])):
                told = f"a set operation over queries of {len(lists[0])} and {len(one)} columns"
                place = location(one[0])
                if place is not None and place != NO_LOCATION:
                    return query.text.refuse(
                        "sql.bind", message if stars else told, location=place, remedy=remedy
                    )
    joined = (_last(query.tokens, name) for name in ("union", "intersect", "except"))
    place = next((p for p in joined if p is not None), None)
    return query.text.refuse("sql.bind", message, offset=place, remedy=remedy)


def _last(tokens: tuple[Token, ...], name: str) -> int | None:
    """Where a name stands for the last time, outside of texts and comments."""
    found = [
        t.start for t in tokens if t.kind != "string" and t.text.strip('"').lower() == name.lower()
    ]
    return found[-1] if found else None
