"""`tieout show`: from a name to what it is, and from a figure down to the line of the file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tieout.artifacts.address import Address
from tieout.artifacts.printable import lines as printable_lines
from tieout.artifacts.printable import page
from tieout.artifacts.values import cell_reference, parse_cell_reference
from tieout.executor.errors import ExecutorError
from tieout.ledger.audit.drill import Drill, SourceLine, SourceRows, Use
from tieout.ledger.audit.passages import passage, spans
from tieout.ledger.canon import Json
from tieout.ledger.log import Entry
from tieout.ledger.row import Kind
from tieout.output import Document

if TYPE_CHECKING:
    from tieout.workspace import Workspace

LINES_SHOWN = 12
TEXT_SHOWN = 4_000


@dataclass(frozen=True, slots=True)
class Look:
    """What showing needs: the drill, and how a next command is written here."""

    drill: Drill
    command: Callable[[str, str], str]


def show(workspace: Workspace, reference: str, *, rows: int) -> Document:
    """Find out what a reference names and show it. Raises ExecutorError show.*, run.unknown."""
    drill = workspace.drill()
    look = Look(drill, workspace.command)
    plain = reference.removeprefix("blake3:")
    if "#" in plain:
        return _cell_or_row(look, reference)
    if "@" in plain:
        return _passage(drill, reference)
    if "/" in plain:
        return _in_run(workspace, drill, plain)
    if plain == "latest" or plain[:2] in ("r-", "s-"):
        return _run(workspace, drill, plain)
    if plain in _reports(drill, drill.latest_run()):
        return _in_run(workspace, drill, plain)
    return _artifact(drill, drill.resolve(reference), rows)


def _uses(uses: Sequence[Use]) -> list[Json]:
    return [
        {"index": u.index, "run": u.run, "subject": u.subject, "kind": u.kind, "role": u.role}
        for u in uses
    ]


def _use_lines(title: str, uses: Sequence[Use]) -> list[str]:
    lines = [
        f"  {title:<9} entry {u.index}: {u.kind} {u.subject} ({u.role}) in {u.run}"
        for u in uses[:LINES_SHOWN]
    ]
    more = len(uses) - LINES_SHOWN
    return lines + ([f"  {title:<9} and {more} more"] if more > 0 else [])


def _artifact(drill: Drill, address: Address, rows: int) -> Document:
    origin = drill.origin(address)
    data: dict[str, Json] = {
        "address": str(address),
        "media_type": origin.media_type,
        "size": origin.size,
        "made_by": _uses(origin.made_by),
        "used_by": _uses(origin.used_by),
    }
    lines = [str(address), f"  {origin.media_type}, {origin.size} bytes"]
    lines += _use_lines("made by", origin.made_by) + _use_lines("used by", origin.used_by)
    if drill.is_table(address):
        reader = drill.table(address)
        first_rows = [
            {"row": reader.row_key(p), "cells": [list(c) for c in drill.cells(address, p)]}
            for p in range(min(rows, reader.rows))
        ]
        data["table"] = {
            "rows": reader.rows,
            "key": list(reader.key),
            "columns": [[c.name, c.type] for c in reader.columns],
            "first_rows": [dict(row) for row in first_rows],
        }
        lines.append(
            f"  {reader.rows} rows; {', '.join(f'{c.name} {c.type}' for c in reader.columns)}"
        )
        for p in range(min(rows, reader.rows)):
            cells = ", ".join(f"{n}={t}" for n, t in drill.cells(address, p))
            lines.append(f"  #{reader.row_key(p)}  {cells}")
    elif _is_text(origin.media_type):
        text = drill.store.get(address).decode("utf-8", "replace")
        data["text"] = text
        lines += ["", *printable_lines(text[:TEXT_SHOWN] + ("…" if len(text) > TEXT_SHOWN else ""))]
    return Document(data, page(lines))


def _is_text(media: str) -> bool:
    return (
        "json" in media
        or media.startswith("text/")
        or media in {"application/sql", "application/toml"}
    )


def _cell_or_row(look: Look, reference: str) -> Document:
    """A row of a table: its cells, the step that made it, the source rows and lines below it."""
    drill = look.drill
    if ":" in reference.partition("#")[2]:
        name, row, column = parse_cell_reference(reference)
    else:
        name, _, row = reference.partition("#")
        column = ""
    address = drill.resolve(name)
    position = drill.position(address, row)
    reader = drill.table(address)
    if column and reader.column(column) is None:
        raise ExecutorError(
            "show.no_column",
            f"there is no column {column!r}; there is: {', '.join(c.name for c in reader.columns)}",
            place=str(address),
            remedy="Name a column of the table.",
        )
    row = reader.row_key(position)
    data: dict[str, Json] = {
        "address": str(address),
        "row": row,
        "cells": [list(cell) for cell in drill.cells(address, position)],
    }
    lines = [f"{address}#{row}"]
    if column:
        value = reader.text(position, column)
        data |= {"column": column, "value": value}
        lines = [f"{cell_reference(str(address), row, column)}", f"  value     {value}"]
    cells = ", ".join(f"{n}={t}" for n, t in drill.cells(address, position))
    lines.append(f"  row       {cells}")
    line = drill.line(address, position)
    if line is not None:
        data["source_line"] = _line_data(line)
        lines += _line_text(line)
        return Document(data, page(lines))
    below_data, below_lines = _below(look, address, position)
    return Document(data | below_data, page(lines + below_lines))


def _below(
    look: Look, address: Address, position: int, *, run: str = "", subject: str = ""
) -> tuple[dict[str, Json], list[str]]:
    """The step that made a row, and the source rows with the row's key values."""
    drill = look.drill
    data: dict[str, Json] = {}
    lines: list[str] = []
    entry = drill.made_by(address, run=run, subject=subject)
    if entry is not None:
        step, said = _step(drill, entry)
        data["made_by"] = step
        lines += said
    sources = drill.sources(address, position)
    data["source_rows"] = [_source_data(rows) for rows in sources]
    for rows in sources:
        how = ", ".join(f"{n}={t}" for n, t in rows.how) or "no key in common: every row"
        lines.append(f"  source    {rows.source} {rows.table}: {rows.total} rows with {how}")
        for line in rows.lines[:LINES_SHOWN]:
            lines.append(f"            {line.file}:{line.lines[0]}  #{line.row}  {line.text}")
        if rows.total > LINES_SHOWN:
            lines.append(f"            and {rows.total - LINES_SHOWN} more")
    rest = spans(look.drill, address, position)
    passages = [passage(look.drill, Address.parse(text), a, b) for text, a, b in rest]
    data["passages"] = [
        {"text": p.text, "start": p.start, "end": p.end, "document": p.document, "quote": p.quote}
        for p in passages
    ]
    lines += [f"  quote     {p.document}:{p.line}  “{p.quote}”" for p in passages]
    following = [f"{rows.lines[0].table}#{rows.lines[0].row}" for rows in sources if rows.lines]
    following += [f"{p.text}@{p.start}-{p.end}" for p in passages]
    lines += [f"  next      {look.command('show', shlex.quote(name))}" for name in following[:3]]
    return data, lines


def _step(drill: Drill, entry: Entry) -> tuple[dict[str, Json], list[str]]:
    row = entry.row
    sql = drill.part_text(entry, "formatted")
    data: dict[str, Json] = {
        "index": entry.index,
        "run": row.trace_id,
        "subject": row.subject,
        "kind": str(row.kind),
        "executed": None if row.executed is None else str(row.executed),
        "asked": row.raw_llm_instruction if isinstance(row.raw_llm_instruction, str) else None,
        "formatted": sql,
        "inputs": [{"role": i.role, "address": str(i.address)} for i in row.inputs],
        "executor": row.executor.document(),
        "sha256_hash": entry.sha256_hash.hex(),
    }
    lines = [f"  made by   entry {entry.index}: {row.kind} {row.subject} in {row.trace_id}"]
    if sql:
        lines += [f"            {line}" for line in sql.strip().splitlines()]
    lines += [f"  input     {i.role} {i.address}" for i in row.inputs]
    return data, lines


def _line_data(line: SourceLine) -> dict[str, Json]:
    return {
        "source": line.source,
        "file": line.file,
        "raw": line.raw,
        "table": str(line.table),
        "row": line.row,
        "lines": [*line.lines],
        "bytes": [*line.bytes],
        "text": line.text,
    }


def _source_data(rows: SourceRows) -> dict[str, Json]:
    return {
        "source": rows.source,
        "table": str(rows.table),
        "how": [list(pair) for pair in rows.how],
        "total": rows.total,
        "lines": [_line_data(line) for line in rows.lines],
    }


def _line_text(line: SourceLine) -> list[str]:
    until = "" if line.lines[0] == line.lines[1] else f"-{line.lines[1]}"
    return [
        f"  file      {line.file}:{line.lines[0]}{until} of source {line.source}",
        f"  line      {line.text}",
        f"  bytes     {line.bytes[0]}-{line.bytes[1]} of {line.raw}",
    ]


def _passage(drill: Drill, reference: str) -> Document:
    name, _, span = reference.partition("@")
    start, _, end = span.partition("-")
    if not (start.isdigit() and end.isdigit() and int(start) <= int(end)):
        raise ExecutorError(
            "show.passage",
            f"{reference!r} is not ADDRESS@START-END",
            remedy="Copy the reference of the quote from the report.",
        )
    whole = len(name.removeprefix("blake3:")) == 64
    address = (
        Address.parse(f"blake3:{name.removeprefix('blake3:')}") if whole else drill.resolve(name)
    )
    found = passage(drill, address, int(start), int(end))
    data: dict[str, Json] = {
        "address": found.text,
        "start": found.start,
        "end": found.end,
        "quote": found.quote,
        "document": found.document,
        "raw": found.raw,
        "line": found.line,
        "bytes": [list(pair) for pair in found.bytes],
        "before": found.around[0],
        "after": found.around[1],
    }
    ranges = ", ".join(f"{first}-{last}" for first, last in found.bytes)
    lines = [
        f"{found.text}@{found.start}-{found.end}",
        f"  file      {found.document}:{found.line}",
        f"  bytes     {ranges} of {found.raw}",
        "",
        *printable_lines(f"…{found.around[0]}[{found.quote}]{found.around[1]}…"),
    ]
    return Document(data, page(lines))


def _reports(drill: Drill, run: str) -> dict[str, tuple[Entry, dict[str, Any]]]:
    found = {}
    for entry in drill.log.of_trace(run):
        row = entry.row
        if row.kind is Kind.REPORT and row.subject != "batch" and row.deterministic_output:
            found[row.subject] = (
                entry,
                json.loads(drill.store.get(row.deterministic_output.address)),
            )
    return found


def _run(workspace: Workspace, drill: Drill, text: str) -> Document:
    run = workspace.run_id(text)
    reports = _reports(drill, run)
    lines = [f"Run {run}"]
    questions: list[Json] = []
    for name, (entry, report) in reports.items():
        address = entry.row.deterministic_output
        questions.append(
            {
                "id": name,
                "status": report["status"],
                "report": str(address.address) if address else "",
            }
        )
        lines.append(f"  {name}: {report['status']}")
        lines += [
            f"    {run}/{name}/{figure['name']} = {figure['shown']}" for figure in report["figures"]
        ]
    return Document({"run": run, "questions": questions}, page(lines))


def _in_run(workspace: Workspace, drill: Drill, text: str) -> Document:
    parts = text.split("/")
    if parts[0] != "latest" and not parts[0].startswith("r-"):
        parts = ["latest", *parts]
    run = workspace.run_id(parts[0])
    reports = _reports(drill, run)
    found = reports.get(parts[1])
    if found is None or len(parts) > 3:
        raise ExecutorError(
            "show.no_question",
            f"run {run} has no question {parts[1]!r}",
            place=run,
            remedy=f"It has: {', '.join(reports) or 'none that was delivered'}.",
        )
    entry, report = found
    if len(parts) == 2:
        return Document(report, drill.part_text(entry, "text") or "")
    figure = next((f for f in report["figures"] if f["name"] == parts[2]), None)
    if figure is None:
        names = ", ".join(f["name"] for f in report["figures"]) or "none"
        raise ExecutorError(
            "show.no_figure",
            f"the answer to {parts[1]!r} has no figure {parts[2]!r}",
            place=run,
            remedy=f"It has: {names}.",
        )
    return _figure(Look(drill, workspace.command), entry, report, figure)


def _figure(look: Look, entry: Entry, report: dict[str, Any], figure: dict[str, Any]) -> Document:
    """A figure: what is shown, the stored value, its label, then the cell and all below it."""
    drill = look.drill
    address = Address.parse(figure["address"])
    position = drill.position(address, figure["row"])
    data: dict[str, Json] = {
        "figure": figure,
        "question": report["question"],
        "report_entry": entry.index,
    }
    notes = [figure["reason"], *figure["flags"]]
    literals = ", ".join(figure["literals"])
    lines = [
        f"{figure['name']} = {figure['shown']}",
        f"  value     {figure['value']} ({figure['type']})",
        f"  label     {figure['label']} {' '.join(n for n in notes if n)}".rstrip()
        + (f", literals {literals}" if literals else ""),
        f"  cell      {cell_reference(str(address), figure['row'], figure['column'])}",
    ]
    cells = ", ".join(f"{n}={t}" for n, t in drill.cells(address, position))
    lines.append(f"  row       {cells}")
    below_data, below_lines = _below(
        look, address, position, run=entry.row.trace_id, subject=f"{entry.row.subject}/"
    )
    return Document(data | below_data, page(lines + below_lines))
