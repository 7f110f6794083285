"""Keys, addresses and settings of the Messages API client: checked, used, and never shown."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import messages_server as server_side
from support.claude_calls import KEY, PLAN, PROMPT, ask, claude, failure, only_our_key
from support.messages_server import Answer, MessagesServer

from tieout.planner.claude import OUTPUT_TOKENS_MAX
from tieout.planner.errors import Exit, PlannerError


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    only_our_key(monkeypatch, tmp_path)


def test_a_profile_that_cannot_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", "/nowhere")
    error, server = failure(PLAN)
    assert error.code == "model.credentials"
    assert "ANTHROPIC_API_KEY" in error.remedy
    assert server.requests == []


@pytest.mark.parametrize("behave", [server_side.unauthorised, server_side.bad_request])
def test_a_key_that_the_server_echoes_reaches_no_byte_of_ours(
    behave: Callable[[str], Answer],
) -> None:
    error, _ = failure(behave(f"bad key {KEY}"))
    shown = [str(error), repr(error), json.dumps(error.document()), repr(error.attempts)]
    assert all(KEY not in said for said in shown)
    assert "credential" in error.attempts[0].detail
    assert b"[credential removed]" in error.attempts[0].payload


def test_the_key_is_in_no_reply_request_or_repr() -> None:
    with MessagesServer([server_side.text(f"my key is {KEY}")]) as server:
        model = claude(server.base_url)
        request = model.prepare(PROMPT)
        reply = model.ask(request)
    assert KEY not in repr(reply)
    assert KEY.encode() not in reply.payload + request.payload
    assert KEY not in repr(model)
    assert KEY not in repr(vars(model))


def test_user_and_password_of_the_address_are_neither_recorded_nor_echoed() -> None:
    def echo(_: object) -> str:
        return json.dumps({"told": ["hunter2-secret", server.requests[0].headers["Authorization"]]})

    with MessagesServer([echo]) as server:
        address = server.base_url.replace("http://", "http://me:hunter2-secret@") + "/?token=abc"
        model = claude(address.replace("/?token=abc", ""))
        reply = model.ask(model.prepare(PROMPT))
    assert reply.use.base_url == server.base_url
    assert "hunter2" not in repr(reply)
    assert json.loads(reply.text)["told"][1].endswith("[credential removed]")


@pytest.mark.parametrize("value", ["", None])
def test_no_key_names_the_variable(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is None:
        monkeypatch.delenv("ANTHROPIC_API_KEY")
    else:
        monkeypatch.setenv("ANTHROPIC_API_KEY", value)
    error, server = failure(PLAN)
    assert error.code == "model.no_key"
    assert "ANTHROPIC_API_KEY" in error.remedy
    assert server.requests == []


@pytest.mark.parametrize("key", ["sk-ant-line\nend-1234", "sk ant with space", "sk-ant-ключ-1234"])
def test_a_key_that_no_header_can_carry_is_told_without_showing_it(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    error, _ = failure(PLAN)
    assert error.code == "model.no_key"
    assert key not in str(error)
    assert error.__cause__ is None


def test_a_header_of_the_users_own_can_carry_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"X-Api-Key: {KEY}")
    reply, server = ask(server_side.text(f"you sent {KEY}"))
    assert server.requests[0].headers["X-Api-Key"] == KEY
    assert reply.text == "you sent [credential removed]"


def test_a_header_that_cannot_be_sent_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Note: \udc80")
    error, server = failure(PLAN)
    assert error.code == "model.credentials"
    assert server.requests == []


def test_the_environment_names_the_server_when_the_caller_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with MessagesServer([PLAN]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        model = claude(None)
        reply = model.ask(model.prepare(PROMPT))
    assert reply.use.base_url == server.base_url


@pytest.mark.parametrize(
    "address", ["", "localhost:8080", "ftp://x", "http://", "http://[::1", "http://h:x"]
)
def test_an_address_that_is_none_is_a_usage_error(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PlannerError) as caught:
        claude(address)
    assert (caught.value.code, caught.value.exit_code) == ("model.base_url", Exit.USAGE)
    if address:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
        model = claude(None)
        with pytest.raises(PlannerError):
            model.ask(model.prepare(PROMPT))


@pytest.mark.parametrize(
    "setting",
    [{"max_tokens": 0}, {"max_tokens": OUTPUT_TOKENS_MAX + 1}, {"retries": -1}, {"retries": 11},
     {"timeout_s": 0.0}, {"timeout_s": float("nan")}],
)  # fmt: skip
def test_settings_out_of_bounds_are_usage_errors(setting: dict[str, float]) -> None:
    with pytest.raises(PlannerError) as caught:
        claude(None, **setting)
    assert (caught.value.code, caught.value.exit_code) == ("model.setting", Exit.USAGE)
    assert next(iter(setting)) in caught.value.message


def test_only_asking_imports_the_client() -> None:
    program = """
import sys
from tieout.planner import model, recorded, replies, written
from tieout.planner.attempts import REPLY_BYTES_MAX
from tieout.planner.claude import ClaudeModel
m = ClaudeModel("m", base_url=None, max_tokens=9, timeout_s=1.0, retries=0, schema=None)
m.prepare(model.Prompt(()))
loaded = {"anthropic", "httpx2", "duckdb", "boto3"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True)
