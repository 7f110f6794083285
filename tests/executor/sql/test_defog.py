"""A public benchmark's golds: how many are admitted, each refusal by name, results as DuckDB's."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cases.defog import Outcome, outcomes

from tieout.executor.sql.verdict import REASONS, REWRITES, Standing

SHARED = os.environ.get("TIEOUT_SHARED")
KNOWN = json.loads(Path(__file__).with_name("defog_refusals.json").read_text("utf-8"))
GOLDS = 308
ADMITTED_MIN = 300
FUNCTIONS_MIN = 190


@pytest.fixture(scope="module")
def found() -> list[Outcome]:
    if not SHARED:
        pytest.skip("TIEOUT_SHARED is not set: the benchmark is not here")
    return list(outcomes(Path(SHARED)))


@pytest.mark.slow
def test_nearly_all_are_admitted_and_each_refusal_is_listed_with_its_reason(found):
    refused = {outcome.gold.id: outcome.standing for outcome in found if not outcome.admitted}
    assert len(found) == GOLDS
    assert refused == KNOWN["refused"]
    assert len(found) - len(refused) >= ADMITTED_MIN


@pytest.mark.slow
def test_results_are_plain_duckdbs_or_differ_by_a_listed_rewrite(found):
    differ = {o.gold.id: [*o.rewrites] for o in found if o.admitted and o.differs}
    assert differ == KNOWN["differ"]
    assert all(KNOWN["differ"].values()), "a function of the data differs from plain DuckDB"
    admitted = [outcome for outcome in found if outcome.admitted]
    assert {name for outcome in admitted for name in outcome.reasons} <= set(REASONS)
    assert {name for outcome in admitted for name in outcome.rewrites} <= set(REWRITES)
    assert sum(outcome.standing == Standing.FUNCTION for outcome in admitted) >= FUNCTIONS_MIN
