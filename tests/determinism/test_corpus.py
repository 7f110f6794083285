"""Each query has the verdict the corpus says; results never differ but where a reason says so."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from determinism.golden import OTHER, digests, other_digests, read_golden
from determinism.judging import Judged, granted, judged
from determinism.observing import FULL, SAMPLE, Run, observe, report
from determinism.queries import Query, corpus
from determinism.run import texts_of
from determinism.variations import BASE, Outcome, Text, Variation

from tieout.executor.check_document import reasons_of
from tieout.executor.sql import session
from tieout.executor.sql.examine import examine
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.verdict import REASONS, Standing

QUERIES_MIN = 150
SAMPLED = 120
SEED = 3
DIFFERING_MIN = 30
"""Of the whole corpus; with fewer, the variations would not vary enough to prove anything."""
SAMPLED_DIFFERING_MIN = 30

QUERIES = corpus()
Said = tuple[str, list[str]]
"""The standing, and the names of the reasons."""


@pytest.fixture(scope="module")
def engine():
    with session.connect() as inside:
        for name, table in granted().items():
            session.declare(inside, name, {c.name: c.type for c in table.columns})
        session.lock(inside, memory_bytes=1 << 30)
        yield inside


@pytest.fixture(scope="module")
def verdicts(engine) -> dict[str, Said]:
    """What the gates say of each query of the corpus."""
    return {query.id: _verdict(engine, query.sql) for query in QUERIES}


def _verdict(engine, sql: str) -> Said:
    standings = {Standing.FUNCTION: "function", Standing.REWRITTEN: "rewritten"}
    try:
        found = examine(engine, sql, granted(), chars_max=32_768, as_of="2026-03-15")
        standing, reasons = standings[found.verdict.standing], found.verdict.reasons
    except SqlRefused as refused:
        standing, reasons = "refused", reasons_of(refused)
    return standing, sorted({r.name for r in reasons})


def test_each_query_of_the_corpus_is_another():
    assert len({query.id for query in QUERIES}) == len(QUERIES) >= QUERIES_MIN
    assert len({query.sql for query in QUERIES}) == len(QUERIES)


def test_every_reason_is_given_by_a_verdict_of_the_corpus(verdicts):
    assert {name for _standing, names in verdicts.values() for name in names} == set(REASONS)


@pytest.mark.parametrize("query", QUERIES, ids=[query.id for query in QUERIES])
def test_the_verdict_is_the_one_of_the_corpus(query: Query, verdicts):
    assert verdicts[query.id] == (query.expect, [*query.reasons])


def _checked(queries, variations, folder):
    found = list(judged(queries))
    return found, report(found, observe(texts_of(found), variations, folder))


@pytest.mark.slow
def test_a_sample_gives_equal_results_and_each_difference_was_predicted(tmp_path):
    sampled = random.Random(SEED).sample(QUERIES, SAMPLED)
    found, told = _checked(sampled, SAMPLE, tmp_path)
    assert told.faults == []
    assert [j.query.id for j in found if not j.as_expected] == []
    assert len(told.differing) >= SAMPLED_DIFFERING_MIN


@pytest.mark.soak
def test_all_give_equal_results_and_each_difference_was_predicted(tmp_path):
    found, told = _checked(QUERIES, FULL, tmp_path)
    assert told.faults == []
    assert [j.query.id for j in found if not j.as_expected] == []
    assert len(told.differing) >= DIFFERING_MIN


@pytest.mark.slow
def test_the_golden_digests_hold_on_both_engine_builds():
    golden = read_golden()
    found = [j for j in judged(QUERIES) if j.executed is not None]
    assert digests(found) == golden["digests"]
    differs = {name: told[OTHER] for name, told in golden["differs"].items()}
    assert other_digests(found) == {**golden["digests"], **differs}
    assert all(told["why"] for told in golden["differs"].values())


def test_with_the_judge_left_out_the_harness_finds_the_differences(tmp_path):
    """Two texts that are not admitted, run as if they were, and one reason that was forgotten."""
    texts = {
        "x-01": "SELECT id, amt FROM t LIMIT 20",
        "x-02": "SELECT sum(x) AS s FROM t",
        "x-03": "SELECT id, amt FROM t ORDER BY id LIMIT 20",
    }
    queries = [Query(name, "canary", "function", (), sql) for name, sql in texts.items()]
    found = [_admitted(query) for query in queries]
    seen = observe(texts_of(found), (BASE, Variation(8, "grouped", 1)), tmp_path)
    unjudged = [_with_product(j, seen[j.executed.id]) for j in found]
    told = report(unjudged, seen)
    assert set(told.differing) == {"x-01", "x-02"}
    assert {fault.split(":")[0] for fault in told.faults} == {"x-01", "x-02"}
    assert any("no reason of () says so" in fault for fault in told.faults)
    assert any("another result" in fault for fault in told.faults)


def _admitted(query: Query):
    return Judged(query, "function", (), executed=Text(f"executed {query.id}", query.sql))


def _with_product(j, runs: list[Run]):
    first: Outcome = runs[0].outcome
    return replace(j, product=first)
