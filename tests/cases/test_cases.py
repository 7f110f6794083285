"""The runner of cases: a comparison that fails is shown to fail; the shared cases hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TypeAlias

import pytest

RUNNER = Path(__file__).parent / "run.py"
OWN = Path(__file__).parent / "own"
SHARED = os.environ.get("TIEOUT_SHARED")
Verdicts: TypeAlias = dict[str, tuple[str, str]]
EXIT_FAILED = 1
EXIT_NO_CASE = 2


def run(shared: Path | str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(RUNNER), "--shared", str(shared), *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def own() -> Verdicts:
    """The runner's verdicts on the cases beside it: state and reason by id."""
    done = run(OWN, "--json")
    assert (done.returncode, done.stderr) == (EXIT_FAILED, "")
    return {
        case["id"]: (case["state"], case["reason"]) for case in json.loads(done.stdout)["cases"]
    }


def test_a_right_answer_passes_and_its_rows_are_followed_to_their_lines(own: Verdicts) -> None:
    assert own["o1-agrees"] == ("passed", "1 results followed to lines of files")
    assert own["text/t1-agrees"] == ("passed", "")


def test_a_table_named_twice_leads_to_both_lines_and_to_no_other(own: Verdicts) -> None:
    assert own["o5-two-roles"] == ("passed", "2 results followed to lines of files")


def test_a_result_that_leads_elsewhere_fails(own: Verdicts) -> None:
    assert own["o6-leads-elsewhere"] == (
        "failed",
        "pair in a: 2 lines, not 1; pair in a: 0 lines hold C",
    )


def test_a_cent_off_fails_with_both_values(own: Verdicts) -> None:
    assert own["o2-differs"] == ("failed", ".total: expected '7.51', found 7.50")


def test_an_offset_one_off_fails(own: Verdicts) -> None:
    state, reason = own["text/t2-differs"]
    assert (state, "start: expected 8, found 9" in reason) == ("failed", True)


def test_an_id_without_a_plan_waits(own: Verdicts) -> None:
    assert own["o3-no-plan"] == ("waiting", "no plan written for this id")


def test_a_plan_that_types_the_answer_fails(own: Verdicts) -> None:
    assert own["o4-typed"] == ("failed", "the plan types 7.50 instead of computing it")


def test_a_number_read_wrong_fails_in_english_and_waits_elsewhere(own: Verdicts) -> None:
    state, reason = own["numbers-en"]
    assert (state, reason[:29]) == ("failed", "1 right, 0 refused, 1 wrong: ")
    assert own["numbers-de"][0] == "waiting"


def test_an_attack_that_is_admitted_fails_with_its_id(own: Verdicts) -> None:
    assert own["sql/attacks-harmless"] == ("failed", "X01; 1 ran")
    assert own["sql/attacks-write"] == ("passed", "1 refused")
    assert own["sql/attacks-ends"] == ("failed", "X03, X04, X05, X06; 4 ran")
    assert own["sql/attacks-met"] == ("passed", "1 failed, 1 ran as rewritten")


def test_lines_for_a_person_end_with_the_totals() -> None:
    done = run(OWN, "--only", "text/")
    lines = done.stdout.splitlines()
    assert lines[0] == "passed  text/t1-agrees"
    assert lines[1].startswith("failed  text/t2-differs  (")
    assert (lines[-1], done.returncode) == ("1 passed, 1 failed, 0 waiting", EXIT_FAILED)
    assert run(OWN, "--only", "recon/o3").returncode == 0
    assert run(OWN, "--only", "nothing").returncode == EXIT_NO_CASE


@pytest.mark.slow
@pytest.mark.skipif(not SHARED, reason="TIEOUT_SHARED is not set")
def test_no_shared_case_fails() -> None:
    done = run(SHARED or "", "--json")
    cases = json.loads(done.stdout)["cases"]
    assert [case for case in cases if case["state"] == "failed"] == []
    assert sum(case["state"] == "passed" for case in cases) > 0
    assert done.returncode == 0
