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

    wanted: `[[drill]]` tables: step; source; file; holds: columns of the step's row whose texts
    must stand in the line. Every row of the step must lead to exactly one line of the source: the
    candidates that share the most columns with the row (drill lists wider ones beside them).
    The line is looked up in the file by its number, read here without the product's reader.
    """
    if not wanted:
        return []
    drill = workspace.drill()
    return [
        problem for entry in wanted for problem in _problems(drill, answers, entry, files)
    ]  # fmt: skip


def _problems(
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
