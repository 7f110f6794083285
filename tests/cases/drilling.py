"""From cited rows of results to the lines of the files, compared with the files themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from answers import Answers

from tieout import Workspace
from tieout.ledger.audit.drill import Drill, SourceLine


def undrilled(
    workspace: Workspace,
    answers: Answers,
    wanted: Sequence[Mapping[str, Any]],
    files: Mapping[str, Path],
) -> list[str]:
    """What does not lead to its line, in words.

    wanted: `[[drill]]` tables: step, source, file, and one of
        holds: columns of the step's row whose texts must stand in the line; every row of the
            step must lead to one line of the source, the candidates that share the most columns
            with it (drill lists wider ones beside them);
        reaches: {step, column}; the rows of the step must lead to as many single lines of the
            source as that step has rows, each holding one of its values.
    A line is looked up in the file by its number, read here without the product's reader.
    """
    if not wanted:
        return []
    drill = workspace.drill()
    found = []
    for entry in wanted:
        check = _reached if "reaches" in entry else _held
        found += check(drill, answers, entry, files)
    return found


def _held(
    drill: Drill, answers: Answers, entry: Mapping[str, Any], files: Mapping[str, Path]
) -> list[str]:
    address = answers.step(entry["step"])
    reader = drill.table(address)
    found = []
    for position in range(reader.rows):
        place = f"{entry['step']} row {reader.row_key(position)} in {entry['source']}"
        sources = [s for s in drill.sources(address, position) if s.source == entry["source"]]
        narrow = max(sources, key=lambda s: len(s.how), default=None)
        if narrow is None or narrow.total != 1:
            found.append(f"{place}: {0 if narrow is None else narrow.total} lines, not one")
            continue
        texts = [reader.text(position, name) or "" for name in entry["holds"]]
        found += [
            f"{place}: {why}" for why in _faults(narrow.lines[0], files[entry["file"]], texts)
        ]
    return found or ([] if reader.rows else [f"{entry['step']} has no rows to follow"])


def _reached(
    drill: Drill, answers: Answers, entry: Mapping[str, Any], files: Mapping[str, Path]
) -> list[str]:
    address, other = answers.step(entry["step"]), answers.reader(entry["reaches"]["step"])
    column = entry["reaches"]["column"]
    values = {other.text(position, column) or "" for position in range(other.rows)}
    lines = {
        source.lines[0]
        for position in range(drill.table(address).rows)
        for source in drill.sources(address, position)
        if source.source == entry["source"] and source.total == 1
    }
    place = f"{entry['step']} in {entry['source']}"
    found = [] if len(lines) == len(values) else [f"{place}: {len(lines)} lines, not {len(values)}"]
    for value in sorted(values):
        holding = [line for line in lines if value in line.text]
        if len(holding) != 1:
            found.append(f"{place}: {len(holding)} lines hold {value}")
        for line in holding:
            found += [f"{place}: {why}" for why in _faults(line, files[entry["file"]], [value])]
    return found


def _faults(line: SourceLine, file: Path, texts: Sequence[str]) -> list[str]:
    raw = file.read_bytes()
    independent = raw.split(b"\n")[line.lines[0] - 1].rstrip(b"\r")
    faults = []
    if line.file != file.name:
        faults.append(f"leads to {line.file}, not to {file.name}")
    if independent.decode() != line.text or raw[line.bytes[0] : line.bytes[1]] != independent:
        faults.append(f"line {line.lines[0]} of {file.name} reads otherwise")
    faults += [f"line {line.lines[0]} does not hold {t}" for t in texts if t not in line.text]
    return faults
