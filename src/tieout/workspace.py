"""The public interface from Python: open a workspace, pin sources, ask, replay, verify, show.

    import tieout
    with tieout.open_workspace("close") as ws:
        result = ws.run("close/questions.toml")
        print(result.run, result.holds)

What only reads (verify, show, log) never loads the engine, a model's client or boto3.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from tieout.artifacts.address import Address
from tieout.artifacts.durable import create_exclusive, make_folder
from tieout.artifacts.opening import create_store, open_store
from tieout.artifacts.store import Store
from tieout.executor.catalog import CATALOG_NAME, Catalog, parse_catalog
from tieout.executor.clock import Clock, SystemClock
from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.limits import Limits
from tieout.ledger.audit.objects import LocalObjects, StoreObjects
from tieout.ledger.canon import Json
from tieout.ledger.log import Log
from tieout.settings import Settings, catalog_at, resolve

if TYPE_CHECKING:
    from tieout.executor.engine import Engine
    from tieout.executor.pinning import PinnedSource
    from tieout.executor.record import Recorder
    from tieout.ledger.audit.drill import Drill
    from tieout.ledger.audit.findings import Report
    from tieout.planner.batch import BatchResult, ModelChoice
    from tieout.planner.loop import Delivered
    from tieout.planner.model import Model
    from tieout.planner.questions import Question, QuestionFile
    from tieout.planner.rerun import Replayed

MIB: Final = 1 << 20


def open_workspace(
    path: str | Path | None = None,
    *,
    flags: Mapping[str, str | None] | None = None,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> Workspace:
    """Open the workspace in a folder, or the one found upwards from here.

    flags: settings that win over every other source. Raises ExecutorError workspace.missing,
    catalog.*, settings.*; the store and the ledger are opened when they are first needed.
    """
    catalog = catalog_at(None if path is None else Path(path))
    environ = os.environ if environ is None else environ
    settings = resolve(catalog, flags=flags or {}, environ=environ)
    return Workspace(catalog, settings, clock or SystemClock())


def init_workspace(path: str | Path, *, flags: Mapping[str, str | None] | None = None) -> Workspace:
    """Make what a workspace needs and leave what is there: tieout.toml, store, ledger.

    CSV files that lie in the folder become its first sources. Raises as opening does, and
    LedgerError, ArtifactError where the disk refuses.
    """
    from tieout.init_template import catalog_template

    root = Path(path)
    make_folder(root)
    if not (root / CATALOG_NAME).exists():
        create_exclusive(root / CATALOG_NAME, catalog_template(root))
    workspace = open_workspace(root, flags=flags)
    workspace.create()
    return workspace


class Workspace:
    """A workspace: its catalog, settings, store and ledger. A context manager; not for threads."""

    def __init__(self, catalog: Catalog, settings: Settings, clock: Clock) -> None:
        self.catalog = catalog
        self.settings = settings
        self.clock = clock
        self._store: Store | None = None
        self._log: Log | None = None
        self._writes = False
        self._engines: dict[Limits, Engine] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the ledger's lock and end the engine's processes. Idempotent."""
        for engine in self._engines.values():
            engine.close()
        self._engines.clear()
        if self._log is not None:
            self._log.close()
            self._log = None

    def command(self, verb: str, rest: str = "") -> str:
        """A command to try next, as it can be pasted here: with -w unless this is the workspace."""
        root = self.catalog.root.resolve()
        where = "" if root == Path.cwd() else f" -w {shlex.quote(str(root))}"
        flags = "".join(
            f" --{name} {shlex.quote(setting.value)}"
            for name, setting in self.settings.values.items()
            if setting.origin == "flag" and name in {"store", "ledger"}
        )
        return f"tieout {verb}{where}{flags} {rest}".rstrip()

    @property
    def ledger_path(self) -> Path:
        """The ledger's file."""
        return self._place("ledger")

    @property
    def store(self) -> Store:
        """The store. Raises ArtifactError store.missing (exit 10)."""
        if self._store is None:
            self._store = open_store(self._store_location(), base=self.catalog.root)
        return self._store

    def create(self) -> None:
        """Make the store and the ledger if they are not there."""
        from tieout.ledger.sqlite import create

        make_folder(self.ledger_path.parent)
        self._store = create_store(self._store_location(), base=self.catalog.root)
        if not self.ledger_path.exists():
            self._refuse_orphaned_store(self._store)
            create(self.ledger_path).close()

    def _refuse_orphaned_store(self, store: Store) -> None:
        """A store of our own that holds evidence has lost its ledger: a new one would hide it."""
        shared = "://" in store.location or Path(self.settings["store"]).is_absolute()
        if not shared and next(iter(store.addresses()), None) is not None:
            raise ExecutorError(
                "workspace.ledger_lost",
                "the store holds objects, and the ledger that names them is not there",
                place=str(self.ledger_path),
                remedy="Put the ledger back from a copy; for a new one give a new store too.",
                exit_code=Exit.DOES_NOT_HOLD,
            )

    def log(self, *, write: bool = False) -> Log:
        """The ledger. Raises LedgerError ledger.missing (10), ledger.locked (11) for a writer."""
        from tieout.ledger.sqlite import open_log, read_log

        if self._log is not None and write and not self._writes:
            self._log.close()
            self._log = None
        if self._log is None:
            self._log = open_log(self.ledger_path) if write else read_log(self.ledger_path)
            self._writes = write
        return self._log

    def snapshot(self, names: Sequence[str] = ()) -> tuple[PinnedSource, ...]:
        """Pin sources as they are now; all of them without names."""
        from tieout.executor.ending import ending_recorded

        recorder = self._recorder("s")
        with ending_recorded(recorder, tool="snapshot"):
            return self._pin(names or tuple(self.catalog.sources), recorder)

    def run(
        self,
        questions: str | Path,
        *,
        pinned: bool = False,
        told: Callable[[Delivered], None] | None = None,
        started: Callable[[str, int], None] | None = None,
    ) -> BatchResult:
        """Ask every question of a file. pinned: use the newest snapshots, read no source file.

        told: called after each question. started: called with the run's id and the number of
        questions once they are read.
        """
        from tieout.planner.questions import load_questions

        file = load_questions(Path(questions), frozenset(self.catalog.sources))
        return self.run_questions(file, pinned=pinned, told=told, started=started)

    def ask(
        self,
        text: str,
        *,
        sources: Sequence[str] = (),
        plan: bytes | str | Path | None = None,
        as_of: str = "",
        pinned: bool = False,
    ) -> BatchResult:
        """Ask one question over some sources, all without names; a model plans without a plan.

        plan: the bytes of a plan, or the path of its file. Raises ExecutorError plan.missing,
        plan.unreadable, plan.kind, and what `run_questions` raises.
        """
        from tieout.planner.questions import given_plan, single_question

        names = tuple(sources) or tuple(self.catalog.sources)
        for name in names:
            self.catalog.source(name)
        written, called = given_plan(plan)
        file = single_question(text, sources=names, plan=written, plan_name=called, as_of=as_of)
        return self.run_questions(file, pinned=pinned)

    def run_questions(
        self,
        file: QuestionFile,
        *,
        pinned: bool = False,
        told: Callable[[Delivered], None] | None = None,
        started: Callable[[str, int], None] | None = None,
    ) -> BatchResult:
        """Ask questions that were read already; `run` and `ask` come down to this.

        Raises before anything is recorded where a plan file or a setting is not usable.
        """
        from tieout.executor.ending import ending_recorded
        from tieout.planner.batch import Batch, run_batch

        for question in file.questions:
            self._choose(question)
        names = sorted({name for question in file.questions for name in question.sources})
        recorder = self._recorder("r")
        with ending_recorded(recorder, tool="run"):
            addresses = (
                self._newest(names)
                if pinned
                else {p.name: p.manifest for p in self._pin(names, recorder)}
            )
            if started is not None:
                started(recorder.trace, len(file.questions))
            batch = Batch(self.catalog, self.store, self.engine, self._choose, told)
            return run_batch(batch, recorder, file, addresses, self._run_settings())

    def replay(self, run: str, *, engine: Engine | None = None) -> Replayed:
        """Run a past run again from its evidence and compare everything that comes out."""
        from tieout.planner.rerun import replay

        def catalog_of(payload: bytes) -> Catalog:
            return parse_catalog(payload, root=self.catalog.root, place=f"catalog of {run}")

        return replay(
            self.run_id(run),
            store=self.store,
            log=self.log(),
            catalog_of=catalog_of,
            engine_of=lambda catalog: engine or self._engine_with(catalog.limits),
            preparer=_preparer,
        )

    def verify(self, *, expect: tuple[int, str] | None = None) -> Report:
        """Check the ledger and the store by code that shares nothing with what wrote them."""
        from tieout.ledger.audit.fsck import check

        store = self.store
        objects = (
            StoreObjects(store)
            if "://" in store.location
            else LocalObjects(Path(store.location))  # the check's own reader of the folder
        )
        self.close()  # two SQLite libraries in one process drop each other's file locks
        return check(self.ledger_path, objects, expect_root=expect)

    def drill(self) -> Drill:
        """Look through the ledger and the store by address."""
        from tieout.ledger.audit.drill import Drill

        return Drill(self.log(), self.store)

    def run_id(self, text: str, *, snapshots: bool = False) -> str:
        """A run's id by itself, its beginning or `latest`. Raises ExecutorError run.unknown.

        snapshots: what pinned sources without asking anything has an id as well.
        """
        from tieout.ledger.row import Kind

        asked: dict[str, bool] = {}
        for entry in self.log().entries():
            run = entry.row.trace_id
            asked[run] = asked.get(run, False) or entry.row.kind is Kind.RUN
        runs = [run for run, is_run in asked.items() if is_run]
        if text == "latest" and runs:
            return runs[-1]
        known = list(asked) if snapshots else runs
        found = [run for run in known if run == text] or [r for r in known if r.startswith(text)]
        if len(found) == 1:
            return found[0]
        raise ExecutorError(
            "run.unknown",
            f"{len(found)} runs are called {text!r}",
            place=", ".join(found[:4]),
            remedy="`tieout log` lists the runs.",
        )

    @property
    def engine(self) -> Engine:
        """The engine of this workspace, started when it is first needed."""
        return self._engine_with(self.catalog.limits)

    def _engine_with(self, limits: Limits) -> Engine:
        """An engine with these bounds: a replay runs under those of its run."""
        from tieout.executor.engine import Engine, EngineLimits

        if limits not in self._engines:
            self._engines[limits] = Engine(
                cache=Path(self.settings["cache"]),
                limits=EngineLimits(
                    seconds_max=limits.step_seconds_max,
                    memory_bytes_max=limits.memory_mib_max * MIB,
                    rows_max=limits.rows_stored_max,
                    result_bytes_max=limits.result_mib_max * MIB,
                    sql_chars_max=limits.sql_chars_max,
                ),
            )
        return self._engines[limits]

    def _place(self, name: str) -> Path:
        """A path setting: from flag and environment relative to here, else to the workspace."""
        setting = self.settings.values[name]
        value = Path(setting.value)
        near = setting.origin == "flag" or setting.origin.startswith("TIEOUT_")
        return value.absolute() if near else self.catalog.root / value

    def _store_location(self) -> str:
        location = self.settings["store"]
        return location if "://" in location else str(self._place("store").absolute())

    def _recorder(self, prefix: str) -> Recorder:
        from tieout.executor.record import Recorder

        log = self.log(write=True)
        return Recorder(self.store, log, self.clock, f"{prefix}-{self.clock.new_id()}")

    def _pin(self, names: Sequence[str], recorder: Recorder) -> tuple[PinnedSource, ...]:
        from tieout.executor.pinning import pin

        sources = [self.catalog.source(name) for name in names]
        return pin(sources, root=self.catalog.root, recorder=recorder, limits=self.catalog.limits)

    def _newest(self, names: Sequence[str]) -> dict[str, Address]:
        from tieout.executor.pinning import newest

        found = {}
        for name in names:
            entry = newest(self.log(), name)
            output = None if entry is None else entry.row.deterministic_output
            if output is None:
                raise ExecutorError(
                    "source.not_pinned",
                    f"source {name!r} was never pinned",
                    place=name,
                    remedy=f"Run `tieout snapshot {name}`, or leave --pinned out.",
                    exit_code=Exit.REFUSED,
                )
            found[name] = output.address
        return found

    def _choose(self, question: Question) -> ModelChoice:
        from tieout.planner.batch import ModelChoice
        from tieout.planner.choice import claude, written

        settings = self._run_settings()
        return ModelChoice(*(claude(settings) if question.plan is None else written(question)))

    def _run_settings(self) -> dict[str, Json]:
        limits = self.catalog.limits
        return {
            "model": {
                "name": self.settings["model"],
                "base_url": self.settings["base_url"],
                "max_tokens": limits.reply_tokens_max,
                "retries": self.settings.number("retries"),
                "timeout_s": self.settings.number("timeout_s"),
            },
            "limits": limits.model_dump(mode="json"),
        }


def _preparer(question: Question, settings: Mapping[str, Json]) -> Model:
    """The model that built the requests of a past run: only its `prepare` is used."""
    from tieout.planner.choice import claude, written

    return (written(question) if question.plan is not None else claude(settings))[0]
