"""What is known of where a step's values come from: for its record, and for the steps after it."""

from __future__ import annotations

from tieout.artifacts.table import TableArtifact
from tieout.executor.check_document import verdict_members
from tieout.executor.sql.flow import ONE_ROW
from tieout.executor.sql.validate import RowOrigin, ValidatedSql
from tieout.ledger.canon import Json, encode


def validation_document(
    validated: ValidatedSql, ties: str = "", tied: frozenset[str] = frozenset()
) -> bytes:
    """What validation found, for readers and for `show`, which never load the engine.

    sources are columns of the direct inputs, roots the snapshots behind them. ties: what the
    countercheck found; tied: the columns that it concerns here, or by an earlier step.
    """
    origins: list[Json] = [
        {
            "name": origin.name,
            "literals": list(origin.literals),
            "sources": [list(pair) for pair in origin.sources],
            "operation": origin.operation,
            "inexact": origin.inexact,
            "roots": [list(pair) for pair in origin.rooted],
            "conditions": list(origin.conditions),
        }
        for origin in validated.origins
    ]
    return encode(
        {
            "format": "tieout.validation/1",
            "tables": list(validated.tables),
            "columns": [list(column) for column in validated.columns],
            "ordered": validated.ordered,
            "rewrites": list(validated.rewrites),
            "ties": ties,
            "tied": sorted(tied),
            "literals": list(validated.literals),
            "verdict": verdict_members(validated.verdict),
            "origins": origins,
            "rows": {
                "literals": list(validated.rows.literals),
                "counts": list(validated.rows.counts),
                "sources": [list(pair) for pair in validated.rows.sources],
                "roots": [list(pair) for pair in validated.rows.roots],
                "conditions": list(validated.rows.conditions),
            },
        }
    )


def text_rows(table: TableArtifact, source: str, literals: tuple[str, ...]) -> RowOrigin:
    """The rows of a search or an extraction; the only row of an extraction is no count."""
    texts = ((source, "text"),)
    counts = literals if table.rows != 1 else (*literals, ONE_ROW[1])
    return RowOrigin(counts=counts, sources=texts, roots=texts)
