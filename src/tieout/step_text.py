"""The step that made a table, as `tieout show` prints it: what was asked, what ran, and how."""

from __future__ import annotations

import json

from tieout.artifacts.printable import lines as printable_lines
from tieout.executor.how_it_ran import how_it_ran, how_it_ran_lines
from tieout.ledger.audit.drill import Drill
from tieout.ledger.canon import Json
from tieout.ledger.log import Entry


def step_text(drill: Drill, entry: Entry) -> tuple[dict[str, Json], list[str]]:
    """The step that made a table. Where its text did not run as asked, both are shown."""
    row = entry.row
    asked = row.raw_llm_instruction if isinstance(row.raw_llm_instruction, str) else None
    formatted = drill.part_text(entry, "formatted")
    validation = json.loads(drill.part_text(entry, "validation") or "{}")
    ran = None if row.executed is None else drill.store.get(row.executed).decode("utf-8", "replace")
    members = how_it_ran(validation)
    data: dict[str, Json] = {
        "index": entry.index,
        "run": row.trace_id,
        "subject": row.subject,
        "kind": str(row.kind),
        "executed": None if row.executed is None else str(row.executed),
        "asked": asked,
        "asked_sql": _asked_sql(asked),
        "executed_sql": ran,
        "formatted": formatted,
        **members,
        "inputs": [{"role": i.role, "address": str(i.address)} for i in row.inputs],
        "executor": row.executor.document(),
        "sha256_hash": entry.sha256_hash.hex(),
    }
    lines = [f"  made by   entry {entry.index}: {row.kind} {row.subject} in {row.trace_id}"]
    if ran is not None and members["rewrites"]:
        lines += _labelled("asked", _asked_sql(asked) or formatted or "")
        lines += _labelled("ran", ran)
        lines.append(f"            {row.executed}")
    elif formatted:
        lines += [f"            {line}" for line in formatted.strip().splitlines()]
    lines += [f"  {line}" for line in how_it_ran_lines(members)]
    lines += [f"  input     {i.role} {i.address}" for i in row.inputs]
    return data, lines


def _asked_sql(asked: str | None) -> str | None:
    """The SQL of a step as it was written, None where it is kept elsewhere or is no SQL."""
    try:
        step = json.loads(asked or "null")
    except ValueError:
        return None
    found = step.get("sql") if isinstance(step, dict) else None
    return found if isinstance(found, str) else None


def _labelled(label: str, text: str) -> list[str]:
    """A text in a column of its own, its label before the first line."""
    first, *rest = printable_lines(text.strip("\r\n")) or [""]
    return [f"  {label:<10}{first}", *(f"            {line}" for line in rest)]
