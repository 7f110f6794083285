"""Strict JSON with the place of every value, so that a refusal can say where.

Untrusted text comes in; a document of plain Python values comes out, with the line and column
of each. Repeated keys, NaN and anything after the document are refused. Numbers with a point
become Decimal: no float is made from what a model wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, TypeAlias

from tieout.executor.errors import ExecutorError

Json: TypeAlias = "None | bool | int | Decimal | str | list[Json] | dict[str, Json]"
Path: TypeAlias = tuple[str | int, ...]

DEPTH_MAX: Final = 40
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,40})(\.\d{1,40})?([eE][+-]?\d{1,3})?", re.ASCII)
_CHUNK: Final = re.compile(r'[^"\\\x00-\x1f]*')
_ESCAPES: Final[Mapping[str, str]] = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip
_WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}


def line_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column (from 1) of an offset."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


class PlanRefused(ExecutorError):
    """A plan's text is not one that the grammar admits.

    line, column: from 1, where the fault lies.
    """

    def __init__(self, code: str, message: str, *, text: str, offset: int, remedy: str) -> None:
        self.line, self.column = line_column(text, offset)
        place = f"line {self.line}, column {self.column}"
        super().__init__(code, message, remedy=remedy, place=place)


@dataclass(slots=True)
class PlacedJson:
    """A parsed document and the offsets at which each value starts and ends."""

    text: str
    value: Json = None
    offsets: dict[Path, int] = field(default_factory=dict)
    ends: dict[Path, int] = field(default_factory=dict)

    def slice(self, path: Path) -> str:
        """The text of the value at this path, exactly as it was written."""
        return self.text[self.offsets[path] : self.ends[path]]

    def offset(self, path: Path) -> int:
        """Where the value at this path starts, or its nearest parent that exists."""
        while path and path not in self.offsets:
            path = path[:-1]
        return self.offsets.get(path, 0)


def parse_json(text: str) -> PlacedJson:
    """Parse one JSON document. Raises PlanRefused plan.not_json, plan.repeated_key."""
    document = PlacedJson(text)
    reader = _Reader(text, document.offsets, document.ends)
    document.value, end = reader.value(reader.skip(0), (), 0)
    end = reader.skip(end)
    if end != len(text):
        raise reader.refused(end, "there is text after the JSON document")
    return document


class _Reader:
    def __init__(self, text: str, offsets: dict[Path, int], ends: dict[Path, int]) -> None:
        self.text = text
        self.offsets = offsets
        self.ends = ends

    def refused(self, at: int, message: str, code: str = "plan.not_json") -> PlanRefused:
        remedy = 'Send exactly one JSON document: {"steps": […]} or {"answer": {…}}.'
        return PlanRefused(code, message, text=self.text, offset=at, remedy=remedy)

    def skip(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return match.end() if match else at

    def value(self, at: int, path: Path, depth: int) -> tuple[Json, int]:
        found, end = self._value(at, path, depth)
        self.ends[path] = end
        return found, end

    def _value(self, at: int, path: Path, depth: int) -> tuple[Json, int]:
        if depth > DEPTH_MAX:
            raise self.refused(at, f"values are nested more than {DEPTH_MAX} deep")
        self.offsets[path] = at
        start = self.text[at : at + 1]
        if start == "{":
            return self._object(at + 1, path, depth)
        if start == "[":
            return self._array(at + 1, path, depth)
        if start == '"':
            return self._string(at + 1)
        for word, meaning in _WORDS.items():
            if self.text.startswith(word, at):
                return meaning, at + len(word)
        match = _NUMBER.match(self.text, at)
        if match is None:
            what = f"{start!r} does not begin a JSON value" if start else "the text ends too early"
            raise self.refused(at, what)
        whole = match.group(1) is None and match.group(2) is None
        return (int(match.group()) if whole else Decimal(match.group())), match.end()

    def _object(self, at: int, path: Path, depth: int) -> tuple[Json, int]:
        found: dict[str, Json] = {}
        at = self.skip(at)
        if self.text[at : at + 1] == "}":
            return found, at + 1
        while True:
            if self.text[at : at + 1] != '"':
                raise self.refused(at, "a key in double quotes is expected here")
            key, after = self._string(at + 1)
            if key in found:
                raise self.refused(at, f"the key {key[:40]!r} is given twice", "plan.repeated_key")
            colon = self.skip(after)
            if self.text[colon : colon + 1] != ":":
                raise self.refused(colon, "a colon is expected here")
            found[key], at = self.value(self.skip(colon + 1), (*path, key), depth + 1)
            at, more = self._next(at, "}")
            if not more:
                return found, at

    def _array(self, at: int, path: Path, depth: int) -> tuple[Json, int]:
        found: list[Json] = []
        at = self.skip(at)
        if self.text[at : at + 1] == "]":
            return found, at + 1
        while True:
            item, at = self.value(at, (*path, len(found)), depth + 1)
            found.append(item)
            at, more = self._next(at, "]")
            if not more:
                return found, at

    def _next(self, at: int, closing: str) -> tuple[int, bool]:
        at = self.skip(at)
        mark = self.text[at : at + 1]
        if mark == closing:
            return at + 1, False
        if mark != ",":
            raise self.refused(at, f"a comma or {closing} is expected here")
        return self.skip(at + 1), True

    def _string(self, at: int) -> tuple[str, int]:
        parts: list[str] = []
        start = at
        while True:
            match = _CHUNK.match(self.text, at)
            end = match.end() if match else at
            parts.append(self.text[at:end])
            mark = self.text[end : end + 1]
            if mark == '"':
                return self._joined(parts, start), end + 1
            if mark != "\\":
                what = "a line break or control character" if mark else "the end of the text"
                raise self.refused(end, f"{what} stands inside a string")
            piece, at = self._escape(end + 1)
            parts.append(piece)

    def _joined(self, parts: list[str], at: int) -> str:
        joined = "".join(parts)
        try:
            # Two \u escapes of a surrogate pair make one character; a lone one makes none.
            return joined.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            raise self.refused(at, "a string holds half a surrogate pair") from error

    def _escape(self, at: int) -> tuple[str, int]:
        mark = self.text[at : at + 1]
        if mark in _ESCAPES and mark:
            return _ESCAPES[mark], at + 1
        digits = self.text[at + 1 : at + 5]
        if mark == "u" and re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            return chr(int(digits, 16)), at + 5
        raise self.refused(at, f"\\{mark} is not an escape of JSON")
