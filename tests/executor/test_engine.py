"""The engine: what runs, what stops it, what it keeps, and that the result is a function of rows."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from tieout.artifacts.address import Address
from tieout.executor.engine import KEPT_BYTES_MIN, Engine, EngineLimits, TableBytes
from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.sql.validate import GrantedColumn, GrantedTable

BANK = GrantedTable(
    "bank",
    (
        GrantedColumn("id", "INTEGER"),
        GrantedColumn("amount", "DECIMAL(18,2)"),
        GrantedColumn("memo", "VARCHAR"),
        GrantedColumn("dt", "DATE"),
        GrantedColumn("__row", "BIGINT"),
    ),
    ("id",),
)
GRANTED = {"bank": BANK}


def stream(table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def bank(ids) -> TableBytes:
    ids = list(ids)
    table = pa.table(
        {
            "id": pa.array(ids, pa.int32()),
            "amount": pa.array([decimal.Decimal(i) / 4 for i in ids], pa.decimal128(18, 2)),
            "memo": pa.array(["ab"[i % 2] if i % 7 else None for i in ids], pa.string()),
            "dt": pa.array([dt.date(2026, 6, 1 + i % 30) for i in ids], pa.date32()),
            "__row": pa.array(range(len(ids)), pa.int64()),
        }
    )
    payload = stream(table)
    return TableBytes(Address.of(payload), lambda: payload)


@pytest.fixture(scope="module")
def engine():
    with Engine(cache=None, limits=EngineLimits(seconds_max=1, rows_max=1000)) as running:
        yield running


def run(engine, sql, ids=range(10)):
    return engine.run(engine.validate(sql, GRANTED), {"bank": bank(ids)})


def test_a_result_in_the_order_of_the_query(engine):
    found = run(engine, "SELECT id, amount FROM bank WHERE id < 3 ORDER BY amount DESC")
    assert found.complete
    assert found.table.to_pydict() == {
        "id": [2, 1, 0],
        "amount": [decimal.Decimal("0.50"), decimal.Decimal("0.25"), decimal.Decimal("0.00")],
    }


def test_hidden_columns_are_not_there(engine):
    assert run(engine, "SELECT * FROM bank").table.schema.names == ["id", "amount", "memo", "dt"]


def test_an_ordered_result_is_the_same_for_shuffled_rows(engine):
    rows = list(range(50))
    shuffled = rows.copy()
    random.Random(7).shuffle(shuffled)
    sql = "SELECT memo, dt, sum(amount) AS s, count(*) AS n FROM bank GROUP BY ALL ORDER BY memo"
    assert stream(run(engine, sql, rows).table) == stream(run(engine, sql, shuffled).table)


def test_more_rows_than_the_bound_are_cut_and_said(engine):
    cut = run(engine, "SELECT id FROM bank ORDER BY id", range(1001))
    assert (cut.table.num_rows, cut.complete) == (1000, False)
    whole = run(engine, "SELECT id FROM bank ORDER BY id", range(1000))
    assert (whole.table.num_rows, whole.complete) == (1000, True)


def test_an_empty_result_has_its_schema(engine):
    found = run(engine, "SELECT id, memo FROM bank WHERE id < 0")
    assert (found.table.num_rows, found.table.schema.names) == (0, ["id", "memo"])


RUNAWAYS = [
    "SELECT count(*) AS n FROM bank a, bank b, bank c, bank d, bank e, bank f WHERE a.id <> b.id + f.id",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) AS c FROM t",
]


@pytest.mark.parametrize("sql", RUNAWAYS)
def test_an_endless_query_ends_at_the_bound_and_the_next_one_works(engine, sql):
    with pytest.raises(ExecutorError) as caught:
        run(engine, sql, range(40))
    assert caught.value.code == "limit.seconds"
    assert caught.value.exit_code == Exit.INCOMPLETE
    assert run(engine, "SELECT 1 AS a").table.to_pydict() == {"a": [1]}


def test_an_endless_constant_ends_while_it_is_bound(engine):
    with pytest.raises(ExecutorError) as caught:
        engine.validate("SELECT length(lpad('x', 2000000000, 'y')) AS n", GRANTED)
    assert caught.value.code in {"limit.seconds", "limit.memory"}


def test_memory_is_bounded():
    limits = EngineLimits(seconds_max=10, memory_bytes_max=64 << 20)
    sql = "SELECT len(list(a.memo || b.id || c.id ORDER BY a.memo, b.id, c.id)) AS n "
    sql += "FROM bank a, bank b, bank c"
    with Engine(cache=None, limits=limits) as small, pytest.raises(ExecutorError) as caught:
        run(small, sql, range(160))
    assert caught.value.code == "limit.memory"


def test_a_result_over_the_byte_bound_is_refused():
    limits = EngineLimits(seconds_max=10, result_bytes_max=10_000)
    with Engine(cache=None, limits=limits) as small, pytest.raises(ExecutorError) as caught:
        run(small, "SELECT a.id, b.id AS other FROM bank a, bank b", range(100))
    assert caught.value.code == "limit.bytes"


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT memo::INT AS i FROM bank", "sql.conversion"),
        ("SELECT (id + 1000)::TINYINT AS i FROM bank", "sql.overflow"),
        ("SELECT id * 2147483647 AS i FROM bank", "sql.overflow"),
        ("SELECT id // id AS i FROM bank", "sql.division_by_zero"),
        ("SELECT decimal_division(amount, amount, 2) AS i FROM bank", "sql.division_by_zero"),
        ("SELECT amount FROM bank WHERE id = (SELECT id FROM bank)", "sql.several_rows"),
    ],
)
def test_a_failure_has_a_code_and_shows_no_cell(engine, sql, code):
    with pytest.raises(ExecutorError) as caught:
        run(engine, sql)
    assert caught.value.code == code
    assert not any(value in str(caught.value) for value in ("'a'", "'b'", "2147483"))


def test_a_failure_late_in_the_stream_has_the_same_code():
    texts = pa.array(["1"] * 200_000 + ["hush"])
    payload = stream(pa.table({"memo": texts}))
    late = {"bank": TableBytes(Address.of(payload), lambda: payload)}
    limits = EngineLimits(seconds_max=20)
    with Engine(cache=None, limits=limits) as engine, pytest.raises(ExecutorError) as caught:
        engine.run(engine.validate("SELECT memo::INT AS i FROM bank", GRANTED), late)
    assert caught.value.code == "sql.conversion"
    assert "hush" not in str(caught.value)


def test_division_by_nullif_is_null(engine):
    found = run(engine, "SELECT id // nullif(id, 0) AS a FROM bank WHERE id < 2 ORDER BY id")
    assert found.table.to_pydict() == {"a": [None, 1]}


def test_threads_share_an_engine(engine):
    validated = engine.validate("SELECT sum(amount) AS s FROM bank", GRANTED)
    found = []
    threads = [
        threading.Thread(
            target=lambda n=n: found.append((n, engine.run(validated, {"bank": bank(range(n))})))
        )
        for n in range(1, 9)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sums = {n: result.table["s"][0].as_py() for n, result in found}
    assert sums == {n: decimal.Decimal(sum(range(n))) / 4 for n in range(1, 9)}


def test_a_table_that_was_not_handed_over_is_an_error(engine):
    with pytest.raises(ExecutorError) as caught:
        engine.run(engine.validate("SELECT id FROM bank", GRANTED), {})
    assert caught.value.code == "engine.input"


def test_bytes_that_are_no_stream_are_an_error(engine):
    bad = TableBytes(Address.of(b"x"), lambda: b"not arrow")
    with pytest.raises(ExecutorError) as caught:
        engine.run(engine.validate("SELECT id FROM bank", GRANTED), {"bank": bad})
    assert caught.value.code == "engine.input"


def test_the_cache_is_used_and_thrown_away_when_it_is_damaged(tmp_path, monkeypatch):
    rows = range(KEPT_BYTES_MIN // 20)
    first = bank(rows)
    reads = []
    counted = TableBytes(first.address, lambda: (reads.append(1), first.read())[1])
    sql = "SELECT count(*) AS n, sum(amount) AS s, max(b.id) AS m FROM bank b"
    with Engine(cache=tmp_path / "it's", limits=EngineLimits(seconds_max=20)) as engine:
        validated = engine.validate(sql, GRANTED)
        plain = engine.run(validated, {"bank": counted}).table.to_pydict()
        (kept,) = list(tmp_path.rglob("*.duckdb"))
        assert list(tmp_path.rglob("*.partial")) == []
        reads.clear()
        assert engine.run(validated, {"bank": counted}).table.to_pydict() == plain
        assert reads == []
        kept.write_bytes(b"damaged" * 1000)
        assert engine.run(validated, {"bank": counted}).table.to_pydict() == plain
        assert not kept.exists() or kept.read_bytes()[:7] != b"damaged"


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    (tmp_path / "file").write_text("in the way")
    limits = EngineLimits(seconds_max=20)
    with Engine(cache=tmp_path / "file", limits=limits) as engine:
        validated = engine.validate("SELECT count(*) AS n FROM bank", GRANTED)
        large = bank(range(KEPT_BYTES_MIN // 20))
        found = engine.run(validated, {"bank": large}).table.to_pydict()
    assert found == {"n": [KEPT_BYTES_MIN // 20]}


def test_what_the_engine_says_of_itself(engine):
    found = engine.info
    assert (found.name, found.version, found.build) == ("duckdb", "2.0.1", "8d78114e90")
    assert found.settings["TimeZone"] == "UTC"
    assert found.settings["threads"] == "1"
    assert not any(os.sep in value for value in found.settings.values())


def test_it_works_from_a_script_without_a_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from tieout.executor.engine import Engine, EngineLimits\n"
        "engine = Engine(cache=None, limits=EngineLimits())\n"
        "print(engine.run(engine.validate('SELECT 6 * 7 AS a', {}), {}).table.to_pydict())\n"
        "import sys; assert 'duckdb' not in sys.modules\n"
    )
    (tmp_path / "duckdb.py").write_text("raise RuntimeError('a module in the way')")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.stdout, done.stderr) == ("{'a': [42]}\n", "")


def test_no_files_are_left_open(engine):
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    run(engine, "SELECT id FROM bank")
    before = count()
    for _ in range(5):
        run(engine, "SELECT id FROM bank")
        with pytest.raises(ExecutorError):
            run(engine, "SELECT nope FROM bank")
    assert count() == before
