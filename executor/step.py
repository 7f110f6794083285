"""`perform`: validate, run, store, record, observe. Record-before-show is this one function.

A step comes out as a `StepResult` with a receipt, whatever happened: a result, a refusal, a
failure, a bound that was reached. The model is shown a text only through `Shown`, and that only
through the receipt (record.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.table import Column, TableArtifact, canonical
from tieout.executor.check_document import rewrites_of
from tieout.executor.countercheck import Ties, countercheck, tied_by_earlier
from tieout.executor.engine import Engine, TableBytes
from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.extract import ExtractSpec, extract
from tieout.executor.grammar import ExtractStep, SearchStep, SqlStep
from tieout.executor.limits import Limits
from tieout.executor.observation import observe, read_back, refusal_text
from tieout.executor.provenance import text_rows, validation_document
from tieout.executor.record import (
    DONE,
    HOUSE,
    JSON_MEDIA,
    SQL_MEDIA,
    Made,
    Recorder,
    RowDraft,
    Shown,
    made_table,
)
from tieout.executor.result_bounds import check_cells
from tieout.executor.result_values import check_finite
from tieout.executor.search import search
from tieout.executor.sql.validate import ColumnOrigin, RowOrigin, SqlRefused
from tieout.executor.text_origins import text_origins
from tieout.executor.world import Pinned, StepResult, World, is_known
from tieout.ledger.canon import Json
from tieout.ledger.row import ExecutorInfo, Input, Kind, Outcome, Position, Status

OBSERVATION: Final = "observation"
REFUSAL: Final = "refusal"
MESSAGE_CHARS_MAX: Final = 2_000
Step = SqlStep | SearchStep | ExtractStep
_KINDS: Final[Mapping[str, Kind]] = {
    "sql": Kind.SQL,
    "search": Kind.SEARCH,
    "extract": Kind.EXTRACT,
}
# What these codes say is that a bound was reached or the machine failed, not that the text was bad.
_NOT_A_REFUSAL: Final = frozenset({Exit.INCOMPLETE, Exit.ENVIRONMENT, Exit.BUG})


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the run a step stands. subject: "question/t1/step"; sequence: order in the plan."""

    subject: str
    sequence: int
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Bench:
    """What performing needs. asked: exactly what the model wrote for the step."""

    recorder: Recorder
    engine: Engine
    limits: Limits


@dataclass(frozen=True, slots=True)
class _Ran:
    """A step that ran, not recorded yet."""

    table: TableArtifact
    origins: Mapping[str, ColumnOrigin]
    row_origin: RowOrigin
    inputs: tuple[Input, ...]
    executor: ExecutorInfo
    complete: bool = True
    executed: bytes | None = None
    parts: tuple[Made, ...] = ()
    rewrites: Sequence[Json] = ()
    ties: Ties = Ties.IMPOSSIBLE
    tied: frozenset[str] = frozenset()
    source: str = ""
    key: tuple[str, ...] = field(default=())
    unseen: int = 0
    """Documents that as_of keeps from the question."""


def perform(bench: Bench, world: World, step: Step, *, asked: str, place: Place) -> StepResult:
    """Perform one step of an admitted plan and record what became of it.

    Raises only what the store and the log raise (nothing was recorded then); everything else is
    an outcome in the ledger row.
    """
    try:
        _check_name(world, step)
        if isinstance(step, SqlStep):
            ran = _sql(bench, world, step)
        elif isinstance(step, SearchStep):
            ran = _search(world, step)
        else:
            ran = _extract(world, step)
    except ExecutorError as error:
        return _record_error(bench, step, error, asked=asked, place=place)
    return _record_result(bench, world, step, ran, asked=asked, place=place)


def shown(recorder: Recorder, result: StepResult) -> Shown:
    """What the model is shown of a step: its observation, or why there is none."""
    part, role = (OBSERVATION, "observation") if result.ok else (REFUSAL, "refusal")
    return recorder.show(result.receipt, part, role=role)


def _sql(bench: Bench, world: World, step: SqlStep) -> _Ran:
    granted = world.granted()
    try:
        validated = bench.engine.validate(step.sql, granted, as_of=world.as_of)
    except SqlRefused as error:
        raise _blame_earlier_step(world, step, error) from error
    wanted = {name: world.address(name) for name in validated.tables}
    tables = {
        name: TableBytes(address, partial(world.store.scan, address), name in world.sources)
        for name, address in wanted.items()
    }
    result = bench.engine.run(validated, tables)
    check_cells(result.table, bench.limits.cell_bytes_max)
    check_finite(result.table)
    table = _canonical(result.table, tuple(step.key), ordered=validated.ordered)
    found = countercheck(bench.engine, validated, tables, result.table, key=step.key)
    tied = found.tied | tied_by_earlier(validated, _tied(world, wanted))
    info = bench.engine.info
    return _Ran(
        table=table,
        origins={origin.name: origin for origin in validated.origins},
        row_origin=validated.rows,
        inputs=tuple(Input(f"table:{name}", address) for name, address in sorted(wanted.items())),
        executor=ExecutorInfo(info.name, info.version, info.build, info.recorded()),
        complete=result.complete,
        executed=validated.executed.encode("utf-8"),
        parts=(
            Made("formatted", validated.formatted.encode("utf-8"), SQL_MEDIA),
            Made("validation", validation_document(validated, found.ties, tied), JSON_MEDIA),
        ),
        rewrites=rewrites_of(validated.verdict),
        ties=found.ties,
        tied=tied,
        key=tuple(step.key),
    )


def _tied(world: World, names: Iterable[str]) -> dict[str, tuple[frozenset[str], int]]:
    """Of the earlier steps among the tables read: their tied columns, and how many they have."""
    read = [step for name in names if (step := world.steps.get(name)) is not None]
    return {step.id: (step.tied, len(step.columns)) for step in read}


def _check_name(world: World, step: Step) -> None:
    earlier = world.steps.get(step.id)
    if (
        step.id in world.sources
        or step.id in world.reserved
        or (earlier is not None and earlier.ok)
    ):
        raise ExecutorError(
            "step.name_taken",
            f"{step.id!r} is the name of a source or of an earlier step",
            place=step.id,
            remedy="Give the step another id.",
        )


def _blame_earlier_step(world: World, step: SqlStep, error: SqlRefused) -> ExecutorError:
    """A table is unknown when the step that should have made it failed: then say so."""
    if error.code != "sql.unknown_table":
        return error
    for name in re.findall(r"[a-z][a-z0-9_]*", step.sql.lower()):
        failed = world.failed(name)
        if failed is not None:
            return _dependency(failed)
    return error


def _dependency(failed: StepResult) -> ExecutorError:
    return ExecutorError(
        "step.dependency_failed",
        f"the step {failed.id!r} that it needs has no result ({failed.code})",
        place=failed.id,
        remedy=f"Repair {failed.id!r} first.",
        exit_code=Exit.INCOMPLETE,
    )


def _canonical(table: object, key: tuple[str, ...], *, ordered: bool) -> TableArtifact:
    try:
        return canonical(table, key=key, ordered=ordered)
    except ArtifactError as error:
        raise ExecutorError(
            error.code.replace("table.", "result."), error.message, remedy=error.remedy
        ) from error


def _text_source(world: World, name: str) -> Pinned:
    source = world.sources.get(name)
    if source is None or source.kind != "text":
        texts = ", ".join(sorted(n for n, s in world.sources.items() if s.kind == "text"))
        raise ExecutorError(
            "step.unknown_source",
            f"there is no text source {name!r} for this question; there is: {texts or 'none'}",
            place=name,
            remedy="Search one of the catalog's text sources; tables are read by SQL.",
        )
    return source


def _search(world: World, step: SearchStep) -> _Ran:
    source = _text_source(world, step.source)
    documents = {d.name: world.document(source, d.name) for d in source.documents}
    index, manifest = Address.parse(source.index), Address.parse(source.index_manifest)
    hits = search(
        world.store.get(index),
        world.store.get(manifest),
        documents,
        step.query,
        limit=step.limit,
        as_of=world.as_of,
    )
    table = canonical(hits, key=("rank",))
    # A list cut off at the limit has the number of rows that the plan asked for: the model's.
    literals = (str(step.limit),) if table.rows >= step.limit else ()
    return _Ran(
        table=table,
        origins=text_origins(table, step.source, literals),
        row_origin=text_rows(table, step.source, literals),
        inputs=(Input("index", index), Input("index_manifest", manifest)),
        executor=HOUSE,
        source=step.source,
        key=("rank",),
        unseen=sum(not is_known(d.published, world.as_of) for d in source.documents),
    )


def _extract(world: World, step: ExtractStep) -> _Ran:
    hits = world.steps.get(step.from_)
    if hits is None or hits.verb != "search":
        raise ExecutorError(
            "step.not_a_search",
            f"{step.from_!r} is not an earlier search step",
            place=step.id,
            remedy="Search first and give the search step's id in `from`.",
        )
    if not hits.ok:
        raise _dependency(hits)
    source = world.sources[hits.source]
    reader = world.reader(hits.receipt.parts["output"])
    names = [str(row["document"]) for row in reader.page(0, reader.rows)]
    if step.document is not None:
        names = [name for name in names if name == step.document]
    if not names:
        raise ExecutorError(
            "step.no_documents",
            f"the search {step.from_!r} found no such document to read the quote from",
            place=step.id,
            remedy="Search again with other words.",
        )
    documents = [world.document(source, name) for name in dict.fromkeys(names)]
    spec = ExtractSpec(
        quote=step.quote,
        near=step.near,
        as_=step.as_,
        occurrence=step.occurrence,
        unit=step.unit,
    )
    table = canonical(extract(spec, documents))
    return _Ran(
        table=table,
        origins=text_origins(table, hits.source),
        row_origin=text_rows(table, hits.source, ()),
        inputs=(
            Input(f"step:{step.from_}", hits.receipt.parts["output"]),
            *(Input("text", Address.parse(d.address)) for d in documents),
        ),
        executor=HOUSE,
        source=hits.source,
    )


def _record_result(
    bench: Bench, world: World, step: Step, ran: _Ran, *, asked: str, place: Place
) -> StepResult:
    recorder = bench.recorder
    output = recorder.keep(made_table(ran.table))
    # The observation is made from the bytes that the store gives back, not from those in hand.
    observation = observe(
        read_back(world.store, ran.table.address, limits=bench.limits),
        step=step.id,
        address=str(ran.table.address),
        complete=ran.complete,
        totals=ran.table.totals,
        limits=bench.limits,
        rewrites=ran.rewrites,
        ties=ran.ties,
        unseen=ran.unseen,
    )
    (receipt,) = recorder.record(
        RowDraft(
            kind=_KINDS[step.do],
            subject=place.subject,
            sequence=place.sequence,
            attempt=place.attempt,
            tool=step.do,
            asked=asked,
            executed=ran.executed,
            inputs=ran.inputs,
            output=output,
            parts=(*ran.parts, Made(OBSERVATION, observation, JSON_MEDIA)),
            executor=ran.executor,
            outcome=_outcome(ran),
        )
    )
    return StepResult(
        id=step.id,
        verb=step.do,
        receipt=receipt,
        ok=True,
        columns=tuple(Column(c.name, c.type) for c in ran.table.columns),
        key=ran.key,
        origins=ran.origins,
        row_origin=ran.row_origin,
        rows=ran.table.rows,
        complete=ran.complete,
        source=ran.source,
        tied=ran.tied,
    )


def _outcome(ran: _Ran) -> Outcome:
    if not ran.complete:
        return Outcome(Status.PARTIAL, "limit.rows", "more rows than are stored")
    if ran.table.rows == 0:
        return Outcome(Status.NO_RESULTS, "step.no_results", _nothing(ran.unseen))
    return DONE


def _nothing(unseen: int) -> str:
    """Why there is no row: absence is only said of what the question may see."""
    if not unseen:
        return "no row satisfies it"
    return f"no row satisfies it; {unseen} documents have no date or a later one than as_of"


def _record_error(
    bench: Bench, step: Step, error: ExecutorError, *, asked: str, place: Place
) -> StepResult:
    line, column = getattr(error, "line", None), getattr(error, "column", None)
    refused = error.exit_code not in _NOT_A_REFUSAL
    position = Position(line, column) if line and column else None
    outcome = Outcome(
        Status.REFUSED if refused else Status.FAILED,
        error.code,
        error.message[:MESSAGE_CHARS_MAX],
        position,
    )
    text = refusal_text(error, step=step.id, line=line, column=column)
    info = bench.engine.info
    (receipt,) = bench.recorder.record(
        RowDraft(
            kind=Kind.REFUSAL if refused else Kind.FAILURE,
            subject=place.subject,
            sequence=place.sequence,
            attempt=place.attempt,
            tool=step.do,
            asked=asked,
            parts=(Made(REFUSAL, text, JSON_MEDIA),),
            executor=ExecutorInfo(info.name, info.version, info.build, info.recorded())
            if isinstance(step, SqlStep)
            else HOUSE,
            outcome=outcome,
        )
    )
    return StepResult(id=step.id, verb=step.do, receipt=receipt, ok=False, code=error.code)
