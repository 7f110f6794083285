"""Foreign text made safe to print: one line, nothing invisible, nothing that moves a cursor.

Cells, prose, column names and messages come from files and models. Printed raw they could draw
lines that look like ours, hide text or steer a terminal. The stored bytes are never changed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

LINE_CHARS_MAX: Final = 2_000
PAGE_CHARS_MAX: Final = 20_000
GUTTER: Final = "│ "
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
# Characters that print as nothing although their category says otherwise.
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")


def is_unsafe(character: str) -> bool:
    """Whether a character may not be printed raw: control, format, bidi, invisible.

    Unassigned characters pass: which they are differs between releases of Python.
    """
    if unicodedata.category(character) in _UNSAFE or character in _INVISIBLE:
        return True
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def escaped(character: str) -> str:
    """The visible escape of a character: backslash, u, its number in braces."""
    return f"\\u{{{ord(character):X}}}"


def one_line(text: str, *, chars_max: int = LINE_CHARS_MAX) -> str:
    """The text on one line, unsafe characters as visible escapes, cut at chars_max."""
    cut = text if len(text) <= chars_max else text[:chars_max] + f"… ({len(text)} characters)"
    return "".join(escaped(c) if is_unsafe(c) else c for c in cut)


def page(rows: Iterable[str]) -> str:
    """Rows as a text of exactly so many lines: a line break inside a row is escaped."""
    return "\n".join(one_line(row, chars_max=PAGE_CHARS_MAX) for row in rows)


def lines(text: str) -> list[str]:
    """The text line by line, each behind a gutter, so that no line of it can pass for ours."""
    return [GUTTER + one_line(line, chars_max=PAGE_CHARS_MAX) for line in text.split("\n")]
