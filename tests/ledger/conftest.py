"""A ledger and a store that agree, made once and copied for each test."""

from __future__ import annotations

import pytest
from support.ledger_rows import World


@pytest.fixture(scope="session")
def template_world(tmp_path_factory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture
def world(template_world: World, tmp_path) -> World:
    return template_world.copied(tmp_path)
