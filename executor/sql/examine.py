"""All gates in their order over one text, on a locked engine that holds the granted names only."""

from __future__ import annotations

import json
from collections.abc import Mapping

import duckdb

from tieout.executor.sql import origins as flows
from tieout.executor.sql.keys import Keyed
from tieout.executor.sql.order import (
    TOTAL_ORDER,
    is_total,
    order_of,
    same_but_ordered,
    with_total_order,
)
from tieout.executor.sql.plan import PlanFacts, check_plan
from tieout.executor.sql.refusal import SqlRefused, Text
from tieout.executor.sql.second import check_second, formatted
from tieout.executor.sql.shape import Node, as_node, nodes
from tieout.executor.sql.text import Token, check_text
from tieout.executor.sql.ties import check_ties
from tieout.executor.sql.tree import Granted, Seen, check_tree
from tieout.executor.sql.validate import Finding, GrantedTable

STATEMENT_CODES = {
    **dict.fromkeys(
        ["INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "ALTER", "TRUNCATE"], "sql.write"
    ),
    **dict.fromkeys(
        ["COPY", "EXPORT", "IMPORT", "ATTACH", "DETACH", "INSTALL", "LOAD"], "sql.file_access"
    ),
    **dict.fromkeys(["SET", "RESET", "PRAGMA", "USE", "CALL"], "sql.setting"),
}
BIND_CODES = {"COLUMN_NOT_FOUND": "sql.unknown_column"}
MESSAGE_CHARS_MAX = 200


def granted_of(tables: Mapping[str, GrantedTable]) -> Granted:
    """The granted names in lower case, hidden columns left out."""
    visible = {
        name.lower(): {c.name.lower(): c.type for c in t.columns if not c.name.startswith("__")}
        for name, t in tables.items()
    }
    keys = {
        name.lower(): frozenset(k.lower() for k in t.key if not k.startswith("__"))
        for name, t in tables.items()
    }
    return Granted(columns=visible, keys=keys)


def keyed_of(granted: Granted) -> dict[str, Keyed]:
    """What tells the rows of each granted table apart."""
    return {
        name: Keyed(columns, (granted.keys[name],) if granted.keys[name] else ())
        for name, columns in granted.columns.items()
    }


def examine(
    engine: duckdb.DuckDBPyConnection,
    sql: str,
    tables: Mapping[str, GrantedTable],
    *,
    chars_max: int,
) -> Finding:
    """Text, statement, tree, second parser, bound plan, ties, total order, origins.

    engine: holds each granted table, empty, and is locked. Raises SqlRefused.
    """
    text = Text(sql)
    tokens = check_text(sql, chars_max=chars_max)
    _one_select(engine, text, tokens)
    root = _tree(engine, text)
    granted = granted_of(tables)
    seen = check_tree(text, root, granted)
    second = check_second(text, tokens, root, seen)
    facts = _bound(engine, text, granted, seen)
    columns = _columns(engine, text)
    check_ties(text, root, keyed_of(granted))
    executed, rewrites = sql, tuple[str, ...]()
    if order_of(root) and not is_total(root, [name for name, _ in columns]):
        executed = _ordered(engine, text, tokens, root, len(columns))
        rewrites = (TOTAL_ORDER,)
    traced = flows.trace(root, tables, columns, seen, inexact=facts.inexact)
    return Finding(
        executed=executed,
        rewrites=rewrites,
        formatted=formatted(second),
        tables=tuple(sorted(n for n in tables if n.lower() in facts.tables | seen.tables)),
        functions=tuple(sorted(seen.functions | seen.table_functions)),
        columns=columns,
        origins=traced.columns,
        rows=traced.rows,
        ordered=bool(order_of(root)),
        literals=traced.literals,
    )


def _one_select(engine: duckdb.DuckDBPyConnection, text: Text, tokens: tuple[Token, ...]) -> None:
    """Exactly one statement, a SELECT, without parameters; by DuckDB's own count."""
    first = tokens[0]
    code = STATEMENT_CODES.get(first.text.upper(), "sql.not_a_query")
    try:
        statements = engine.extract_statements(text.sql)
        kinds = [s.type for s in statements]
    except duckdb.Error as error:
        raise _engine_refusal(text, "sql.parse", str(error)) from error
    except ValueError as error:  # a statement type that the Python binding does not know
        raise text.refuse(code, "the text is not a query", offset=first.start) from error
    if len(statements) != 1:
        after = next((t for t in tokens if t.text == ";"), first)
        message = f"the text has {len(statements)} statements"
        raise text.refuse("sql.two_statements", message, offset=after.start)
    if kinds[0] != duckdb.StatementType.SELECT:
        raise text.refuse(code, "the text is not a query", offset=first.start)
    if statements[0].named_parameters:
        place = next((t for t in tokens if t.text in ("?", "$")), first)
        raise text.refuse("sql.parameter", "the query has a parameter", offset=place.start)


def _serialized(engine: duckdb.DuckDBPyConnection, function: str, sql: str) -> Node:
    row = engine.execute(f"SELECT {function}(?::VARCHAR)", [sql]).fetchone()
    assert row is not None
    return as_node(json.loads(row[0]))


def _tree(engine: duckdb.DuckDBPyConnection, text: Text) -> Node:
    try:
        document = _serialized(engine, "json_serialize_sql", text.sql)
    except (duckdb.Error, RecursionError) as error:
        raise text.refuse("sql.too_complex", "the query cannot be taken apart") from error
    if document.get("error"):
        raise _document_refusal(text, document, "sql.parse")
    statements = nodes(document.get("statements"))
    if len(statements) != 1 or statements[0].get("named_param_map"):
        raise text.refuse("sql.two_statements", "the text is not one plain statement")
    return as_node(statements[0]["node"])


def _bound(
    engine: duckdb.DuckDBPyConnection, text: Text, granted: Granted, seen: Seen
) -> PlanFacts:
    try:
        document = _serialized(engine, "json_serialize_plan", text.sql)
    except duckdb.Error as error:
        raise _engine_refusal(text, "sql.bind", str(error)) from error
    if document.get("error"):
        raise _document_refusal(text, document, "sql.bind")
    plans = nodes(document.get("plans"))
    if len(plans) != 1:
        raise text.refuse("sql.two_statements", "the text has no single plan")
    facts = check_plan(text, plans[0], granted=frozenset(granted.columns))
    if not facts.tables <= seen.tables:
        raise text.refuse("sql.parsers_disagree", "the plan reads a table the text does not name")
    return facts


def _columns(engine: duckdb.DuckDBPyConnection, text: Text) -> tuple[tuple[str, str], ...]:
    """Names and types of the result; equal or hidden names are refused."""
    try:
        bound = engine.sql(text.sql)
    except duckdb.Error as error:
        raise _engine_refusal(text, "sql.bind", str(error)) from error
    columns = tuple(zip(bound.columns, (str(t) for t in bound.types), strict=True))
    seen: set[str] = set()
    for name, _ in columns:
        if name.lower() in seen:
            message = f"two columns of the result are named {name}"
            raise text.refuse("sql.duplicate_column", message, word=name)
        if name.startswith("__"):
            message = f"the column {name} begins with two underscores"
            raise text.refuse("sql.reserved_name", message, word=name)
        seen.add(name.lower())
    return columns


def _ordered(
    engine: duckdb.DuckDBPyConnection,
    text: Text,
    tokens: tuple[Token, ...],
    root: Node,
    columns_count: int,
) -> str:
    executed = with_total_order(text, tokens, columns_count)
    try:
        after = _tree(engine, Text(executed))
    except SqlRefused as error:
        raise text.refuse("sql.order_form", "the ORDER BY cannot be made total") from error
    if not same_but_ordered(root, after, columns_count):
        raise text.refuse("sql.order_form", "the ORDER BY cannot be made total")
    return executed


def _said(message: str) -> str:
    """The first line of what the engine said, bounded, without its class.

    It may be shown: this engine holds the granted names without a single row, so that the words
    can come only from the model's own text, those names, and the engine's functions.
    """
    line = message.strip().split("\n", 1)[0]
    line = line.split(" Error: ", 1)[-1].split("!", 1)[0]
    return "".join(c if c.isprintable() else " " for c in line)[:MESSAGE_CHARS_MAX].rstrip(". ")


def _document_refusal(text: Text, document: Node, code: str) -> SqlRefused:
    """The engine's complaint with its place."""
    place = document.get("position")
    where = int(place) if isinstance(place, str) and place.isdigit() else None
    code = BIND_CODES.get(str(document.get("error_subtype") or ""), code)
    name = str(document.get("name") or "")
    message = _said(str(document.get("error_message") or "")) or "the query cannot be bound"
    return text.refuse(code, message, location=where, word=name)


def _engine_refusal(text: Text, code: str, said: str) -> SqlRefused:
    """A refusal for an exception of the engine, with its place if it has one."""
    offset = None
    if "LINE " in said:
        _head, _, rest = said.partition("LINE ")
        number, _, shown = rest.partition(": ")
        lines = shown.split("\n")
        caret = lines[1].find("^") - len(f"LINE {number}: ") if len(lines) > 1 else -1
        starts = text.sql.split("\n")
        if number.isdigit() and caret >= 0 and int(number) <= len(starts) and "..." not in lines[0]:
            offset = sum(len(s) + 1 for s in starts[: int(number) - 1]) + caret
    return text.refuse(code, _said(said) or "the query cannot be bound", offset=offset)
