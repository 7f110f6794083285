"""What one HTTP attempt at a model means: a reply, a reason to try again, or a failure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tieout.planner.model import JSON_MEDIA_TYPE, Attempt, ModelError, ReplyOutcome
from tieout.planner.replies import Message

__all__ = [
    "INTERRUPTED",
    "KEY_REMEDY",
    "REPLY_BYTES_MAX",
    "RETRY_AFTER_MAX_S",
    "TIMEOUT",
    "TOO_LONG",
    "UNREACHABLE",
    "Got",
    "answered",
    "failure",
    "wait_s",
    "worth_retrying",
]

REPLY_BYTES_MAX: Final = 16 * 1024 * 1024
"""The longest reply body that is read."""
RETRY_AFTER_MAX_S: Final = 60.0
"""The longest wait that a server can ask for."""
BACKOFF_FIRST_S: Final = 0.5
BACKOFF_MAX_S: Final = 8.0

_RETRIED_BELOW_500: Final = frozenset({408, 409, 429})
UNREACHABLE: Final = "model.unreachable"
INTERRUPTED: Final = "model.interrupted"
TIMEOUT: Final = "model.timeout"
TOO_LONG: Final = "model.reply_too_long"
_RETRIED_FAULTS: Final = frozenset({UNREACHABLE, INTERRUPTED, TIMEOUT})

KEY_REMEDY: Final = (
    "Set ANTHROPIC_API_KEY (any value for a local server that asks for none), or give a plan file."
)
_LATER: Final = "Run again later: what is recorded so far is kept."
_CAUSES: Final[Mapping[int, tuple[str, str]]] = {
    400: ("model.bad_request", "Check the model's name, the schema and the bound of tokens."),
    401: ("model.unauthorised", "Check that ANTHROPIC_API_KEY holds a valid key for this server."),
    402: ("model.spend_limit", "Raise the spend limit of the account, then run again."),
    403: ("model.forbidden", "Ask the account's owner for access to this model."),
    404: ("model.not_found", "Check the model's name and the base URL (without /v1)."),
    413: ("model.too_large", "Show the model less: fewer sources or fewer rows."),
    429: ("model.rate_limited", _LATER),
    503: ("model.overloaded", _LATER),
    529: ("model.overloaded", _LATER),
}
_FAULTS: Final[Mapping[str, tuple[str, str]]] = {
    UNREACHABLE: ("cannot be reached", "Check the base URL and that the server is running."),
    INTERRUPTED: ("broke off the exchange", _LATER),
    TIMEOUT: ("did not answer in time", "Raise the timeout or ask for fewer tokens."),
    TOO_LONG: (
        f"sent more than {REPLY_BYTES_MAX} bytes",
        "Check that the base URL names a Messages API server.",
    ),
}


@dataclass(frozen=True, slots=True)
class Got:
    """One attempt with what the retry rule and the ledger want to know of its headers."""

    attempt: Attempt
    fault: str = ""
    media_type: str = JSON_MEDIA_TYPE
    api_version: str = ""
    retry_after: str = ""
    should_retry: str = ""


def answered(got: Got, message: Message) -> bool:
    """Whether this attempt is a reply, good or bad, and not a fault of the way to it."""
    if got.fault:
        return False
    too_long = message.outcome is ReplyOutcome.CONTEXT_EXCEEDED
    return 200 <= got.attempt.status < 300 or (got.attempt.status in (400, 413) and too_long)


def worth_retrying(got: Got, message: Message) -> bool:
    """Whether the same request may succeed later; a spent budget does not come back by waiting."""
    if got.fault:
        return got.fault in _RETRIED_FAULTS
    if "spend_limit" in message.error_code or got.should_retry.lower() == "false":
        return False
    return got.attempt.status >= 500 or got.attempt.status in _RETRIED_BELOW_500


def wait_s(retry_after: str, tried: int) -> float:
    """Seconds to wait after `tried` retries: what the server asks, within bounds, or doubling.

    A date in retry-after is not read, since it would need a clock to compare; no jitter is
    added, since one run has one request under way.
    """
    try:
        asked = float(retry_after)
    except ValueError:
        asked = 0.0
    if math.isfinite(asked) and asked > 0:
        return min(asked, RETRY_AFTER_MAX_S)
    return min(BACKOFF_FIRST_S * 2.0**tried, BACKOFF_MAX_S)


def failure(got: Got, message: Message, attempts: tuple[Attempt, ...], place: str) -> ModelError:
    """The error for a last attempt that is no reply; `place` is the server's address."""
    status = got.attempt.status
    if got.fault:
        said, remedy = _FAULTS[got.fault]
        code, told = got.fault, f"the server {said}: {got.attempt.detail}"
    else:
        code, remedy = _CAUSES.get(status, ("model.bad_request", _CAUSES[400][1]))
        if "spend_limit" in message.error_code:
            code, remedy = _CAUSES[402]
        elif status >= 500 and status not in _CAUSES:
            code, remedy = "model.server_error", _LATER
        elif 300 <= status < 400:
            code, remedy = "model.redirected", "Name the server's final address as the base URL."
        told = f"the server answered {status}: {message.detail}"
    if len(attempts) > 1:
        told += f" (after {len(attempts)} attempts)"
    return ModelError(code, told, place=place, remedy=remedy, attempts=attempts)
