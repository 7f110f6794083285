"""JSON of the profile (docs/FORMAT.md §2) read as an auditor, and shapes to hold values against.

It shares no code with the writer (canon.py, fields.py): a mistake there must not be able to hide
itself here. A shape is a function of a value and its place that yields one sentence for each
thing that is wrong. Values come from strangers: nothing here recurses deeper than a shape does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

Shape: TypeAlias = Callable[[object, str], Iterator[str]]

NAME_CHARS_MAX: Final = 400
DEPTH_MAX: Final = 32


class NotOfTheProfile(Exception):
    """The bytes are no JSON of the profile; the argument says why."""


def read_json(payload: bytes, *, any_keys: bool = False) -> tuple[object, bool]:
    """The value, and whether the bytes are its canonical form. Raises NotOfTheProfile.

    any_keys: keys need not be ASCII, as in a declaration, which has the names of columns.
    """
    try:
        value = json.loads(
            payload.decode("utf-8"),
            object_pairs_hook=_distinct if any_keys else _pairs,
            parse_int=_whole,
            parse_float=_fraction,
            parse_constant=_fraction,
        )
        if is_deep(value):
            raise NotOfTheProfile(f"it is nested deeper than {DEPTH_MAX}")
        again = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return value, again.encode("utf-8") == payload
    except (ValueError, RecursionError, MemoryError) as error:
        raise NotOfTheProfile(f"{str(error) or type(error).__name__:.200}") from error


def is_deep(value: object) -> bool:
    """Whether lists and objects are nested deeper than DEPTH_MAX; told level by level."""
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [
            item
            for outer in level
            if isinstance(outer, dict | list)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return any(isinstance(item, dict | list) for item in level)


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = _distinct(pairs)
    if not all(key.isascii() for key in found):
        raise ValueError("a key is not ASCII")
    return found


def _whole(digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) >= 2**53:
        raise ValueError("an integer is 2^53 or more")
    return int(digits)


def _fraction(digits: str) -> float:
    raise ValueError(f"a number is not an integer: {digits[:40]}")


def words(*, empty: bool, plain: bool, chars_max: int | None = None) -> Shape:
    """A text; plain: without control characters."""

    def shape(value: object, place: str) -> Iterator[str]:
        if not isinstance(value, str):
            yield f"{place} is not text"
        elif not value and not empty:
            yield f"{place} is empty"
        elif chars_max is not None and len(value) > chars_max:
            yield f"{place} is longer than {chars_max} characters"
        elif plain and any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
            yield f"{place} has a control character"

    return shape


def pattern(expression: str, what: str) -> Shape:
    """A text of this form."""
    compiled = re.compile(expression)

    def shape(value: object, place: str) -> Iterator[str]:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            yield f"{place} is not {what}"

    return shape


def number_from(least: int) -> Shape:
    """A whole number that is not less."""

    def shape(value: object, place: str) -> Iterator[str]:
        if type(value) is not int or value < least:
            yield f"{place} is not a whole number from {least}"

    return shape


def one_of(*known: str) -> Shape:
    """One of these texts."""

    def shape(value: object, place: str) -> Iterator[str]:
        if not isinstance(value, str) or value not in known:
            yield f"{place} is none of {', '.join(known)}"

    return shape


def maybe(inner: Shape) -> Shape:
    """Null, or of the inner shape."""

    def shape(value: object, place: str) -> Iterator[str]:
        if value is not None:
            yield from inner(value, place)

    return shape


def each(inner: Shape) -> Shape:
    """A list of the inner shape."""

    def shape(value: object, place: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield f"{place} is not a list"
            return
        for number, item in enumerate(value):
            yield from inner(item, f"{place}[{number}]")

    return shape


def object_of(
    members: Mapping[str, Shape],
    *,
    optional: Mapping[str, Shape] = MappingProxyType({}),
    closed: bool = True,
) -> Shape:
    """An object with these members; optional: those that may be absent; closed: and no others."""

    def shape(value: object, place: str) -> Iterator[str]:
        name = place or "it"
        if not isinstance(value, dict):
            yield f"{name} is not an object"
            return
        if closed:
            for key in sorted(value.keys() - members.keys() - optional.keys()):
                yield f"{name} has the unknown field {key[:60]!r}"
        for key, inner in members.items():
            if key not in value:
                yield f"{name} lacks the field {key}"
            else:
                yield from inner(value[key], f"{place}.{key}" if place else key)
        for key in sorted(optional.keys() & value.keys()):
            yield from optional[key](value[key], f"{place}.{key}" if place else key)

    return shape


def truth(value: object, place: str) -> Iterator[str]:
    """True or false."""
    if not isinstance(value, bool):
        yield f"{place} is neither true nor false"


TEXT: Final = words(empty=True, plain=False)
NAME: Final = words(empty=False, plain=True, chars_max=NAME_CHARS_MAX)
LABEL: Final = words(empty=True, plain=True, chars_max=NAME_CHARS_MAX)
COUNT: Final = number_from(0)
ADDRESS: Final = pattern(r"blake3:[0-9a-f]{64}", "an address")
SHA256: Final = pattern(r"[0-9a-f]{64}", "64 hexadecimal digits")
DIGEST: Final = pattern(r"[a-z0-9./-]+:[0-9a-f]{64}", "a content digest")
