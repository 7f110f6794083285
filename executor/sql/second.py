"""The second gate: sqlglot reads the same text; where the two parsers differ, nobody runs it."""

from __future__ import annotations

import itertools

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from tieout.executor.sql.refusal import SqlRefused, Text
from tieout.executor.sql.shape import Node, nodes, word
from tieout.executor.sql.text import Token
from tieout.executor.sql.tree import Seen

ROOTS = (exp.Query, exp.Values, exp.Pivot, exp.Table)
REFUSED: dict[type[exp.Expr], str] = {
    exp.DML: "sql.write",
    exp.DDL: "sql.write",
    exp.Drop: "sql.write",
    exp.Alter: "sql.write",
    exp.Delete: "sql.write",
    exp.Update: "sql.write",
    exp.Insert: "sql.write",
    exp.Merge: "sql.write",
    exp.Into: "sql.write",
    exp.Copy: "sql.file_access",
    exp.Attach: "sql.file_access",
    exp.Detach: "sql.file_access",
    exp.Command: "sql.not_a_query",
    exp.Set: "sql.setting",
    exp.Pragma: "sql.setting",
    exp.Use: "sql.setting",
    exp.Describe: "sql.not_a_query",
    exp.Summarize: "sql.not_a_query",
    exp.Placeholder: "sql.parameter",
    exp.Parameter: "sql.parameter",
    exp.SessionParameter: "sql.parameter",
    exp.TableSample: "sql.sample",
    exp.Rand: "sql.random",
    exp.Uuid: "sql.random",
    exp.CurrentDate: "sql.clock",
    exp.CurrentTime: "sql.clock",
    exp.CurrentTimestamp: "sql.clock",
    exp.ReadCSV: "sql.file_access",
    exp.NextValueFor: "sql.write",
}

MADE_BY_SYNTAX = frozenset(
    {
        *("list_value", "struct_pack", "row", "array_extract", "array_slice", "list_slice"),
        *("struct_extract", "date_part", "count_star", "trunc", "list_element", "map"),
        *("to_years", "to_months", "to_days", "to_hours", "to_minutes", "to_seconds"),
        *("to_weeks", "to_milliseconds", "to_microseconds", "to_quarters", "to_decades"),
        *("to_centuries", "to_millennia", "timezone", "position", "instr", "trim", "ltrim"),
        *("rtrim", "substring", "overlay", "regexp_full_match", "like_escape", "ilike_escape"),
        *("not_like_escape", "not_ilike_escape", "contains", "list_contains", "list_transform"),
        *("list_filter", "quantile_cont", "quantile_disc", "list_apply", "generate_series"),
        *("construct_array", "array_value", "mode", "strptime", "unnest", "json_extract"),
        *("json_extract_string", "concat", "list_concat"),
    }
)
"""Names that the engine's parser gives to brackets, EXTRACT, INTERVAL, WITHIN GROUP."""


def check_second(text: Text, tokens: tuple[Token, ...], tree: Node, seen: Seen) -> exp.Expr:
    """Parse with sqlglot and compare; the tree it returns is for readers only.

    Raises SqlRefused: sql.parsers_disagree when it cannot parse, sees another number of
    statements, another set of table names or WITH names, or lacks a function name; else the code
    of the node that must not be there.
    """
    try:
        parsed = sqlglot.parse(text.sql, dialect="duckdb")
    except SqlglotError as error:
        line, column = _place(error)
        message = "the second parser cannot read the query"
        raise SqlRefused(
            "sql.parsers_disagree",
            message,
            remedy="Write the part at the place named in plainer SQL.",
            line=line,
            column=column,
        ) from error
    except RecursionError as error:
        raise text.refuse("sql.too_complex", "the query is nested too deep") from error
    found = [e for e in parsed if e is not None]
    if len(found) != 1:
        raise text.refuse("sql.two_statements", f"the text has {len(found)} statements")
    root = found[0]
    if not isinstance(root, ROOTS):
        code = next((c for kind, c in REFUSED.items() if isinstance(root, kind)), "sql.not_a_query")
        raise text.refuse(code, "the text is not a query", offset=tokens[0].start)
    _check_nodes(text, root)
    _check_shape(text, root, tree)
    _check_names(text, root, seen)
    _check_functions(text, seen)
    return root


def _place(error: SqlglotError) -> tuple[int | None, int | None]:
    details = getattr(error, "errors", None) or [{}]
    line, column = details[0].get("line"), details[0].get("col")
    return (line, column) if isinstance(line, int) and isinstance(column, int) else (None, None)


def _check_nodes(text: Text, root: exp.Expr) -> None:
    for node in root.walk():
        for kind, code in REFUSED.items():
            if isinstance(node, kind):
                message = f"{type(node).__name__} is not admitted"
                raise text.refuse(code, message, word=type(node).__name__)


def _check_names(text: Text, root: exp.Expr, seen: Seen) -> None:
    refs: set[str] = set()
    for table in root.find_all(exp.Table):
        if isinstance(table.this, exp.Func):
            continue
        if table.db or table.catalog:
            message = f"the table {table.name} is named with a schema or catalog"
            raise text.refuse("sql.qualified_table", message, word=table.name)
        refs.add(table.name.lower())
    ctes = {cte.alias.lower() for cte in root.find_all(exp.CTE)}
    for name in sorted((refs ^ seen.refs) | (ctes ^ seen.ctes)):
        message = f"the two parsers differ about the table name {name}"
        raise text.refuse("sql.parsers_disagree", message, word=name)


def _check_shape(text: Text, root: exp.Expr, tree: Node) -> None:
    """The same kind of outermost query, as many columns in its list, a LIMIT in both or neither."""
    bare: exp.Expr | None = root
    while isinstance(bare, exp.Subquery):
        bare = bare.this
    united = tree.get("type") == "SET_OPERATION_NODE"
    differs = united != isinstance(bare, exp.SetOperation)
    if isinstance(bare, exp.Select) and not differs:
        listed = tree.get("select_list")
        differs = isinstance(listed, list) and len(listed) != max(1, len(bare.selects))
        kinds = {word(m, "type") for m in nodes(tree.get("modifiers"))}
        cut = bool(kinds & {"LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"})
        has = bool(bare.args.get("limit") or bare.args.get("offset") or bare.args.get("fetch"))
        differs = differs or (root is bare and cut and not has)
    if differs:
        raise text.refuse("sql.parsers_disagree", "the two parsers see differently shaped queries")


def _check_functions(text: Text, seen: Seen) -> None:
    """Each function of the engine's tree stands before a bracket in the other lexer's tokens.

    Names made by syntax are excepted. The other direction is the tree's own gate: a name that
    the engine does not take as a function cannot run as one.
    """
    tokens = sqlglot.tokenize(text.sql, dialect="duckdb")
    called = {
        before.text.lower()
        for before, after in itertools.pairwise(tokens)
        if after.token_type is TokenType.L_PAREN
    }
    for name in sorted(seen.functions | seen.table_functions):
        if name not in called and name not in MADE_BY_SYNTAX and name[0].isalpha():
            message = f"the function {name} is not where the text would have it"
            raise text.refuse("sql.parsers_disagree", message, word=name)


def formatted(root: exp.Expr) -> str:
    """The query laid out for readers; never run."""
    return root.sql(dialect="duckdb", pretty=True)
