"""Rules on the bare text, before any parser: length, characters, and a small lexer of places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tieout.executor.sql.refusal import Text

TOKENS_MAX = 2_000
REWRITTEN_TOKENS_MAX = 20_000
"""After our own rewrites, of which a quotient takes 17."""
DEPTH_MAX = 100
"""Nested brackets; 900 nested lists hold the engine's binder for minutes (measured)."""
CURLY = frozenset("\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2032\u2033\u00b4\u00ab\u00bb")
STRAIGHT = "Use straight quotes: ' around a text, \" around a name."

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<line>--[^\n]*)
      | (?P<dollar>\$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?(tag)(?P=tag))\$)
      | (?P<escape>[eE]'(?:[^'\\]|\\.|'')*')
      | (?P<string>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<word>[A-Za-z_][A-Za-z_0-9$]*)
      | (?P<number>(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """kind: word, quoted, string, number or mark; depth: how many brackets enclose it."""

    kind: str
    text: str
    start: int
    end: int
    depth: int


def tokens(sql: str) -> Iterator[Token]:
    """The tokens of a text without white space and comments; nested comments as the engine does."""
    place, depth = 0, 0
    while place < len(sql):
        if sql.startswith("/*", place):
            place = _after_comment(sql, place)
            continue
        found = _TOKEN.match(sql, place)
        if found is None:  # pragma: no cover - the last branch of the pattern takes any character
            return
        place = found.end()
        kind = found.lastgroup or "mark"
        kind = next((k for k in ("dollar", "escape") if found.group(k)), kind)
        if kind in ("space", "line"):
            continue
        text = found.group()
        if text in {")", "]", "}"}:
            depth -= 1
        yield Token(
            "string" if kind in ("dollar", "escape") else kind, text, found.start(), place, depth
        )
        if text in {"(", "[", "{"}:
            depth += 1


def _after_comment(sql: str, start: int) -> int:
    level, place = 0, start
    while place < len(sql):
        if sql.startswith("/*", place):
            level, place = level + 1, place + 2
        elif sql.startswith("*/", place):
            level, place = level - 1, place + 2
            if level == 0:
                return place
        else:
            place += 1
    return place


def check_text(sql: str, *, chars_max: int, tokens_max: int = TOKENS_MAX) -> tuple[Token, ...]:
    """The tokens of an admissible text.

    Raises SqlRefused: sql.too_long, sql.control_character, sql.non_ascii, sql.too_complex,
    sql.empty.
    The engine takes U+00A0, U+200B and a byte order mark as white space; nobody else does.
    """
    text = Text(sql)
    if len(sql) > chars_max:
        raise text.refuse("sql.too_long", f"the query has {len(sql)} characters, over {chars_max}")
    for place, char in enumerate(sql):
        if (ord(char) < 32 and char not in "\t\r\n") or 0x7F <= ord(char) < 0xA0:
            message = f"a control character (U+{ord(char):04X}) stands in the query"
            raise text.refuse("sql.control_character", message, offset=place)
        if 0xD800 <= ord(char) < 0xE000:
            raise text.refuse("sql.control_character", "half a surrogate pair", offset=place)
    found = tuple(tokens(sql))
    _check_ascii(text, found)
    if not found:
        raise text.refuse("sql.empty", "the query is empty")
    if len(found) > tokens_max:
        message = f"the query has {len(found)} tokens, over {tokens_max}"
        raise text.refuse("sql.too_long", message, offset=found[tokens_max].start)
    for token in found:
        if token.depth > DEPTH_MAX:
            message = f"brackets are nested over {DEPTH_MAX} deep"
            raise text.refuse("sql.too_complex", message, offset=token.start)
    return found


def _check_ascii(text: Text, found: tuple[Token, ...]) -> None:
    """Outside quotes only ASCII, comments included."""
    if text.sql.isascii():
        return
    inside = [(t.start, t.end) for t in found if t.kind in ("string", "quoted")]
    spans = iter(inside)
    start, end = next(spans, (len(text.sql), len(text.sql)))
    for place, char in enumerate(text.sql):
        while place >= end and start < len(text.sql):
            start, end = next(spans, (len(text.sql), len(text.sql)))
        if not char.isascii() and not start <= place < end:
            message = f"the character U+{ord(char):04X} stands outside quotes"
            remedy = STRAIGHT if char in CURLY else ""
            raise text.refuse("sql.non_ascii", message, offset=place, remedy=remedy)
