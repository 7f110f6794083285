"""What a parser said against a text, as a refusal: the place, and what is often meant there."""

from __future__ import annotations

import difflib
import re

from tieout.executor.sql.dialects import instead
from tieout.executor.sql.refusal import SqlRefused, Text
from tieout.executor.sql.shape import Node
from tieout.executor.sql.text import Token
from tieout.executor.sql.text import tokens as read_tokens

MESSAGE_CHARS_MAX = 200
CLOSE = 0.75
"""How near a word must be to a keyword to be taken for it."""
KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "UNION", "JOIN"),
    *("INNER", "LEFT", "RIGHT", "OUTER", "USING", "AND", "OR", "NOT", "BETWEEN", "DISTINCT"),
    *("WITH", "QUALIFY", "EXCEPT", "INTERSECT", "CASE", "WHEN", "THEN", "ELSE", "END", "LIKE"),
)
CALL_TOKENS = 8
"""How far before a place the call begins that it may be in: CONVERT(VARCHAR(10), x, 103)."""
MEANT = {
    "DECLARE": "There are no variables: write each value where it is used.",
    "SEPARATOR": "Write string_agg(x, ',' ORDER BY x).",
    "WITH": "Leave table hints such as WITH (NOLOCK) out; WITH queries stand before SELECT.",
    "ROWS": "Write LIMIT 10 at the end of the query.",
}
"""Words at which the engine's parser stops, and what helps."""
CLAUSES = frozenset(
    {"SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "QUALIFY", "UNION", ")", ";"}
)
"""What cannot follow a comma in plain SQL."""
IN_LIST = "Give PIVOT an IN list: PIVOT t ON c IN ('x', 'y') USING sum(v)."

_CATALOG = re.compile(r"\bmemory\.main\.")


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
    offset = document_offset(text, document)
    if offset is None:
        offset = _shown_offset(text, message)
    if offset is None:
        offset = _bare(tokens, told.split(" ", 1)[0])
    at = next((n for n, t in enumerate(tokens) if offset is not None and t.end > offset), None)
    remedy = "" if at is None else _parse_remedy(tokens, at)
    if "unterminated" in told:
        remedy = "Close the quotes; a quote inside a text is written twice."
    return text.refuse("sql.parse", told, offset=offset, remedy=remedy)


def _bare(tokens: tuple[Token, ...], name: str) -> int | None:
    """Where a word that the engine complains of stands before nothing that it could govern, else
    where it stands first."""
    found = [n for n, t in enumerate(tokens) if t.text.upper() == name]
    followed = (tokens[n + 1].text.upper() if n + 1 < len(tokens) else ";" for n in found)
    bare = [n for n, after in zip(found, followed, strict=True) if after in CLAUSES]
    return tokens[(bare or found)[0]].start if found else None


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
    if here.text.upper() in MEANT:
        return MEANT[here.text.upper()]
    if here.text == ")" and before == ["(", "+"]:
        return "Write LEFT JOIN ... ON instead of (+)."
    if here.text == "[" or before[-1:] == ["["]:
        return 'Put a name in double quotes, such as "id", or in none.'
    if "CONVERT" in [t.text.upper() for t in tokens[max(0, at - CALL_TOKENS) : at]]:
        return instead("convert")
    if here.text == "," and before[-1:] == [","]:
        return "Leave one of the two commas out."
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


def failed(text: Text, message: str) -> SqlRefused:
    """A text that the engine refused by an exception while it bound it."""
    told = said(message) or "the query cannot be bound"
    return text.refuse("sql.bind", told, offset=_shown_offset(text, message))


def document_offset(text: Text, document: Node) -> int | None:
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
