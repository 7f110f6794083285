"""The replies of a past run in place of a model: replay asks the same and gets the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tieout.planner.errors import Exit, PlannerError
from tieout.planner.model import (
    JSON_MEDIA_TYPE,
    Model,
    Prompt,
    Reply,
    ReplyUse,
    RequestBytes,
)
from tieout.planner.replies import read_message
from tieout.planner.written import written_reply

__all__ = ["RecordedModel", "recorded_reply"]

_WRITTEN: Final = "written"


class RecordedModel:
    """Gives back what was recorded for a request; never asks anyone.

    lookup: the recorded reply to exactly these request bytes, or None. It may answer in the
    order of asking, so that two equal requests keep their own replies.
    prepare_with: the model that prepared the requests of the past run, so that the rebuilt
    bytes can be compared with the stored ones. Only its `prepare` is used.
    """

    name = "recorded"

    def __init__(
        self, lookup: Callable[[RequestBytes], Reply | None], *, prepare_with: Model
    ) -> None:
        self._lookup = lookup
        self._prepare_with = prepare_with

    def prepare(self, prompt: Prompt) -> RequestBytes:
        """The bytes the model of the past run would send for this prompt."""
        return self._prepare_with.prepare(prompt)

    def ask(self, request: RequestBytes) -> Reply:
        """The recorded reply. Raises PlannerError `recorded.missing` (exit 1) without one."""
        reply = self._lookup(request)
        if reply is None:
            raise PlannerError(
                "recorded.missing",
                f"the past run holds no reply to this request of {len(request.payload)} bytes",
                remedy="The replay has left the recorded path: compare the first step whose "
                "address differs, with tieout replay --json.",
                exit_code=Exit.DOES_NOT_HOLD,
            )
        return reply


def recorded_reply(payload: bytes, *, media_type: str, use: ReplyUse) -> Reply:
    """Build a reply again from its stored bytes and its ledger fields.

    Text and outcome are read from the bytes anew, never taken from the ledger. Attempts that
    failed before it are not part of it.
    """
    if use.provider == _WRITTEN:
        return written_reply(payload)
    message = read_message(payload)
    return Reply(
        text=message.text,
        payload=payload,
        media_type=media_type or JSON_MEDIA_TYPE,
        use=use,
        outcome=message.outcome,
        detail=message.detail,
    )
