"""What the engine says is data: a class goes out, no cell's value and no hidden name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.runaways import run_ungated
from tieout.artifacts.address import Address
from tieout.executor import wire
from tieout.executor.engine import FAILURES, Engine, EngineLimits, TableBytes
from tieout.executor.errors import ExecutorError
from tieout.executor.failures import RUN_CODES
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.validate import GrantedColumn, GrantedTable

PLANTED = ("hush", "4711", "planted", "secret")
BANK = GrantedTable(
    "bank",
    (
        GrantedColumn("id", "INTEGER"),
        GrantedColumn("memo", "VARCHAR"),
        GrantedColumn("d", "DOUBLE"),
        GrantedColumn("amount", "DECIMAL(18,2)"),
        GrantedColumn("doc", "VARCHAR"),
        GrantedColumn("dt", "DATE"),
        GrantedColumn("__planted_column", "VARCHAR"),
    ),
    ("id",),
)


def bank() -> bytes:
    table = pa.table(
        {
            "id": pa.array([4711, 0], pa.int32()),
            "memo": pa.array(["hush(4711{", "Division by zero hush"]),
            "d": pa.array([float("inf"), 4711e300]),
            "amount": pa.array([4711, 0], pa.decimal128(18, 2)),
            "doc": pa.array(['{"hush": ', "[4711"]),
            "dt": pa.array([1_000_000, 0], pa.int32()).cast(pa.date32()),
            "__planted_column": pa.array(["secret", "secret"]),
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return sink.getvalue().to_pybytes()


FAILING = {
    "sql.conversion": [
        *(f"CAST(memo AS {t})" for t in ("INT", "DATE", "TIMESTAMP", "TIME", "BOOLEAN", "UUID")),
        *(f"CAST(memo AS {t})" for t in ("DECIMAL(4,2)", "DOUBLE", "INTERVAL", "JSON", "BIT")),
        *("CAST(memo AS INT[])", "CAST(memo AS ENUM('a', 'b'))"),
        *("CAST(memo AS STRUCT(a INT))", "memo = id"),
        *("date_part(memo, dt)", "date_trunc(memo, dt)", "CAST(doc AS JSON)", "memo::HUGEINT"),
        *("age(dt, memo::TIMESTAMP)", "hex(memo)::INT", "list_value(memo)[1]::INT"),
    ],
    "sql.value": [
        *("strptime(memo, '%Y')", "json_extract(doc, '$.a')", "doc -> 'a'", "unhex(memo)"),
        *("regexp_matches('a', memo)", "format(memo, id)", "printf('%d', memo)", "error(memo)"),
        *("chr(-id)", "lpad(memo, 30, '')", "hamming(memo, 'a')", "json_array_length(doc)"),
        *("map([memo, memo], [1, 2])", "bitstring(id::VARCHAR, 3)", "'01'::BIT & '1'::BIT"),
    ],
    "sql.overflow": [
        *("id * 2147483647", "id::BIGINT * 9223372036854775807", "-2147483647 - id"),
        *("CAST(id AS TINYINT)", "CAST(amount AS DECIMAL(3,2))", "CAST(amount AS TINYINT)"),
        *("CAST(id AS DECIMAL(3,2))", "CAST(id::DOUBLE AS TINYINT)", "CAST(id AS UTINYINT)"),
    ],
    "sql.out_of_range": [
        *("factorial(id)", "factorial(-id)", "get_bit('01'::BIT, id)"),
        *(
            "make_date(id, id, id)",
            "dt + to_years(id * 1000)",
            "list_resize([id], id * 99999999999)",
        ),
    ],
    "sql.not_finite": ["CAST(d * 10 AS INT)", "CAST(d * 1e10 AS BIGINT)", "CAST(-d * 1e9 AS INT)"],
    "sql.division_by_zero": ["id // (id - id)", "id % (id - 4711)"],
    "sql.several_rows": ["(SELECT memo FROM bank)"],
    "engine.failed": [
        *("timezone(memo, TIMESTAMP '2026-01-01')", "__planted_columm", "planted(memo)"),
        *("(SELECT 1 FROM secre)", "memo COLLATE planted", "getenv('HOME')"),
    ],
}


@pytest.fixture(scope="module")
def engine():
    with Engine(cache=None, limits=EngineLimits(seconds_max=20)) as running:
        yield running


def everything_said(error: BaseException | None) -> str:
    """An exception with all that hangs on it, as a trace or a log would print it."""
    said = ""
    while error is not None:
        parts = [str(error), repr(error.args), repr(getattr(error, "__notes__", ""))]
        parts += [repr(getattr(error, name, "")) for name in ("message", "place", "remedy")]
        said += " ".join(parts)
        error = error.__cause__ or error.__context__
    return said


@pytest.mark.parametrize(
    ("code", "expression"), [(c, e) for c, some in FAILING.items() for e in some]
)
def test_a_failure_says_its_class_and_nothing_of_the_data(engine, code, expression):
    """Without any gate, so that functions which are denied are tried too."""
    with pytest.raises(ExecutorError) as caught:
        run_ungated(engine, f"SELECT {expression} AS x FROM bank", bank())
    assert caught.value.code == code
    said = everything_said(caught.value)
    assert not any(word in said for word in PLANTED), said
    assert (caught.value.message, caught.value.remedy) == FAILURES[code]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT __planted_colum FROM bank",
        "SELECT planted_column FROM bank",
        "SELECT b.__x FROM bank b",
        "SELECT * EXCLUDE (__nothing) FROM bank",
        "SELECT COLUMNS('__.*') FROM bank",
        "SELECT COLUMNS('planted') FROM bank",
        "SELECT 1 AS a FROM secre",
        "SELECT 1 AS a FROM ledger_secre",
        "SELECT id FROM bank ORDER BY __nothing",
        "SELECT id FROM bank GROUP BY __nothing",
        "SELECT idd FROM bank",
        "SELECT lenght(memo) FROM bank",
        "SELECT id FROM main.bankk",
        "SELECT id FROM memory.main.bank JOIN other USING (__nothing)",
        "SELECT id FROM bank NATURAL JOIN warm",
        "SELECT a FROM __war",
    ],
)
def test_a_refusal_names_nothing_that_was_not_granted(engine, text):
    with pytest.raises(SqlRefused) as caught:
        engine.validate(text, {"bank": BANK})
    said = everything_said(caught.value)
    for word in ("__planted_column", "__warm", "secret", "hush"):
        assert word not in said.replace(text, ""), said


def test_validation_holds_no_row(engine):
    for text in ("SELECT memo::INT AS x FROM bank", "SELECT id * 2147483647 AS x FROM bank"):
        validated = engine.validate(text, {"bank": BANK})
        with pytest.raises(ExecutorError) as caught:
            engine.run(validated, {"bank": TableBytes(Address.of(bank()), bank)})
        assert not any(word in everything_said(caught.value) for word in PLANTED)


def test_each_code_that_a_worker_tells_has_words_of_ours():
    assert {code for _kind, _start, code in RUN_CODES} <= {*FAILURES, "limit.memory"}


def test_what_goes_over_the_wire_is_a_class(engine):
    from tieout.executor.forked import ForkServer

    server = ForkServer()
    bounds: wire.Document = {"memory_bytes": 1 << 28, "cpu_s": 20, "file_bytes": 1 << 20}
    request: wire.Document = {
        **bounds,
        "kind": "run",
        "sql": "SELECT error('hush') AS a",
        "tables": [],
        "rows_max": 1,
    }
    try:
        assert server.ask(request, [], seconds_max=20.0).document == {"failed": "sql.value"}
    finally:
        server.close()
