"""Attacks on the gate: our own by code, and the shared corpus by its expected verdict."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tieout.executor.errors import ExecutorError
from tieout.executor.sql.refusal import WAYS_OUT
from tieout.executor.sql.validate import SqlRefused

OWN = [json.loads(x) for x in Path(__file__).with_name("attacks.jsonl").read_text().splitlines()]
SHARED = os.environ.get("TIEOUT_SHARED")
CONTROL_EXCEPTIONS = {"CON07"}
"""CON07 is an ASOF join in which rows can tie: refused by the verdict, not by authority."""


OPEN = [a for a in OWN if a["category"] == "determinism"]
"""No function of the data as written: refused, or rewritten with the reason told."""
AUTHORITY = [a for a in OWN if a["category"] != "determinism"]


@pytest.mark.parametrize("attack", AUTHORITY, ids=[a["id"] for a in AUTHORITY])
def test_own_attack_is_refused_with_its_code(attack, validate):
    with pytest.raises(SqlRefused) as caught:
        validate(attack["sql"])
    assert attack["code"] == caught.value.code
    assert caught.value.remedy
    assert caught.value.code in WAYS_OUT


@pytest.mark.parametrize("attack", OPEN, ids=[a["id"] for a in OPEN])
def test_what_is_no_function_of_the_data_never_runs_as_written(attack, validate):
    try:
        found = validate(attack["sql"])
    except SqlRefused as refused:
        assert refused.remedy
        assert refused.code in WAYS_OUT
    else:
        assert found.executed != attack["sql"]
        assert found.rewrites


@pytest.mark.slow
def test_shared_corpus(engine, granted, tmp_path):
    if not SHARED:
        pytest.skip("TIEOUT_SHARED is not set: the shared attacks are not here")
    tables = {"bank": granted["bank"], "ledger": granted["ledger"]}
    wrong = []
    for line in Path(SHARED, "sql", "attacks.jsonl").read_text().splitlines():
        attack = json.loads(line)
        try:
            engine.validate(attack["sql"].replace("{DIR}", str(tmp_path)), tables)
            verdict = "allow"
        except SqlRefused as refused:
            verdict = refused.code
        except ExecutorError as error:
            verdict = error.code
        expected = attack["expected"]
        admitted = verdict == "allow" or attack["id"] in CONTROL_EXCEPTIONS
        if (expected == "reject" and verdict == "allow") or (expected == "allow" and not admitted):
            wrong.append((attack["id"], expected, verdict))
    assert wrong == []
    assert list(tmp_path.iterdir()) == []
