"""`perform`: whatever happens to a step is one row, and what is shown of it was stored before."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator

import pytest

from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.layers import Fault, Faulty, Harm
from tieout.artifacts.memory import MemoryStore
from tieout.artifacts.store import Store
from tieout.artifacts.table_reader import TableReader
from tieout.executor.catalog import ColumnTable, Source, SourceTable
from tieout.executor.clock import SteppingClock
from tieout.executor.engine import Engine, EngineLimits
from tieout.executor.grammar import ExtractStep, SearchStep, SqlStep
from tieout.executor.limits import Limits
from tieout.executor.receive import Received
from tieout.executor.record import Recorder
from tieout.executor.snapshot import build
from tieout.executor.step import Bench, Place, Step, perform, shown
from tieout.executor.world import StepResult, World, load_pinned
from tieout.ledger.log import MemoryLog
from tieout.ledger.row import Kind, LedgerRow, Status

BANK = b"line_id,amount\nB1,1.00\nB2,2.50\nB3,-3.00\n"
NOTES = {"a.txt": b"The bay had 12,345 people.", "b.txt": b"The bay had rain."}
SOURCES = {
    "bank": Source(
        "bank",
        SourceTable(
            file="bank.csv", key=["line_id"], column={"amount": ColumnTable(type="DECIMAL(18,2)")}
        ),
    ),
    "notes": Source("notes", SourceTable(folder="notes")),
}
RECEIVED = {
    "bank": [Received("bank.csv", BANK)],
    "notes": [Received(name, payload) for name, payload in NOTES.items()],
}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(cache=None, limits=EngineLimits(seconds_max=60, rows_max=100)) as engine:
        yield engine


class Scene:
    """A question with a table and documents, and what was recorded of it."""

    def __init__(self, engine: Engine, store: Store) -> None:
        pinned = {}
        for name, source in SOURCES.items():
            snapshot = build(source, RECEIVED[name])
            for made in (snapshot.manifest, *snapshot.parts, *snapshot.loose):
                store.put(made.payload)
            pinned[name] = load_pinned(store, snapshot.address)
        clock = SteppingClock(dt.datetime(2026, 6, 30, tzinfo=dt.UTC))
        self.recorder = Recorder(store, MemoryLog(), clock, "r-test")
        self.bench = Bench(self.recorder, engine, Limits(rows_shown_max=2))
        self.world = World(store, pinned)

    def do(self, step: Step) -> StepResult:
        number = len(self.rows) + 1
        result = perform(
            self.bench,
            self.world,
            step,
            asked=f"asked {number}",
            place=Place(f"q/t1/{step.id}", number),
        )
        self.world.steps[step.id] = result
        return result

    def sql(self, name: str, text: str, *key: str) -> StepResult:
        return self.do(SqlStep(do="sql", id=name, sql=text, key=list(key)))

    def seen(self, result: StepResult) -> dict:
        return json.loads(shown(self.recorder, result).text)

    @property
    def rows(self) -> list[LedgerRow]:
        return [entry.row for entry in self.recorder.log.entries()]


@pytest.fixture
def scene(engine: Engine) -> Scene:
    return Scene(engine, MemoryStore())


def search(name: str = "hits", limit: int = 5, source: str = "notes") -> SearchStep:
    return SearchStep(do="search", id=name, source=source, query="bay people", limit=limit)


def extract(quote: str, origin: str = "hits", **more: str) -> ExtractStep:
    return ExtractStep.model_validate(
        {"do": "extract", "id": "people", "from": origin, "quote": quote, **more}
    )


def test_a_result_is_stored_recorded_and_shown_as_the_store_gives_it_back(scene):
    text = "SELECT line_id, amount FROM bank ORDER BY amount DESC, line_id"
    result = scene.sql("top", text, "line_id")
    assert (result.ok, result.rows, result.complete, result.key) == (True, 3, True, ("line_id",))
    (row,) = scene.rows
    assert (row.kind, row.outcome.status, row.raw_llm_instruction) == (
        Kind.SQL,
        Status.DONE,
        "asked 1",
    )
    store = scene.world.store
    assert store.get(row.executed).decode() == text
    output = row.deterministic_output
    reader = TableReader(store.get(output.address))
    assert [reader.text(n, "amount") for n in range(3)] == ["2.50", "1.00", "-3.00"]
    assert output.row_count == 3
    assert [(t.column, t.value) for t in output.control_totals] == [("amount", "0.50")]
    assert [i.role for i in row.inputs] == ["table:bank"]
    seen = scene.seen(result)
    assert seen["address"] == str(output.address)
    assert (seen["rows"], seen["rows_shown"], seen["outcome"]) == (3, 2, "complete")
    assert seen["first_rows"][0] == {
        "row": "line_id=B2",
        "cells": [["line_id", "B2"], ["amount", "2.50"]],
    }


def test_a_step_reads_earlier_steps_and_names_them(scene):
    first = scene.sql("total", "SELECT sum(amount) AS total FROM bank")
    scene.sql("more", "SELECT total + 1 AS more FROM total")
    (item,) = scene.rows[1].inputs
    assert (item.role, item.address) == ("table:total", first.receipt.parts["output"])


def test_no_rows_is_an_outcome_that_can_be_cited(scene):
    result = scene.sql("none", "SELECT line_id FROM bank WHERE amount > 100")
    assert (result.ok, result.rows) == (True, 0)
    assert scene.rows[0].outcome.status is Status.NO_RESULTS
    assert scene.seen(result)["outcome"] == "no_results"


def test_more_rows_than_are_stored_make_it_partial(scene):
    joins = " CROSS JOIN ".join(f"bank AS b{n}" for n in range(5))
    result = scene.sql("many", f"SELECT b0.line_id AS a, b1.line_id AS b FROM {joins}")
    assert (result.ok, result.complete, result.rows) == (True, False, 100)
    assert (scene.rows[0].outcome.status, scene.rows[0].outcome.code) == (
        Status.PARTIAL,
        "limit.rows",
    )
    assert scene.seen(result)["outcome"] == "partial"


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ("SELECT now() AS x", "sql.clock", (1, 8)),
        ("SELECT 1 AS x;\nSELECT 2 AS x", "sql.two_statements", (1, 14)),
        ("SELECT total AS x\nFROM nowhere", "sql.unknown_table", (2, 6)),
    ],
)
def test_a_refusal_is_a_row_with_its_position(scene, text, code, position):
    result = scene.sql("bad", text)
    assert (result.ok, result.code) == (False, code)
    (row,) = scene.rows
    assert (row.kind, row.outcome.status, row.outcome.code) == (Kind.REFUSAL, Status.REFUSED, code)
    assert (row.outcome.position.line, row.outcome.position.column) == position
    assert row.executed is None
    seen = scene.seen(result)
    assert (seen["refused"], seen["code"]) == ("bad", code)
    assert (seen["line"], seen["column"]) == position
    assert seen["way_out"]


def test_a_failure_of_the_data_is_told_apart_from_a_refused_text(scene):
    result = scene.sql("cast", "SELECT CAST(line_id AS INTEGER) AS x FROM bank")
    (row,) = scene.rows
    assert not result.ok
    assert row.outcome.code == "sql.conversion"
    # The engine's own words may hold cell values: they stay in its process.
    assert b"B1" not in scene.world.store.get(result.receipt.parts["refusal"])


def test_a_key_that_is_not_unique_is_refused(scene):
    result = scene.sql("twice", "SELECT 1 AS k, amount FROM bank", "k")
    assert not result.ok
    assert result.code == "result.key_not_unique"
    assert scene.rows[0].deterministic_output is None


@pytest.mark.parametrize("name", ["bank", "notes", "total"])
def test_a_name_is_taken_once(scene, name):
    scene.sql("total", "SELECT sum(amount) AS total FROM bank")
    result = scene.sql(name, "SELECT 1 AS x")
    assert (result.ok, result.code) == (False, "step.name_taken")


def test_what_a_failed_step_should_have_made_is_named(scene):
    scene.sql("lost", "SELECT now() AS x")
    result = scene.sql("needs", 'SELECT x FROM "lost" AS l')
    assert (result.code, scene.rows[1].kind) == ("step.dependency_failed", Kind.FAILURE)
    assert "'lost'" in scene.seen(result)["message"]
    # A failed step may be tried again by its name.
    assert scene.sql("lost", "SELECT 1 AS x").ok


def test_search_and_extraction(scene):
    hits = scene.do(search())
    assert (hits.ok, hits.rows) == (True, 2)
    people = scene.do(extract("had 12,345 people"))
    assert people.ok
    reader = TableReader(scene.world.store.get(people.receipt.parts["output"]))
    start, end = reader.value(0, "start"), reader.value(0, "end")
    assert NOTES["a.txt"].decode()[start:end] == "had 12,345 people"
    assert Address.parse(reader.text(0, "raw")) == Address.of(NOTES["a.txt"])
    doubled = scene.sql("twice", "SELECT value * 2 AS v FROM people")
    assert scene.seen(doubled)["first_rows"][0]["cells"][0][1].startswith("24690")


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (search(source="bank"), "step.unknown_source"),
        (search(source="nowhere"), "step.unknown_source"),
        (extract("had 12,345 people", origin="nothing"), "step.not_a_search"),
        (extract("had 12,345 people", origin="total"), "step.not_a_search"),
        (extract("had 99,999 people"), "quote.not_found"),
        (extract("had 12,345 people", document="b.txt"), "quote.not_found"),
        (extract("had 12,345 people", document="c.txt"), "step.no_documents"),
        (extract("The bay had"), "quote.ambiguous"),
    ],
)
def test_what_search_and_extraction_refuse(scene, step, code):
    scene.sql("total", "SELECT sum(amount) AS total FROM bank")
    scene.do(search())
    result = scene.do(step.model_copy(update={"id": "tried"}))
    assert (result.ok, result.code) == (False, code)
    assert scene.rows[-1].outcome.code == code
    assert scene.seen(result)["way_out"]


def test_how_many_hits_were_asked_for_is_a_literal_of_a_list_that_was_cut(scene):
    cut = scene.do(search("one", limit=1))
    whole = scene.do(search("all_hits", limit=5))
    assert "1" in cut.origins["rank"].literals
    assert "5" not in whole.origins["rank"].literals


def test_no_store_no_row(engine):
    """At every put of a step: the disk is full, and nothing is said to have happened."""
    faults = 0
    for nth in range(1, 40):
        store = Faulty(MemoryStore())
        scene = Scene(engine, store)
        before = store.counts["put"]
        store._faults = {("put", before + nth): Fault("put", before + nth, Harm.FULL)}
        try:
            scene.sql("total", "SELECT sum(amount) AS total FROM bank")
        except ArtifactError as error:
            assert error.code == "disk.full"
            assert scene.rows == []
            faults += 1
            continue
        break
    assert (
        faults == 5
    )  # the result, its readable text, its validation, the observation, the bytes run


TIES = [
    ("SELECT count(*) AS c, arg_max(kind, amount) AS k, max(amount) AS m FROM v", (), "k"),
    # Rows matched by the key, and rows that nothing matches but whose other columns agree.
    ("SELECT area AS a, first(kind ORDER BY amount) AS k FROM v GROUP BY area", ("a",), "k"),
    ("SELECT area AS a, first(kind ORDER BY amount) AS k FROM v GROUP BY area", (), "k"),
    ("SELECT area AS a, first(area ORDER BY amount) AS b, count(*) AS c FROM v GROUP BY 1", (), ""),
    ("SELECT kind AS a, amount AS b, row_number() OVER (ORDER BY amount) AS c FROM v", ("a",), "c"),
    # Rows chosen by the order: what agrees in both may differ in a row between.
    ("SELECT area AS a, kind AS b FROM v ORDER BY area LIMIT 1", (), "b"),
    ("SELECT kind AS a, amount AS b FROM v ORDER BY amount LIMIT 1", (), "a"),
    ("SELECT kind AS a FROM v ORDER BY amount LIMIT 1", (), "a"),
    ("SELECT kind AS a, amount + 1 AS b, amount AS c FROM v ORDER BY 2, 3 LIMIT 1", (), "a"),
    ("SELECT kind AS a, amount AS b, area AS c FROM v ORDER BY b LIMIT 1", (), "ac"),
    ("SELECT kind AS a, amount AS b FROM v LIMIT 1", (), "ab"),
    (
        "SELECT kind AS a, amount AS b FROM (SELECT * FROM v ORDER BY 3 LIMIT 2) ORDER BY b LIMIT 1",
        (),
        "ab",
    ),
    ("SELECT kind AS a, amount AS b FROM v QUALIFY row_number() OVER (ORDER BY amount) = 1",
     (), "ab"),
    ("SELECT count(*) AS c, max(kind) AS d FROM (SELECT * FROM v ORDER BY amount LIMIT 2) t",
     (), "cd"),
]  # fmt: skip
VALUES = "SELECT * FROM (VALUES ('x', 'n', 5), ('y', 'n', 5), ('z', 's', 5)) t(kind, area, amount)"


@pytest.mark.parametrize(("text", "key", "tied"), TIES)
def test_ties_are_told_by_column(scene, text, key, tied):
    scene.sql("v", VALUES)
    found = scene.sql("q", text, *key)
    assert found.tied == set(tied), found
    validation = found.receipt.parts["validation"]
    assert json.loads(scene.world.store.get(validation))["tied"] == sorted(tied)


LATER = [
    ("SELECT n FROM t", ""),
    ("SELECT k FROM t", "k"),
    ("SELECT n, k || '!' AS m FROM t", "m"),
    ("SELECT count(*) AS c FROM t", ""),
    ("SELECT count(*) AS c FROM t WHERE k = 'x'", "c"),
    ("SELECT k, count(*) AS c FROM t GROUP BY k", "ck"),
    ("SELECT v.amount AS a FROM v JOIN t ON v.kind = t.k", "a"),
    ("SELECT v.amount AS a, t.n FROM v, t", ""),
    ("WITH w(z) AS (SELECT k FROM t) SELECT count(*) AS c FROM w WHERE z > 'x'", "c"),
]


@pytest.mark.parametrize(("text", "tied"), LATER)
def test_a_tied_column_is_followed_into_later_steps(scene, text, tied):
    scene.sql("v", VALUES)
    first = scene.sql("t", "SELECT arg_max(kind, amount) AS k, count(*) AS n FROM v")
    assert first.tied == {"k"}
    assert scene.sql("q", text).tied == set(tied)


def test_rows_that_ties_chose_are_tied_when_they_are_counted(scene):
    scene.sql("v", VALUES)
    scene.sql("t", "SELECT kind, area FROM v ORDER BY amount LIMIT 2")
    assert scene.sql("q", "SELECT count(*) AS n FROM t").tied == {"n"}
