"""From a draft to an answer: every placeholder filled by code from a cited cell or passage.

The draft is untrusted. What it cites must exist and name exactly one cell; what it types itself
is found and labelled, never hidden and never blocked (DESIGN §7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.table_reader import TableReader
from tieout.artifacts.values import FLOATS, decimal_scale
from tieout.executor.errors import ExecutorError
from tieout.executor.grammar import AnswerDraft, Display, FigureDraft, QuoteDraft, RowValue
from tieout.executor.quotes import locate
from tieout.executor.sql.validate import ColumnOrigin
from tieout.executor.world import StepResult, World, is_known
from tieout.ledger.citation import (
    Answer,
    AnswerStatus,
    CellCitation,
    Figure,
    Flag,
    Label,
    SpanCitation,
)
from tieout.planner.display import NOT_FINITE, is_long, is_rounded, misfit, shown, types_unit
from tieout.planner.labels import QuestionNumbers, column_label
from tieout.planner.prose import audit_prose
from tieout.planner.prose_filling import FilledProse, fill_prose

CELL_CHARS_MAX: Final = 2_000
"""Characters of one figure in the prose."""
FILLED_CHARS_MAX: Final = 60_000
"""Characters of a filled prose: every number in it is looked at."""
HIDDEN_TOLD_MAX: Final = 5
_SPAN_COLUMNS: Final = frozenset({"document", "raw", "text", "start", "end", "quote"})


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a draft cannot be filled as it stands. where: the placeholder, or ""."""

    code: str
    where: str
    message: str


class _Unfilled(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def fill(draft: AnswerDraft, world: World, question: str) -> tuple[Answer, tuple[Problem, ...]]:
    """Fill a draft. question: its text, whose numbers may be used.

    With problems the answer has status failed and shows at each unfilled place what is wrong;
    the caller sends the draft back or, at its bound, delivers it so.
    """
    numbers = QuestionNumbers.of(question, world.as_of or "")
    problems: list[Problem] = []
    figures: dict[str, Figure] = {}
    quotes: dict[str, SpanCitation] = {}
    for name, figure in draft.figures.items():
        try:
            figures[name] = _figure(world, name, figure, numbers)
        except _Unfilled as fault:
            problems.append(Problem(fault.code, name, fault.message))
    for name, quote in draft.quotes.items():
        try:
            quotes[name] = _quote(world, quote, taken=name in draft.figures)
        except _Unfilled as fault:
            problems.append(Problem(fault.code, name, fault.message))
    done = fill_prose(draft.prose, figures, quotes)
    problems += _hidden(done)
    prose, filled = done.text, done.spans
    named = {problem.where for problem in problems}
    problems += [
        Problem("answer.unknown_placeholder", name, "the prose names it, the answer does not")
        for name in done.missing
        if name not in named
    ]
    if len(prose) > FILLED_CHARS_MAX:
        problems.append(
            Problem("answer.too_long", "", f"the filled prose has {len(prose)} characters")
        )
        prose = prose[:FILLED_CHARS_MAX]
        filled = tuple(span for span in filled if span[1] <= FILLED_CHARS_MAX)
    audited = audit_prose(prose, filled, figures, world, numbers)
    labels = {number.label for number in audited} | {f.label for f in figures.values()}
    status = AnswerStatus.UNSOURCED if Label.UNSOURCED in labels else AnswerStatus.ANSWERED
    return (
        Answer(
            status=AnswerStatus.FAILED if problems else status,
            prose=prose,
            figures=tuple(figures.values()),
            quotes=tuple(quotes.items()),
            numbers=audited,
            problems=tuple(f"{p.code}: {p.where}: {p.message}" for p in problems),
        ),
        tuple(problems),
    )


def _hidden(filled: FilledProse) -> list[Problem]:
    """One problem for what a reader would not see as it is written, with the places."""
    if not filled.hidden:
        return []
    places = ", ".join(
        f"U+{ord(char):04X} at character {at + 1}" for at, char in filled.hidden[:HIDDEN_TOLD_MAX]
    )
    more = len(filled.hidden) - HIDDEN_TOLD_MAX
    rest = f" and {more} more" if more > 0 else ""
    message = (
        f"the prose has characters that are not seen or change the one before: {places}{rest}; "
        "write it in plain characters, with line feeds as the only control"
    )
    return [Problem("answer.character", "", message)]


def _figure(world: World, name: str, draft: FigureDraft, numbers: QuestionNumbers) -> Figure:
    step = _step(world, draft.step)
    address = step.receipt.parts["output"]
    reader = world.reader(address)
    column = _column(reader, draft.column)
    position = _position(reader, draft.row, step.id)
    kind = next(c.type for c in reader.columns if c.name == column)
    unfit = misfit(draft.display, kind)
    if unfit is not None:
        raise _Unfilled("answer.display", unfit)
    value = reader.text(position, column)
    if value is not None and len(value) > CELL_CHARS_MAX:
        raise _Unfilled("answer.too_long", f"the cell has {len(value)} characters; cite a passage")
    origin = step.origins[column]
    label, reason = column_label(origin, numbers, kind=kind)
    long = is_long(kind, computed=_is_computed(world, origin))
    return Figure(
        name=name,
        value=value,
        shown=shown(value, draft.display, long=long),
        type=kind,
        label=label,
        reason=reason,
        flags=_flags(step, column, kind, value, draft.display, long=long),
        step=step.id,
        citation=CellCitation(str(address), reader.row_key(position), column),
        span=_span_of_row(reader, position) if step.verb == "extract" else None,
        operation=origin.operation,
        literals=origin.literals,
    )


def _flags(
    step: StepResult,
    column: str,
    kind: str,
    value: str | None,
    display: Display,
    *,
    long: bool,
) -> tuple[Flag, ...]:
    origin = step.origins[column]
    nothing = value is None or (value in NOT_FINITE and kind in FLOATS)
    said = {
        Flag.COMPUTED: origin.operation != "",
        Flag.PARTIAL: not step.complete,
        Flag.INEXACT: origin.inexact or kind in FLOATS,
        Flag.TIED: column in step.tied,
        Flag.NO_VALUE: nothing,
        Flag.ROUNDED: not nothing and is_rounded(value, display, long=long),
        Flag.UNIT_TYPED: not nothing and types_unit(display),
    }
    return tuple(flag for flag, holds in said.items() if holds)


def _is_computed(world: World, origin: ColumnOrigin) -> bool:
    """Whether a value was computed here or in the step that its column was copied from."""
    if origin.operation != "" or len(origin.sources) != 1:
        return True
    ((table, column),) = origin.sources
    step = world.steps.get(table)
    earlier = None if step is None else step.origins.get(column)
    return earlier is not None and _is_computed(world, earlier)


def _step(world: World, name: str) -> StepResult:
    step = world.steps.get(name)
    if step is None:
        known = ", ".join(s.id for s in world.steps.values() if s.ok) or "none"
        raise _Unfilled("answer.unknown_step", f"there is no step {name!r}; there is: {known}")
    if not step.ok:
        raise _Unfilled("answer.step_failed", f"the step {name!r} has no result ({step.code})")
    return step


def _column(reader: TableReader, asked: str) -> str:
    names = [column.name for column in reader.columns]
    if asked in names:
        return asked
    folded = [name for name in names if name.lower() == asked.lower()]
    if len(folded) == 1:
        return folded[0]
    raise _Unfilled(
        "answer.unknown_column", f"there is no column {asked!r}; there is: {', '.join(names)}"
    )


def _position(reader: TableReader, row: Mapping[str, RowValue], step: str) -> int:
    wanted = {}
    for asked, value in row.items():
        column = _column(reader, asked)
        kind = next(c.type for c in reader.columns if c.name == column)
        wanted[column] = row_text(value, kind)
    try:
        found = reader.positions(wanted)
    except ArtifactError as error:
        raise _Unfilled("answer.unknown_column", error.message) from error
    if len(found) != 1:
        said = ", ".join(f"{name}={text}" for name, text in wanted.items()) or "every row"
        code = "answer.no_row" if not found else "answer.several_rows"
        raise _Unfilled(
            code, f"{said} selects {len(found)} of the {reader.rows} rows of {step!r}, not one"
        )
    return found[0]


def row_text(value: RowValue, kind: str) -> str | None:
    """The text by which a row is looked up: what the model wrote, in the column's own form."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    scale = decimal_scale(kind)
    if scale is not None:
        try:
            number = Decimal(value)
            padded = format(number.quantize(Decimal(1).scaleb(-scale)), "f")
            return padded if Decimal(padded) == number else format(number, "f")
        except ArithmeticError:
            return str(value)
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _span_of_row(reader: TableReader, position: int) -> SpanCitation | None:
    if not {column.name for column in reader.columns} >= _SPAN_COLUMNS:
        return None
    cell = {name: reader.text(position, name) or "" for name in _SPAN_COLUMNS}
    return SpanCitation(
        snapshot=cell["raw"],
        text=cell["text"],
        document_name=cell["document"],
        start=int(cell["start"]),
        end=int(cell["end"]),
        quote=cell["quote"],
    )


def _quote(world: World, draft: QuoteDraft, *, taken: bool) -> SpanCitation:
    if taken:
        raise _Unfilled("answer.repeated_name", "a figure has the same name")
    if draft.step is not None:
        if draft.source or draft.document or draft.quote:
            raise _Unfilled("answer.quote", "a quote is a step or a source with words, not both")
        step = _step(world, draft.step)
        reader = world.reader(step.receipt.parts["output"])
        span = _span_of_row(reader, 0) if step.verb == "extract" and reader.rows == 1 else None
        if span is None:
            raise _Unfilled("answer.quote", f"the step {step.id!r} is not an extraction")
        return span
    if draft.source is None or draft.quote is None:
        raise _Unfilled("answer.quote", "give a source and the exact words, or an extract step")
    return _located(world, draft.source, draft.document, draft.quote, draft.occurrence)


def _located(
    world: World, source_name: str, document: str | None, words: str, occurrence: int | None
) -> SpanCitation:
    source = world.sources.get(source_name)
    if source is None or source.kind != "text":
        raise _Unfilled("answer.quote", f"there is no text source {source_name!r}")
    names = [d.name for d in source.documents if document is None or d.name == document]
    found: list[SpanCitation] = []
    fault = f"source {source_name!r} has no document {document!r}"
    for name in names:
        text = world.document(source, name)
        if not is_known(text.published, world.as_of):
            continue
        try:
            span = locate(text.text, words, occurrence=occurrence)
        except ExecutorError as error:
            fault = error.message
            if error.code == "quote.ambiguous":
                raise _Unfilled("answer.quote", fault) from error
            continue
        quote = text.text[span.start : span.end]
        found.append(SpanCitation(text.raw, text.address, name, span.start, span.end, quote))
    if len(found) != 1:
        where = f"it stands in {len(found)} documents; name one" if found else fault
        raise _Unfilled("answer.quote", where)
    return found[0]
