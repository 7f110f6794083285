"""docs/SQL.md lists every code an SQL step can end with; each example ends so, repaired it passes."""

from __future__ import annotations

import datetime as dt
import importlib.util
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from support.worlds import failed, recorder

from tieout.artifacts.table import Column, TableArtifact, canonical
from tieout.executor.engine import FAILURES, Engine, EngineLimits, TableBytes
from tieout.executor.errors import ExecutorError
from tieout.executor.forked import out_of_memory
from tieout.executor.grammar import SqlStep
from tieout.executor.limits import Limits
from tieout.executor.record import RowDraft, made_table
from tieout.executor.sql.refusal import WAYS_OUT, WHY
from tieout.executor.sql.validate import GrantedColumn, GrantedTable
from tieout.executor.sql.verdict import REASONS, REWRITES
from tieout.executor.step import Bench, Place, perform
from tieout.executor.world import Pinned, World
from tieout.ledger.row import Kind

ROOT = Path(__file__).resolve().parents[2]


def _examples() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "sql_codes", Path(__file__).with_name("sql_codes.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CODES = _examples()
COLUMNS = (
    GrantedColumn("id", "BIGINT"),
    GrantedColumn("amt", "DECIMAL(18,2)"),
    GrantedColumn("memo", "VARCHAR"),
    GrantedColumn("dt", "DATE", range=("2026-01-01", "2026-06-30")),
    GrantedColumn("ccy", "VARCHAR", domain=("EUR", "GBP")),
)
GRANTED = {"bank": GrantedTable("bank", COLUMNS, ("id",))}
SHOWN_MAX = 90
"""Of an example in the table: a text of many thousand characters is cut."""


@pytest.fixture(scope="module")
def bank() -> TableArtifact:
    rows = {
        "id": pa.array([1, 2, 3], pa.int64()),
        "amt": pa.array([Decimal("1.00"), Decimal("0.00"), None], pa.decimal128(18, 2)),
        "memo": ["rent", "7", None],
        "dt": pa.array([dt.date(2026, 1, 1)] * 3),
        "ccy": ["GBP", "EUR", None],
    }
    return canonical(pa.table(rows), key=("id",))


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    limits = EngineLimits(
        seconds_max=2, memory_bytes_max=1 << 28, result_bytes_max=1 << 25, rows_max=1_000
    )
    with Engine(cache=None, limits=limits) as running:
        yield running


def ended(engine: Engine, bank: TableArtifact, sql: str) -> ExecutorError | None:
    """How a query ends: None when it has a result."""
    try:
        validated = engine.validate(sql, GRANTED)
        engine.run(validated, {"bank": TableBytes(bank.address, lambda: bank.payload)})
    except ExecutorError as error:
        return error
    return None


# --- the table ----------------------------------------------------------------------------


def tables(heading: str) -> list[list[str]]:
    """The rows of the table below a heading of the document, cells as texts."""
    text = (ROOT / "docs" / "SQL.md").read_text("utf-8")
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines[1:]
    ]


def shown(sql: str) -> str:
    """An example as the table prints it."""
    text = "".join(c if c.isascii() and c.isprintable() else f"\\u{ord(c):04x}" for c in sql)
    return f"`{text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + '…'}`"


def sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "." * (not text.endswith("."))


def expected(kind: str) -> list[list[str]]:
    """What the document must say: code, reason, way out and, where there is one, an example."""
    if kind == "gate":
        shown_of = {c: shown(pair[0]) for c, pair in CODES.GATE.items()}
        return [[f"`{c}`", WHY[c], WAYS_OUT[c], shown_of.get(c, "")] for c in sorted(WHY)]
    if kind == "run":
        memory = out_of_memory()
        known = {**FAILURES, "limit.memory": (memory.message, memory.remedy)}
        return [
            [f"`{c}`", sentence(known[c][0]), known[c][1], shown(pair[0])]
            for c, pair in sorted(CODES.RUN.items())
        ]
    if kind == "step":
        return [
            [f"`{c}`", CODES.REASONS[c], CODES.WAYS_OUT[c], shown(example[0])]
            for c, example in sorted(CODES.STEP.items())
        ]
    machine = {c: (sentence(t[0]), t[1]) for c, t in FAILURES.items() if c.startswith("engine.")}
    return [[f"`{c}`", *texts] for c, texts in sorted({**machine, **CODES.MACHINE}.items())]


HEADINGS = {
    "gate": "Codes of the gate",
    "run": "Codes of a run",
    "step": "Codes of the step around it",
    "machine": "Codes of the machine",
}


@pytest.mark.parametrize("kind", HEADINGS)
def test_the_document_says_what_the_code_says(kind):
    wanted = expected(kind)
    lines = "\n".join(
        "| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in wanted
    )
    assert tables(HEADINGS[kind]) == wanted, f"the table should be:\n{lines}"


@pytest.mark.parametrize(("heading", "names"), [("Reasons", REASONS), ("Rewrites", REWRITES)])
def test_the_reasons_and_rewrites_of_the_verdict_are_listed(heading, names):
    wanted = [[f"`{name}`", text] for name, text in names.items()]
    lines = "\n".join(f"| {name} | {text} |" for name, text in wanted)
    assert tables(heading) == wanted, f"the table should be:\n{lines}"


# --- which codes there are ----------------------------------------------------------------


def test_every_code_that_the_room_raises_is_in_the_document():
    sources = [*(ROOT / "executor").rglob("*.py")]
    text = "\n".join(p.read_text("utf-8") for p in sources)
    raised = set(re.findall(r'"((?:sql|limit|step|result|engine)\.[a-z_]+)"', text))
    listed = {row[0].strip("`") for heading in HEADINGS.values() for row in tables(heading)}
    assert raised - listed - CODES.NOT_OF_SQL == set()
    assert {c for c in listed if not c.startswith("result.")} - raised == set()


def test_every_code_of_the_gate_has_a_reason_a_way_out_and_an_example():
    assert WHY.keys() == WAYS_OUT.keys()
    assert CODES.GATE.keys() | CODES.NO_EXAMPLE == WHY.keys()
    assert CODES.GATE.keys() & CODES.NO_EXAMPLE == set()
    for text in (*WHY.values(), *WAYS_OUT.values()):
        assert "\n" not in text
        assert text.endswith(".")


def test_what_is_said_of_the_machine_stands_in_the_code():
    text = "".join((ROOT / "executor" / name).read_text() for name in ("forked.py", "engine.py"))
    for code, (_reason, way_out) in CODES.MACHINE.items():
        assert f'"{code}"' in text
        assert way_out in text or code == "engine.other_build"  # which names the version


# --- that the examples end so -------------------------------------------------------------


@pytest.mark.parametrize("code", CODES.GATE)
def test_an_example_of_the_gate_is_refused_so_and_repaired_it_is_admitted(code, engine):
    asked, repaired = CODES.GATE[code]
    with pytest.raises(ExecutorError) as caught:
        engine.validate(asked, GRANTED)
    assert (caught.value.code, bool(caught.value.remedy)) == (code, True)
    assert engine.validate(repaired, GRANTED).asked == repaired


SQL_IN_A_WAY_OUT = {
    "sql.clock": ("DATE '2026-06-30'", "SELECT DATE '2026-06-30' AS d"),
    "sql.collation": ("lower(x)", "SELECT lower(memo) AS l FROM bank"),
    "sql.equal_values": (
        "max(x::DECIMAL(38,9))",
        "SELECT max(amt::DECIMAL(38,9))::VARCHAR AS s FROM bank",
    ),
    "sql.float_sum": ("sum(x::DECIMAL(38,9))", "SELECT sum(amt::DECIMAL(38,9)) AS s FROM bank"),
    "sql.libm": (
        "CAST(ln(x) AS DECIMAL(38,12))",
        "SELECT CAST(ln(amt) AS DECIMAL(38,12)) AS s FROM bank",
    ),
    "sql.range": ("range(a, b)", "SELECT x FROM range(0, 1000000) AS r(x)"),
    "sql.unordered_aggregate": (
        "string_agg(x, ',' ORDER BY x)",
        "SELECT string_agg(memo, ',' ORDER BY memo) AS s, min(memo) AS m FROM bank",
    ),
    "sql.window_ties": ("rank()", "SELECT rank() OVER (ORDER BY memo) AS r FROM bank"),
}


@pytest.mark.parametrize("code", SQL_IN_A_WAY_OUT)
def test_sql_that_a_way_out_shows_is_admitted(code, engine):
    shown_there, followed = SQL_IN_A_WAY_OUT[code]
    assert shown_there in WAYS_OUT[code]
    assert engine.validate(followed, GRANTED).rewrites == ()


@pytest.mark.parametrize("code", CODES.RUN)
def test_an_example_of_a_run_ends_so_and_repaired_it_has_a_result(code, engine, bank):
    asked, repaired = CODES.RUN[code]
    error = ended(engine, bank, asked)
    assert error is not None
    assert (error.code, bool(error.remedy)) == (code, True)
    assert ended(engine, bank, repaired) is None


def outcome(engine: Engine, bank: TableArtifact, step: SqlStep) -> str:
    """The code of the row that performing a step records."""
    keeper = recorder()
    (_receipt,) = keeper.record(
        RowDraft(kind=Kind.SNAPSHOT, subject="source/bank", output=made_table(bank))
    )
    pinned = Pinned(
        "bank",
        "table",
        bank.address,
        table=bank.address,
        columns=tuple(Column(c.name, c.type) for c in COLUMNS),
        key=("id",),
    )
    world = World(keeper.store, {"bank": pinned})
    world.steps["broken"] = failed(keeper, "broken", "sql.parse")
    bench = Bench(keeper, engine, Limits(cell_bytes_max=1_024))
    perform(bench, world, step, asked=step.sql, place=Place("q/t1/x", 1))
    return [e.row.outcome.code for e in keeper.log.entries()][-1]


@pytest.mark.parametrize("code", CODES.STEP)
def test_an_example_of_the_step_is_recorded_so_and_repaired_it_is_not(code, engine, bank):
    sql, key, repaired, repaired_key = CODES.STEP[code]
    named = "bank" if code == "step.name_taken" else "x"
    assert outcome(engine, bank, SqlStep(do="sql", id=named, sql=sql, key=list(key))) == code
    again = SqlStep(do="sql", id="x", sql=repaired, key=list(repaired_key))
    assert outcome(engine, bank, again) == ""
