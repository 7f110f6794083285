"""What the countercheck says: of real runs, in what is recorded and shown, and of later steps."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.support.worlds import recorder
from tieout.artifacts.address import Address
from tieout.artifacts.memory import MemoryStore
from tieout.executor.clock import SteppingClock
from tieout.executor.countercheck import Countercheck, Ties, countercheck
from tieout.executor.engine import Engine, EngineLimits, TableBytes
from tieout.executor.grammar import SqlStep
from tieout.executor.limits import Limits
from tieout.executor.record import Recorder
from tieout.executor.sql.validate import GrantedColumn, GrantedTable
from tieout.executor.step import Bench, Place, perform, shown
from tieout.executor.world import StepResult, World
from tieout.ledger.log import MemoryLog
from tieout.planner.choice import written
from tieout.planner.loop import Loop
from tieout.planner.questions import Question

COLUMNS = {"kind": "VARCHAR", "amount": "DECIMAL(18,2)", "text": "VARCHAR", "x": "DOUBLE"}
GRANTED = {"v": GrantedTable("v", tuple(GrantedColumn(n, t) for n, t in COLUMNS.items()))}
ROWS = [
    # The two lowest amounts tie; the highest is alone. By all columns "few" comes before "many".
    ("few", "1.00", "7", 1.5),
    ("many", "1.00", "seven", float("inf")),
    ("many", "2.00", "8", 2.5),
    ("many", "3.00", "9", 3.5),
    ("many", "4.00", "9", 4.5),
]
ROWS_MAX = 3


def table_bytes() -> bytes:
    kinds, amounts, texts, floats = zip(*ROWS, strict=True)
    table = pa.table(
        {
            "kind": pa.array(kinds),
            "amount": pa.array([Decimal(a) for a in amounts], pa.decimal128(18, 2)),
            "text": pa.array(texts),
            "x": pa.array(floats),
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    limits = EngineLimits(seconds_max=20, rows_max=ROWS_MAX)
    with Engine(cache=None, limits=limits) as running:
        yield running


def checked(engine: Engine, sql: str) -> Countercheck:
    """What the countercheck finds of a text over v, and that the text can run."""
    payload = table_bytes()
    tables = {"v": TableBytes(Address.of(payload), lambda: payload)}
    validated = engine.validate(sql, GRANTED)
    result = engine.run(validated, tables)
    return countercheck(engine, validated, tables, result.table)


FOUND = [
    # No order was added, or only one of the sequence of rows: nothing could choose.
    ("SELECT kind, sum(amount) AS s FROM v GROUP BY kind", Ties.IMPOSSIBLE, ""),
    ("SELECT kind, amount FROM v WHERE amount < 3 ORDER BY kind", Ties.IMPOSSIBLE, ""),
    ("SELECT amount FROM v ORDER BY amount LIMIT 1", Ties.IMPOSSIBLE, ""),
    ("SELECT rank() OVER (ORDER BY amount) AS r FROM v WHERE amount < 3", Ties.IMPOSSIBLE, ""),
    # One was, and these rows do not tie where it could have chosen, or tie and are equal there.
    ("SELECT kind FROM v ORDER BY amount DESC LIMIT 1", Ties.NONE, ""),
    ("SELECT arg_max(kind, amount) AS k FROM v", Ties.NONE, ""),
    ("SELECT kind FROM v WHERE amount > 1 ORDER BY amount LIMIT 2", Ties.NONE, ""),
    ("SELECT string_agg(kind, ',' ORDER BY amount) AS k FROM v WHERE amount > 1", Ties.NONE, ""),
    # Rows tie and it chose: another row, another value, another sequence inside a text.
    ("SELECT kind FROM v ORDER BY amount LIMIT 1", Ties.DECIDED, "kind"),
    ("SELECT arg_min(kind, amount) AS k, count(*) AS n FROM v", Ties.DECIDED, "k"),
    ("SELECT string_agg(kind, ',' ORDER BY amount) AS k FROM v", Ties.DECIDED, "k"),
    ("SELECT lead(kind) OVER (ORDER BY amount) AS k FROM v QUALIFY amount = 1", Ties.DECIDED, "k"),
    ("SELECT DISTINCT ON (amount) text FROM v WHERE amount < 3 ORDER BY amount",
     Ties.DECIDED, "text"),
]  # fmt: skip
UNCHECKED = [
    # Turned round: a value that is no number, one that is too large, more rows than are kept.
    "SELECT CAST(arg_min(text, amount) AS INTEGER) AS n FROM v",
    "SELECT CAST(arg_min(x, amount) AS BIGINT) AS n FROM v",
    "SELECT v.text FROM v JOIN (SELECT kind FROM v ORDER BY amount LIMIT 1) w USING (kind)",
]


@pytest.mark.parametrize(("sql", "ties", "tied"), FOUND)
def test_ties_of_a_run(engine, sql, ties, tied):
    assert checked(engine, sql) == Countercheck(ties, frozenset(tied.split()))


@pytest.mark.parametrize("sql", UNCHECKED)
def test_a_countercheck_that_cannot_be_made_is_no_answer(engine, sql):
    assert checked(engine, sql) == Countercheck(Ties.UNCHECKED)


def test_the_words_that_are_recorded():
    assert [t.value for t in Ties] == ["", "none", "decided", "unchecked"]


# In what is recorded and shown


V = (
    "SELECT * FROM (VALUES ('few', 1.00, '7'), ('many', 1.00, 'seven'), ('many', 2.00, '8')) "
    "t(kind, amount, text)"
)


class Scene:
    """A question without sources, whose first step is v."""

    def __init__(self, engine: Engine) -> None:
        clock = SteppingClock(dt.datetime(2026, 6, 30, tzinfo=dt.UTC))
        self.recorder = Recorder(MemoryStore(), MemoryLog(), clock, "r-test")
        self.world = World(self.recorder.store, {})
        self.bench = Bench(self.recorder, engine, Limits())
        self.sql("v", V)

    def sql(self, name: str, text: str) -> StepResult:
        place = Place(f"q/t1/{name}", len(self.world.steps) + 1)
        step = SqlStep(do="sql", id=name, sql=text)
        result = perform(self.bench, self.world, step, asked=text, place=place)
        assert result.ok, result.code
        self.world.steps[name] = result
        return result

    def said(self, result: StepResult) -> tuple[str | None, str, list[str]]:
        """Ties in the observation, ties and tied columns in the recorded validation."""
        observation = json.loads(shown(self.recorder, result).text)
        validation = json.loads(self.world.store.get(result.receipt.parts["validation"]))
        return observation.get("ties"), validation["ties"], validation["tied"]


@pytest.fixture
def scene(engine: Engine) -> Scene:
    return Scene(engine)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT count(*) AS k FROM v", (None, "", [])),
        ("SELECT arg_max(kind, amount) AS k FROM v", ("none", "none", [])),
        ("SELECT arg_min(kind, amount) AS k FROM v", ("decided", "decided", ["k"])),
        (
            "SELECT CAST(arg_min(text, amount) AS INTEGER) AS k FROM v",
            ("unchecked", "unchecked", []),
        ),
    ],
    ids=["impossible", "none", "decided", "unchecked"],
)
def test_a_step_says_it_in_its_observation_and_in_its_record(scene, sql, said):
    result = scene.sql("q", sql)
    assert scene.said(result) == said
    assert result.tied == set(said[2])


def test_a_step_that_reads_a_tied_one_is_tied_though_its_own_text_has_no_order(scene):
    scene.sql("t", "SELECT arg_min(kind, amount) AS k, count(*) AS n FROM v")
    for text, tied in (("SELECT k FROM t", ["k"]), ("SELECT n FROM t", [])):
        assert scene.said(scene.sql(f"q{len(tied)}", text)) == (None, "", tied)


def test_a_step_of_which_none_tied_makes_no_later_one_tied(scene):
    scene.sql("t", "SELECT arg_max(kind, amount) AS k FROM v")
    assert scene.sql("q", "SELECT k FROM t").tied == set()


@pytest.mark.parametrize(("call", "tied"), [("arg_min", True), ("arg_max", False)])
@pytest.mark.parametrize("later", [False, True])
def test_a_figure_has_the_flag_of_its_step(engine, call, tied, later):
    steps = [("v", V), ("t", f"SELECT {call}(kind, amount) AS k, count(*) AS n FROM v")]
    steps += [("u", "SELECT k, n FROM t")] if later else []
    plan = {"steps": [{"do": "sql", "id": name, "sql": text} for name, text in steps]}
    last = steps[-1][0]
    figures = {
        name: {"step": last, "column": name, "display": {"style": style}}
        for name, style in (("k", "text"), ("n", "number"))
    }
    answer = {"answer": {"prose": "{k} of {n}.", "figures": figures}}
    payload = json.dumps({"turns": [plan, answer]}).encode()
    question = Question("q", "Which kind?", (), payload, "q.json", "", {}, {})
    keeper = recorder()
    model, info = written(question)
    bench = Bench(keeper, engine, Limits())
    report = Loop(question, World(keeper.store, {}), bench, model, info).run().report.document()
    flags = {f["name"]: f["flags"] for f in report["figures"]}
    assert ("tied" in flags["k"], "tied" in flags["n"]) == (tied, False)
