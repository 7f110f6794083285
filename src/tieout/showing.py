"""`tieout show`: from a name to what it is, and from a figure down to the line of the file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tieout.artifacts.address import Address
from tieout.artifacts.printable import lines as printable_lines
from tieout.artifacts.printable import page
from tieout.artifacts.values import cell_reference, parse_cell_reference
from tieout.executor.errors import ExecutorError
from tieout.ledger.audit.drill import Drill, SourceLine, SourceRows
from tieout.ledger.audit.passages import passage, spans
from tieout.ledger.canon import Json
from tieout.ledger.log import Entry
from tieout.ledger.row import Kind
from tieout.output import Document
from tieout.references import (
    delivered,
    newest_snapshot,
    read_report,
    report_entries,
    resolve,
    uncut,
)
from tieout.source_text import show_document, show_source, use_lines, uses_data
from tieout.step_text import step_text

if TYPE_CHECKING:
    from tieout.workspace import Workspace

LINES_SHOWN = 12
TEXT_SHOWN = 4_000
NULL = "NULL"
_DIGITS = re.compile(r"[0-9a-fA-F]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Look:
    """What showing needs: the drill, and how a next command is written here."""

    drill: Drill
    command: Callable[[str, str], str]


def show(workspace: Workspace, reference: str, *, rows: int) -> Document:
    """Find out what a reference names and show it. Raises ExecutorError show.*, run.unknown,
    source.not_pinned; LedgerError show.*."""
    drill = workspace.drill()
    look = Look(drill, workspace.command)
    reference = uncut(reference)
    plain = reference.removeprefix("blake3:")
    if "#" in plain:
        return _cell_or_row(look, reference)
    if "@" in plain:
        return _passage(drill, reference)
    if "/" in plain:
        return _in_run(workspace, drill, plain)
    if plain == "latest" or plain[:2] in ("r-", "s-"):
        return _run(workspace, drill, plain)
    if report_entries(drill, plain):
        return _in_run(workspace, drill, plain)
    if plain in workspace.catalog.sources or newest_snapshot(drill, plain) is not None:
        return show_source(drill, plain, workspace.command)
    if not _DIGITS.fullmatch(plain):
        sources = ", ".join(workspace.catalog.sources) or "none"
        raise ExecutorError(
            "show.unknown",
            f"{reference!r} is no run, question, source or address here",
            remedy=f"`tieout log` lists the runs, `tieout show` the questions of the latest; "
            f"sources: {sources}; `tieout show --help` lists the forms.",
        )
    address, document = resolve(drill, reference)
    return _artifact(drill, address, rows) if document is None else show_document(drill, document)


def _artifact(drill: Drill, address: Address, rows: int) -> Document:
    origin = drill.origin(address)
    data: dict[str, Json] = {
        "address": str(address),
        "media_type": origin.media_type,
        "size": origin.size,
        "made_by": uses_data(origin.made_by),
        "used_by": uses_data(origin.used_by),
    }
    lines = [str(address), f"  {origin.media_type}, {origin.size} bytes"]
    lines += use_lines("made by", origin.made_by) + use_lines("used by", origin.used_by)
    entry = drill.made_by(address) if drill.is_table(address) else None
    if entry is not None and entry.row.kind is Kind.SQL:
        data["step"], said = step_text(drill, entry)
        lines += said
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
            cells = _cells(drill.cells(address, p))
            lines.append(f"  #{reader.row_key(p)}  {cells}")
    elif _is_text(origin.media_type):
        text = drill.store.get(address).decode("utf-8", "replace")
        data["text"] = text
        lines += ["", *printable_lines(text[:TEXT_SHOWN] + ("…" if len(text) > TEXT_SHOWN else ""))]
    return Document(data, page(lines))


def _cells(cells: Sequence[tuple[str, str | None]]) -> str:
    return ", ".join(f"{name}={NULL if text is None else text}" for name, text in cells)


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
        lines = [
            f"{cell_reference(str(address), row, column)}",
            f"  value     {NULL if value is None else value}",
        ]
    cells = _cells(drill.cells(address, position))
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
        step, said = step_text(drill, entry)
        data["made_by"] = step
        lines += said
    sources = drill.sources(address, position)
    data["source_rows"] = [_source_data(rows) for rows in sources]
    for rows in sources:
        how = _cells(rows.how) or "no key in common: every row"
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
    address, _ = resolve(drill, name)
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


def _run(workspace: Workspace, drill: Drill, text: str) -> Document:
    from tieout.executor.ending import is_ending

    run = workspace.run_id(text, snapshots=True)
    lines = [f"Run {run}"]
    questions: list[Json] = []
    for found in (read_report(drill, entry) for entry in report_entries(drill, run=run)):
        name, report = found.entry.row.subject, found.report
        output = found.entry.row.deterministic_output
        address = str(output.address) if output else ""
        questions.append({"id": name, "status": report["status"], "report": address})
        lines.append(f"  {name}: {report['status']}")
        lines += [
            f"    {run}/{name}/{figure['name']} = {figure['shown']}" for figure in report["figures"]
        ]
    pinned: list[Json] = []
    ended: Json = None
    for row in (entry.row for entry in drill.log.of_trace(run)):
        if row.kind is Kind.SNAPSHOT and row.deterministic_output:
            address = str(row.deterministic_output.address)
            pinned.append({"subject": row.subject, "snapshot": address})
            lines.append(f"  pinned {row.subject} {address}")
        if is_ending(row):
            ended = {"code": row.outcome.code, "message": row.outcome.message}
            lines.append(f"  ended {row.outcome.code}: {row.outcome.message}")
    data: dict[str, Json] = {"run": run, "questions": questions, "pinned": pinned, "ended": ended}
    return Document(data, page(lines))


def _in_run(workspace: Workspace, drill: Drill, text: str) -> Document:
    """A question or a figure: of the run that is named, else of the newest that has it."""
    parts = text.split("/")
    named = parts[0] == "latest" or parts[0].startswith("r-")
    run = workspace.run_id(parts[0]) if named else ""
    question, _, name = "/".join(parts[1:] if named else parts).partition("/")
    found = delivered(drill, question, name, run=run)
    latest = drill.latest_run()
    aside = [] if named or found.run == latest else [f"Of run {found.run}, not of the latest."]
    if not name:
        said = drill.part_text(found.entry, "text") or ""
        return Document(
            {**found.report, "run": found.run}, "\n".join([*aside, said] if aside else [said])
        )
    figure = next(f for f in found.report["figures"] if f["name"] == name)
    shown = _figure(Look(drill, workspace.command), found.entry, found.report, figure)
    return Document({**shown.data, "run": found.run}, "\n".join([*aside, shown.text]))


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
        f"  value     {NULL if figure['value'] is None else figure['value']} ({figure['type']})",
        f"  label     {figure['label']} {' '.join(n for n in notes if n)}".rstrip()
        + (f", literals {literals}" if literals else ""),
        f"  cell      {cell_reference(str(address), figure['row'], figure['column'])}",
    ]
    cells = _cells(drill.cells(address, position))
    lines.append(f"  row       {cells}")
    below_data, below_lines = _below(
        look, address, position, run=entry.row.trace_id, subject=f"{entry.row.subject}/"
    )
    return Document(data | below_data, page(lines + below_lines))
