"""An S3 server on loopback for tests (moto over HTTP), and a way to it that breaks as planned.

Two calls are for others: `s3_server()` gives an `S3Server` with a versioned bucket, and
`S3Server.environment()` what to put into os.environ for boto3 to find it.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"
REGION = "us-east-1"


@dataclass(frozen=True)
class S3Server:
    """A running server. endpoint: http://host:port. bucket: there, versioned, empty at first."""

    endpoint: str
    bucket: str

    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "not-a-secret",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        }

    @contextlib.contextmanager
    def client(self) -> Iterator[Any]:
        """boto3's client, to look and to meddle behind a store's back."""
        import boto3

        made = boto3.session.Session().client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="not-a-secret",
        )
        try:
            yield made
        finally:
            made.close()


@contextlib.contextmanager
def s3_server(bucket: str = "evidence") -> Iterator[S3Server]:
    """Start a server with one versioned bucket; it goes with the context."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = ThreadedMotoServer(HOST, 0, verbose=False)
    running.start()
    try:
        host, port = running.get_host_and_port()
        server = S3Server(f"http://{host}:{port}", bucket)
        make_bucket(server, bucket)
        yield server
    finally:
        running.stop()
        running._server.server_close()


def make_bucket(server: S3Server, bucket: str) -> None:
    with server.client() as client:
        client.create_bucket(Bucket=bucket)
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


@dataclass
class Trouble:
    """What happens to the next requests of a method; "" lets one pass.

    kinds: "503" (or another status: answered without asking the server), "reset" (cut before
    the server hears of it), "lost" (the server does it, the answer is cut), "truncated" (half
    of the body under a Content-Length to match), "cut" (half of the body under the true
    Content-Length), "flipped" (one bit of the body turned). Checksum headers are dropped.
    """

    planned: dict[str, deque[str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def plan(self, method: str, *kinds: str) -> None:
        self.planned[method] = deque(kinds)

    def next(self, method: str) -> str:
        self.asked.append(method)
        waiting = self.planned.get(method)
        return waiting.popleft() if waiting else ""


class _Way(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    trouble: Trouble
    target: str

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kind = self.server.trouble.next(self.command)
        if kind.isdigit():
            self._answer(int(kind), {}, b"<Error><Code>Planned</Code></Error>")
            return
        if kind == "reset":
            self.close_connection = True
            return
        status, headers, answer = self._forward(body)
        if kind == "lost":
            self.close_connection = True
            return
        if kind == "truncated":
            answer = answer[: len(answer) // 2]
        if kind == "flipped":
            answer = bytes([answer[0] ^ 1]) + answer[1:]
        if kind == "cut":
            self._answer(status, headers, answer, sent=len(answer) // 2)
            self.close_connection = True
            return
        self._answer(status, headers, answer)

    do_GET = do_PUT = do_HEAD = do_POST = _pass

    def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.server.target)
        try:
            connection.request(self.command, self.path, body=body, headers=dict(self.headers))
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def _answer(
        self, status: int, headers: dict[str, str], body: bytes, sent: int | None = None
    ) -> None:
        self.send_response(status)
        dropped = {"transfer-encoding", "connection", "date", "server"}
        for name, value in headers.items():
            low = name.lower()
            if low in dropped or low.startswith("x-amz-checksum"):
                continue
            if low != "content-length" or self.command == "HEAD":
                self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:sent])

    def log_message(self, *args: object) -> None:
        """Say nothing: the tests look at `Trouble.asked`."""


class _Gate(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, target: str, trouble: Trouble) -> None:
        super().__init__((HOST, 0), _Way)
        self.target = target
        self.trouble = trouble


@contextlib.contextmanager
def bad_way(server: S3Server) -> Iterator[tuple[S3Server, Trouble]]:
    """The same server behind a gate that makes the trouble that is planned."""
    trouble = Trouble()
    gate = _Gate(server.endpoint.removeprefix("http://"), trouble)
    thread = threading.Thread(target=gate.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield S3Server(f"http://{HOST}:{gate.server_address[1]}", server.bucket), trouble
    finally:
        gate.shutdown()
        thread.join()
        gate.server_close()
