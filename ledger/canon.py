"""Canonical JSON: one value, one sequence of bytes (RFC 8785, in a profile).

The profile (docs/FORMAT.md §2): keys are ASCII, strings hold no lone surrogate, integers lie
strictly between -2^53 and 2^53, there are no other numbers. Within it `json.dumps` writes
exactly what RFC 8785 asks for, three times as fast; outside it the two part, so a value outside
it is refused. `tests/ledger/test_canon.py` holds the two together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NoReturn, TypeAlias

from tieout.artifacts.errors import Exit
from tieout.ledger.errors import LedgerError

Json: TypeAlias = "bool | int | str | Sequence[Json] | Mapping[str, Json] | None"

INTEGER_LIMIT: Final = 1 << 53
# Deep enough for every entry (5) and shallow enough for every reader's stack.
DEPTH_MAX: Final = 32


def encode(value: Json) -> bytes:
    """The canonical bytes of the value. Raises LedgerError `json.profile` outside the profile."""
    check_profile(value)
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode("utf-8")


def decode(payload: bytes) -> Json:
    """The value of these canonical bytes.

    Raises LedgerError: `json.malformed` for bytes that are no JSON (or repeat a key),
    `json.profile` for a value outside the profile, `json.not_canonical` for JSON that another
    sequence of bytes should say.
    """
    try:
        value: Json = json.loads(
            payload.decode("utf-8"),
            object_pairs_hook=_distinct,
            parse_float=_no_float,
            parse_constant=_no_float,
            parse_int=_integer,
        )
    except (ValueError, RecursionError) as error:
        # JSONDecodeError and UnicodeDecodeError are both ValueErrors.
        reason = str(error) or type(error).__name__
        raise _error("json.malformed", f"the bytes are not JSON: {reason[:200]}", "") from error
    if encode(value) != payload:
        raise _error("json.not_canonical", "the bytes are JSON, but not in canonical form", "")
    return value


def check_profile(value: Json, *, place: str = "", depth: int = 0) -> None:
    """Raise LedgerError `json.profile` with the place if the value lies outside the profile."""
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        if not value.isascii():
            _check_text(value, place)
    elif isinstance(value, int):
        if not -INTEGER_LIMIT < value < INTEGER_LIMIT:
            _outside("an integer of 2^53 or more; write it as a string", place)
    elif depth >= DEPTH_MAX:
        _outside(f"nested deeper than {DEPTH_MAX}", place)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or not key.isascii():
                _outside(f"the key {key!r:.60} is not ASCII text", place)
            check_profile(item, place=f"{place}.{key}" if place else key, depth=depth + 1)
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            check_profile(item, place=f"{place}[{number}]", depth=depth + 1)
    else:
        _outside(f"a {type(value).__name__}; write decimals as strings", place)


def _check_text(value: str, place: str) -> None:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        _outside("a string with a lone surrogate", place)


def _outside(what: str, place: str) -> NoReturn:
    raise _error("json.profile", f"the record cannot hold this: {what}", place)


def _error(code: str, message: str, place: str) -> LedgerError:
    return LedgerError(
        code,
        message,
        place=place,
        remedy="Canonical JSON is described in docs/FORMAT.md §2.",
        exit_code=Exit.REFUSED,
    )


def _distinct(pairs: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:60]!r} stands twice")
        found[key] = value
    return found


def _no_float(text: str) -> NoReturn:
    raise ValueError(f"{text[:40]} is not an integer")


def _integer(text: str) -> int:
    if len(text) > 17:  # -(2^53) has 17 characters; longer digits are never converted
        raise ValueError(f"{text[:17]}… is too large")
    return int(text)
