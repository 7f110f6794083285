"""What an entry must look like, said a second time, for the audit alone.

This is written from docs/FORMAT.md §2 and §6 and shares no code with the writer (row.py,
canon.py, reading.py): a mistake there must not be able to hide itself here. A shape is a
function of a value and its place that yields one sentence for each thing that is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final, TypeAlias

Shape: TypeAlias = Callable[[object, str], Iterator[str]]

ENTRY_BYTES_MAX: Final = 65_535
INSTRUCTION_BYTES_MAX: Final = 16_384
NAME_CHARS_MAX: Final = 400

KINDS: Final = (
    "workspace",
    "snapshot",
    "run",
    "question",
    "model_request",
    "model_reply",
    "plan",
    "sql",
    "search",
    "extract",
    "match",
    "answer",
    "report",
    "sign_off",
    "redaction",
    "refusal",
    "failure",
    "replay",
)
CLASSES: Final = ("retain", "redact", "discard")
STATUSES: Final = ("done", "refused", "failed", "partial", "no_results")


def read_entry(payload: bytes) -> tuple[dict[str, object] | None, list[str]]:
    """The entry as values, and everything that is wrong with it. The values are None when it
    cannot be relied on to name artifacts."""
    if len(payload) > ENTRY_BYTES_MAX:
        return None, [f"it has {len(payload)} bytes, more than {ENTRY_BYTES_MAX}"]
    try:
        value = json.loads(
            payload.decode("utf-8"),
            object_pairs_hook=_pairs,
            parse_int=_whole,
            parse_float=_fraction,
            parse_constant=_fraction,
        )
        again = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        canonical = again.encode("utf-8") == payload
    except (ValueError, RecursionError) as error:
        return None, [f"it is not JSON of the profile: {error!s:.200}"]
    problems = list(ENTRY(value, ""))
    if problems or not isinstance(value, dict):
        return None, problems
    if not canonical:
        problems.append("it is not in canonical form")
    problems.extend(_instruction_rules(value))
    return value, problems


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    if not all(key.isascii() for key in found):
        raise ValueError("a key is not ASCII")
    return found


def _whole(digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) >= 2**53:
        raise ValueError("an integer is 2^53 or more")
    return int(digits)


def _fraction(digits: str) -> float:
    raise ValueError(f"a number is not an integer: {digits[:40]}")


def _instruction_rules(entry: dict[str, object]) -> Iterator[str]:
    asked = entry["raw_llm_instruction"]
    if not isinstance(asked, str):
        return
    if len(json.dumps(asked, ensure_ascii=False).encode("utf-8")) > INSTRUCTION_BYTES_MAX:
        yield f"raw_llm_instruction is longer than {INSTRUCTION_BYTES_MAX} bytes"
    artifacts = [entry["deterministic_output"], *_list(entry["attachments"])]
    if any(isinstance(item, dict) and item.get("class") == "redact" for item in artifacts):
        yield "raw_llm_instruction stands in clear beside an artifact of class redact"


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _words(*, empty: bool, short: bool, plain: bool) -> Shape:
    def shape(value: object, place: str) -> Iterator[str]:
        if not isinstance(value, str):
            yield f"{place} is not text"
        elif not value and not empty:
            yield f"{place} is empty"
        elif short and len(value) > NAME_CHARS_MAX:
            yield f"{place} is longer than {NAME_CHARS_MAX} characters"
        elif plain and any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
            yield f"{place} has a control character"

    return shape


def _pattern(pattern: str, what: str) -> Shape:
    compiled = re.compile(pattern)

    def shape(value: object, place: str) -> Iterator[str]:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            yield f"{place} is not {what}"

    return shape


def _number(least: int) -> Shape:
    def shape(value: object, place: str) -> Iterator[str]:
        if type(value) is not int or value < least:
            yield f"{place} is not a whole number from {least}"

    return shape


def _one_of(*words: str) -> Shape:
    def shape(value: object, place: str) -> Iterator[str]:
        if value not in words:
            yield f"{place} is none of the known words"

    return shape


def _maybe(inner: Shape) -> Shape:
    def shape(value: object, place: str) -> Iterator[str]:
        if value is not None:
            yield from inner(value, place)

    return shape


def _each(inner: Shape) -> Shape:
    def shape(value: object, place: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield f"{place} is not a list"
            return
        for number, item in enumerate(value):
            yield from inner(item, f"{place}[{number}]")

    return shape


def _object(**members: Shape) -> Shape:
    def shape(value: object, place: str) -> Iterator[str]:
        name = place or "the entry"
        if not isinstance(value, dict):
            yield f"{name} is not an object"
            return
        for key in sorted(value.keys() - members.keys()):
            yield f"{name} has the unknown field {key[:60]!r}"
        for key, inner in members.items():
            if key not in value:
                yield f"{name} lacks the field {key}"
            else:
                yield from inner(value[key], f"{place}.{key}" if place else key)

    return shape


def _settings(value: object, place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place} is not an object"
        return
    for key, item in value.items():
        yield from NAME(key, place)
        yield from TEXT(item, f"{place}.{key}")


def _time(value: object, place: str) -> Iterator[str]:
    form = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
    if not isinstance(value, str) or not re.fullmatch(form, value, re.ASCII):
        yield f"{place} is not YYYY-MM-DDTHH:MM:SS.ffffffZ"
        return
    try:
        datetime.fromisoformat(value)
    except ValueError:
        yield f"{place} is no time of the calendar"


def _instruction(value: object, place: str) -> Iterator[str]:
    if value is not None and not isinstance(value, str):
        yield from _object(address=ADDRESS)(value, place)


TEXT: Final = _words(empty=True, short=False, plain=False)
NAME: Final = _words(empty=False, short=True, plain=True)
LABEL: Final = _words(empty=True, short=True, plain=True)
COUNT: Final = _number(0)
ADDRESS: Final = _pattern(r"blake3:[0-9a-f]{64}", "an address")
SHA256: Final = _pattern(r"[0-9a-f]{64}", "64 hexadecimal digits")
DIGEST: Final = _pattern(r"[a-z0-9./-]+:[0-9a-f]{64}", "a content digest")

OUTPUT: Final = _object(
    address=ADDRESS,
    sha256=SHA256,
    content_digest=_maybe(DIGEST),
    size=COUNT,
    media_type=NAME,
    row_count=_maybe(COUNT),
    control_totals=_each(_object(column=TEXT, value=TEXT)),
    version=TEXT,
    **{"class": _one_of(*CLASSES)},
)
ATTACHMENT: Final = _object(
    role=NAME,
    address=ADDRESS,
    sha256=SHA256,
    size=COUNT,
    media_type=NAME,
    **{"class": _one_of(*CLASSES)},
)
MODEL: Final = _object(
    **dict.fromkeys(
        ("provider", "id", "request_id", "stop_reason", "sdk", "api_version", "base_url"),
        _maybe(TEXT),
    ),
    input_tokens=_maybe(COUNT),
    output_tokens=_maybe(COUNT),
)
ENTRY: Final = _object(
    v=_one_of("tieout.entry/1"),
    kind=_one_of(*KINDS),
    req=NAME,
    trace_id=NAME,
    subject=LABEL,
    step_sequence=COUNT,
    attempt=COUNT,
    tool_name=LABEL,
    raw_llm_instruction=_instruction,
    executed=_maybe(ADDRESS),
    inputs=_each(_object(role=NAME, address=ADDRESS)),
    deterministic_output=_maybe(OUTPUT),
    attachments=_each(ATTACHMENT),
    execution_timestamp=_time,
    executor=_object(name=NAME, version=TEXT, build=TEXT, settings=_settings),
    model=_maybe(MODEL),
    outcome=_object(
        status=_one_of(*STATUSES),
        code=LABEL,
        message=TEXT,
        position=_maybe(_object(line=_number(1), column=_number(1))),
    ),
)
