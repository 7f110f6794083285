"""A real HTTP server on loopback that speaks POST /v1/messages from a script.

    with MessagesServer([overloaded(), "first turn", lambda seen: answer_to(seen)]) as server:
        ... base_url=server.base_url ...
    assert len(server.requests) == 3

A behaviour is a text (a complete reply), an `Answer`, or a callable that gets the parsed request
and returns either, so that a test can act as a model that reads what it is shown. Each request
takes the next behaviour; after the last one the server answers 400.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

MODEL = "claude-test-1"


@dataclass(frozen=True)
class Answer:
    """One HTTP reply. `reset_after`: send that many body bytes, then reset the connection."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    reset_after: int | None = None


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def user(self) -> str:
        """The one user text."""
        (message,) = self.document["messages"]
        return message["content"]


Behaviour = str | Answer | Callable[[dict[str, Any]], "str | Answer"]


def message(content: Sequence[object], *, stop_reason: str = "end_turn", **extra: object) -> Answer:
    """A 200 reply with these content blocks."""
    document = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }
    return Answer(200, json.dumps({**document, **extra}).encode())


def text(reply: str, *, stop_reason: str = "end_turn", **extra: object) -> Answer:
    return message([{"type": "text", "text": reply}], stop_reason=stop_reason, **extra)


def refusal(explanation: str = "no") -> Answer:
    details = {"category": "cyber", "explanation": explanation}
    return message([], stop_reason="refusal", stop_details=details)


def truncated(part: str) -> Answer:
    return text(part, stop_reason="max_tokens")


def context_exceeded(part: str = "") -> Answer:
    return text(part, stop_reason="model_context_window_exceeded")


def failing(status: int, kind: str, said: str, *, error_code: str = "", **headers: str) -> Answer:
    """An error reply; header names are written with underscores."""
    error: dict[str, object] = {"type": kind, "message": said}
    if error_code:
        error["details"] = {"error_code": error_code}
    body = json.dumps({"type": "error", "error": error}).encode()
    return Answer(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def overloaded(**headers: str) -> Answer:
    return failing(529, "overloaded_error", "Overloaded", **headers)


def rate_limited(retry_after: str = "1") -> Answer:
    return failing(429, "rate_limit_error", "Slow down", retry_after=retry_after)


def spend_limited() -> Answer:
    code = "enforced_spend_limit_reached"
    return failing(429, "rate_limit_error", "Limit reached", error_code=code)


def bad_request(said: str = "model: unknown") -> Answer:
    return failing(400, "invalid_request_error", said)


def unauthorised(said: str = "invalid key") -> Answer:
    return failing(401, "authentication_error", said)


def malformed(body: bytes = b'{"type": "message", "content": [') -> Answer:
    return Answer(200, body)


def reset(after: int = 20) -> Answer:
    """A good reply that breaks off after some bytes of its body."""
    return Answer(200, text("{}").body, reset_after=after)


class MessagesServer:
    """The server; a context manager. `requests` grows by one per request that arrives."""

    def __init__(self, behaviours: Sequence[Behaviour]) -> None:
        self.requests: list[Received] = []
        self._behaviours = list(behaviours)
        self._faults: list[BaseException] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> MessagesServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        if self._faults and error is None:
            raise self._faults[0]  # an assertion inside a behaviour fails the test

    def answer(self, received: Received) -> Answer:
        """Note the request and play the next behaviour."""
        with self._lock:
            place = len(self.requests)
            self.requests.append(received)
        if received.path != "/v1/messages":
            return failing(404, "not_found_error", f"no such path: {received.path}")
        if place >= len(self._behaviours):
            return bad_request("the script of this server has ended")
        behaviour = self._behaviours[place]
        try:
            played = behaviour(received.document) if callable(behaviour) else behaviour
        except BaseException as fault:
            self._faults.append(fault)
            return failing(400, "invalid_request_error", f"the behaviour failed: {fault!r}")
        return text(played) if isinstance(played, str) else played


def _handler(server: MessagesServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            number = len(server.requests) + 1
            answer = server.answer(Received(self.path, dict(self.headers), body))
            headers = {
                "Content-Type": "application/json",
                "Content-Length": str(len(answer.body)),
                "request-id": f"req_{number}",
                "Connection": "close",
                **answer.headers,
            }
            self.send_response(answer.status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.close_connection = True
            if answer.reset_after is None:
                with contextlib.suppress(ConnectionError):  # a client may have read enough
                    self.wfile.write(answer.body)
                return
            self.wfile.write(answer.body[: answer.reset_after])
            self.wfile.flush()
            # Linger 0 turns the close into a reset, as a crashing server's would be.
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing: requests are in MessagesServer.requests."""

    return Handler
