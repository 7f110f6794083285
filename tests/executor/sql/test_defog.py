"""A public benchmark's golds: how many are admitted, each refusal by name, results as DuckDB's."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from cases.defog import Outcome, difference, outcomes

from tieout.executor.sql.verdict import REASONS, REWRITES, Standing

SHARED = os.environ.get("TIEOUT_SHARED")
KNOWN = json.loads(Path(__file__).with_name("defog_refusals.json").read_text("utf-8"))
GOLDS = 308
ADMITTED_MIN = 300
FUNCTIONS_MIN = 190


ONE = pa.table({"name": ["a", "b"], "amount": [1.0, 2.0]})
OTHERS = {
    "rows turned round": (ONE.take([1, 0]), "", ""),
    "a last digit": (
        pa.table({"n": ["a", "b"], "m": [1.0, 2.0000000000000004]}),
        "other values",
        "",
    ),
    "a cent": (pa.table({"n": ["a", "b"], "m": [1.0, 2.01]}), "other values", "other values"),
    "another name": (pa.table({"n": ["a", "c"], "m": [1.0, 2.0]}), "other values", "other values"),
    "a NULL": (pa.table({"n": ["a", "b"], "m": [1.0, None]}), "other values", "other values"),
    "a row less": (ONE.slice(1), "1 rows, not 2", "1 rows, not 2"),
    "a column less": (ONE.select([0]), "1 columns, not 2", "1 columns, not 2"),
    "an exact number": (
        pa.table({"n": ["a", "b"], "m": [Decimal("1.00"), Decimal("2.00")]}),
        "other values",
        "",
    ),
}


@pytest.mark.parametrize(("other", "exactly", "nearly"), OTHERS.values(), ids=list(OTHERS))
def test_what_counts_as_another_result(other, exactly, nearly):
    assert difference(other, ONE, exact=True) == exactly
    assert difference(other, ONE, exact=False) == nearly


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
