"""The report of one question: written by code, an artifact of its own; no model edits it.

Everything that is known goes in: steps, refusals beside what was written after them, figures
with label and address, numbers that were typed, results that nothing used. It holds no time, no
run id and no path, so that a replay must come to the same bytes.
Source: DESIGN §7; docs/FORMAT.md §9.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from tieout.artifacts.printable import lines as printable_lines
from tieout.artifacts.printable import page
from tieout.artifacts.values import is_numeric
from tieout.executor.how_it_ran import how_it_ran, how_it_ran_lines
from tieout.executor.record import Receipt
from tieout.executor.world import World
from tieout.ledger.canon import Json, encode
from tieout.ledger.citation import REPORT_FORMAT, Answer, Figure, Flag, NumberInProse
from tieout.ledger.row import Status
from tieout.planner.questions import Question


@dataclass(frozen=True, slots=True)
class Expectation:
    """A figure against the value that the question's author expects of it."""

    name: str
    expected: str
    found: str | None
    holds: bool
    what: str = "value"

    def document(self) -> dict[str, Json]:
        """The comparison as JSON values."""
        return {
            "name": self.name,
            "what": self.what,
            "expected": self.expected,
            "found": self.found,
            "holds": self.holds,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """A question's outcome. code, message: why it failed, "" otherwise.

    ways_out: what was advised at each refusal, "" for none; told to people, no part of the
    document.
    """

    question: Question
    answer: Answer
    template: str
    code: str
    message: str
    expectations: tuple[Expectation, ...]
    steps: tuple[Mapping[str, Json], ...]
    refusals: tuple[Mapping[str, Json], ...]
    unused: tuple[str, ...]
    ways_out: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every expectation was met."""
        return all(expectation.holds for expectation in self.expectations)

    def document(self) -> dict[str, Json]:
        """The report as JSON values."""
        answer = self.answer
        return {
            "format": REPORT_FORMAT,
            "question": {
                "id": self.question.id,
                "text": self.question.text,
                "as_of": self.question.as_of,
            },
            "status": str(answer.status),
            "code": self.code,
            "message": self.message,
            "template": self.template,
            "prose": answer.prose,
            "figures": [figure.document() for figure in answer.figures],
            "quotes": [{"name": name, **span.document()} for name, span in answer.quotes],
            "numbers": [number.document() for number in answer.numbers],
            "expectations": [expectation.document() for expectation in self.expectations],
            "steps": [dict(step) for step in self.steps],
            "refusals": [dict(refusal) for refusal in self.refusals],
            "unused_results": list(self.unused),
            "problems": list(answer.problems),
        }

    def payload(self) -> bytes:
        """The canonical bytes of the report."""
        return encode(self.document())


def make_report(
    question: Question,
    answer: Answer,
    *,
    template: str,
    world: World,
    receipts: Sequence[Receipt],
    code: str = "",
    message: str = "",
) -> Report:
    """The report of a question. receipts: of every step and refusal, in order."""
    refused = [receipt for receipt in receipts if receipt.outcome.status in _NOT_DONE]
    return Report(
        question=question,
        answer=answer,
        template=template,
        code=code,
        message=message,
        expectations=_expectations(question, answer),
        steps=tuple(_step(r, world) for r in receipts if r.kind in _STEP_KINDS),
        refusals=tuple(_refusal(receipt) for receipt in refused),
        unused=_unused(answer, world),
        ways_out=tuple(_way_out(receipt, world) for receipt in refused),
    )


_STEP_KINDS = frozenset({"sql", "search", "extract"})
_NOT_DONE = frozenset({Status.REFUSED, Status.FAILED})


def _step(receipt: Receipt, world: World) -> dict[str, Json]:
    output, executed = receipt.output, receipt.row.executed
    validation = receipt.parts.get("validation")
    found = {} if validation is None else json.loads(world.store.get(validation))
    return {
        "subject": receipt.subject,
        "do": receipt.row.tool_name,
        "outcome": str(receipt.outcome.status),
        "address": None if output is None else str(output.address),
        "content_digest": None if output is None else output.content_digest,
        "rows": None if output is None else output.row_count,
        "inputs": [{"role": i.role, "address": str(i.address)} for i in receipt.row.inputs],
        "executed": None if executed is None else str(executed),
        **how_it_ran(found),
    }


def _refusal(receipt: Receipt) -> dict[str, Json]:
    position = receipt.outcome.position
    return {
        "subject": receipt.subject,
        "do": receipt.row.tool_name,
        "outcome": str(receipt.outcome.status),
        "code": receipt.outcome.code,
        "message": receipt.outcome.message,
        "line": None if position is None else position.line,
        "column": None if position is None else position.column,
    }


def _way_out(receipt: Receipt, world: World) -> str:
    """The way out as the model was shown it, "" where nothing was shown."""
    address = receipt.parts.get("refusal")
    return "" if address is None else str(json.loads(world.store.get(address))["way_out"])


def _unused(answer: Answer, world: World) -> tuple[str, ...]:
    """Results that neither a figure, a quote nor a later step used."""
    used = {figure.citation.address for figure in answer.figures if figure.citation}
    for step in world.steps.values():
        used |= {str(item.address) for item in step.receipt.row.inputs}
    spans = {(span.text, span.start, span.end) for _, span in answer.quotes}
    unused = []
    for step in world.steps.values():
        if not step.ok or str(step.receipt.parts["output"]) in used:
            continue
        if step.verb == "extract" and spans:
            reader = world.reader(step.receipt.parts["output"])
            row = [reader.value(0, name) for name in ("text", "start", "end")]
            if tuple(row) in spans:
                continue
        unused.append(step.id)
    return tuple(unused)


def _expectations(question: Question, answer: Answer) -> tuple[Expectation, ...]:
    figures = {figure.name: figure for figure in answer.figures}
    values = [_expect_value(n, e, figures.get(n)) for n, e in question.expect.items()]
    labels = []
    for name, expected in question.expect_labels.items():
        figure = figures.get(name)
        found = None if figure is None else str(figure.label)
        labels.append(Expectation(name, expected, found, found == expected, "label"))
    return tuple(values + labels)


def _expect_value(name: str, expected: str, figure: Figure | None) -> Expectation:
    found = None if figure is None else figure.value
    numeric = figure is not None and is_numeric(figure.type)
    holds = found is not None and _same(expected, found, numeric=numeric)
    return Expectation(name, expected, found, holds)


def _same(expected: str, found: str, *, numeric: bool) -> bool:
    """Equal as numbers in a column of numbers: 5 and 5.00 are one value. Else as texts: the
    account 00004218 is not 4218."""
    if not numeric or expected == found:
        return expected == found
    try:
        return Decimal(expected) == Decimal(found)
    except InvalidOperation:
        return expected == found


def report_text(report: Report) -> str:
    """The report for a person: prose, then each number with label, reason, flags and place."""
    answer = report.answer
    # The prose of a question without any answer is the message itself.
    said = "" if report.message.rstrip(".") in answer.prose else f": {report.message}"
    lines = [
        f"Question  {report.question.id}: {report.question.text}",
        f"Status    {answer.status}" + (f" ({report.code}{said})" if report.code else ""),
        "",
        *printable_lines(answer.prose),
        "",
    ]
    lines += [_figure_line(figure) for figure in answer.figures]
    lines += [
        f"  “{span.quote}”  {span.document_name}  {span.reference}" for _, span in answer.quotes
    ]
    typed = [number for number in answer.numbers if not number.figure]
    lines += [_typed_line(number) for number in typed]
    figures = {figure.name: figure for figure in answer.figures}
    lines += [_expectation_line(e, figures.get(e.name)) for e in report.expectations]
    for step in report.steps:
        ran = how_it_ran_lines(step)
        lines += [f"  how {step['subject']} ran", *(f"    {line}" for line in ran)] if ran else []
    ways_out = report.ways_out or ("",) * len(report.refusals)
    for refusal, way_out in zip(report.refusals, ways_out, strict=True):
        lines += _refusal_lines(report, refusal, way_out)
    lines += [f"  result not used: {name}" for name in report.unused]
    lines += [f"  problem: {problem}" for problem in answer.problems]
    # Foreign words stand in most of these lines; none of them may draw a line of its own.
    return page(lines) + "\n"


def _expectation_line(expectation: Expectation, figure: Figure | None) -> str:
    """What was expected and what the cell holds, which need not be what the prose shows."""
    said = "ties" if expectation.holds else "DOES NOT TIE"
    head = f"  {said}: {expectation.name} {expectation.what} expected {expectation.expected}, "
    if expectation.found is None:
        return head + "found nothing"
    if figure is not None and expectation.what == "value" and Flag.ROUNDED in figure.flags:
        return head + f"the cell holds {expectation.found}, shown as {figure.shown}"
    return head + f"found {expectation.found}"


def _refusal_lines(report: Report, refusal: Mapping[str, Json], way_out: str) -> list[str]:
    place = "" if refusal["line"] is None else f" at line {refusal['line']}"
    if refusal["column"] is not None:
        place += f", column {refusal['column']}"
    head = f"  {refusal['outcome']} {refusal['subject']}{place} {refusal['code']}"
    # What ended the question stands in its prose already.
    ended = (refusal["code"], refusal["message"]) == (report.code, report.message)
    said = "" if ended else f": {refusal['message']}"
    return [head + said, *([f"    way out: {way_out}"] if way_out else [])]


def _figure_line(figure: Figure) -> str:
    notes = [str(flag) for flag in figure.flags if flag is not Flag.COMPUTED]
    if Flag.COMPUTED in figure.flags:
        notes.insert(0, f"computed by {figure.operation}")
    if figure.reason is not None:
        notes.insert(0, str(figure.reason))
    if figure.literals:
        notes.append(f"literals {', '.join(figure.literals)}")
    said = f" ({'; '.join(notes)})" if notes else ""
    place = figure.citation.text if figure.citation else ""
    return f"  {figure.name} = {figure.shown}  {figure.label}{said}  {place}"


def _typed_line(number: NumberInProse) -> str:
    reason = f" ({number.reason})" if number.reason else ""
    return f"  typed: {number.text}  {number.label}{reason}"
