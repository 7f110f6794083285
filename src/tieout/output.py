"""Printing: data on standard output as text or one JSON document, all else on standard error."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from tieout.artifacts.errors import Exit, RoomError
from tieout.artifacts.printable import one_line
from tieout.executor.errors import ExecutorError, SourcesRefused
from tieout.ledger.canon import Json

if TYPE_CHECKING:
    from tieout.diagnosis import Diagnosis
    from tieout.executor.pinning import PinnedSource
    from tieout.ledger.audit.findings import Report
    from tieout.planner.batch import BatchResult
    from tieout.planner.loop import Delivered
    from tieout.planner.rerun import Replayed
    from tieout.workspace import Workspace

DIFFERENCES_SHOWN: Final = 20
_EXPECTED: Final = re.compile(r"(\d{1,18}):([0-9a-fA-F]{64})", re.ASCII)
_ADDRESS: Final = re.compile(r"(blake3:[0-9a-f]{12})[0-9a-f]{52}", re.ASCII)
_WEAK: Final = ("\x1b[33m", "\x1b[0m")
_BAD: Final = ("\x1b[31m", "\x1b[0m")


@dataclass(frozen=True, slots=True)
class Document:
    """Something to print: as JSON, or as text."""

    data: Mapping[str, Json]
    text: str


class Progress:
    """Says how far a run is: a bar on a terminal, a line for each question elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar = stream.isatty()
        self._total = self._done = 0

    def started(self, run: str, questions: int) -> None:
        """The run has an id and begins."""
        self._total = questions
        self._stream.write(f"run {run}: {questions} question{'s' if questions != 1 else ''}\n")
        self._stream.flush()

    def told(self, delivered: Delivered) -> None:
        """A question was delivered."""
        self._done += 1
        said = f"{delivered.report.question.id}: {delivered.report.answer.status}"
        if self._bar:
            full = 30 * self._done // max(self._total, 1)
            bar = "█" * full + "·" * (30 - full)
            self._stream.write(f"\r\x1b[K[{bar}] {self._done}/{self._total} {said}")
            if self._done == self._total:
                self._stream.write("\r\x1b[K")
        else:
            self._stream.write(f"[{self._done}/{self._total}] {said}\n")
        self._stream.flush()


@dataclass(frozen=True, slots=True)
class Output:
    """How this command prints."""

    as_json: bool
    color: bool

    def document(self, document: Document) -> None:
        """Print a document."""
        if self.as_json:
            text = json.dumps(document.data, ensure_ascii=False, sort_keys=False, indent=1) + "\n"
        else:
            text = document.text if document.text.endswith("\n") else document.text + "\n"
        sys.stdout.write(self._painted(text) if not self.as_json else text)
        sys.stdout.flush()

    def _painted(self, text: str) -> str:
        wanted = self.color and not os.environ.get("NO_COLOR")
        if not wanted or not (sys.stdout.isatty() or os.environ.get("FORCE_COLOR")):
            return text
        text = re.sub(r"\bunsourced\b", _WEAK[0] + "unsourced" + _WEAK[1], text)
        return re.sub(r"\b(DOES NOT TIE|broken|failed)\b", _BAD[0] + r"\1" + _BAD[1], text)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Progress on standard error; none for a program, which reads errors there."""
        if not self.as_json:
            yield Progress(sys.stderr)
            return
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
            yield Progress(nowhere)

    def initialised(self, workspace: Workspace) -> None:
        """What `init` made."""
        root = str(workspace.catalog.root)
        sources = list(workspace.catalog.sources)
        data: dict[str, Json] = {
            "workspace": root,
            "store": workspace.store.location,
            "ledger": str(workspace.ledger_path),
            "sources": [*sources],
        }
        ask = f"{workspace.command('run')} QUESTIONS.toml"
        text = (
            f"Workspace {workspace.catalog.workspace.name} in {root}\n"
            f"  store   {workspace.store.location}\n  ledger  {workspace.ledger_path}\n"
            f"  sources {', '.join(sources) or 'none yet: add [source.NAME] to tieout.toml'}\n"
            f"Next: {workspace.command('snapshot')}, then {ask}\n"
        )
        self.document(Document(data, text))

    def pinned(self, workspace: Workspace, pinned: Sequence[PinnedSource]) -> None:
        """What `snapshot` pinned, and how each file was read."""
        from tieout.pinned_text import pinned_data, pinned_lines

        rows: list[Json] = [pinned_data(workspace.store, one) for one in pinned]
        lines = [line for one in pinned for line in pinned_lines(workspace.store, one)]
        data: dict[str, Json] = {"workspace": str(workspace.catalog.root), "snapshots": rows}
        self.document(Document(data, "\n".join(lines) or "no sources"))

    def batch(self, workspace: Workspace, result: BatchResult) -> None:
        """A run's answers, its tie-out table, where the evidence lies, what to do next."""
        from tieout.batch_text import batch_data, batch_text

        self.document(Document(batch_data(workspace, result), batch_text(workspace, result)))

    def replayed(self, replayed: Replayed) -> None:
        """What a replay found."""
        comparison = replayed.comparison
        found = [*comparison.differences]
        data: dict[str, Json] = {
            "run": replayed.run,
            "agrees": replayed.agrees and not comparison.builds,
            "questions": replayed.questions,
            "rows": comparison.compared,
            "addresses": comparison.addresses,
            "content_digests": comparison.digests,
            "stopped": replayed.stopped,
            "differences": [
                {"place": d.place, "what": d.what, "recorded": d.recorded, "replayed": d.replayed}
                for d in found
            ],
            "other_builds": [
                {"place": d.place, "recorded": d.recorded, "replayed": d.replayed}
                for d in comparison.builds
            ],
            "other_hosts": [
                {"place": d.place, "recorded": d.recorded, "replayed": d.replayed}
                for d in comparison.hosts
            ],
        }
        counted = (
            f"{replayed.questions} questions, {comparison.compared} ledger rows, "
            f"{comparison.addresses} addresses, {comparison.digests} content digests"
        )
        lines = [f"Replay of {replayed.run}: {counted}"]
        lines += [
            f"  differs: {d.place}: {d.what}\n    recorded {d.recorded}\n    replayed {d.replayed}"
            for d in found[:DIFFERENCES_SHOWN]
        ]
        if len(found) > DIFFERENCES_SHOWN:
            lines.append(f"  and {len(found) - DIFFERENCES_SHOWN} more (--json lists all)")
        if comparison.builds:
            first = comparison.builds[0]
            lines.append(f"  another build: recorded {first.recorded}; here {first.replayed}")
        if comparison.hosts:
            first = comparison.hosts[0]
            lines.append(f"  another machine: recorded on {first.recorded}; here {first.replayed}")
        if replayed.stopped:
            lines.append(f"  stopped: {replayed.stopped}")
        elif not found:
            lines.append("Every address and every content digest agreed.")
        self.document(Document(data, "\n".join(lines)))

    def verified(self, workspace: Workspace, report: Report) -> None:
        """What `verify` found."""
        findings = [finding.document() for finding in report.findings]
        data: dict[str, Json] = {
            "holds": report.holds,
            "unchecked": report.unchecked,
            "entries": report.entries,
            "objects": report.objects,
            "root": report.root,
            "ledger": str(workspace.ledger_path),
            "store": workspace.store.location,
            "findings": [dict(finding) for finding in findings],
        }
        lines = report.lines()
        stop = ":" if report.holds and not report.unchecked else "."
        lines.append(
            f"{report.verdict()}{stop} {report.entries} ledger entries, {report.objects} objects, "
            f"{len(report.findings)} findings"
        )
        if report.holds:
            kept = f"--expect {report.entries}:{report.root}"
            lines.append(f"Note for later: {workspace.command('verify', kept)}")
        self.document(Document(data, "\n".join(lines)))

    def listed(self, listed: Sequence[Mapping[str, Json]]) -> None:
        """A list of runs or of ledger rows, for people as columns below their headings."""
        lines = ["nothing yet"]
        if listed:
            rows = [tuple(listed[0]), *(tuple(map(_listed_cell, r.values())) for r in listed)]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        self.document(Document({"entries": [dict(row) for row in listed]}, "\n".join(lines)))

    def diagnosis(self, diagnosis: Diagnosis) -> None:
        """What `doctor` found."""
        self.document(Document(diagnosis.document(), diagnosis.text()))


def shortened(text: str) -> str:
    """The text with addresses cut to what a reader needs; `show` takes them so."""
    return _ADDRESS.sub(r"\1…", text)


def _listed_cell(value: Json) -> str:
    return shortened(one_line(str(value)))


def exit_of(result: BatchResult) -> int:
    """0 fine; 3 a question failed; 1 an expectation does not hold."""
    if not result.complete:
        return Exit.INCOMPLETE
    return Exit.FINE if result.holds else Exit.DOES_NOT_HOLD


def exit_of_replay(replayed: Replayed) -> int:
    """1 it differs; 12 another build and no difference; 3 the run was cut off; 0 all agreed.

    A difference comes first: the recorded build is a text, and must not excuse a result.
    """
    comparison = replayed.comparison
    if comparison.differences:
        return Exit.DOES_NOT_HOLD
    if comparison.builds:
        return Exit.OTHER_FORMAT
    if not replayed.finished:
        return Exit.INCOMPLETE
    return Exit.FINE if replayed.agrees else Exit.DOES_NOT_HOLD


def expected(text: str | None) -> tuple[int, str] | None:
    """SIZE:ROOT as values. Raises ExecutorError verify.expect."""
    if text is None:
        return None
    found = _EXPECTED.fullmatch(text)
    if found is None:
        raise ExecutorError(
            "verify.expect",
            f"{text[:80]!r} is not SIZE:ROOT",
            remedy="Give what an earlier `tieout verify` noted: a size and 64 digits.",
            exit_code=Exit.USAGE,
        )
    return int(found[1]), found[2].lower()


def guarded(
    command: Callable[[], object], arguments: Sequence[str], environ: Mapping[str, str]
) -> int:
    """Run a command; an error of ours is told on standard error and becomes its exit code.

    With --json standard error is one line, a JSON object, whenever the code is not 0.
    """
    as_json = "--json" in arguments
    try:
        found = command()
        code = int(found) if isinstance(found, int) else Exit.FINE
        return _ended(code, as_json)
    except RoomError as error:
        _tell(error, as_json)
        return int(error.exit_code)
    except SystemExit as error:
        return _ended(_usage_code(error), as_json)
    except KeyboardInterrupt:
        if not as_json:
            sys.stderr.write("tieout: interrupted; what was recorded stays\n")
        return _ended(Exit.INTERRUPTED, as_json)
    except BrokenPipeError:
        # The reader of standard output is gone; nothing more can be told there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FINE
    except Exception:
        if environ.get("TIEOUT_DEBUG"):
            raise
        if not as_json:
            sys.stderr.write(traceback.format_exc())
            sys.stderr.write("tieout: this is a bug of ours; the record so far is kept\n")
        return _ended(Exit.BUG, as_json, place=traceback.format_exc())


_VERDICTS: Final[Mapping[int, tuple[str, str, str]]] = {
    Exit.DOES_NOT_HOLD: (
        "exit.does_not_hold",
        "it was checked, and it does not hold",
        "Look at what standard output says differs or is broken.",
    ),
    Exit.USAGE: (
        "exit.usage",
        "the command line is not understood",
        "`tieout --help` lists the commands, `tieout COMMAND --help` its options.",
    ),
    Exit.INCOMPLETE: (
        "exit.incomplete",
        "a question failed, or a run was not finished",
        "Look at what standard output says failed and why; `tieout show latest` tells it again.",
    ),
    Exit.ENVIRONMENT: (
        "exit.environment",
        "something of this machine is broken",
        "Look at what standard output calls broken.",
    ),
    Exit.OTHER_FORMAT: (
        "exit.other_build",
        "the run was recorded by another build",
        "Replay with the recorded build; equality across builds is not promised.",
    ),
    Exit.BUG: (
        "exit.bug",
        "this is a bug of ours; the record so far is kept",
        "Report it with all that is said of it here.",
    ),
    Exit.INTERRUPTED: (
        "exit.interrupted",
        "it was interrupted; what was recorded stays",
        "Run it again; what is pinned is not read twice.",
    ),
}


def _ended(code: int, as_json: bool, *, place: str = "") -> int:
    """Tell a program that reads standard error what the code means; the code."""
    if as_json and code in _VERDICTS:
        name, message, remedy = _VERDICTS[code]
        _tell(RoomError(name, message, place=place, remedy=remedy), as_json)
    return code


def _tell(error: RoomError, as_json: bool) -> None:
    """The error, and those of other sources that came with it: lines for people, or one object."""
    others = error.others if isinstance(error, SourcesRefused) else ()
    if as_json:
        document: dict[str, Json] = {**error.document()}
        if others:
            document["others"] = [{**other.document()} for other in others]
        sys.stderr.write(json.dumps(document, ensure_ascii=False) + "\n")
        return
    for one in (error, *others):
        sys.stderr.write(f"tieout: {one.code}: {one_line(str(one), chars_max=20_000)}\n")


def _usage_code(error: SystemExit) -> int:
    """The command-line library ends with 1 for wrong usage; here that is 2."""
    if error.code in (None, 0):
        return Exit.FINE
    return Exit.USAGE
