"""The command line: data on standard output, all else on standard error, exit codes of DESIGN §14.

Commands are thin: each opens a workspace, calls one thing of it, prints. `--json` prints one
document. What only reads never loads the engine, a model's client or boto3.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

from tieout import output
from tieout.artifacts.errors import Exit
from tieout.executor.errors import ExecutorError
from tieout.workspace import Workspace, init_workspace, open_workspace

app = App(
    name="tieout",
    help="Answers about money and facts, each figure traceable by hash to the line of its file.",
    version_flags=["--version"],
    help_flags=["--help", "-h"],
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)


@Parameter(name="*")
@dataclass(frozen=True)
class Common:
    """What every command takes."""

    workspace: Annotated[Path | None, Parameter(name=["--workspace", "-w"])] = None
    """The workspace's folder; else the one found upwards from here."""
    json: bool = False
    """Print one JSON document."""
    store: str | None = None
    """The store: a folder or s3://bucket/prefix."""
    ledger: str | None = None
    """The ledger's SQLite file."""
    color: bool = True
    """Colours on a terminal; NO_COLOR and FORCE_COLOR are obeyed."""

    def flags(self, **more: str | None) -> dict[str, str | None]:
        """The settings that were given as flags."""
        return {"store": self.store, "ledger": self.ledger, **more}

    def open(self, **more: str | None) -> Workspace:
        """Open the workspace."""
        return open_workspace(self.workspace, flags=self.flags(**more))

    @property
    def out(self) -> output.Output:
        """Where and how to print."""
        return output.Output(as_json=self.json, color=self.color)


DEFAULT = Common()


@app.command
def init(folder: Path | None = None, *, common: Common = DEFAULT) -> int:
    """Make a workspace here or in FOLDER: tieout.toml, store and ledger; what is there stays."""
    root = folder or common.workspace or Path()
    with init_workspace(root, flags=common.flags()) as workspace:
        common.out.initialised(workspace)
    return Exit.FINE


@app.command
def snapshot(*sources: str, common: Common = DEFAULT) -> int:
    """Pin SOURCES, or all of them, as they are now: bytes kept, rows typed, lines accounted for."""
    with common.open() as workspace:
        common.out.pinned(workspace, workspace.snapshot(sources))
    return Exit.FINE


@app.command
def run(
    questions: Path,
    *,
    pinned: bool = False,
    model: str | None = None,
    base_url: str | None = None,
    common: Common = DEFAULT,
) -> int:
    """Ask every question of QUESTIONS (a questions.toml) and deliver checked answers.

    Parameters
    ----------
    questions:
        The questions file; plans it names are read beside it.
    pinned:
        Use the newest snapshots and read no source file.
    model:
        The model that plans questions without a plan file.
    base_url:
        A server that speaks the Messages API.

    """
    with common.open(model=model, base_url=base_url) as workspace:
        with common.out.progress() as bar:
            result = workspace.run(questions, pinned=pinned, told=bar.told, started=bar.started)
        common.out.batch(workspace, result)
    return output.exit_of(result)


@app.command
def ask(
    question: str,
    *,
    source: list[str] | None = None,
    plan: Path | None = None,
    as_of: str = "",
    pinned: bool = False,
    model: str | None = None,
    base_url: str | None = None,
    common: Common = DEFAULT,
) -> int:
    """Ask one QUESTION over the workspace's sources.

    Parameters
    ----------
    question:
        The question in words.
    source:
        A source it may use; give it again for more. All of them without.
    plan:
        A plan file instead of a model.
    as_of:
        A date; documents published later do not exist for the question, and it sets the clock
        that SQL reads: current_date is that day.
    pinned:
        Use the newest snapshots and read no source file.
    model:
        The model that plans.
    base_url:
        A server that speaks the Messages API.

    """
    with common.open(model=model, base_url=base_url) as workspace:
        result = workspace.ask(
            question, sources=source or (), plan=plan, as_of=as_of, pinned=pinned
        )
        common.out.batch(workspace, result)
    return output.exit_of(result)


@app.command
def check(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    *,
    source: list[str] | None = None,
    as_of: str = "",
    common: Common = DEFAULT,
) -> int:
    """Check a query without running or recording it: admitted, a function of the data, if not why.

    Parameters
    ----------
    file:
        A file with one SELECT, or - for standard input.
    source:
        A table source it may read; give it again for more. All that are pinned without.
    as_of:
        A date; it sets the clock that the query reads: current_date is that day.

    """
    from tieout.check import check as examine
    from tieout.check import checked_document, read_query

    sql = read_query(file, sys.stdin.buffer)
    with common.open() as workspace:
        checked = examine(workspace, file, sql, sources=source or (), as_of=as_of)
        common.out.document(checked_document(checked))
    return Exit.FINE if checked.refused is None else Exit.REFUSED


@app.command
def replay(run: str = "latest", *, common: Common = DEFAULT) -> int:
    """Run RUN again from its evidence alone and compare every address and content digest."""
    with common.open() as workspace:
        replayed = workspace.replay(run)
        common.out.replayed(replayed)
    return output.exit_of_replay(replayed)


@app.command
def verify(*, expect: str | None = None, common: Common = DEFAULT) -> int:
    """Check the ledger and the store by code that shares nothing with what wrote them.

    Parameters
    ----------
    expect:
        SIZE:ROOT as noted earlier; shows rollback, truncation and a rewritten history.

    """
    with common.open() as workspace:
        report = workspace.verify(expect=output.expected(expect))
        common.out.verified(workspace, report)
    return Exit.FINE if report.holds else Exit.DOES_NOT_HOLD


@app.command
def show(reference: str = "latest", *, rows: int = 20, common: Common = DEFAULT) -> int:
    """Show an artifact, a cell, a passage, a run, an answer or a figure, and where it came from.

    Parameters
    ----------
    reference:
        RUN (an id, the beginning of one, or latest), RUN/QUESTION, RUN/QUESTION/FIGURE;
        QUESTION, QUESTION/FIGURE (of the newest run that has it); SOURCE (its newest snapshot);
        ADDRESS (8 or more of its digits; a document's text too), ADDRESS#ROW,
        ADDRESS#ROW:COLUMN, ADDRESS@START-END (a passage of a text).
    rows:
        How many rows of a table to print.

    """
    from tieout.showing import show as look

    with common.open() as workspace:
        common.out.document(look(workspace, reference, rows=rows))
    return Exit.FINE


@app.command
def log(run: str | None = None, *, last: int = 0, common: Common = DEFAULT) -> int:
    """List the runs and snapshots, or the ledger rows of one of them.

    Parameters
    ----------
    run:
        The run or snapshot whose rows are listed: its id or the beginning of it, or latest.
    last:
        Only the last so many.

    """
    from tieout.listing import list_rows, list_runs

    with common.open() as workspace:
        listed = list_rows(workspace, run) if run else list_runs(workspace)
        common.out.listed(listed[-last:] if last > 0 else listed)
    return Exit.FINE


@app.command
def doctor(*, common: Common = DEFAULT) -> int:
    """Say what this machine and this workspace are: versions, settings, what is weak."""
    from tieout.diagnosis import examine

    with common.open() as workspace:
        diagnosis = examine(workspace)
        common.out.diagnosis(diagnosis)
    return Exit.FINE if diagnosis.sound else Exit.ENVIRONMENT


def start(arguments: list[str] | None = None) -> int:
    """Run the command line; every error of ours becomes its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    return output.guarded(lambda: _called(given), given, os.environ)


def _called(arguments: list[str]) -> object:
    """Call the command. For people the library draws a box around wrong usage and ends."""
    if "--json" not in arguments:
        return app(arguments)
    try:
        return app(arguments, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        raise ExecutorError(
            "exit.usage",
            " ".join(str(error).split()).rstrip("."),
            remedy="`tieout --help` lists the commands, `tieout COMMAND --help` its options.",
            exit_code=Exit.USAGE,
        ) from error
