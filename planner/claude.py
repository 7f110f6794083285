"""Claude, or any server that speaks the Messages API, through the anthropic client."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import SplitResult, urlsplit, urlunsplit

from tieout.planner.attempts import (
    INTERRUPTED,
    KEY_REMEDY,
    REPLY_BYTES_MAX,
    TIMEOUT,
    TOO_LONG,
    UNREACHABLE,
    Got,
    answered,
    failure,
    wait_s,
    worth_retrying,
)
from tieout.planner.errors import Exit, PlannerError
from tieout.planner.model import (
    JSON_MEDIA_TYPE,
    Attempt,
    ModelError,
    Prompt,
    Reply,
    ReplyUse,
    RequestBytes,
    canonical_json,
)
from tieout.planner.replies import Message, printable, read_message

if TYPE_CHECKING:
    import anthropic
    import httpx2

__all__ = ["OUTPUT_TOKENS_MAX", "RETRIES_MAX", "ClaudeModel"]

OUTPUT_TOKENS_MAX: Final = 21_333
"""The most output tokens of one reply: beyond it a server may need over ten minutes and the
API asks for streaming, which no plan is worth (the client's own bound: 3600 s / 128,000)."""
RETRIES_MAX: Final = 10
"""The most tries after the first."""
CONNECT_TIMEOUT_S: Final = 10.0
SECRET_CHARS_MIN: Final = 8
"""Shorter keys are dummies for a local server; taking them out would spoil ordinary words."""

_PATH: Final = "/v1/messages"
_REMOVED: Final = b"[credential removed]"


class ClaudeModel:
    """A model behind the Messages API. No tools, no sampling parameters, no streaming.

    The body is built here and sent as it is: the client adds headers only. The client's own
    retries are off, so that every attempt is in `Reply.attempts` or `ModelError.attempts`.
    The anthropic package is imported by the first `ask`, never by `prepare`, so a replay can
    rebuild requests without it.
    """

    name = "claude"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        max_tokens: int,
        timeout_s: float,
        retries: int,
        schema: Mapping[str, object] | None,
        sleep: Callable[[float], None] = time.sleep,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        """Settings of one model.

        base_url: None means ANTHROPIC_BASE_URL, else the API itself. max_tokens: bound of one
        reply. timeout_s: bound of one attempt, from sending to the reply's last byte.
        retries: tries after the first. schema: JSON schema the server may hold the reply to;
        a server that does not know it ignores it, so replies are parsed strictly in any case.
        sleep, elapsed: waiting between tries, and a clock that only runs forward, in seconds.
        Raises PlannerError `model.setting` or `model.base_url` (exit 2).
        """
        _check("the model's name", bool(model.strip()), "a name such as claude-opus-5-5")
        _check("max_tokens", 1 <= max_tokens <= OUTPUT_TOKENS_MAX, f"1 to {OUTPUT_TOKENS_MAX}")
        _check("retries", 0 <= retries <= RETRIES_MAX, f"0 to {RETRIES_MAX}")
        _check("timeout_s", 0 < timeout_s < math.inf, "a number of seconds above 0")
        if base_url is not None:
            _split(base_url)
        self._model = model
        self._base_url = base_url
        self._max_tokens = max_tokens
        self._timeout_s = timeout_s
        self._retries = retries
        self._schema = schema
        self._sleep = sleep
        self._elapsed = elapsed

    def prepare(self, prompt: Prompt) -> RequestBytes:
        """The exact body of the request: canonical JSON, one user message."""
        body: dict[str, object] = {
            "max_tokens": self._max_tokens,
            "messages": [{"content": prompt.user, "role": "user"}],
            "model": self._model,
        }
        if prompt.system:
            body["system"] = prompt.system
        if self._schema is not None:
            body["output_config"] = {"format": {"schema": self._schema, "type": "json_schema"}}
        return RequestBytes(canonical_json(body, subject="the request"), JSON_MEDIA_TYPE)

    def ask(self, request: RequestBytes) -> Reply:
        """Send exactly `request.payload`, again after 408, 409, 429, 5xx and broken connections.

        A refusal, a cut-off reply, a full context and a reply that cannot be read are outcomes.
        Raises ModelError (exit 5) with every attempt in it: `model.no_key`, `model.no_sdk`,
        `model.credentials`, `model.unreachable`, `model.interrupted`, `model.timeout`,
        `model.reply_too_long`, `model.redirected`, `model.bad_request`, `model.unauthorised`,
        `model.spend_limit`, `model.forbidden`, `model.not_found`, `model.too_large`,
        `model.rate_limited`, `model.overloaded`, `model.server_error`.
        """
        attempts: list[Attempt] = []
        with _client(self._base_url, self._timeout_s) as client:
            place = _public_url(str(client.base_url))
            for tried in range(self._retries + 1):
                got = self._attempt(client, request, tuple(attempts))
                attempts.append(got.attempt)
                message = read_message(got.attempt.payload)
                if answered(got, message):
                    return _reply(got, message, tuple(attempts), place)
                if tried == self._retries or not worth_retrying(got, message):
                    break
                self._sleep(wait_s(got.retry_after, tried))
        raise failure(got, message, tuple(attempts), place)

    def _attempt(
        self, client: anthropic.Anthropic, request: RequestBytes, before: tuple[Attempt, ...]
    ) -> Got:
        import anthropic

        deadline = self._elapsed() + self._timeout_s
        try:
            # Raw content, so that the bytes recorded are the bytes sent. The middleware of
            # _client hands back the unread response whatever its status.
            answer: object = client.post(
                _PATH,
                cast_to=object,
                content=request.payload,
                options={
                    "headers": {"Accept-Encoding": "identity"},
                    "max_retries": 0,
                    "follow_redirects": False,
                },
                stream=True,
                stream_cls=anthropic.Stream[object],
            )
        except anthropic.APIConnectionError as error:
            return _unanswered(error, _secrets(client, None))
        except (anthropic.AnthropicError, TypeError, ValueError) as error:
            raise ModelError(
                "model.credentials",
                f"the credentials could not be used ({type(error).__name__})",
                remedy=KEY_REMEDY,
                attempts=before,
            ) from error
        return self._read(cast("httpx2.Response", answer), client, deadline)

    def _read(self, response: httpx2.Response, client: anthropic.Anthropic, deadline: float) -> Got:
        import httpx2

        received = bytearray()
        fault = detail = ""
        try:
            for chunk in response.iter_raw():
                received += chunk
                if len(received) > REPLY_BYTES_MAX:
                    fault, detail = TOO_LONG, "the reply is longer than is read"
                    break
                if self._elapsed() > deadline:
                    fault, detail = TIMEOUT, "the reply was not complete in time"
                    break
        except httpx2.TimeoutException:
            fault, detail = TIMEOUT, "the reply stopped coming"
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            fault, detail = INTERRUPTED, f"the reply broke off ({type(error).__name__})"
        finally:
            response.close()
        payload, removed = _without(_secrets(client, response.request), bytes(received))
        if removed:
            detail = "; ".join(filter(None, [detail, "a credential was taken out of the bytes"]))
        headers = response.headers
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        return Got(
            Attempt(
                response.status_code, printable(headers.get("request-id", "")), payload, detail
            ),
            fault,
            printable(media_type) or JSON_MEDIA_TYPE,
            printable(response.request.headers.get("anthropic-version", "")),
            headers.get("retry-after", ""),
            headers.get("x-should-retry", ""),
        )


def _client(base_url: str | None, timeout_s: float) -> anthropic.Anthropic:
    """The client for one request; closed after it, so that no socket outlives `ask`."""
    try:
        import anthropic
        import httpx2
    except ImportError as error:
        raise ModelError(
            "model.no_sdk",
            "the anthropic package is not installed",
            remedy="Install tieout with its run extra: pip install 'tieout[run]'.",
        ) from error

    try:
        client = anthropic.Anthropic(
            base_url=base_url,
            timeout=httpx2.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S)),
            max_retries=0,
            open_telemetry=False,
            # The documented way to see error replies before the client turns them into
            # exceptions: a middleware's own result is handed back as it is.
            middleware=[lambda request, call_next: call_next(request).http_response],
        )
    except (anthropic.AnthropicError, httpx2.InvalidURL, ValueError, OSError) as error:
        raise ModelError(
            "model.credentials",
            f"the client could not be set up ({type(error).__name__})",
            remedy="Check ANTHROPIC_BASE_URL and the anthropic profile, or set ANTHROPIC_API_KEY.",
        ) from error
    try:
        _check_key(client)
    except PlannerError:
        client.close()
        raise
    return client


def _check_key(client: anthropic.Anthropic) -> None:
    key = client.api_key or client.auth_token
    named = {name.lower() for name in client.default_headers}
    if not key and client.credentials is None and not named & {"authorization", "x-api-key"}:
        raise ModelError("model.no_key", "ANTHROPIC_API_KEY is not set", remedy=KEY_REMEDY)
    # Checked here because the HTTP library would quote the whole header in its own error.
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise ModelError(
            "model.no_key",
            "ANTHROPIC_API_KEY holds a space, a line end or a character outside ASCII",
            remedy="Set it again without quotes and line ends.",
        )


def _secrets(client: anthropic.Anthropic, sent: httpx2.Request | None) -> list[bytes]:
    """What must not come back in a recorded byte, longest first."""
    found = {client.api_key, client.auth_token, _split(str(client.base_url)).password}
    if sent is not None:
        found.add(sent.headers.get("authorization", "").partition(" ")[2])
        found.add(sent.headers.get("x-api-key", ""))
    kept = {secret for secret in found if secret and len(secret) >= SECRET_CHARS_MIN}
    return [secret.encode("utf-8") for secret in sorted(kept, key=lambda s: (-len(s), s))]


def _without(secrets: list[bytes], payload: bytes) -> tuple[bytes, bool]:
    cleaned = payload
    for secret in secrets:
        cleaned = cleaned.replace(secret, _REMOVED)
    return cleaned, cleaned != payload


def _unanswered(error: anthropic.APIConnectionError, secrets: list[bytes]) -> Got:
    import anthropic
    import httpx2

    cause = error.__cause__
    fault = INTERRUPTED
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.UnsupportedProtocol):
        fault = UNREACHABLE
    elif isinstance(error, anthropic.APITimeoutError):
        fault = TIMEOUT
    said, _ = _without(secrets, str(cause or error).encode("utf-8", "replace"))
    detail = f"{type(cause or error).__name__}: {said.decode('utf-8', 'replace')}"
    return Got(Attempt(0, "", b"", printable(detail)), fault)


def _reply(got: Got, message: Message, attempts: tuple[Attempt, ...], base_url: str) -> Reply:
    import anthropic

    use = ReplyUse(
        provider=ClaudeModel.name,
        model=message.model,
        request_id=got.attempt.request_id,
        stop_reason=message.stop_reason,
        input_tokens=message.input_tokens,
        output_tokens=message.output_tokens,
        sdk=f"anthropic/{anthropic.__version__}",
        api_version=got.api_version,
        base_url=base_url,
    )
    return Reply(
        text=message.text,
        payload=got.attempt.payload,
        media_type=got.media_type,
        use=use,
        outcome=message.outcome,
        detail=message.detail,
        attempts=attempts,
    )


def _check(name: str, holds: bool, wanted: str) -> None:
    if not holds:
        raise PlannerError(
            "model.setting",
            f"{name} is out of bounds",
            remedy=f"Give {wanted}.",
            exit_code=Exit.USAGE,
        )


def _split(base_url: str) -> SplitResult:
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise PlannerError(
            "model.base_url",
            "the base URL of the model is not an http or https address",
            remedy="Give an address such as http://127.0.0.1:8080, without /v1.",
            exit_code=Exit.USAGE,
        )
    return parts


def _public_url(base_url: str) -> str:
    """The base URL without user, password, query and fragment."""
    parts = _split(base_url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    netloc = host if parts.port is None else f"{host}:{parts.port}"
    return urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
