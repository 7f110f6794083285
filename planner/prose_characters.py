"""Characters that a reader cannot see or that change the one beside them, and how they are shown.

A figure followed by an invisible or reordering character can read as another number. The list is
closed and written out, so that it is the same under every version of Python.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_CONTROL: Final = "\\x00-\\x1f\\x7f-\\x9f"
_FORMAT: Final = (
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
"""Unicode category Cf of version 16, with U+2065: zero width, direction, soft hyphen, marks."""
_IGNORABLE: Final = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff"
)
"""Default ignorable without being Cf: fillers, variation selectors, tags."""
_LINES: Final = "\u2028\u2029"
_NO_CHARACTERS: Final = "\ud800-\udfff\ue000-\uf8ff\U000f0000-\U0010ffff"
"""Lone surrogates and private use: what they look like is anyone's choice."""
_HIDDEN: Final = re.compile(f"[{_CONTROL}{_FORMAT}{_IGNORABLE}{_LINES}{_NO_CHARACTERS}]")


def hidden_at(text: str, *, after: str = "", keep: str = "") -> tuple[int, ...]:
    """Where characters stand that cannot be delivered as they are, in order.

    after: the character that stands before the text, "" for none. keep: what may stand all the
    same, such as the end of a line. A combining mark belongs to a letter; beside anything else
    (a digit, a placeholder) it would strike through or enclose a figure.
    """
    found = []
    on_letter = after.isalpha()
    for at, char in enumerate(text):
        if _HIDDEN.match(char) and char not in keep:
            found.append(at)
            on_letter = False
        elif char.isascii() or not unicodedata.category(char).startswith("M"):
            on_letter = char.isalpha()
        elif not on_letter:
            found.append(at)
    return tuple(found)


def visible(text: str, *, after: str = "", keep: str = "") -> str:
    r"""The text with each such character as its escape: `\u{202E}`, hexadecimal digits."""
    places = hidden_at(text, after=after, keep=keep)
    if not places:
        return text
    shown = list(text)
    for at in places:
        shown[at] = f"\\u{{{ord(text[at]):X}}}"
    return "".join(shown)
