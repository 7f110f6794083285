"""The same results under two engine builds and two pyarrow versions, and as golden.json has them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from builds.environment import LOCK, run_in, second_environment

from tieout.artifacts.values import _NAMES

HERE = Path(__file__).resolve().parent
SCRIPT = HERE / "results.py"
GOLDEN = HERE / "golden.json"
WAYS = 2 * 2 * 3 * 2
"""Orders of insertion, layouts, numbers of threads, kinds of Arrow strings."""


def golden():
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


def results(build: str, python: Path, folder: Path):
    """What a build makes of the queries: one result each, in whatever way it was asked."""
    document = json.loads(run_in(python, SCRIPT, str(folder)))
    assert document["build"] == golden()["builds"][build]
    assert set(_NAMES.values()) | {"DECIMAL(4,1)", "DECIMAL(38,0)"} <= set(document["types"])
    single = {}
    for name, different in document["results"].items():
        ways = [found[-1] for found in different]
        assert len(different) == 1, f"{name}: {ways}"
        assert len(ways[0]) == WAYS
        address, digest, root, rows = different[0][:-1]
        single[name] = {
            "address": address, "content_digest": digest, "row_root": root, "rows": int(rows),
        }  # fmt: skip
    return single


def expected(build: str):
    wanted = golden()
    return wanted["same"] | {name: found[build] for name, found in wanted["different"].items()}


@pytest.mark.slow
def test_the_pinned_build_makes_the_golden_results(tmp_path):
    assert results("pinned", Path(sys.executable), tmp_path) == expected("pinned")


@pytest.mark.slow
def test_the_second_build_makes_the_golden_results(tmp_path):
    assert results("second", second_environment(), tmp_path) == expected("second")


def test_the_builds_are_two_and_locked():
    builds = golden()["builds"]
    lock = LOCK.read_text()
    for package in ("duckdb", "pyarrow"):
        assert builds["pinned"][package] != builds["second"][package]
        assert f"{package}=={builds['second'][package]} " in lock


def test_what_differs_between_the_builds_is_named_and_little():
    different = golden()["different"]
    assert list(different) == ["a difference without a stated type"]
    for found in different.values():
        assert found["why"]
        assert found["pinned"]["content_digest"] != found["second"]["content_digest"]
        assert found["pinned"]["rows"] == found["second"]["rows"]
