"""The second gate: sqlglot reads the same text, refuses by itself, and must see what DuckDB saw."""

from __future__ import annotations

import re

# sqlglot loads these when it first meets what needs them; a child in its sandbox opens no file.
import sqlglot.optimizer.annotate_types
import sqlglot.optimizer.normalize_identifiers
import sqlglot.optimizer.scope
import sqlglot.optimizer.simplify
import sqlglot.transforms  # noqa: F401
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token as SecondToken
from sqlglot.tokenizer_core import TokenType

from tieout.executor.sql.complaints import unread
from tieout.executor.sql.refusal import Text
from tieout.executor.sql.second_policy import SecondSeen, check_policy
from tieout.executor.sql.second_vocabulary import (
    MADE_BY,
    REFUSED,
    SYNTAX_CALLS,
    WRITTEN_FOR,
    AsWritten,
)
from tieout.executor.sql.shape import Node, nodes, word
from tieout.executor.sql.text import REWRITTEN_TOKENS_MAX, TOKENS_MAX, Token
from tieout.executor.sql.tree import Granted, Seen

QUOTED = frozenset(
    {
        *(TokenType.STRING, TokenType.IDENTIFIER, TokenType.RAW_STRING, TokenType.BYTE_STRING),
        *(TokenType.HEREDOC_STRING, TokenType.UNICODE_STRING),
    }
)
_UNUSUAL = re.compile(r"[^\x20-\x7e\t\r\n]")
ROOTS = (exp.Query, exp.Values, exp.Pivot, exp.Table)


def read_second(text: Text, granted: Granted) -> tuple[exp.Expr, SecondSeen]:
    """The text through sqlglot alone: parsed, and every node held against closed lists.

    Nothing of DuckDB's is used: own tables, own scopes, names by second_functions.txt. The tree
    is for comparing and for readers; it is never turned into a text that runs.
    Raises SqlRefused: sql.parsers_disagree when sqlglot cannot read the text, sql.two_statements,
    sql.not_a_query and its kin, and the code of what must not be there.
    """
    dialect = AsWritten()
    try:
        read = dialect.tokenize(text.sql)
        _check_text(text, read)
        parsed = dialect.parser().parse(read, text.sql)
    except SqlglotError as error:
        raise unread(text, *_place(error)) from error
    except RecursionError as error:
        raise text.refuse("sql.too_complex", "the query is nested too deep") from error
    # A comment behind the last semicolon is a Semicolon of its own here.
    found = [e for e in parsed if e is not None and not isinstance(e, exp.Semicolon)]
    if len(found) != 1:
        raise text.refuse("sql.two_statements", f"the text has {len(found)} statements")
    root = found[0]
    if not isinstance(root, ROOTS):
        code = next((c for kind, c in REFUSED.items() if isinstance(root, kind)), "sql.not_a_query")
        raise text.refuse(code, "the text is not a query", offset=0)
    return root, check_policy(text, root, granted)


def functions_as_written(seen: Seen, tokens: tuple[Token, ...]) -> tuple[str, ...]:
    """The functions of a text, sorted, in lower case, by the names that the text has for them.

    Where syntax alone made one (`[1, 2]`, EXTRACT), the engine's name.
    """
    words = {t.text.lower() for t in tokens if t.kind == "word"}

    def written(name: str) -> str:
        other = WRITTEN_FOR.get(name, name)
        return other if name not in words and other in words else name

    return tuple(sorted({written(name) for name in seen.functions | seen.table_functions}))


def check_second(text: Text, tree: Node, seen: Seen) -> exp.Expr:
    """The second gate, then both gates' findings side by side; the tree is for readers only.

    Raises SqlRefused: what `read_second` raises, and sql.parsers_disagree where the two parsers
    differ about tables, WITH names, functions or shape.
    """
    root, second = read_second(text, seen.granted)
    _compare_names(text, seen, second)
    _compare_functions(text, seen, second)
    _compare_shape(text, root, tree)
    return root


def _check_text(text: Text, read: list[SecondToken]) -> None:
    """The rules on the bare text once more, by this lexer's own sight of quotes and comments."""
    tokens_max = REWRITTEN_TOKENS_MAX if text.earlier else TOKENS_MAX
    if len(read) > tokens_max:
        raise text.refuse("sql.too_long", f"the query has over {tokens_max} tokens", offset=0)
    spans = [(t.start, t.end) for t in read if t.token_type in QUOTED]
    for found in _UNUSUAL.finditer(text.sql):
        char, place = found.group(), found.start()
        if char < "\u00a0":
            raise text.refuse("sql.control_character", "a control character", offset=place)
        if not any(start <= place <= end for start, end in spans):
            message = "a character outside ASCII stands outside quotes"
            raise text.refuse("sql.non_ascii", message, offset=place)


def _place(error: SqlglotError) -> tuple[int | None, int | None]:
    details = getattr(error, "errors", None) or [{}]
    line, column = details[0].get("line"), details[0].get("col")
    return (line, column) if isinstance(line, int) and isinstance(column, int) else (None, None)


def _compare_names(text: Text, seen: Seen, second: SecondSeen) -> None:
    """The same names in FROM, each as often; the same tables behind them; the same WITH names."""
    differ = {n for n in seen.refs | second.refs if seen.refs[n] != second.refs[n]}
    for name in sorted(differ | (seen.tables ^ second.tables) | (seen.ctes ^ second.ctes)):
        message = f"the two parsers differ about the table name {name}"
        raise text.refuse("sql.parsers_disagree", message, word=name)


def _compare_functions(text: Text, seen: Seen, second: SecondSeen) -> None:
    """Each function of one tree is written, or made by syntax, in the other."""
    first = seen.functions | seen.table_functions
    explained = {n for n, kinds in MADE_BY.items() if second.made.intersection(kinds)}
    explained |= {n for n, written in WRITTEN_FOR.items() if written in second.calls}
    invented = {n for n in first if n[0].isalpha()} - second.calls - explained
    written = {WRITTEN_FOR[n] for n in first if n in WRITTEN_FOR}
    lost = second.calls - first - SYNTAX_CALLS - written
    for name in sorted(invented | lost):
        message = f"the two parsers differ about the function {name}"
        raise text.refuse("sql.parsers_disagree", message, word=name)


def _compare_shape(text: Text, root: exp.Expr, tree: Node) -> None:
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
        differs = differs or (root is bare and cut != has)
    if differs:
        raise text.refuse("sql.parsers_disagree", "the two parsers see differently shaped queries")


def formatted(root: exp.Expr) -> str:
    """The query laid out for readers; never run."""
    return root.sql(dialect=AsWritten, pretty=True, normalize_functions=False)
