"""Split HTML characters into text, references, tags and the rest, each with its exact place.

Source: WHATWG HTML, tokenisation (13.2.5), data state and the raw-text states. Only what decides
the visible text is kept: comments and doctypes yield nothing, attributes keep their last say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.entities import html5
from typing import Final, Literal

TokenKind = Literal["text", "reference", "start", "end"]
_WS: Final = "\t\n\f\r "
_NAME: Final = re.compile(rf"[^{_WS}/>]*")
_SKIP: Final = re.compile(rf"[{_WS}/]*")
_ATTRIBUTE_NAME: Final = re.compile(rf"[^{_WS}/>][^{_WS}/>=]*")
_EQUALS: Final = re.compile(rf"[{_WS}]*=[{_WS}]*")
_UNQUOTED: Final = re.compile(rf"[^{_WS}>]*")
_COMMENT_END: Final = re.compile(r"--!?>")
_NUMERIC: Final = re.compile(r"&#(?:[xX]([0-9a-fA-F]+)|([0-9]+));?")
_NAMED: Final = re.compile(r"&([0-9A-Za-z]+;?)")
_ANY_REFERENCE: Final = re.compile(r"&(?:#|[0-9A-Za-z])")
_STOP: Final = re.compile(r"[<&]")
_SCRIPT_MARK: Final = re.compile(rf"<!--|-->|</?script(?=[{_WS}/>])", re.IGNORECASE)
_REFERENCE_NAME_MAX: Final = max(len(name) for name in html5)
_POINT_DIGITS_MAX: Final = 7
RAW_TEXT: Final = frozenset({"style", "xmp", "iframe", "noembed", "noframes"})
ESCAPABLE_RAW_TEXT: Final = frozenset({"title", "textarea"})
# The references that WHATWG reads as windows-1252, because pages meant that.
_C1: Final = {
    0x80: 0x20AC, 0x82: 0x201A, 0x83: 0x0192, 0x84: 0x201E, 0x85: 0x2026, 0x86: 0x2020,
    0x87: 0x2021, 0x88: 0x02C6, 0x89: 0x2030, 0x8A: 0x0160, 0x8B: 0x2039, 0x8C: 0x0152,
    0x8E: 0x017D, 0x91: 0x2018, 0x92: 0x2019, 0x93: 0x201C, 0x94: 0x201D, 0x95: 0x2022,
    0x96: 0x2013, 0x97: 0x2014, 0x98: 0x02DC, 0x99: 0x2122, 0x9A: 0x0161, 0x9B: 0x203A,
    0x9C: 0x0153, 0x9E: 0x017E, 0x9F: 0x0178,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of the page at characters [start, end).

    text: the characters it stands for (text, reference); name: of a tag, lower case.
    """

    kind: TokenKind
    start: int
    end: int
    text: str = ""
    name: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    self_closing: bool = False


class Tokenizer:
    """One pass over the characters of a page.

    foreign: set by the reader while it stands inside svg or math, where CDATA is text and
    style and title are ordinary elements.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.foreign = False
        self._after = 0

    def tokens(self) -> Iterator[Token]:
        """Every piece in document order; places never go back and never overlap."""
        text, size, at = self._text, len(self._text), 0
        while at < size:
            match = _STOP.search(text, at)
            stop = match.start() if match else size
            if stop > at:
                yield Token("text", at, stop, text[at:stop])
                at = stop
                continue
            if text[at] == "&":
                token = reference_at(text, at)
                yield token
                at = token.end
                continue
            markup, at = self._markup(at)
            if markup is None:
                continue
            yield markup
            if markup.kind == "start":
                yield from self._raw_text(markup)
                at = self._after

    def _raw_text(self, tag: Token) -> Iterator[Token]:
        """The content of an element whose content is not markup; sets where to go on."""
        text, at, name = self._text, tag.end, tag.name
        self._after = at
        if self.foreign:
            return
        if name == "plaintext":
            stop = len(text)
        elif name == "script":
            stop = _script_end(text, at)
        elif name in RAW_TEXT or name in ESCAPABLE_RAW_TEXT:
            match = re.compile(rf"</{name}(?=[{_WS}/>])", re.IGNORECASE).search(text, at)
            stop = match.start() if match else len(text)
        else:
            return
        self._after = stop
        if name not in ESCAPABLE_RAW_TEXT:
            if stop > at:
                yield Token("text", at, stop, text[at:stop])
            return
        while at < stop:
            found = text.find("&", at, stop)
            if found < 0 or found > at:
                upto = stop if found < 0 else found
                yield Token("text", at, upto, text[at:upto])
                at = upto
                continue
            token = reference_at(text, at, stop)
            yield token
            at = token.end

    def _markup(self, at: int) -> tuple[Token | None, int]:
        """What stands at `<` (None for a comment and the like) and where to go on."""
        text = self._text
        ahead = text[at + 1 : at + 2]
        if ahead.isascii() and ahead.isalpha():
            return self._tag(at, at + 1, "start")
        if ahead == "/":
            beyond = text[at + 2 : at + 3]
            if beyond.isascii() and beyond.isalpha():
                return self._tag(at, at + 2, "end")
            if beyond == ">":
                return None, at + 3
            if beyond == "":
                return Token("text", at, at + 2, "</"), at + 2
            return None, self._past(">", at + 2)
        if ahead == "?":
            return None, self._past(">", at + 1)
        if ahead == "!":
            return self._declaration(at)
        return Token("text", at, at + 1, "<"), at + 1

    def _declaration(self, at: int) -> tuple[Token | None, int]:
        text = self._text
        if text.startswith("<!--", at):
            for early in (">", "->"):
                if text.startswith(early, at + 4):
                    return None, at + 4 + len(early)
            match = _COMMENT_END.search(text, at + 4)
            return None, match.end() if match else len(text)
        if self.foreign and text.startswith("<![CDATA[", at):
            stop = text.find("]]>", at + 9)
            stop = len(text) if stop < 0 else stop
            after = min(stop + 3, len(text))
            if stop == at + 9:
                return None, after
            return Token("text", at + 9, stop, text[at + 9 : stop]), after
        return None, self._past(">", at + 2)

    def _past(self, mark: str, at: int) -> int:
        found = self._text.find(mark, at)
        return len(self._text) if found < 0 else found + len(mark)

    def _tag(self, start: int, at: int, kind: Literal["start", "end"]) -> tuple[Token | None, int]:
        """A tag; one that the page ends in the middle of is dropped with the rest of the page."""
        text, size, name_at = self._text, len(self._text), at
        match = _NAME.match(text, at)
        at = match.end() if match else at
        name = _lower(text[name_at:at])
        attributes: dict[str, str] = {}
        while at < size:
            skipped = _SKIP.match(text, at)
            before, at = at, skipped.end() if skipped else at
            if at >= size:
                break
            if text[at] == ">":
                closing = at > before and text[at - 1] == "/"
                return Token(kind, start, at + 1, "", name, attributes, closing), at + 1
            named = _ATTRIBUTE_NAME.match(text, at)
            if named is None:
                raise AssertionError("an attribute name has at least one character")
            value, at = self._value(named.end())
            attributes.setdefault(_lower(named.group()), value)
        return None, size

    def _value(self, at: int) -> tuple[str, int]:
        text, size = self._text, len(self._text)
        equals = _EQUALS.match(text, at)
        if equals is None:
            return "", at
        at = equals.end()
        quote = text[at : at + 1]
        if quote in ('"', "'") and quote:
            stop = text.find(quote, at + 1)
            if stop < 0:
                return "", size
            return _decode_attribute(text[at + 1 : stop]), stop + 1
        match = _UNQUOTED.match(text, at)
        stop = match.end() if match else at
        return _decode_attribute(text[at:stop]), stop


def reference_at(text: str, at: int, stop: int | None = None, *, attribute: bool = False) -> Token:
    """The character reference at `&`, or that character itself as text."""
    stop = len(text) if stop is None else stop
    if not _ANY_REFERENCE.match(text, at, stop):
        return Token("text", at, at + 1, "&")
    numeric = _NUMERIC.match(text, at, stop)
    if numeric:
        return Token("reference", at, numeric.end(), _numeric(numeric[1], numeric[2]))
    named = _NAMED.match(text, at, min(stop, at + _REFERENCE_NAME_MAX + 1))
    if named is None:
        return Token("text", at, at + 1, "&")
    for length in range(len(named[1]), 1, -1):
        name = named[1][:length]
        if name not in html5:
            continue
        end = at + 1 + length
        following = text[end : end + 1] if end < stop else ""
        glued = following == "=" or (following.isascii() and following.isalnum())
        if attribute and glued and not name.endswith(";"):
            break
        return Token("reference", at, end, html5[name])
    return Token("text", at, at + 1, "&")


def _numeric(hexadecimal: str | None, decimal: str | None) -> str:
    digits = (hexadecimal or decimal or "").lstrip("0")
    if not digits or len(digits) > _POINT_DIGITS_MAX:
        return "\ufffd"
    point = int(digits, 16 if hexadecimal else 10)
    if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        return "\ufffd"
    return chr(_C1.get(point, point))


def _decode_attribute(value: str) -> str:
    if "&" not in value:
        return value
    parts, at = [], 0
    while at < len(value):
        found = value.find("&", at)
        if found < 0:
            parts.append(value[at:])
            break
        token = reference_at(value, found, attribute=True)
        parts += [value[at:found], token.text]
        at = token.end
    return "".join(parts)


def _script_end(text: str, at: int) -> int:
    """Where the end tag of a script begins; one inside an escaped inner script does not count."""
    state = "plain"
    while match := _SCRIPT_MARK.search(text, at):
        mark = match.group().lower()
        at = match.end()
        if mark == "<!--":
            if state == "plain":
                state = "escaped"
                at -= 2  # its dashes may already belong to the closing mark
        elif mark == "-->":
            state = "plain"
        elif mark == "<script":
            state = "double" if state == "escaped" else state
        elif state == "double":
            state = "escaped"
        else:
            return match.start()
    return len(text)


def _lower(name: str) -> str:
    """ASCII lower case only, as the standard has it."""
    return name.lower() if name.isascii() else re.sub("[A-Z]+", lambda m: m[0].lower(), name)
