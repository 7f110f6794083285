"""Calls of the Messages API client against the loopback server, for tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.messages_server import Behaviour, MessagesServer
from support.prompts import prompt

from tieout.planner.claude import ClaudeModel
from tieout.planner.model import ModelError, Reply

KEY = "sk-ant-test-0123456789"
PROMPT = prompt(system="Answer in JSON.", user="Find the cent: £1.00 → ?")
PLAN = '{"answer": {"prose": "done"}}'


def only_our_key(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Set one key, and nothing else of the machine's own settings."""
    for name in list(os.environ):
        if name.startswith("ANTHROPIC_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def claude(base_url: str | None, **settings) -> ClaudeModel:
    wanted = {"max_tokens": 500, "timeout_s": 10.0, "retries": 2, "schema": None}
    waits: list[float] = settings.pop("waits", [])
    return ClaudeModel(
        "claude-test", base_url=base_url, sleep=waits.append, **{**wanted, **settings}
    )


def ask(*behaviours: Behaviour, **settings) -> tuple[Reply, MessagesServer]:
    with MessagesServer(behaviours) as server:
        model = claude(server.base_url, **settings)
        return model.ask(model.prepare(PROMPT)), server


def failure(*behaviours: Behaviour, **settings) -> tuple[ModelError, MessagesServer]:
    with MessagesServer(behaviours) as server:
        model = claude(server.base_url, **settings)
        with pytest.raises(ModelError) as caught:
            model.ask(model.prepare(PROMPT))
        return caught.value, server
