"""Replaying a run: the same questions, the recorded replies, everything else made again.

Source: DESIGN §1, §8. The prompts are rebuilt and must be the stored ones byte for byte, or the
recorded reply to them is not found and the replay says where the paths part.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.store import Store
from tieout.executor.catalog import Catalog
from tieout.executor.clock import SteppingClock
from tieout.executor.engine import Engine
from tieout.executor.record import HOUSE, Recorder
from tieout.executor.replay import (
    Comparison,
    Difference,
    compare,
    rebuild_snapshots,
    replay_store,
    rows_of,
    run_row,
)
from tieout.ledger.canon import Json
from tieout.ledger.log import Entry, Log, MemoryLog
from tieout.ledger.row import ExecutorInfo, Kind, LedgerRow, ModelUse
from tieout.planner.batch import Batch, ModelChoice, run_batch
from tieout.planner.errors import Exit, PlannerError
from tieout.planner.model import Attempt, Model, ModelError, Reply, ReplyUse, RequestBytes
from tieout.planner.questions import Question, QuestionFile
from tieout.planner.recorded import RecordedModel, recorded_reply

_EPOCH: Final = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Replayed:
    """The outcome of a replay.

    finished: whether the run itself came to its end. stopped: why the replay could not, or "".
    """

    run: str
    questions: int
    comparison: Comparison
    stopped: str
    finished: bool = True

    @property
    def agrees(self) -> bool:
        """Whether everything recorded came out again."""
        return not self.comparison.differences and not self.stopped


def replay(
    run: str,
    *,
    store: Store,
    log: Log,
    catalog_of: Callable[[bytes], Catalog],
    engine_of: Callable[[Catalog], Engine],
    preparer: Callable[[Question, Mapping[str, Json]], Model],
) -> Replayed:
    """Replay a run from its ledger rows.

    catalog_of: catalog bytes to `Catalog`. engine_of: the engine under its limits. preparer:
    (question, settings) to the model whose `prepare` built the requests. Raises ExecutorError
    replay.unknown_run, and what the store raises for evidence that is not there.
    """
    entries = rows_of(log, run)
    opened = run_row(entries)
    world = replay_store(store, entries)
    differences = rebuild_snapshots(world, opened)
    parts = {part.role: part.address for part in opened.attachments}
    settings = json.loads(world.get(parts["settings"]))
    catalog: Catalog = catalog_of(world.get(parts["catalog_file"]))
    questions = _questions(world, opened, parts["questions_file"])
    lookup = _Replies(world, entries)
    memory = MemoryLog()
    recorder = Recorder(world, memory, SteppingClock(_EPOCH), run)
    batch = Batch(
        catalog=catalog,
        store=world,
        engine=engine_of(catalog),
        choose=lambda question: ModelChoice(
            _Recalled(lookup, question.id, preparer(question, settings)),
            lookup.info(question.id),
        ),
    )
    pinned = {item.role.partition(":")[2]: item.address for item in opened.inputs}
    stopped = _asked_again(
        lambda: run_batch(batch, recorder, questions, pinned, settings), differences
    )
    finished = not _unfinished(entries)
    comparison = _with(compare(entries, memory.entries(), finished=finished), differences)
    if not finished:
        # The run itself was cut off; what was recorded of it can be compared all the same.
        stopped = f"the run was not finished{': ' + stopped if stopped else ''}"
    return Replayed(run, len(questions.questions), comparison, stopped, finished)


def _asked_again(ask: Callable[[], object], differences: Sequence[Difference]) -> str:
    """Ask everything again; why that came to no end, or ""."""
    try:
        ask()
    except PlannerError as error:
        if error.code != "recorded.missing":
            raise
        return str(error)
    except ArtifactError as error:
        # What was read again differs, so what the run named is not there: the differences say it.
        if error.code != "object.hidden" or not differences:
            raise
        return f"{error.message} ({error.place})"
    return ""


def _with(comparison: Comparison, more: Sequence[Difference]) -> Comparison:
    return Comparison(
        comparison.compared,
        comparison.addresses,
        comparison.digests,
        (*more, *comparison.differences),
        comparison.builds,
        comparison.hosts,
    )


def _unfinished(entries: Sequence[Entry]) -> bool:
    return not any(e.row.kind is Kind.REPORT and e.row.subject == "batch" for e in entries)


def _questions(store: Store, opened: LedgerRow, file: Address) -> QuestionFile:
    output = opened.deterministic_output
    if output is None:
        raise PlannerError(
            "replay.no_questions",
            "the run's row names no questions",
            place=opened.subject,
            remedy="Run `tieout verify`.",
            exit_code=Exit.DOES_NOT_HOLD,
        )
    listed = json.loads(store.get(output.address))["questions"]
    questions = tuple(
        Question(
            id=q["id"],
            text=q["text"],
            sources=tuple(q["sources"]),
            plan=store.get(Address.parse(q["plan"])) if q["plan"] else None,
            plan_name=q["plan_name"],
            as_of=q["as_of"],
            expect=dict(q["expect"]),
            expect_labels=dict(q["expect_labels"]),
        )
        for q in listed
    )
    return QuestionFile("questions", store.get(file), questions)


class _Replies:
    """The recorded replies of a run, by question and in the order of its turns."""

    def __init__(self, store: Store, entries: Sequence[Entry]) -> None:
        self._store = store
        self._requests = [e.row for e in entries if e.row.kind is Kind.MODEL_REQUEST]
        self._answers: dict[str, LedgerRow] = {
            e.row.subject: e.row
            for e in entries
            if e.row.kind is Kind.MODEL_REPLY
            or (
                e.row.kind is Kind.FAILURE
                and e.row.inputs[:1]
                and e.row.inputs[0].role == "request"
            )
        }

    def info(self, question: str) -> ExecutorInfo:
        """What the run told the ledger of the model of this question.

        A question without a request ended before its first, or the run did: the rows that a
        replay makes of it name no model either, up to where the recorded path ends.
        """
        rows = [r for r in self._requests if r.subject.rpartition("/")[0] == question]
        return rows[0].executor if rows else HOUSE

    def turns(self, question: str) -> Iterator[tuple[LedgerRow, LedgerRow]]:
        """Request and reply of each turn of a question."""
        for request in self._requests:
            if request.subject.rpartition("/")[0] == question:
                answer = self._answers.get(request.subject)
                if answer is not None:
                    yield request, answer

    def reply(self, row: LedgerRow) -> Reply:
        """The reply of a row. Raises ModelError where none had come."""
        attempts = tuple(
            Attempt(int(part.role.split(":")[2]), "", self._store.get(part.address))
            for part in row.attachments
            if part.role.startswith("attempt:")
        )
        output = row.deterministic_output
        if output is None:
            raise _RecalledError(
                row.outcome.code,
                row.outcome.message,
                remedy="This is how the recorded run ended.",
                attempts=attempts,
            )
        use = _use(row.model or ModelUse())
        reply = recorded_reply(
            self._store.get(output.address), media_type=output.media_type, use=use
        )
        return Reply(
            text=reply.text,
            payload=reply.payload,
            media_type=reply.media_type,
            use=use,
            outcome=reply.outcome,
            detail=reply.detail,
            attempts=attempts,
        )


def _use(model: ModelUse) -> ReplyUse:
    return ReplyUse(
        provider=model.provider or "",
        model=model.id or "",
        request_id=model.request_id or "",
        stop_reason=model.stop_reason or "",
        input_tokens=model.input_tokens,
        output_tokens=model.output_tokens,
        sdk=model.sdk or "",
        api_version=model.api_version or "",
        base_url=model.base_url or "",
    )


class _RecalledError(ModelError):
    """The error of a past run: its recorded message holds place and remedy already."""

    def __str__(self) -> str:
        return self.message


class _Recalled(RecordedModel):
    """The recorded replies of one question, each given only to the request it answered."""

    def __init__(self, replies: _Replies, question: str, prepare_with: Model) -> None:
        self._turns = replies.turns(question)
        self._replies = replies
        super().__init__(self._next, prepare_with=prepare_with)
        self.name = prepare_with.name

    def _next(self, request: RequestBytes) -> Reply | None:
        turn = next(self._turns, None)
        if turn is None:
            return None
        asked, answered = turn
        output = asked.deterministic_output
        if output is None or output.address != Address.of(request.payload):
            return None
        return self._replies.reply(answered)
