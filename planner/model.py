"""The one interface of every source of plans: exact request bytes in, exact reply bytes out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from tieout.executor.record import Shown
from tieout.planner.errors import Exit, PlannerError
from tieout.planner.prompt import segments_text

__all__ = [
    "JSON_MEDIA_TYPE",
    "Attempt",
    "Model",
    "ModelError",
    "Prompt",
    "Reply",
    "ReplyOutcome",
    "ReplyUse",
    "RequestBytes",
    "canonical_json",
    "prompt_bytes",
]

JSON_MEDIA_TYPE: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is shown: texts that came out of receipts, in order, and nothing else.

    One system text and one user text per request; there is no history on the other side.
    """

    segments: tuple[Shown, ...]

    def __post_init__(self) -> None:
        if not all(isinstance(segment, Shown) for segment in self.segments):
            raise AssertionError("a prompt is made of what was recorded, and of nothing else")

    @property
    def system(self) -> str:
        """The instructions."""
        return segments_text(self.segments)[0]

    @property
    def user(self) -> str:
        """Every other segment with its role, its address and its length."""
        return segments_text(self.segments)[1]


@dataclass(frozen=True, slots=True)
class RequestBytes:
    """Exactly the body that will be sent, so that it can be recorded before it is sent."""

    payload: bytes
    media_type: str


class ReplyOutcome(StrEnum):
    """How a request ended when an answer came back at all."""

    COMPLETE = "complete"
    REFUSAL = "refusal"
    MAX_TOKENS = "max_tokens"
    CONTEXT_EXCEEDED = "context_exceeded"
    ERROR = "error"  # an answer came, and it cannot be used; `Reply.detail` says why


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at the request, successful or not.

    status: HTTP status, 0 when no status line arrived. payload: the reply bytes that arrived,
    a part of them when `detail` names an interruption. detail: "" or what went wrong.
    """

    status: int
    request_id: str
    payload: bytes
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ReplyUse:
    """Who answered and what it cost, for the ledger row.

    model: the id the server returned, "" when it returned none. Tokens: None when not told;
    input_tokens is the sum of the server's input counters, cached ones included.
    base_url: without user, password, query or fragment.
    """

    provider: str
    model: str = ""
    request_id: str = ""
    stop_reason: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    sdk: str = ""
    api_version: str = ""
    base_url: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back.

    text: the model's own text, "" when there is none. payload: the exact reply bytes.
    attempts: every try in order, the last one being this reply; empty where nothing was sent.
    """

    text: str
    payload: bytes
    media_type: str
    use: ReplyUse
    outcome: ReplyOutcome
    detail: str = ""
    attempts: tuple[Attempt, ...] = field(default=())


class Model(Protocol):
    """A source of plans. One instance serves one question: `ask` may keep its place."""

    @property
    def name(self) -> str:
        """The short name that goes into the ledger row: claude, recorded or written."""
        ...

    def prepare(self, prompt: Prompt) -> RequestBytes:
        """The bytes that `ask` will send for this prompt; no effect on the world.

        Raises PlannerError when the prompt cannot be written as UTF-8.
        """
        ...

    def ask(self, request: RequestBytes) -> Reply:
        """Send exactly these bytes and return what came back.

        Raises PlannerError (ModelError where the server was tried) when there is no reply.
        """
        ...


class ModelError(PlannerError):
    """The server gave no usable answer; `attempts` holds every byte that did come back."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        remedy: str,
        place: str = "",
        exit_code: Exit = Exit.ENVIRONMENT,
        attempts: tuple[Attempt, ...] = (),
    ) -> None:
        super().__init__(code, message, remedy=remedy, place=place, exit_code=exit_code)
        self.attempts = attempts


def canonical_json(document: Mapping[str, object], *, subject: str) -> bytes:
    """UTF-8 JSON with sorted keys and no spaces, the same bytes on every machine.

    Raises PlannerError `prompt.not_text` when a text in it has no UTF-8 form.
    """
    text = json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise PlannerError(
            "prompt.not_text",
            f"{subject} holds half of a surrogate pair, which has no UTF-8 form",
            place=f"character {error.start}",
            remedy="Find the source of the text and decode it as UTF-8.",
        ) from error


def prompt_bytes(prompt: Prompt) -> RequestBytes:
    """The prompt itself as canonical JSON: the request of a model that sends nothing anywhere."""
    document = {"system": prompt.system, "user": prompt.user}
    return RequestBytes(canonical_json(document, subject="the prompt"), JSON_MEDIA_TYPE)
