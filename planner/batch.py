"""A run: sources pinned, many questions asked one after the other, one report for the batch.

Source: DESIGN §1, §5, §6. A question that fails is an outcome and the next is asked; only the
store, the ledger and an interruption end a run early, and what was recorded by then stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tieout.artifacts.address import Address
from tieout.artifacts.store import Store
from tieout.executor.catalog import Catalog
from tieout.executor.engine import Engine
from tieout.executor.record import HOUSE, JSON_MEDIA, Made, Receipt, Recorder, RowDraft
from tieout.executor.step import Bench
from tieout.executor.world import Pinned, World, load_pinned
from tieout.ledger.canon import Json, encode
from tieout.ledger.citation import AnswerStatus
from tieout.ledger.row import ExecutorInfo, Input, Kind, Outcome, Status
from tieout.planner.loop import Delivered, Loop
from tieout.planner.model import Model
from tieout.planner.questions import Question, QuestionFile

BATCH_FORMAT: Final = "tieout.batch/1"
TOML_MEDIA: Final = "application/toml"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model for a question, and what the ledger is told of it."""

    model: Model
    info: ExecutorInfo


@dataclass(frozen=True, slots=True)
class Batch:
    """What a run needs. choose: the model of a question. told: called after each question."""

    catalog: Catalog
    store: Store
    engine: Engine
    choose: Callable[[Question], ModelChoice]
    told: Callable[[Delivered], None] | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """A finished run: its id, each question's delivery in order, the receipt of its report."""

    run: str
    delivered: tuple[Delivered, ...]
    receipt: Receipt

    @property
    def holds(self) -> bool:
        """Whether every expectation of every question was met."""
        return all(d.report.holds for d in self.delivered)

    @property
    def complete(self) -> bool:
        """Whether every question was answered."""
        return all(d.report.answer.status is not AnswerStatus.FAILED for d in self.delivered)


def run_batch(
    batch: Batch,
    recorder: Recorder,
    questions: QuestionFile,
    pinned: Mapping[str, Address],
    settings: Mapping[str, Json],
) -> BatchResult:
    """Ask every question over the pinned sources. pinned: source name to manifest.

    Raises what the store and the log raise, and ExecutorError snapshot.unreadable.
    """
    recorder.record(_run_row(batch, questions, pinned, settings))
    sources = {name: load_pinned(batch.store, address) for name, address in pinned.items()}
    delivered = []
    for question in questions.questions:
        done = _ask(batch, recorder, question, sources)
        delivered.append(done)
        if batch.told is not None:
            batch.told(done)
    (receipt,) = recorder.record(_batch_row(delivered))
    return BatchResult(recorder.trace, tuple(delivered), receipt)


def _ask(
    batch: Batch, recorder: Recorder, question: Question, sources: Mapping[str, Pinned]
) -> Delivered:
    choice = batch.choose(question)
    world = World(
        store=batch.store,
        sources={name: sources[name] for name in question.sources},
        as_of=question.as_of or None,
        reserved=frozenset(batch.catalog.sources),
    )
    bench = Bench(recorder, batch.engine, batch.catalog.limits)
    return Loop(question, world, bench, choice.model, choice.info).run()


def _run_row(
    batch: Batch,
    questions: QuestionFile,
    pinned: Mapping[str, Address],
    settings: Mapping[str, Json],
) -> RowDraft:
    """What the run was asked: questions, catalog and settings as bytes, snapshots by manifest."""
    return RowDraft(
        kind=Kind.RUN,
        subject="run",
        tool="run",
        inputs=tuple(Input(f"snapshot:{name}", pinned[name]) for name in sorted(pinned)),
        output=Made("output", questions_payload(questions.questions), JSON_MEDIA),
        # All plans are kept before the first question: a run that is cut off can be replayed.
        loose=tuple(
            Made("plan_file", q.plan, JSON_MEDIA) for q in questions.questions if q.plan is not None
        ),
        parts=(
            Made("questions_file", questions.payload, TOML_MEDIA),
            Made("catalog_file", batch.catalog.payload, TOML_MEDIA),
            Made("settings", encode(dict(settings)), JSON_MEDIA),
        ),
        executor=HOUSE,
    )


def questions_payload(questions: Sequence[Question]) -> bytes:
    """The questions as canonical JSON, from which a replay asks them again."""
    return encode(
        {
            "questions": [
                {
                    "id": q.id,
                    "text": q.text,
                    "sources": list(q.sources),
                    "as_of": q.as_of,
                    "plan_name": q.plan_name,
                    "plan": None if q.plan is None else str(Address.of(q.plan)),
                    "expect": [[name, value] for name, value in q.expect.items()],
                    "expect_labels": [[name, value] for name, value in q.expect_labels.items()],
                }
                for q in questions
            ]
        }
    )


def _batch_row(delivered: Sequence[Delivered]) -> RowDraft:
    failed = [d for d in delivered if d.report.answer.status is AnswerStatus.FAILED]
    broken = [d for d in delivered if not d.report.holds]
    outcome = Outcome(Status.DONE)
    if failed or broken:
        outcome = Outcome(
            Status.PARTIAL,
            "batch.incomplete" if failed else "batch.does_not_tie",
            f"{len(failed)} questions failed, {len(broken)} do not tie",
        )
    payload = encode(
        {
            "format": BATCH_FORMAT,
            "questions": [
                {
                    "id": d.report.question.id,
                    "status": str(d.report.answer.status),
                    "ties": d.report.holds,
                    "report": str(d.receipt.parts["output"]),
                }
                for d in delivered
            ],
        }
    )
    return RowDraft(
        kind=Kind.REPORT,
        subject="batch",
        tool="batch",
        inputs=tuple(
            Input(f"report:{d.report.question.id}", d.receipt.parts["output"])
            for d in delivered[:INPUTS_MAX]
        ),
        output=Made("output", payload, "application/vnd.tieout.batch+json"),
        executor=HOUSE,
        outcome=outcome,
    )


INPUTS_MAX: Final = 300
"""Reports named in the row itself; the batch's own artifact names all of them."""
