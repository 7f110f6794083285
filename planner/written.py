"""Plans written by a person: each request is answered with the next turn of a plan file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from tieout.ledger.row import Outcome, Status
from tieout.planner.errors import PlannerError
from tieout.planner.model import (
    JSON_MEDIA_TYPE,
    Prompt,
    Reply,
    ReplyOutcome,
    ReplyUse,
    RequestBytes,
    prompt_bytes,
)
from tieout.planner.replies import JsonSubject, read_json

__all__ = [
    "EXHAUSTED",
    "NO_FURTHER_TURN",
    "PLAN_FILE_CHARS_MAX",
    "TURNS_MAX",
    "WrittenModel",
    "no_further_turn",
    "written_reply",
]

PLAN_FILE_CHARS_MAX: Final = 4_000_000
"""The longest plan file, in characters."""
TURNS_MAX: Final = 1_000
"""The most turns in one plan file; the loop's own bound is far lower."""
EXHAUSTED: Final = "the plan file has no further turn"
NO_FURTHER_TURN: Final = "plan.no_further_turn"

_REMEDY: Final = 'Write the plan as {"turns": [ {"steps": [...]}, {"answer": {...}} ]}.'
_SPACE_AND_COMMA: Final = " \t\r\n,"


class WrittenModel:
    """A plan file as a model. It keeps its place, so one instance serves one question.

    A turn is given back exactly as its characters stand in the file, so that numbers and
    spelling reach the ledger as they were written.
    """

    name = "written"

    def __init__(self, plan: bytes, *, place: str) -> None:
        """Read a plan file.

        plan: its bytes. place: the file's name for error messages.
        Raises PlannerError `plan.not_utf8`, `plan.not_json`, `plan.repeated_key`,
        `plan.too_deep`, `plan.not_text`, `plan.too_long` or `plan.shape`.
        """
        self._turns = _turns(plan, place)
        self._asked = 0

    @property
    def turns(self) -> tuple[str, ...]:
        """The texts of the turns, in order."""
        return self._turns

    def prepare(self, prompt: Prompt) -> RequestBytes:
        """The prompt as canonical JSON; nothing is sent anywhere."""
        return prompt_bytes(prompt)

    def ask(self, request: RequestBytes) -> Reply:  # noqa: ARG002  (a written plan does not read)
        """The next turn; outcome `error` when the file has no further one."""
        if self._asked >= len(self._turns):
            return written_reply(b"")
        turn = self._turns[self._asked]
        self._asked += 1
        return written_reply(turn.encode("utf-8"))


def written_reply(payload: bytes) -> Reply:
    """The reply that stands for one turn's bytes; no bytes at all mean that none was left.

    Raises PlannerError `plan.not_utf8` when stored bytes are not text.
    """
    text = _decoded(payload, "the recorded turn")
    done = bool(payload)
    return Reply(
        text=text,
        payload=payload,
        media_type=JSON_MEDIA_TYPE,
        use=ReplyUse(provider="written"),
        outcome=ReplyOutcome.COMPLETE if done else ReplyOutcome.ERROR,
        detail="" if done else EXHAUSTED,
    )


def no_further_turn(outcomes: Sequence[Outcome]) -> str:
    """Why a plan file came to its end before an answer. outcomes: of its steps and texts so far.

    A plan that was written for what would succeed ends where something did not.
    """
    undone = [o for o in outcomes if o.status in (Status.REFUSED, Status.FAILED)]
    if not undone:
        return f"{EXHAUSTED}, and none of its turns is an answer"
    return f"{EXHAUSTED} after {undone[-1].code}: {undone[-1].message}"


def _turns(plan: bytes, place: str) -> tuple[str, ...]:
    text = _decoded(plan, place)
    subject = JsonSubject("plan", place, _REMEDY, PLAN_FILE_CHARS_MAX)
    document = read_json(text, subject=subject)
    if not isinstance(document, dict) or list(document) != ["turns"]:
        raise _misshapen("a plan file is an object with the one key turns", place)
    turns = document["turns"]
    if not isinstance(turns, list) or not turns:
        raise _misshapen("turns must be a list with at least one turn", place)
    if len(turns) > TURNS_MAX:
        raise _misshapen(f"{len(turns)} turns are over the bound of {TURNS_MAX}", place)
    slices = _slices(text, len(turns))
    for number, (turn, (start, _)) in enumerate(zip(turns, slices, strict=True), start=1):
        if not isinstance(turn, dict):
            line = text.count("\n", 0, start) + 1
            said = f"turn {number} must be an object with steps or an answer"
            raise _misshapen(said, f"{place}, line {line}")
    return tuple(text[start:end] for start, end in slices)


def _slices(text: str, count: int) -> list[tuple[int, int]]:
    """Where each turn stands in a text that is known to be {"turns": [ … ]}."""
    # The one key is "turns" however it is escaped, so no ":" and no "[" stand before these.
    at = text.index("[", text.index(":")) + 1
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    slices: list[tuple[int, int]] = []
    for _ in range(count):
        while text[at] in _SPACE_AND_COMMA:
            at += 1
        _, end = decoder.raw_decode(text, at)
        slices.append((at, end))
        at = end
    return slices


def _decoded(payload: bytes, place: str) -> str:
    try:
        return payload.decode("utf-8")
    except UnicodeDecodeError as error:
        line = payload.count(b"\n", 0, error.start) + 1
        raise PlannerError(
            "plan.not_utf8",
            f"not UTF-8: byte 0x{payload[error.start]:02x} at offset {error.start}",
            place=f"{place}, line {line}",
            remedy="Save the plan file as UTF-8 without a byte order mark.",
        ) from error


def _misshapen(said: str, place: str) -> PlannerError:
    return PlannerError("plan.shape", said, place=place, remedy=_REMEDY)
