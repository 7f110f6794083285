"""What the gate says of a text, as one document: for `tieout check`, the record, and the model.

The same builder serves all three, so that a person and a model are told the same. Members are
named as in the code; the shape is closed (docs/SQL.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tieout.artifacts.errors import RoomError
from tieout.executor.sql.refusal import WHY
from tieout.executor.sql.validate import SqlRefused, ValidatedSql
from tieout.executor.sql.verdict import REASON_OF_CODE, REASONS, Reason, Standing, Verdict
from tieout.ledger.canon import Json

CHECK_FORMAT: Final = "tieout.check/1"


def check_document(found: ValidatedSql | SqlRefused) -> dict[str, Json]:
    """An admitted or a refused text: `verdict` says which, and with that which members there are.

    The JSON text of it is the same on every machine.
    """
    head: dict[str, Json] = {"format": CHECK_FORMAT}
    if isinstance(found, SqlRefused):
        return {**head, "verdict": "refused", **refusal_members(found)}
    return {
        **head,
        "verdict": "admitted",
        **verdict_members(found.verdict),
        "tables": list(found.tables),
        "columns": [list(column) for column in found.columns],
        "functions": list(found.functions),
        "literals": list(found.literals),
        "ordered": found.ordered,
        "countercheck": bool(found.countercheck),
        "executed": found.executed,
    }


def verdict_members(verdict: Verdict) -> dict[str, Json]:
    """The determinism verdict: how it stands, why it did not as asked, and what was done."""
    return {
        "standing": verdict.standing.value,
        "reasons": _reasons(verdict.reasons),
        "rewrites": rewrites_of(verdict),
    }


def rewrites_of(verdict: Verdict) -> list[Json]:
    """What was changed, in order of place; `round` and `at` derive the text that runs."""
    return [
        {
            "name": rewrite.name,
            "removed": rewrite.removed,
            "inserted": rewrite.inserted,
            "line": rewrite.line,
            "column": rewrite.column,
            "round": rewrite.round,
            "at": rewrite.at,
        }
        for rewrite in verdict.rewrites
    ]


def refusal_members(error: RoomError) -> dict[str, Json]:
    """A refusal: code, place in the asked text, way out; `standing` null where none was judged."""
    line, column = getattr(error, "line", None), getattr(error, "column", None)
    reasons = reasons_of(error)
    return {
        "code": error.code,
        "message": error.message,
        "why": WHY.get(error.code, ""),
        "line": line,
        "column": column,
        "way_out": error.remedy,
        "standing": Standing.REFUSED.value if reasons else None,
        "reasons": _reasons(reasons),
    }


def reasons_of(error: RoomError) -> tuple[Reason, ...]:
    """Why a refused text is no function of the data; some codes are such a reason themselves."""
    if not isinstance(error, SqlRefused):
        return ()
    name = REASON_OF_CODE.get(error.code)
    if error.reasons or name is None:
        return error.reasons
    return (Reason(name, REASONS[name], error.line, error.column),)


def _reasons(reasons: Sequence[Reason]) -> list[Json]:
    return [
        {"name": r.name, "detail": r.detail, "line": r.line, "column": r.column} for r in reasons
    ]
