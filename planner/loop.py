"""The bounded loop of one question: ask for a plan, perform it, show what was recorded, again.

Everything that leaves for the model was recorded before; everything that comes back is recorded
before it is read. Every way out is an outcome in the ledger: an answer, a refusal of the model,
a reply cut short, a bound. Source: DESIGN §6, §12.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tieout.executor.grammar import AnswerTurn, ParsedTurn, StepsTurn, parse_turn
from tieout.executor.limits import Limits
from tieout.executor.observation import refusal_text
from tieout.executor.plan_text import PlanRefused
from tieout.executor.record import (
    DONE,
    HOUSE,
    JSON_MEDIA,
    TEXT_MEDIA,
    Made,
    Receipt,
    Recorder,
    RowDraft,
    Shown,
)
from tieout.executor.step import Bench, Place, perform, shown
from tieout.executor.world import World, catalog_text
from tieout.ledger.canon import encode
from tieout.ledger.citation import REPORT_MEDIA, Answer, AnswerStatus
from tieout.ledger.row import ExecutorInfo, Input, Kind, ModelUse, Outcome, Position, Status
from tieout.planner.answer import Problem, fill
from tieout.planner.errors import TextRefused
from tieout.planner.model import Model, ModelError, Prompt, Reply, ReplyOutcome
from tieout.planner.prompt import INSTRUCTIONS, INSTRUCTIONS_ROLE
from tieout.planner.questions import Question
from tieout.planner.replies import plan_text
from tieout.planner.report import Report, make_report, report_text
from tieout.planner.written import EXHAUSTED, NO_FURTHER_TURN, no_further_turn

PROBLEMS_SHOWN_MAX: Final = 10
MESSAGE_CHARS_MAX: Final = 2_000
_ENDINGS: Final = {
    ReplyOutcome.REFUSAL: "model.refusal",
    ReplyOutcome.MAX_TOKENS: "model.max_tokens",
    ReplyOutcome.CONTEXT_EXCEEDED: "model.context_exceeded",
    ReplyOutcome.ERROR: "model.unusable_reply",
}


@dataclass(frozen=True, slots=True)
class Delivered:
    """A question's report and the receipt of its row."""

    report: Report
    receipt: Receipt


class _Ended(Exception):
    """The question ends without an answer that could be filled."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(slots=True)
class Loop:
    """One question on its way. segments: what the next prompt will be made of, in order."""

    question: Question
    world: World
    bench: Bench
    model: Model
    model_info: ExecutorInfo
    segments: list[Shown] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    turn: int = 0
    sequence: int = 0
    sent_back: int = 0
    tokens: int = 0

    @property
    def recorder(self) -> Recorder:
        """Where everything of this question is recorded."""
        return self.bench.recorder

    @property
    def limits(self) -> Limits:
        """The bounds of this question."""
        return self.bench.limits

    def run(self) -> Delivered:
        """Ask, perform and answer until the question is delivered, with or without success.

        Raises what the store and the log raise, and PlannerError recorded.missing in a replay.
        """
        self._open()
        template, answer, code, message = "", None, "", ""
        try:
            while answer is None:
                template, answer = self._turn()
        except _Ended as end:
            code, message = end.code, end.message
        if answer is None:
            answer = Answer(AnswerStatus.FAILED, f"No answer: {message.rstrip('.')} ({code}).")
        elif answer.problems:
            code, message = "answer.not_filled", f"{len(answer.problems)} places are not filled"
        report = make_report(
            self.question,
            answer,
            template=template,
            world=self.world,
            receipts=self.receipts,
            code=code,
            message=message,
        )
        return Delivered(report, self._record_report(report))

    def _open(self) -> None:
        sources = self.world.sources
        written = self.question.plan
        plan = () if written is None else (Made("plan_file", written, JSON_MEDIA),)
        (receipt,) = self.recorder.record(
            RowDraft(
                kind=Kind.QUESTION,
                subject=self.question.id,
                inputs=tuple(
                    Input(f"snapshot:{name}", sources[name].manifest) for name in sorted(sources)
                ),
                output=Made("output", _question_text(self.question), JSON_MEDIA),
                parts=(
                    Made(INSTRUCTIONS_ROLE, INSTRUCTIONS.encode(), TEXT_MEDIA),
                    Made("catalog", catalog_text(sources, self.world.as_of), JSON_MEDIA),
                    *plan,
                ),
            )
        )
        for part, role in (
            (INSTRUCTIONS_ROLE, INSTRUCTIONS_ROLE),
            ("catalog", "catalog"),
            ("output", "question"),
        ):
            self.segments.append(self.recorder.show(receipt, part, role=role))

    def _turn(self) -> tuple[str, Answer | None]:
        self.turn += 1
        if self.turn > self.limits.turns_max:
            raise _Ended("limit.turns", f"more than {self.limits.turns_max} turns")
        reply, receipt = self._ask()
        self._check(reply)
        # Shown before it is read: a refusal names a line and a column of this very text.
        self.segments.append(self.recorder.show(receipt, "text", role="plan"))
        try:
            parsed = parse_turn(_placed_plan(reply.text))
        except (PlanRefused, TextRefused) as error:
            self._send_back_text(error)
            return "", None
        if isinstance(parsed.turn, AnswerTurn):
            return self._answer(parsed)
        self._perform(parsed)
        return "", None

    def _ask(self) -> tuple[Reply, Receipt]:
        """Record the request, send it, record the reply."""
        prompt = Prompt(tuple(self.segments))
        if len(prompt.system) + len(prompt.user) > self.limits.prompt_chars_max:
            raise _Ended("limit.prompt", "the prompt is longer than prompt_chars_max")
        request = self.model.prepare(prompt)
        subject = f"{self.question.id}/t{self.turn}"
        (asked,) = self.recorder.record(
            RowDraft(
                kind=Kind.MODEL_REQUEST,
                subject=subject,
                sequence=self.turn,
                tool=self.model.name,
                inputs=tuple(Input(s.role, s.address) for s in self.segments),
                output=Made("output", request.payload, request.media_type),
                executor=self.model_info,
            )
        )
        inputs = (Input("request", asked.parts["output"]),)
        try:
            reply = self.model.ask(request)
        except ModelError as error:
            self._record_no_reply(error, subject, inputs)
            raise _Ended(error.code, str(error)[:MESSAGE_CHARS_MAX]) from error
        return reply, self._record_reply(reply, subject, inputs)

    def _record_no_reply(self, error: ModelError, subject: str, inputs: tuple[Input, ...]) -> None:
        (receipt,) = self.recorder.record(
            RowDraft(
                kind=Kind.FAILURE,
                subject=subject,
                sequence=self.turn,
                tool=self.model.name,
                inputs=inputs,
                parts=tuple(
                    Made(f"attempt:{n}:{attempt.status}", attempt.payload, JSON_MEDIA)
                    for n, attempt in enumerate(error.attempts, start=1)
                ),
                executor=self.model_info,
                # With place and remedy: it is all that a replay has to say the same again.
                outcome=Outcome(Status.FAILED, error.code, str(error)[:MESSAGE_CHARS_MAX]),
            )
        )
        self.receipts.append(receipt)

    def _record_reply(self, reply: Reply, subject: str, inputs: tuple[Input, ...]) -> Receipt:
        use = reply.use
        self.tokens += (use.input_tokens or 0) + (use.output_tokens or 0)
        outcome = DONE
        if reply.outcome is not ReplyOutcome.COMPLETE:
            outcome = Outcome(Status.FAILED, _ending(reply), reply.detail)
        (receipt,) = self.recorder.record(
            RowDraft(
                kind=Kind.MODEL_REPLY,
                subject=subject,
                sequence=self.turn,
                tool=self.model.name,
                inputs=inputs,
                output=Made("output", reply.payload, reply.media_type),
                parts=(
                    Made("text", reply.text.encode("utf-8", "replace"), TEXT_MEDIA),
                    *(
                        Made(f"attempt:{n}:{attempt.status}", attempt.payload, JSON_MEDIA)
                        for n, attempt in enumerate(reply.attempts, start=1)
                    ),
                ),
                executor=self.model_info,
                model=ModelUse(
                    provider=use.provider,
                    id=use.model,
                    request_id=use.request_id,
                    stop_reason=use.stop_reason,
                    input_tokens=use.input_tokens,
                    output_tokens=use.output_tokens,
                    sdk=use.sdk,
                    api_version=use.api_version,
                    base_url=use.base_url,
                ),
                outcome=outcome,
            )
        )
        return receipt

    def _check(self, reply: Reply) -> None:
        """stop_reason before the text: a reply that was cut short is not read as a plan."""
        if reply.outcome is not ReplyOutcome.COMPLETE:
            code, said = _ending(reply), reply.detail or str(reply.outcome)
            if code == NO_FURTHER_TURN:
                said = no_further_turn([receipt.outcome for receipt in self.receipts])
            raise _Ended(code, said[:MESSAGE_CHARS_MAX])
        if len(reply.text) > self.limits.reply_chars_max:
            raise _Ended("limit.reply", f"the reply has {len(reply.text)} characters")
        if self.tokens > self.limits.question_tokens_max:
            raise _Ended("limit.tokens", f"{self.tokens} tokens were used")

    def _perform(self, parsed: ParsedTurn) -> None:
        turn = parsed.turn
        assert isinstance(turn, StepsTurn)
        if self.sequence + len(turn.steps) > self.limits.steps_max:
            raise _Ended("limit.steps", f"more than {self.limits.steps_max} steps")
        for step, asked in zip(turn.steps, parsed.asked, strict=True):
            self.sequence += 1
            place = Place(f"{self.question.id}/t{self.turn}/{step.id}", self.sequence)
            result = perform(self.bench, self.world, step, asked=asked, place=place)
            self.receipts.append(result.receipt)
            earlier = self.world.steps.get(result.id)
            if earlier is None or not earlier.ok:
                self.world.steps[result.id] = result
            self.segments.append(shown(self.recorder, result))

    def _answer(self, parsed: ParsedTurn) -> tuple[str, Answer | None]:
        turn = parsed.turn
        assert isinstance(turn, AnswerTurn)
        answer, problems = fill(turn.answer, self.world, self.question.text)
        again = problems and self.sent_back < self.limits.refusals_max
        self._record_answer(parsed.asked[0], answer, problems, last=not again)
        return turn.answer.prose, None if again else answer

    def _record_answer(
        self, asked: str, answer: Answer, problems: tuple[Problem, ...], *, last: bool
    ) -> None:
        outcome = DONE
        parts: tuple[Made, ...] = ()
        if problems:
            first = problems[0]
            outcome = Outcome(Status.REFUSED, first.code, f"{first.where}: {first.message}"[:2_000])
            parts = (Made("refusal", _problems_text(problems), JSON_MEDIA),)
        (receipt,) = self.recorder.record(
            RowDraft(
                kind=Kind.ANSWER,
                subject=self.question.id,
                sequence=self.turn,
                attempt=self.sent_back,
                tool="answer",
                asked=asked,
                inputs=tuple(
                    Input(f"step:{s.id}", s.receipt.parts["output"])
                    for s in self.world.steps.values()
                    if s.ok
                ),
                output=Made("output", answer.prose.encode("utf-8", "replace"), TEXT_MEDIA),
                parts=parts,
                outcome=outcome,
            )
        )
        if problems:
            self.receipts.append(receipt)
        if problems and not last:
            self.sent_back += 1
            self.segments.append(self.recorder.show(receipt, "refusal", role="refusal"))

    def _send_back_text(self, error: PlanRefused | TextRefused) -> None:
        """A text that is no plan goes back with position and reason, a bounded number of times."""
        text = refusal_text(error, step="plan", line=error.line, column=error.column)
        (receipt,) = self.recorder.record(
            RowDraft(
                kind=Kind.REFUSAL,
                subject=f"{self.question.id}/t{self.turn}",
                sequence=self.turn,
                attempt=self.sent_back,
                tool="plan",
                parts=(Made("refusal", text, JSON_MEDIA),),
                outcome=Outcome(
                    Status.REFUSED,
                    error.code,
                    error.message[:2_000],
                    Position(error.line, error.column),
                ),
            )
        )
        self.receipts.append(receipt)
        if self.sent_back >= self.limits.refusals_max:
            raise _Ended("limit.refusals", f"the plan was refused again: {error.message}")
        self.sent_back += 1
        self.segments.append(self.recorder.show(receipt, "refusal", role="refusal"))

    def _record_report(self, report: Report) -> Receipt:
        status = report.answer.status
        outcome = DONE
        if status is AnswerStatus.FAILED:
            outcome = Outcome(Status.FAILED, report.code, report.message[:MESSAGE_CHARS_MAX])
        cited = {f.citation.address for f in report.answer.figures if f.citation}
        used = [s for s in self.world.steps.values() if s.ok]
        (receipt,) = self.recorder.record(
            RowDraft(
                kind=Kind.REPORT,
                subject=self.question.id,
                tool="report",
                inputs=tuple(
                    Input(f"step:{s.id}", s.receipt.parts["output"])
                    for s in used
                    if str(s.receipt.parts["output"]) in cited
                ),
                output=Made("output", report.payload(), REPORT_MEDIA),
                parts=(Made("text", report_text(report).encode("utf-8", "replace"), TEXT_MEDIA),),
                executor=HOUSE,
                outcome=outcome,
            )
        )
        return receipt


def _ending(reply: Reply) -> str:
    """The code of a reply that is no whole text."""
    if reply.outcome is ReplyOutcome.ERROR and reply.detail == EXHAUSTED:
        return NO_FURTHER_TURN
    return _ENDINGS[reply.outcome]


def _placed_plan(reply: str) -> str:
    """The plan of a reply with what stands before it blanked: lines and columns are the reply's."""
    plan = plan_text(reply)
    before = reply[: reply.index(plan)]
    return "".join("\n" if mark == "\n" else " " for mark in before) + plan


def _question_text(question: Question) -> bytes:
    return encode({"question": question.id, "text": question.text, "as_of": question.as_of})


def _problems_text(problems: tuple[Problem, ...]) -> bytes:
    return encode(
        {
            "refused": "answer",
            "problems": [
                {"code": p.code, "placeholder": p.where, "message": p.message}
                for p in problems[:PROBLEMS_SHOWN_MAX]
            ],
            "way_out": "Cite cells that exist: a step, a row that selects one row, a column.",
        }
    )
