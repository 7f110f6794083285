"""Reads untrusted replies strictly: JSON text, a Messages API reply, the plan text inside it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from tieout.planner.errors import PlannerError, TextRefused
from tieout.planner.model import ReplyOutcome

__all__ = [
    "NESTING_MAX",
    "PLAN_CHARS_MAX",
    "JsonSubject",
    "Message",
    "plan_text",
    "printable",
    "read_json",
    "read_message",
]

PLAN_CHARS_MAX: Final = 1_000_000
"""The longest reply that is read as a plan; a plan of a hundred steps is a tenth of it."""
NESTING_MAX: Final = 64
"""The deepest nesting of arrays and objects; the plan grammar needs less than ten."""
NUMBER_CHARS_MAX: Final = 400
"""The longest number token; longer ones cost more to read than they can mean."""
FIELD_CHARS_MAX: Final = 200
"""Ids and reasons that a server sends are cut to this before they enter a ledger row."""

_STRING: Final = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_TOKEN: Final = re.compile(_STRING + r"|[{}\[\]:,]", re.DOTALL)
_SPACE: Final = " \t\r\n"
_FENCE_OPEN: Final = re.compile(r"```json[ \t]*\r?\n")
_FENCE_CLOSE: Final = "```"
_OUTCOMES: Final[Mapping[str, ReplyOutcome]] = {
    "end_turn": ReplyOutcome.COMPLETE,
    "stop_sequence": ReplyOutcome.COMPLETE,
    "refusal": ReplyOutcome.REFUSAL,
    "max_tokens": ReplyOutcome.MAX_TOKENS,
    "model_context_window_exceeded": ReplyOutcome.CONTEXT_EXCEEDED,
}


@dataclass(frozen=True, slots=True)
class JsonSubject:
    """What is being read, for its error messages.

    prefix: first part of the error codes, such as "reply". place: a file or "the reply".
    """

    prefix: str
    place: str
    remedy: str
    chars_max: int


@dataclass(frozen=True, slots=True)
class Message:
    """A Messages API reply as far as it could be read; unreadable ones have outcome `error`."""

    outcome: ReplyOutcome
    detail: str
    text: str = ""
    model: str = ""
    stop_reason: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    error_code: str = ""


_REPLY: Final = JsonSubject(
    "reply",
    "the reply",
    "Answer again with one JSON document and nothing before or after it.",
    PLAN_CHARS_MAX,
)


class _RefusedNumberError(ValueError):
    """A number token that JSON does not have, or one that is too long."""

    def __init__(self, said: str, token: str) -> None:
        super().__init__(said)
        self.token = token


def plan_text(reply_text: str) -> str:
    """The plan of a model's reply: its one JSON document, character for character.

    White space around it, and one ```json fence, are taken off; anything else is refused.
    Raises PlannerError `reply.empty`, `reply.too_long`, `reply.not_json`,
    `reply.repeated_key`, `reply.too_deep` or `reply.not_text`, each with line and column
    counted in the reply as it came.
    """
    start, end = _bounds(reply_text)
    fence = _FENCE_OPEN.match(reply_text, start)
    if fence is not None:
        if end - len(_FENCE_CLOSE) < fence.end() or not reply_text.endswith(_FENCE_CLOSE, 0, end):
            _refuse(_REPLY, "not_json", "the ```json fence is not closed", reply_text, start)
        start, end = _bounds(reply_text, fence.end(), end - len(_FENCE_CLOSE))
    if start >= end:
        _refuse(_REPLY, "empty", "the reply holds no text", reply_text, start)
    read_json(reply_text, subject=_REPLY, start=start, end=end)
    return reply_text[start:end]


def read_json(text: str, *, subject: JsonSubject, start: int = 0, end: int | None = None) -> object:
    """The one JSON document between `start` and `end`, read strictly.

    Refused: text after it, repeated keys, NaN and Infinity, very long numbers, nesting below
    `NESTING_MAX`, halves of surrogate pairs. Raises PlannerError `<prefix>.…` with line and
    column.
    """
    if len(text) > subject.chars_max:
        said = f"it is {len(text)} characters long, over the bound of {subject.chars_max}"
        _refuse(subject, "too_long", said, text, 0)
    body = text if end is None else text[:end]
    begin, _ = _bounds(body, start)
    decoder = json.JSONDecoder(parse_int=_whole, parse_float=_fraction, parse_constant=_no_constant)
    try:
        value, stop = decoder.raw_decode(body, begin)
    except json.JSONDecodeError as error:
        _refuse(subject, "not_json", f"not JSON: {error.msg.lower()}", text, error.pos, cause=error)
    except _RefusedNumberError as error:
        at = _outside_strings(error.token, body, begin)
        _refuse(subject, "not_json", f"not JSON: {error}", text, at, cause=error)
    except RecursionError as error:
        _refuse(subject, "too_deep", _too_deep(), text, begin, cause=error)
    after, _ = _bounds(body, stop)
    if after < len(body):
        _refuse(subject, "not_json", "there is text after the JSON document", text, after)
    _scan(body, begin, stop, subject)
    parsed: object = value
    return parsed


def printable(said: str) -> str:
    """What a server says of itself, cut and without control characters: it reaches terminals."""
    return "".join(char if char.isprintable() else " " for char in said[:FIELD_CHARS_MAX])


def read_message(payload: bytes) -> Message:
    """Read the body of a Messages API reply; never raises, a bad body is outcome `error`.

    The stop reason is looked at first: a refused or truncated text is not to be parsed as a
    plan. Text blocks are joined, thinking blocks are left out.
    """
    subject = JsonSubject("message", "the reply body", "Ask again.", max(len(payload), 1))
    try:
        document = read_json(payload.decode("utf-8"), subject=subject)
    except UnicodeDecodeError as error:
        return Message(ReplyOutcome.ERROR, f"the reply body is not UTF-8 (byte {error.start})")
    except PlannerError as error:
        return Message(ReplyOutcome.ERROR, f"the reply body is refused: {error.message}")
    if not isinstance(document, dict):
        return Message(ReplyOutcome.ERROR, "the reply body is not a JSON object")
    if isinstance(document.get("error"), dict):
        return _error_message(document["error"])
    stop_reason = _field(document.get("stop_reason"))
    text, fault = _joined_text(document.get("content"))
    outcome = _OUTCOMES.get(stop_reason, ReplyOutcome.ERROR)
    detail = _detail(document, stop_reason, outcome)
    if outcome is ReplyOutcome.COMPLETE and (fault or not text):
        outcome, detail = ReplyOutcome.ERROR, fault or "the reply holds no text"
    tokens = _tokens(document.get("usage"))
    return Message(outcome, detail, text, _field(document.get("model")), stop_reason, *tokens)


def _error_message(error: dict[str, object]) -> Message:
    """An error body. A request that is too long for the model is an outcome, not a fault."""
    kind, said = _field(error.get("type")), _field(error.get("message"))
    details = error.get("details")
    code = _field(details.get("error_code")) if isinstance(details, dict) else ""
    # The API tells a too long prompt by its words only; llama.cpp gives it a type of its own.
    too_long = said.lower().startswith("prompt is too long") or kind == "exceed_context_size_error"
    outcome = ReplyOutcome.CONTEXT_EXCEEDED if too_long else ReplyOutcome.ERROR
    return Message(outcome, said or kind or "an error without a message", error_code=code or kind)


def _detail(document: dict[str, object], stop_reason: str, outcome: ReplyOutcome) -> str:
    if outcome is ReplyOutcome.COMPLETE:
        return ""
    if outcome is ReplyOutcome.REFUSAL:
        told = document.get("stop_details")
        reasons = [told.get("category"), told.get("explanation")] if isinstance(told, dict) else []
        said = ": ".join(_field(reason) for reason in reasons if isinstance(reason, str))
        return f"the model refused{': ' + said if said else ''}"
    if outcome is ReplyOutcome.MAX_TOKENS:
        return "the reply was cut off at the bound of output tokens"
    if outcome is ReplyOutcome.CONTEXT_EXCEEDED:
        return "the request and its reply do not fit into the model's context window"
    return f"the reply stopped for a reason that is not known here: {stop_reason or 'none given'}"


def _joined_text(content: object) -> tuple[str, str]:
    """The text blocks joined, and what is wrong with the list of blocks, if anything."""
    if not isinstance(content, list):
        return "", "the reply has no list of content blocks"
    parts: list[str] = []
    for number, block in enumerate(content, start=1):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in ("thinking", "redacted_thinking"):
            continue
        text = block.get("text") if isinstance(block, dict) else None
        if kind != "text" or not isinstance(text, str):
            return "", f"content block {number} is not text: {_field(kind) or 'no type'}"
        parts.append(text)
    return "".join(parts), ""


def _tokens(usage: object) -> tuple[int | None, int | None]:
    if not isinstance(usage, dict):
        return None, None
    inputs = [
        _count(usage.get(name))
        for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    ]
    known = [count for count in inputs if count is not None]
    return (sum(known) if known else None), _count(usage.get("output_tokens"))


def _count(value: object) -> int | None:
    # bool is an int in Python; a server that says true has not counted.
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
        return value
    return None


def _field(value: object) -> str:
    return printable(value) if isinstance(value, str) else ""


def _bounds(text: str, start: int = 0, end: int | None = None) -> tuple[int, int]:
    """Where the text between two offsets begins and ends without JSON's white space."""
    stop = len(text) if end is None else end
    while start < stop and text[start] in _SPACE:
        start += 1
    while stop > start and text[stop - 1] in _SPACE:
        stop -= 1
    return start, stop


def _whole(token: str) -> int:
    if len(token) > NUMBER_CHARS_MAX:
        raise _RefusedNumberError(_long_number(token), token)
    return int(token)


def _fraction(token: str) -> float:
    if len(token) > NUMBER_CHARS_MAX:
        raise _RefusedNumberError(_long_number(token), token)
    return float(token)


def _no_constant(token: str) -> NoReturn:
    raise _RefusedNumberError(f"{token} is not a JSON number", token)


def _outside_strings(token: str, text: str, start: int) -> int:
    """Where a token stands that is no string; the text before it is known to be JSON."""
    wanted = re.compile(f"{_STRING}|{re.escape(token)}", re.DOTALL)
    found = (match.start() for match in wanted.finditer(text, start) if match[0] == token)
    return next(found, start)


def _long_number(token: str) -> str:
    return f"a number of {len(token)} characters is over the bound of {NUMBER_CHARS_MAX}"


def _too_deep() -> str:
    return f"it is nested more than {NESTING_MAX} deep"


def _scan(text: str, start: int, stop: int, subject: JsonSubject) -> None:
    """Find what json.loads lets pass: repeated keys, deep nesting, halves of surrogate pairs.

    The text is known to be JSON, so its tokens are enough; they also carry the positions that
    json's hooks do not give.
    """
    seen: list[set[str] | None] = []  # one entry per open bracket; None for an array
    key_next = False
    for token in _TOKEN.finditer(text, start, stop):
        mark = token.group()
        if mark[0] == '"':
            word = _word(mark, token.start(), text, subject)
            keys = seen[-1] if seen else None
            if key_next and keys is not None:
                if word in keys:
                    said = f"the key {word[:FIELD_CHARS_MAX]!r} stands twice in one object"
                    _refuse(subject, "repeated_key", said, text, token.start())
                keys.add(word)
            key_next = False
        elif mark in "{[":
            seen.append(set() if mark == "{" else None)
            if len(seen) > NESTING_MAX:
                _refuse(subject, "too_deep", _too_deep(), text, token.start())
            key_next = mark == "{"
        elif mark in "}]":
            seen.pop()
        elif mark == ",":
            key_next = True  # in an array no key is looked for


def _word(token: str, offset: int, text: str, subject: JsonSubject) -> str:
    word: str = json.loads(token) if "\\" in token else token[1:-1]
    if not word.isascii() and any("\ud800" <= char <= "\udfff" for char in word):
        said = "a string holds half of a surrogate pair, which is not text"
        _refuse(subject, "not_text", said, text, offset)
    return word


def _refuse(
    subject: JsonSubject,
    code: str,
    said: str,
    text: str,
    offset: int,
    *,
    cause: Exception | None = None,
) -> NoReturn:
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    raise TextRefused(
        f"{subject.prefix}.{code}",
        said,
        place=subject.place,
        remedy=subject.remedy,
        line=line,
        column=column,
    ) from cause
