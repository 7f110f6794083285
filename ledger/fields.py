"""What one field of an entry may hold: checks that name the place of what does not fit.

Every check raises LedgerError `entry.malformed` whose place is the field, such as
`attachments[2].sha256`, so that a writer and an auditor are told the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, NoReturn, TypeVar

from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError, Exit
from tieout.ledger.canon import INTEGER_LIMIT, Json
from tieout.ledger.errors import LedgerError

NAME_CHARS_MAX: Final = 400

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_DIGEST: Final = re.compile(r"[a-z0-9./-]+:[0-9a-f]{64}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")

EnumT = TypeVar("EnumT", bound=StrEnum)


def malformed(message: str, place: str) -> NoReturn:
    """Raise LedgerError `entry.malformed`."""
    raise LedgerError(
        "entry.malformed",
        f"not an entry of the ledger: {message}",
        place=place,
        remedy="If the ledger holds it, run `tieout verify`; docs/FORMAT.md has the fields.",
        exit_code=Exit.REFUSED,
    )


def members(value: Json, names: frozenset[str], place: str) -> Mapping[str, Json]:
    """The object with exactly these members."""
    if not isinstance(value, dict):
        malformed("an object is wanted", place)
    unknown = sorted(value.keys() - names)
    missing = sorted(names - value.keys())
    if unknown:
        malformed(f"unknown field {unknown[0]!r:.60}", place)
    if missing:
        malformed(f"the field {missing[0]!r} is missing", place)
    return value


def items(value: Json, place: str) -> Sequence[Json]:
    """The list."""
    if not isinstance(value, list):
        malformed("a list is wanted", place)
    return value


def text(value: object, place: str) -> str:
    """Any string that UTF-8 can say; it may be empty."""
    if not isinstance(value, str):
        malformed("text is wanted", place)
    if not value.isascii() and _SURROGATE.search(value):
        malformed("the text has a lone surrogate", place)
    return value


def name(value: object, place: str) -> str:
    """A string of 1 to NAME_CHARS_MAX characters without control characters.

    Such fields are indexed columns: a NUL would end them early for SQLite.
    """
    word = text(value, place)
    if not word:
        malformed("the text is empty", place)
    return label(word, place)


def key(value: object, place: str) -> str:
    """A `name` in ASCII, as the keys of canonical JSON are."""
    word = name(value, place)
    if not word.isascii():
        malformed(f"the key {word!r:.60} is not ASCII", place)
    return word


def label(value: object, place: str) -> str:
    """As `name`, but it may be empty."""
    word = text(value, place)
    if len(word) > NAME_CHARS_MAX:
        malformed(f"the text is longer than {NAME_CHARS_MAX} characters", place)
    if _CONTROL.search(word):
        malformed("the text has a control character", place)
    return word


def count(value: object, place: str, *, least: int = 0) -> int:
    """A whole number from `least` to 2^53 - 1; True and False are none."""
    if not isinstance(value, int) or isinstance(value, bool):
        malformed("a whole number is wanted", place)
    if not least <= value < INTEGER_LIMIT:
        malformed(f"the number is not between {least} and 2^53 - 1", place)
    return value


def sha256_hex(value: object, place: str) -> str:
    """64 lower-case hexadecimal digits."""
    word = text(value, place)
    if not _SHA256.fullmatch(word):
        malformed("64 lower-case hexadecimal digits are wanted", place)
    return word


def content_digest(value: object, place: str) -> str:
    """The name of a digest, a colon and 64 digits, as in docs/FORMAT.md §4."""
    word = text(value, place)
    if not _DIGEST.fullmatch(word):
        malformed("a content digest is wanted: NAME:64 hexadecimal digits", place)
    return word


def address(value: Json, place: str) -> Address:
    """The address that this text names."""
    try:
        return Address.parse(text(value, place))
    except ArtifactError as error:
        raise LedgerError(
            "entry.malformed",
            f"not an entry of the ledger: {error.message}",
            place=place,
            remedy=error.remedy,
            exit_code=Exit.REFUSED,
        ) from error


def timestamp(value: object, place: str) -> str:
    """RFC 3339 in UTC with six fraction digits: `2026-06-30T23:59:59.000000Z`."""
    word = text(value, place)
    if not _TIME.fullmatch(word):
        malformed("a time is wanted as YYYY-MM-DDTHH:MM:SS.ffffffZ", place)
    try:
        datetime.fromisoformat(word)
    except ValueError as error:
        raise LedgerError(
            "entry.malformed",
            f"not an entry of the ledger: {error}",
            place=place,
            remedy="Give a time that the calendar has.",
            exit_code=Exit.REFUSED,
        ) from error
    return word


def member_of(kinds: type[EnumT], value: object, place: str) -> EnumT:
    """The member of the enumeration with this value."""
    word = text(value, place)
    for member in kinds:
        if member.value == word:
            return member
    malformed(f"{word!r:.60} is none of {', '.join(kinds)}", place)


def instance(kind: type[object], value: object, place: str) -> None:
    """Refuse a value of another type (for those who call without a type checker)."""
    if not isinstance(value, kind):
        malformed(f"a {kind.__name__} is wanted", place)
