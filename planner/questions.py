"""The questions of a batch: `questions.toml` as values.

Source: DESIGN §6. The question sets its sources and its as_of; a model cannot.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from tieout.executor.catalog import parse_toml, read_toml_bytes, validate_toml
from tieout.ledger.citation import Label
from tieout.planner.errors import Exit, PlannerError

QUESTIONS_MAX = 10_000
ID_PATTERN: Final = r"^[a-z0-9][a-z0-9_.-]{0,79}$"
_RULES: Final = {
    ID_PATTERN: "1 to 80 lower-case letters, digits, _, . and -, a letter or digit first"
}
RESERVED = frozenset({"run", "batch", "latest", "ended"})
"""Subjects of the ledger's own rows, and names that `show` understands."""


class _Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Question(_Declared):
    id: Annotated[str, Field(pattern=ID_PATTERN)]
    text: Annotated[str, Field(min_length=1, max_length=10_000)]
    sources: list[str]
    plan: str | None = None
    as_of: Any = None
    expect: dict[str, str] = {}
    expect_labels: dict[str, str] = {}


class _File(_Declared):
    as_of: Any = None
    question: Annotated[list[_Question], Field(min_length=1, max_length=QUESTIONS_MAX)]


@dataclass(frozen=True, slots=True)
class Question:
    """A question. plan: the bytes of its plan file, None if a model plans; plan_name: its path.

    as_of: ISO date or "". expect: figure name to exact value; expect_labels: to label.
    """

    id: str
    text: str
    sources: tuple[str, ...]
    plan: bytes | None
    plan_name: str
    as_of: str
    expect: Mapping[str, str]
    expect_labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A questions.toml: its bytes as read, and its questions in order."""

    name: str
    payload: bytes
    questions: tuple[Question, ...]


def load_questions(path: Path, known_sources: frozenset[str]) -> QuestionFile:
    """Read a questions file and the plans it names.

    Raises ExecutorError questions.unreadable, questions.missing, questions.not_toml,
    questions.field, plan.missing; PlannerError questions.unknown_source, questions.repeated_id,
    questions.as_of, questions.label.
    """
    payload = read_toml_bytes(path, "questions")
    document = parse_toml(payload, place=str(path), code="questions")
    file = validate_toml(_File, document, str(path), "questions", rules=_RULES)
    seen: set[str] = set()
    questions = []
    for question in file.question:
        if question.id in RESERVED or question.id.startswith(("r-", "s-")):
            raise _wrong("reserved_id", f"{question.id!r} cannot be the id of a question", path)
        if question.id in seen:
            raise _wrong("repeated_id", f"two questions have the id {question.id!r}", path)
        seen.add(question.id)
        for source in question.sources:
            if source not in known_sources:
                known = ", ".join(sorted(known_sources)) or "none"
                raise _wrong(
                    "unknown_source",
                    f"question {question.id!r} names the source {source!r}; there is: {known}",
                    path,
                )
        questions.append(_question(question, file.as_of, path))
    return QuestionFile(path.name, payload, tuple(questions))


def _question(question: _Question, as_of: Any, path: Path) -> Question:
    for name, label in question.expect_labels.items():
        if label not in set(Label):
            raise _wrong("label", f"{name} expects {label!r}, which is no label", path)
    plan = None
    if question.plan is not None:
        plan = read_toml_bytes(path.parent / question.plan, "plan")
    return Question(
        id=question.id,
        text=question.text,
        sources=tuple(question.sources),
        plan=plan,
        plan_name=question.plan or "",
        as_of=_date_in(path, question.as_of if question.as_of is not None else as_of),
        expect=question.expect,
        expect_labels=question.expect_labels,
    )


def _date_in(path: Path, value: Any) -> str:
    try:
        return _date(value)
    except (TypeError, ValueError) as error:
        raise _wrong("as_of", f"as_of = {value!r} is not a date", path) from error


def _date(value: Any) -> str:
    """Raises TypeError, ValueError."""
    if value is None:
        return ""
    if isinstance(value, dt.datetime):
        return value.date().isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    return dt.date.fromisoformat(value).isoformat()


def _asked_date(text: str) -> str:
    try:
        return _date(text or None)
    except ValueError as error:
        raise PlannerError(
            "questions.as_of",
            f"{text[:40]!r} is not a date",
            place="--as-of",
            remedy="Give year, month and day, such as 2026-12-31.",
        ) from error


def _wrong(code: str, message: str, path: Path) -> PlannerError:
    return PlannerError(
        f"questions.{code}", message, place=str(path), remedy="Correct the questions file."
    )


def single_question(
    text: str, *, sources: tuple[str, ...], plan: bytes | None, as_of: str, plan_name: str = "plan"
) -> QuestionFile:
    """One question that stands in no file. plan_name: the plan file's name without its folder.

    Raises PlannerError questions.as_of, questions.empty.
    """
    if not text.strip():
        raise PlannerError("questions.empty", "the question is empty", remedy="Say what to find.")
    question = Question(
        id="ask",
        text=text,
        sources=sources,
        plan=plan,
        plan_name=plan_name if plan is not None else "",
        as_of=_asked_date(as_of),
        expect={},
        expect_labels={},
    )
    return QuestionFile("ask", text.encode("utf-8", "replace"), (question,))


def given_plan(plan: object) -> tuple[bytes | None, str]:
    """The bytes of a plan and its name without a folder, since the name is recorded.

    plan: bytes, the path of a plan file, or None. Raises PlannerError plan.kind, ExecutorError
    plan.missing, plan.unreadable, plan.too_large.
    """
    if plan is None or isinstance(plan, bytes):
        return plan, "plan"
    if isinstance(plan, str | Path):
        return read_toml_bytes(Path(plan), "plan"), Path(plan).name
    raise PlannerError(
        "plan.kind",
        f"a plan is bytes or the path of a file, not {type(plan).__name__}",
        remedy="Give Path('NAME.json'), or the file's bytes.",
        exit_code=Exit.USAGE,
    )
