"""The corpus through the product: what the gate says of each query, and what the engine gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from determinism.data import COLUMNS, KEYS, RANGES, tables
from determinism.queries import Query
from determinism.variations import Outcome, Text

from tieout.artifacts.address import Address
from tieout.artifacts.table import canonical
from tieout.executor.check_document import reasons_of
from tieout.executor.engine import Engine, EngineLimits, TableBytes
from tieout.executor.errors import ExecutorError
from tieout.executor.sql.validate import GrantedColumn, GrantedTable, SqlRefused
from tieout.executor.sql.verdict import Standing

AS_OF: Final = "2026-03-15"
EXPECTED: Final = {
    Standing.FUNCTION: "function",
    Standing.REWRITTEN: "rewritten",
    Standing.REFUSED: "refused",
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A query and what the product made of it.

    executed: None when it was refused, with `code`. product: of the run in the engine's child.
    """

    query: Query
    standing: str
    reasons: tuple[str, ...]
    rewrites: tuple[str, ...] = ()
    code: str = ""
    executed: Text | None = None
    countercheck: str = ""
    product: Outcome | None = None

    @property
    def as_expected(self) -> bool:
        return (self.standing, self.reasons) == (self.query.expect, self.query.reasons)

    @property
    def asked(self) -> Text:
        """The text as it was asked, for plain DuckDB."""
        ordered = self.executed is not None and self.executed.ordered
        return Text(f"asked {self.query.id}", self.query.sql, ordered=ordered)


def granted() -> dict[str, GrantedTable]:
    """The tables as the gate is told of them."""
    return {
        name: GrantedTable(
            name,
            tuple(
                GrantedColumn(c, text, range=RANGES.get((name, c), ("", "")))
                for c, (text, _kind) in columns.items()
            ),
            KEYS[name],
        )
        for name, columns in COLUMNS.items()
    }


def judged(queries: Sequence[Query], *, run: bool = True) -> Iterator[Judged]:
    """Validate each query through the engine, and run it where it was admitted."""
    handed = {name: _bytes(table) for name, table in tables().items()} if run else {}
    with Engine(cache=None, limits=EngineLimits()) as engine:
        for query in queries:
            yield _judge(engine, query, handed, run=run)


def _judge(engine: Engine, query: Query, handed: Mapping[str, TableBytes], *, run: bool) -> Judged:
    try:
        admitted = engine.validate(query.sql, granted(), as_of=AS_OF)
    except SqlRefused as refused:
        named = tuple(sorted({reason.name for reason in reasons_of(refused)}))
        return Judged(query, EXPECTED[Standing.REFUSED], named, code=refused.code)
    except ExecutorError as error:  # a bound that was reached is no verdict
        return Judged(query, "failed", (), code=error.code)
    verdict = admitted.verdict
    text = Text(
        f"executed {query.id}",
        admitted.executed,
        tuple(name for name, _kind in admitted.columns),
        admitted.ordered,
    )
    outcome = None
    if run:
        try:
            table = engine.run(admitted, handed).table
            artifact = canonical(table, ordered=admitted.ordered)
            outcome = Outcome(str(artifact.address), artifact.digest)
        except ExecutorError as error:
            outcome = Outcome(failed=error.code)
    return Judged(
        query,
        EXPECTED[verdict.standing],
        tuple(sorted({reason.name for reason in verdict.reasons})),
        verdict.names,
        executed=text,
        countercheck=admitted.countercheck,
        product=outcome,
    )


def _bytes(table: pa.Table) -> TableBytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    payload = bytes(sink.getvalue())
    return TableBytes(Address.of(payload), partial(bytes, payload), kept=False)
