"""A run for people and as JSON: answers, tie-out table, where the evidence lies, what is next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieout.ledger.canon import Json
from tieout.output import shortened
from tieout.planner.report import report_text

if TYPE_CHECKING:
    from tieout.planner.batch import BatchResult
    from tieout.planner.report import Report
    from tieout.workspace import Workspace


def batch_data(workspace: Workspace, result: BatchResult) -> dict[str, Json]:
    """The one document of `tieout run --json` (DESIGN §6); fields are only ever added."""
    return {
        "run": result.run,
        "holds": result.holds,
        "complete": result.complete,
        "store": workspace.store.location,
        "ledger": str(workspace.ledger_path),
        "questions": [
            {**_question(d.report), "report": str(d.receipt.parts["output"])}
            for d in result.delivered
        ],
    }


def _question(report: Report) -> dict[str, Json]:
    document = report.document()
    return {
        "id": report.question.id,
        "status": document["status"],
        "code": report.code,
        "message": report.message,
        "prose": document["prose"],
        "figures": document["figures"],
        "quotes": document["quotes"],
        "numbers": document["numbers"],
        "expectations": document["expectations"],
        "steps": document["steps"],
        "refusals": document["refusals"],
        "findings": _findings(report),
    }


def _findings(report: Report) -> list[Json]:
    """What a reader must know before relying on the answer."""
    found: list[Json] = [
        {
            "code": "expectation.differs",
            "message": f"{e.name} {e.what}: expected {e.expected}, found {e.found or 'nothing'}",
        }
        for e in report.expectations
        if not e.holds
    ]
    found += [{"code": "answer.problem", "message": problem} for problem in report.answer.problems]
    found += [
        {"code": f"number.{n.label}", "message": f"{n.text}: {n.reason}"}
        for n in report.answer.numbers
        if n.reason is not None
    ]
    found += [{"code": "result.unused", "message": name} for name in report.unused]
    return found


def batch_text(workspace: Workspace, result: BatchResult) -> str:
    """The run as text. Addresses are cut for the eye; the stored reports have them whole."""
    parts = [shortened(report_text(delivered.report)) for delivered in result.delivered]
    rule = "─" * 72 + "\n"
    table = _tie_out(result)
    answered = sum(d.report.answer.status != "failed" for d in result.delivered)
    ending = (
        f"{answered} of {len(result.delivered)} questions answered in run {result.run}.\n"
        f"Evidence  {workspace.store.location}\nLedger    {workspace.ledger_path}\n"
        f"Next      {_next(workspace, result)}\n"
    )
    return rule.join([*parts, *([table] if table else []), ending])


def _tie_out(result: BatchResult) -> str:
    rows = [
        (
            delivered.report.question.id,
            expectation.name,
            expectation.expected,
            expectation.found or "nothing",
            "ties" if expectation.holds else "DOES NOT TIE",
        )
        for delivered in result.delivered
        for expectation in delivered.report.expectations
        if expectation.what == "value"
    ]
    if not rows:
        return ""
    head = ("question", "figure", "expected", "found", "")
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [
        "  ".join(
            cell.rjust(width) if i in (2, 3) else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [head, *rows]
    ]
    ties = sum(row[4] == "ties" for row in rows)
    return "\n".join(["Tie-out", *lines, f"{ties} of {len(rows)} figures tie out.", ""])


def _next(workspace: Workspace, result: BatchResult) -> str:
    figure = next(
        (
            f"{d.report.question.id}/{f.name}"
            for d in result.delivered
            for f in d.report.answer.figures
        ),
        None,
    )
    commands = [workspace.command("replay", result.run), workspace.command("verify")]
    if figure:
        commands.insert(0, workspace.command("show", f"{result.run}/{figure}"))
    return "\n          ".join(commands)
