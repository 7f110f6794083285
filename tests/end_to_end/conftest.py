"""What several end-to-end tests share: a workspace behind a model on loopback, made once."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from end_to_end.small import make
from end_to_end.stage import Stage


@pytest.fixture(scope="session", autouse=True)
def _a_key() -> Iterator[None]:
    """A dummy key, and no proxy: the server is on loopback."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("ANTHROPIC_") or name.lower().endswith("_proxy"):
                patch.delenv(name)
        patch.setenv("ANTHROPIC_API_KEY", "x")
        yield


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(make(tmp_path_factory.mktemp("stage") / "small")) as stage:
        yield stage
