"""What the engine or the second parser said against a text, as a refusal: place and way out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tieout.executor.sql.dialects import CLOCKS, UNITS, UNITS_FIRST, instead
from tieout.executor.sql.refusal import NO_LOCATION, SqlRefused, Text
from tieout.executor.sql.shape import Node, as_node, location, nodes, walk, word
from tieout.executor.sql.text import Token
from tieout.executor.sql.text import tokens as read_tokens

MESSAGE_CHARS_MAX = 200
NAMES_MAX = 20
"""Columns that a way out lists."""
CLOSE = 0.75
"""How near a word must be to a keyword to be taken for it."""
KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "UNION", "JOIN"),
    *("INNER", "LEFT", "RIGHT", "OUTER", "USING", "AND", "OR", "NOT", "BETWEEN", "DISTINCT"),
    *("WITH", "QUALIFY", "EXCEPT", "INTERSECT", "CASE", "WHEN", "THEN", "ELSE", "END", "LIKE"),
)
CLAUSES = frozenset(
    {"SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "QUALIFY", "UNION", ")", ";"}
)
"""What cannot follow a comma in plain SQL."""
IN_LIST = "Give PIVOT an IN list: PIVOT t ON c IN ('x', 'y') USING sum(v)."

_CATALOG = re.compile(r"\bmemory\.main\.")
_NO_COLUMN = re.compile(r'Table "(?P<table>[^"]+)" does not have a column named "(?P<name>[^"]+)"')
_NOT_THERE = re.compile(
    r'Column "(?P<name>[^"]+)" (?:does not exist on \w+ side of join|in \w+ list not found)'
)
_NO_TABLE = re.compile(r'Referenced table "(?P<table>[^"]+)" not found')
_TWICE = re.compile(r'Ambiguous reference to table "(?P<name>[^"]+)"')
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


def said(message: str) -> str:
    """The first line of what the engine said, bounded, without its class and its catalog.

    It may be shown: this engine holds the granted names without a single row, so that the words
    can come only from the model's own text, those names, and the engine's functions.
    """
    line = message.strip().split("\n", 1)[0]
    line = line.split(" Error: ", 1)[-1].split("!", 1)[0]
    line = _CATALOG.sub("", line)
    return "".join(c if c.isprintable() else " " for c in line)[:MESSAGE_CHARS_MAX].rstrip(". ")


def unparsed(text: Text, tokens: tuple[Token, ...], document: Node, message: str) -> SqlRefused:
    """A text that the engine cannot parse. document: what its parser told, with the position that
    the message shows in short lines only; empty where it told none."""
    told = said(str(document.get("error_message") or message)) or "the query cannot be parsed"
    offset = _document_offset(text, document)
    if offset is None:
        offset = _shown_offset(text, message)
    at = next((n for n, t in enumerate(tokens) if offset is not None and t.end > offset), None)
    remedy = "" if at is None else _parse_remedy(tokens, at)
    if "unterminated" in told:
        remedy = "Close the quotes; a quote inside a text is written twice."
    return text.refuse("sql.parse", told, offset=offset, remedy=remedy)


def _parse_remedy(tokens: tuple[Token, ...], at: int) -> str:
    """What is often meant where the engine's parser stops."""
    here = tokens[at]
    before = [t.text.upper() for t in tokens[max(0, at - 2) : at]]
    if before[-1:] == ["TOP"]:
        count = here.text if here.kind == "number" else "10"
        return f"Write LIMIT {count} at the end of the query instead of TOP."
    if here.text == "," and before[:1] == ["LIMIT"]:
        after = tokens[at + 1].text if at + 1 < len(tokens) else "10"
        return f"Write LIMIT {after} OFFSET {before[1]}."
    if here.text == "," and before[-1:] == [","]:
        return "Leave one of the two commas out."
    if here.text.upper() == "DECLARE":
        return "There are no variables: write each value where it is used."
    if here.kind == "word" and here.text.upper() not in KEYWORDS:
        near = difflib.get_close_matches(here.text.upper(), KEYWORDS, 1, CLOSE)
        return f"Write {near[0]} instead of {here.text}." if near else ""
    return ""


def unread(text: Text, line: int | None, column: int | None) -> SqlRefused:
    """A text that the engine parses and the second parser does not. line, column: where that
    parser stopped, at the end of a word."""
    tokens = tuple(read_tokens(text.sql))
    tick = next((t for t in tokens if t.text == "`"), None)
    if tick is not None:
        message = "a name stands in backticks, which one of two parsers does not know"
        remedy = 'Put a name in double quotes, such as "id", or in none.'
        return text.refuse("sql.parsers_disagree", message, offset=tick.start, remedy=remedy)
    if line is None or column is None:
        message = "the second of two parsers cannot read the query"
        return text.refuse("sql.parsers_disagree", message)
    lines = text.sql.split("\n")
    end = sum(len(one) + 1 for one in lines[: line - 1]) + column
    at = max((n for n, t in enumerate(tokens) if t.start < end), default=0)
    here = tokens[at]
    if at and tokens[at - 1].text == "," and here.text.upper() in CLAUSES:
        message = f"a comma stands before {here.text}, where one of two parsers expects more"
        return text.refuse(
            "sql.parsers_disagree",
            message,
            offset=tokens[at - 1].start,
            remedy="Leave the comma out.",
        )
    message = f"the second of two parsers cannot read on at {said(here.text)}"
    return text.refuse("sql.parsers_disagree", message, offset=here.start)


def pivot_without_list(text: Text) -> SqlRefused:
    """A PIVOT whose columns the data would name; the engine makes several statements of it."""
    message = "PIVOT without IN takes the names of its columns from the data"
    return text.refuse("sql.construct", message, word="pivot", remedy=IN_LIST)


def unbound(query: Query, document: Node) -> SqlRefused:
    """A text that the engine cannot bind: a document of its binder, with a place where there is."""
    text = query.text
    message = said(str(document.get("error_message") or "")) or "the query cannot be bound"
    offset = _document_offset(text, document)
    if document.get("error_subtype") == "COLUMN_NOT_FOUND":
        given = str(document.get("candidates") or "").split(",")
        return _unknown(query, str(document.get("name") or ""), offset=offset, given=given)
    if found := _NO_COLUMN.match(message):
        return _unknown(query, found["name"], offset=offset, table=found["table"])
    if found := _NOT_THERE.match(message):
        place = _last(query.tokens, found["name"])
        return _unknown(query, found["name"], offset=place)
    if found := _NO_TABLE.match(message):
        return _no_table(query, document, found["table"], offset)
    if found := _TWICE.match(message):
        remedy = "Give each table in FROM a name of its own with AS."
        place = _second_of(query, found["name"].lower())
        told = f"two tables in FROM are named {found['name']}"
        return text.refuse("sql.bind", told, location=place, word=found["name"], remedy=remedy)
    if found := _NO_ORDER.match(message):
        name = found["name"].split(".")[-1]
        told = f"the ORDER BY of a set operation cannot use {found['name']}"
        remedy = "Order by a column of the result, by its name or its number."
        place = offset if offset is not None else _last(query.tokens, name)
        return text.refuse("sql.bind", told, offset=place, remedy=remedy)
    if _WIDTHS.search(message):
        return _widths(query, message)
    if offset is None:
        quoted = re.search(r'"([^"]+)"', message)
        offset = _last(query.tokens, quoted[1].split(".")[-1]) if quoted else None
    remedy = next((way for words, way in BIND_REMEDIES if words in message), "")
    return text.refuse(
        "sql.bind", message, offset=offset, word=word(document, "name"), remedy=remedy
    )


def failed(text: Text, message: str) -> SqlRefused:
    """A text that the engine refused by an exception while it bound it."""
    told = said(message) or "the query cannot be bound"
    return text.refuse("sql.bind", told, offset=_shown_offset(text, message))


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
    if not table and name.lower() in CLOCKS:
        return text.refuse(
            "sql.clock", f"{name} reads the clock", offset=offset, remedy=instead(name)
        )
    asked = table.lower()
    known = _aliases(query.root).get(asked, asked) if asked else ""
    tables = [known] if known in query.columns else sorted(query.tables) if not asked else []
    message = f"{table} has no column {name}" if table else f"no table here has a column {name}"
    remedy = f"{_hint(query, name, offset)}{_listed(query, name, tables, given)}".strip()
    return text.refuse("sql.unknown_column", message, offset=offset, remedy=remedy)


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
                return query.text.refuse(
                    "sql.bind", message if stars else told, location=place, remedy=remedy
                )
    return query.text.refuse("sql.bind", message, word="union", remedy=remedy)


def _last(tokens: tuple[Token, ...], name: str) -> int | None:
    """Where a name stands for the last time, outside of texts and comments."""
    found = [
        t.start
        for t in tokens
        if t.kind in ("word", "quoted") and t.text.strip('"').lower() == name.lower()
    ]
    return found[-1] if found else None


def _document_offset(text: Text, document: Node) -> int | None:
    place = document.get("position")
    return text.from_bytes(int(place)) if isinstance(place, str) and place.isdigit() else None


def _shown_offset(text: Text, message: str) -> int | None:
    """The place of the caret in an exception's text; none in a line that the engine cut."""
    if "LINE " not in message:
        return None
    _head, _, rest = message.partition("LINE ")
    number, _, shown = rest.partition(": ")
    lines = shown.split("\n")
    caret = lines[1].find("^") - len(f"LINE {number}: ") if len(lines) > 1 else -1
    starts = text.sql.split("\n")
    if not number.isdigit() or caret < 0 or int(number) > len(starts) or "..." in lines[0]:
        return None
    return sum(len(s) + 1 for s in starts[: int(number) - 1]) + caret
