"""One locked DuckDB connection: what is loaded first, the settings, and the order of the locks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa

from tieout.executor.sql.settings import SETTINGS, THREADS

Arrow: TypeAlias = Any
"""pyarrow is untyped: a pyarrow.Table or RecordBatchReader."""

LOCKS = (
    "SET enable_external_access=false",
    "SET GLOBAL disabled_filesystems='LocalFileSystem'",  # after, or the line above fails
    "SET lock_configuration=true",  # last
)


KEPT = "kept"


def quoted(name: str) -> str:
    """A name as SQL, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def visible(columns: Iterable[str]) -> str:
    """The columns a query may see, as a select list."""
    return ", ".join(quoted(c) for c in columns if not c.startswith("__"))


def connect() -> duckdb.DuckDBPyConnection:
    """A fresh engine in memory, its settings fixed, not yet locked; it starts no thread."""
    engine = duckdb.connect(":memory:", config={"threads": str(THREADS), "async_threads": "0"})
    for line in SETTINGS:
        engine.execute(f"SET GLOBAL {line}")
    return engine


def build(engine: duckdb.DuckDBPyConnection) -> str:
    """The source id that the engine gives of itself."""
    row = engine.execute("PRAGMA version").fetchone()
    assert row is not None
    return str(row[1])


def warm(engine: duckdb.DuckDBPyConnection) -> None:
    """Go once through what the engine and its Python side load late; nothing of it stays."""
    name = "__warm"
    load(engine, name, pa.table({"a": pa.array([1], pa.int32())}))
    text = f"SELECT a AS b FROM {name}"  # noqa: S608
    for function in ("json_serialize_sql", "json_serialize_plan"):
        engine.execute(f"SELECT {function}(?::VARCHAR)", [text]).fetchall()
    (statement,) = engine.extract_statements(text)
    reader: Arrow = engine.sql(statement).to_arrow_reader(1)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, reader.schema) as out:
        for batch in reader:
            out.write_batch(batch)
    read_stream(sink.getvalue())
    engine.execute(f"DROP TABLE {name}")


def declare(engine: duckdb.DuckDBPyConnection, name: str, columns: Mapping[str, str]) -> None:
    """An empty table of the given column names and DuckDB types; types must be the engine's own."""
    shown = ", ".join(
        f"{quoted(c)} {kind}" for c, kind in columns.items() if not c.startswith("__")
    )
    engine.execute(f"CREATE TABLE {quoted(name)} ({shown})")


def load(engine: duckdb.DuckDBPyConnection, name: str, table: Arrow) -> None:
    """Copy the visible columns of an Arrow table into the engine, in the order of its rows."""
    engine.register("__incoming", table)
    shown = visible(table.schema.names)
    engine.execute(f"CREATE TABLE {quoted(name)} AS SELECT {shown} FROM __incoming")  # noqa: S608
    engine.unregister("__incoming")


def attach(engine: duckdb.DuckDBPyConnection, files: Iterable[Path]) -> None:
    """Open engine files for reading and let the plain names of their tables be found."""
    found = ["memory"]
    for place, path in enumerate(files):
        name = f"t{place}"
        text = str(path).replace("'", "''")
        engine.execute(f"ATTACH '{text}' AS {name} (READ_ONLY)")
        found.append(name)
    path_text = ",".join(f"{name}.main" for name in found)
    engine.execute(f"SET search_path='{path_text}'")


def create(engine: duckdb.DuckDBPyConnection, path: Path) -> None:
    """A new engine file, where tables are loaded into from here on; `finish` it."""
    text = str(path).replace("'", "''")
    engine.execute(f"ATTACH '{text}' AS {KEPT}")
    engine.execute(f"USE {KEPT}")


def finish(engine: duckdb.DuckDBPyConnection) -> None:
    """Write out and close the engine file of `create`."""
    engine.execute(f"CHECKPOINT {KEPT}")
    engine.execute("USE memory")
    engine.execute(f"DETACH {KEPT}")


def lock(engine: duckdb.DuckDBPyConnection, *, memory_bytes: int) -> None:
    """The memory bound, then no files, then no more settings."""
    engine.execute(f"SET GLOBAL memory_limit='{memory_bytes}B'")
    for line in LOCKS:
        engine.execute(line)


def read_stream(source: Arrow) -> Arrow:
    """The table of an Arrow IPC stream."""
    with pa.ipc.open_stream(source) as reader:
        return reader.read_all()
