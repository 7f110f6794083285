"""Lists out of the ledger: runs, and the rows of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieout.ledger.canon import Json
from tieout.ledger.row import Kind

if TYPE_CHECKING:
    from tieout.workspace import Workspace


def list_runs(workspace: Workspace) -> list[dict[str, Json]]:
    """One line for each run, oldest first: id, time, rows so far, how it ended."""
    from tieout.executor.ending import is_ending

    runs: dict[str, dict[str, Json]] = {}
    for entry in workspace.log().entries():
        row = entry.row
        run = runs.setdefault(
            row.trace_id,
            {
                "run": row.trace_id,
                "at": row.execution_timestamp,
                "questions": 0,
                "snapshots": 0,
                "rows": 0,
                "ended": "not finished",
            },
        )
        run["rows"] = _plus(run["rows"])
        if row.kind is Kind.QUESTION:
            run["questions"] = _plus(run["questions"])
        if row.kind is Kind.SNAPSHOT:
            run["snapshots"] = _plus(run["snapshots"])
            if row.trace_id.startswith("s-"):
                run["ended"] = "pinned"
        over = row.kind is Kind.REPORT and row.subject == "batch"
        if over or is_ending(row):
            run["ended"] = row.outcome.code or str(row.outcome.status)
    return list(runs.values())


def _plus(count: Json) -> int:
    return count + 1 if isinstance(count, int) else 1


def list_rows(workspace: Workspace, run: str) -> list[dict[str, Json]]:
    """One line for each ledger row of a run: index, time, kind, subject, outcome, output."""
    return [
        {
            "index": entry.index,
            "at": entry.row.execution_timestamp,
            "kind": str(entry.row.kind),
            "subject": entry.row.subject,
            "outcome": f"{entry.row.outcome.status} {entry.row.outcome.code}".strip(),
            "output": str(entry.row.deterministic_output.address)
            if entry.row.deterministic_output
            else "",
        }
        for entry in workspace.log().of_trace(workspace.run_id(run, snapshots=True))
    ]
