"""All gates in their order over one text, on a locked engine that holds the granted names only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import duckdb

from tieout.executor.sql import binding, complaints
from tieout.executor.sql import origins as flows
from tieout.executor.sql.as_of import clock_needs, only_clock_read
from tieout.executor.sql.constants import check_constants
from tieout.executor.sql.determinism import judge, verdict_of
from tieout.executor.sql.exact_losses import inexact_columns, losses, offenders
from tieout.executor.sql.needs import Need
from tieout.executor.sql.order import order_of
from tieout.executor.sql.plan import PlanFacts, check_plan
from tieout.executor.sql.proof import same_but_for
from tieout.executor.sql.reading import Reading
from tieout.executor.sql.refusal import SqlRefused, Text
from tieout.executor.sql.second import check_second, formatted, functions_as_written
from tieout.executor.sql.shape import Node, as_node, nodes
from tieout.executor.sql.text import REWRITTEN_TOKENS_MAX, Token, check_text
from tieout.executor.sql.tree import Granted, Seen, check_tree
from tieout.executor.sql.turned import countercheck_of
from tieout.executor.sql.validate import Finding, GrantedTable
from tieout.executor.sql.verdict import Reason

ROUNDS_MAX = 40
"""Rewrites that change types go one nesting at a time."""
OPTIONAL_TRIES_MAX = 40
"""After so many texts, optional rewrites that are still open are given up."""
REWRITTEN_CHARS_MAX = 262_144
"""Of a text after our own rewrites; what was asked has a bound of its own."""
MANY_COLUMNS = (
    "The table has so many columns that an order by all of them is too long: declare its key, "
    "order by columns that name one row, or select fewer columns in a WITH query first."
)
STATEMENT_CODES = {
    **dict.fromkeys(
        ["INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "ALTER", "TRUNCATE"], "sql.write"
    ),
    **dict.fromkeys(
        ["COPY", "EXPORT", "IMPORT", "ATTACH", "DETACH", "INSTALL", "LOAD"], "sql.file_access"
    ),
    **dict.fromkeys(["SET", "RESET", "PRAGMA", "USE", "CALL"], "sql.setting"),
}
PIVOTS = frozenset({"PIVOT", "PIVOT_WIDER", "PIVOT_LONGER"})


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


def examine(
    engine: duckdb.DuckDBPyConnection,
    sql: str,
    tables: Mapping[str, GrantedTable],
    *,
    chars_max: int,
    as_of: str | None = None,
) -> Finding:
    """Text, statement, tree, second parser, bound plan, verdict with its rewrites, origins.

    engine: holds each granted table, empty, and is locked. as_of: ISO date that the clock is said
    to show. Raises SqlRefused.
    """
    try:
        return _examined(engine, sql, tables, chars_max=chars_max, as_of=as_of)
    except RecursionError as error:  # a long chain of operators nests as brackets do
        raise Text(sql).refuse("sql.too_complex", "the query is nested too deep") from error


def _examined(
    engine: duckdb.DuckDBPyConnection,
    sql: str,
    tables: Mapping[str, GrantedTable],
    *,
    chars_max: int,
    as_of: str | None,
) -> Finding:
    granted = granted_of(tables)
    text = Text(sql)
    tokens = check_text(sql, chars_max=chars_max)
    _one_select(engine, text, tokens)
    told: list[Need] = []
    root = _tree(engine, text)
    needs = clock_needs(text, root, granted, as_of)
    if needs and as_of is not None:
        first = read(engine, _rewritten(text, needs, told), granted, tables)
        if not only_clock_read(root, first.root, as_of, len(needs)):
            raise _refused(text, needs[0])
    else:
        first = read(engine, text, granted, tables, parsed=(tokens, root))
    check_constants(engine, first.text, first.plan)
    reading = asked = _under_asked_names(engine, sql, first)
    reading = _determined(engine, reading, told)
    named = zip(asked.columns, reading.columns, strict=True)
    columns = tuple((name, kind) for (name, _was), (_name, kind) in named)
    inexact = inexact_columns(reading.plan, tables, reading.facts.inexact)
    traced = flows.trace(asked.root, tables, columns, asked.seen, inexact=inexact)
    apart = _told_apart([name for name, _kind in columns])
    used = asked.facts.tables | asked.seen.tables
    return Finding(
        executed=reading.text.sql,
        countercheck=countercheck_of(reading.text),
        verdict=verdict_of(reading.text, told),
        formatted=formatted(asked.second),
        tables=tuple(sorted(n for n in tables if n.lower() in used)),
        functions=functions_as_written(asked.seen, tokens),
        columns=tuple((name, kind) for name, (_, kind) in zip(apart, columns, strict=True)),
        origins=tuple(replace(o, name=n) for n, o in zip(apart, traced.columns, strict=True)),
        rows=traced.rows,
        ordered=bool(order_of(reading.root)),
        literals=traced.literals,
        tree=json.dumps(reading.root),
        plan=json.dumps(reading.plan),
    )


def _under_asked_names(engine: duckdb.DuckDBPyConnection, sql: str, reading: Reading) -> Reading:
    """The reading with the columns as the text named them before the clock was replaced."""
    if not reading.text.earlier:
        return reading
    columns = engine.sql(sql).columns  # the gates admitted all of it but the clock
    kinds = (kind for _name, kind in reading.columns)
    return replace(reading, columns=tuple(zip(columns, kinds, strict=True)))


def _determined(engine: duckdb.DuckDBPyConnection, reading: Reading, told: list[Need]) -> Reading:
    """Rewritten until the judge needs nothing more."""
    asked, tries = reading, 0
    start: tuple[Reading, int] | None = None
    for _round in range(ROUNDS_MAX):
        needs = judge(reading)
        if needs and all(need.optional for need in needs):
            start = start or (reading, len(told))
            spare = OPTIONAL_TRIES_MAX - tries
            reading, spent = _tried(engine, reading, needs, told, tries_max=spare)
            tries += spent
            continue
        if start is not None:  # once no quotient is open: those of lost digits are floats again
            lost = offenders(reading.text, losses(reading.plan, reading.tables), told[start[1] :])
            if lost:
                del told[start[1] :]
                reading = replace(start[0], given_up=reading.given_up | lost)
                continue
        if not needs:
            break
        text = _rewritten(reading.text, needs, told)
        reading = _reread(engine, reading, text, needs)
    else:
        raise asked.text.refuse("sql.too_complex", "too many parts of the query need a rewrite")
    return reading


def read(
    engine: duckdb.DuckDBPyConnection,
    text: Text,
    granted: Granted,
    tables: Mapping[str, GrantedTable],
    *,
    parsed: tuple[tuple[Token, ...], Node] | None = None,
) -> Reading:
    """One text through the gates: the engine's tree, the second parser, the bound plan.

    parsed: the tokens and the tree of this very text, where they are there already.
    """
    tokens, root = parsed or (
        check_text(text.sql, chars_max=REWRITTEN_CHARS_MAX, tokens_max=REWRITTEN_TOKENS_MAX),
        _tree(engine, text),
    )
    seen = check_tree(text, root, granted)
    second = check_second(text, root, seen)
    plan, facts = _bound(engine, text, granted, seen, (tokens, root))
    columns = _columns(engine, text)
    return Reading(text, tokens, root, plan, seen, second, facts, columns, granted, tables)


def _rewritten(text: Text, needs: Sequence[Need], told: list[Need]) -> Text:
    """The text after the edits of the needs, which are told with places of the text as asked."""
    for need in needs:
        if not need.edits:
            raise _refused(text, need)
    told += [replace(n, offset=_asked(text, n.offset)) for n in needs]
    edits = [edit for need in needs for edit in need.edits]
    return text.edited(edits) if edits else text


def _tried(
    engine: duckdb.DuckDBPyConnection,
    before: Reading,
    needs: Sequence[Need],
    told: list[Need],
    *,
    tries_max: int,
) -> tuple[Reading, int]:
    """The text with optional needs met, and how many texts were tried for that.

    All of them, else the first half, and so on down to the first alone, which is given up where
    it fails too. tries_max: when these are spent, all are given up.
    """
    tries, chosen = 0, needs
    while chosen and tries < tries_max:
        met = list[Need]()
        text = _rewritten(before.text, chosen, met)
        tries += 1
        try:
            after = _reread(engine, before, text, chosen)
        except SqlRefused:
            chosen = chosen[: len(chosen) // 2]
            continue
        told += met
        return after, tries
    dropped = needs if chosen else needs[:1]
    keys = {(n.reason, before.text.asked_offset(n.offset or 0)) for n in dropped}
    return replace(before, given_up=before.given_up | keys), tries


def _asked(text: Text, offset: int | None) -> int | None:
    return None if offset is None else text.asked_offset(offset)


def _refused(text: Text, need: Need) -> SqlRefused:
    refused = text.refuse(need.code, need.message, offset=need.offset, remedy=need.remedy)
    refused.reasons = (Reason(need.reason, need.message, refused.line, refused.column),)
    return refused


def _reread(
    engine: duckdb.DuckDBPyConnection, before: Reading, text: Text, needs: Sequence[Need]
) -> Reading:
    """The rewritten text through every gate again, and shown to be the one before but for it.

    Where the rewrite does not bind, the query is refused with the reason that asked for it.
    """
    edits = [edit for need in needs for edit in need.edits]
    try:
        after = read(engine, text, before.granted, before.tables)
    except SqlRefused as error:
        first = needs[0]
        if error.code == "sql.too_long":
            first = replace(first, remedy=MANY_COLUMNS)
        raise _refused(before.text, first) from error
    if not same_but_for(before.root, after.root, before.text.sql, edits):
        raise _refused(before.text, needs[0])
    return replace(after, given_up=before.given_up)


def _one_select(engine: duckdb.DuckDBPyConnection, text: Text, tokens: tuple[Token, ...]) -> None:
    """Exactly one statement, a SELECT, without parameters; by DuckDB's own count."""
    first = tokens[0]
    code = STATEMENT_CODES.get(first.text.upper(), "sql.not_a_query")
    try:
        statements = engine.extract_statements(text.sql)
        kinds = [s.type for s in statements]
    except duckdb.Error as error:
        raise _unparsed(engine, text, tokens, str(error)) from error
    except ValueError as error:  # a statement type that the Python binding does not know
        raise text.refuse(code, "the text is not a query", offset=first.start) from error
    if len(statements) != 1:
        after = next((t for t in tokens if t.text == ";"), first)
        message = f"the text has {len(statements)} statements"
        raise text.refuse("sql.two_statements", message, offset=after.start)
    if kinds[0] != duckdb.StatementType.SELECT:
        if code == "sql.not_a_query" and any(t.text.upper() in PIVOTS for t in tokens):
            raise complaints.pivot_without_list(text)
        raise text.refuse(code, "the text is not a query", offset=first.start)
    if statements[0].named_parameters:
        place = next((t for t in tokens if t.text in ("?", "$")), first)
        raise text.refuse("sql.parameter", "the query has a parameter", offset=place.start)


def _unparsed(
    engine: duckdb.DuckDBPyConnection, text: Text, tokens: tuple[Token, ...], message: str
) -> SqlRefused:
    """The refusal of a text that does not parse; the engine's document has places, its message
    cuts long lines."""
    try:
        document = _serialized(engine, "json_serialize_sql", text.sql)
    except (duckdb.Error, RecursionError):
        document = {}
    return complaints.unparsed(text, tokens, document if document.get("error") else {}, message)


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
        raise complaints.unparsed(text, (), document, "")
    statements = nodes(document.get("statements"))
    if len(statements) != 1 or statements[0].get("named_param_map"):
        raise text.refuse("sql.two_statements", "the text is not one plain statement")
    return as_node(statements[0]["node"])


def _bound(
    engine: duckdb.DuckDBPyConnection,
    text: Text,
    granted: Granted,
    seen: Seen,
    parsed: tuple[tuple[Token, ...], Node],
) -> tuple[Node, PlanFacts]:
    try:
        document = _serialized(engine, "json_serialize_plan", text.sql)
    except duckdb.Error as error:
        raise complaints.failed(text, str(error)) from error
    if document.get("error"):
        query = binding.Query(text, *parsed, granted.columns, frozenset(seen.tables))
        raise binding.unbound(query, document)
    plans = nodes(document.get("plans"))
    if len(plans) != 1:
        raise text.refuse("sql.two_statements", "the text has no single plan")
    facts = check_plan(text, plans[0], granted=frozenset(granted.columns))
    if not facts.tables <= seen.tables:
        raise text.refuse("sql.parsers_disagree", "the plan reads a table the text does not name")
    return plans[0], facts


def _columns(engine: duckdb.DuckDBPyConnection, text: Text) -> tuple[tuple[str, str], ...]:
    """Names and types of the result, equal names as they are; hidden ones are refused."""
    try:
        bound = engine.sql(text.sql)
    except duckdb.Error as error:
        raise complaints.failed(text, str(error)) from error
    columns = tuple(zip(bound.columns, (str(t) for t in bound.types), strict=True))
    for name, _ in columns:
        if name.startswith("__"):
            message = f"the column {name} begins with two underscores"
            raise text.refuse("sql.reserved_name", message, word=name)
    return columns


def _told_apart(names: Sequence[str]) -> list[str]:
    """Column names of which no two are equal without case: id, id_1, id_2."""
    taken, found = {name.lower() for name in names}, list[str]()
    seen: set[str] = set()
    for name in names:
        own, number = name, 0
        while own.lower() in seen or (number and own.lower() in taken):
            number += 1
            own = f"{name}_{number}"
        seen.add(own.lower())
        found.append(own)
    return found
