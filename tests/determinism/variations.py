"""The same texts again on plain DuckDB: other threads, layouts and orders of rows, other processes.

    python tests/determinism/variations.py REQUEST.json   prints the outcomes of each text as JSON

It needs duckdb, pyarrow and `tieout.artifacts` alone, so that any engine build can run it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from determinism.data import shuffled, tables

from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.table import canonical
from tieout.executor.sql.settings import SETTINGS

GROUP_ROWS: Final = 2_048
"""Rows of a small row group: 10,000 rows are then five morsels of work."""
LOCKS: Final = (
    "SET enable_external_access=false",
    "SET GLOBAL disabled_filesystems='LocalFileSystem'",
    "SET lock_configuration=true",
)
NOT_IN_EVERY_BUILD: Final = ("allow_extension_repositories", "async_threads")

Arrow: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Variation:
    """threads; layout: keyed, grouped or parquet; seed: of the order of rows, 0 as it was made.

    times: how often each text runs.
    """

    threads: int
    layout: str
    seed: int = 0
    times: int = 1

    @property
    def label(self) -> str:
        order = f"seed {self.seed}" if self.seed else "in order"
        return f"{self.threads} threads, {self.layout}, {order}"


@dataclass(frozen=True, slots=True)
class Text:
    """A text to run. names: of the result's columns, () as they come. ordered: rows keep theirs."""

    id: str
    sql: str
    names: tuple[str, ...] = ()
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one run: the table's address and content digest, else what stands for them.

    bag: of the rows in any sequence. failed: class of the engine's error.
    """

    address: str = ""
    digest: str = ""
    bag: str = ""
    failed: str = ""


BASE: Final = Variation(1, "keyed")


@contextmanager
def opened(variation: Variation, folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A locked engine with the corpus's tables in this layout; folder takes Parquet files."""
    engine = duckdb.connect(":memory:", config={"threads": str(variation.threads)})
    try:
        for line in SETTINGS:
            # With no thread to read ahead, one over Parquet waits for itself in 2.0.1.
            ahead = variation.threads > 1 or variation.layout == "parquet"
            if not (line.startswith("async_threads") and ahead):
                _set(engine, line)
        _load(engine, variation, folder)
        for line in LOCKS if variation.layout != "parquet" else LOCKS[2:]:
            engine.execute(line)
        yield engine
    finally:
        engine.close()


def _set(engine: duckdb.DuckDBPyConnection, line: str) -> None:
    try:
        engine.execute(f"SET GLOBAL {line}")
    except duckdb.CatalogException:
        if not line.startswith(NOT_IN_EVERY_BUILD):
            raise


def _load(engine: duckdb.DuckDBPyConnection, variation: Variation, folder: Path) -> None:
    if variation.layout == "grouped":
        engine.execute(f"ATTACH ':memory:' AS small (ROW_GROUP_SIZE {GROUP_ROWS})")
        engine.execute("USE small")
    for name, table in tables().items():
        rows = shuffled(table, variation.seed) if variation.seed else table
        if variation.layout == "parquet":
            path = _parquet(rows, folder / f"{name}-{variation.seed}.parquet")
            engine.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}')")
            continue
        engine.register("__incoming", rows)
        engine.execute(f"CREATE TABLE {name} AS SELECT * FROM __incoming")
        engine.unregister("__incoming")


def _parquet(rows: Arrow, path: Path) -> Path:
    """The rows as a file with small row groups."""
    if not path.exists():
        pq.write_table(rows, path, row_group_size=GROUP_ROWS // 2)
    return path


def outcome_of(engine: duckdb.DuckDBPyConnection, text: Text) -> Outcome:
    """Run one text; what cannot be a table artifact is compared by its rows as they print."""
    try:
        table: Arrow = engine.sql(text.sql).to_arrow_table()
    except duckdb.Error as error:
        return Outcome(failed=type(error).__name__)
    if text.names:
        table = table.rename_columns(list(text.names))
    try:
        artifact = canonical(table, ordered=text.ordered)
        bag = canonical(table).digest if text.ordered else artifact.digest
    except ArtifactError:
        rows = [repr(row) for row in table.to_pylist()]
        kept = rows if text.ordered else sorted(rows)
        return Outcome("", _digest(kept), _digest(sorted(rows)))
    return Outcome(str(artifact.address), artifact.digest, bag)


def run(variation: Variation, texts: Sequence[Text], folder: Path) -> dict[str, list[Outcome]]:
    """Each text's distinct outcomes under one variation."""
    found: dict[str, list[Outcome]] = {}
    with opened(variation, folder) as engine:
        for text in texts:
            outcomes = (outcome_of(engine, text) for _ in range(variation.times))
            found[text.id] = list(dict.fromkeys(outcomes))
    return found


def _digest(rows: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def main() -> None:
    """The command."""
    request = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    texts = [Text(t["id"], t["sql"], tuple(t["names"]), t["ordered"]) for t in request["texts"]]
    answers = []
    for told in request["variations"]:
        outcomes = run(Variation(**told), texts, Path(sys.argv[1]).parent)
        answers.append({name: [asdict(o) for o in each] for name, each in outcomes.items()})
    engine = {"duckdb": duckdb.__version__, "pyarrow": pa.__version__}
    print(json.dumps({"engine": engine, "outcomes": answers}))


if __name__ == "__main__":
    main()
