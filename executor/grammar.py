"""Everything a model may ask, and nothing else. No verb here acts on the world.

The planner cannot widen this: it is owned by the executor, extra fields are refused, and each
refusal says where in the text and what to do (DESIGN §6).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from tieout.executor.plan_text import Json, Path, PlacedJson, PlanRefused, parse_json

ID_PATTERN: Final = r"^[a-z][a-z0-9_]{0,39}$"
PLACEHOLDER_PATTERN: Final = r"^[a-zA-Z][a-zA-Z0-9_]{0,39}$"
STEPS_PER_TURN_MAX: Final = 20
FIGURES_MAX: Final = 200
PROSE_CHARS_MAX: Final = 20_000
HITS_MAX: Final = 50

StepId: TypeAlias = Annotated[str, Field(pattern=ID_PATTERN)]
Placeholder: TypeAlias = Annotated[str, Field(pattern=PLACEHOLDER_PATTERN)]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
RowValue: TypeAlias = None | bool | int | Decimal | str


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SqlStep(_Asked):
    """A SELECT over sources and earlier steps. key: columns whose values name a row."""

    do: Literal["sql"]
    id: StepId
    sql: Annotated[str, Field(min_length=1)]
    key: Annotated[list[Name], Field(max_length=20)] = []
    why: Annotated[str, Field(max_length=2_000)] = ""


class SearchStep(_Asked):
    """A ranked search over a text source."""

    do: Literal["search"]
    id: StepId
    source: Name
    query: Annotated[str, Field(min_length=1, max_length=1_000)]
    limit: Annotated[int, Field(ge=1, le=HITS_MAX)] = 5
    why: Annotated[str, Field(max_length=2_000)] = ""


class ExtractStep(_Asked):
    """An exact quote out of an earlier search's documents, and the one number in it."""

    do: Literal["extract"]
    id: StepId
    from_: Annotated[str, Field(alias="from", pattern=ID_PATTERN)]
    quote: Annotated[str, Field(min_length=1, max_length=5_000)]
    near: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    as_: Annotated[Literal["number", "text"], Field(alias="as")] = "number"
    occurrence: Annotated[int, Field(ge=1, le=10_000)] | None = None
    unit: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    document: Name | None = None
    why: Annotated[str, Field(max_length=2_000)] = ""


Step: TypeAlias = Annotated[SqlStep | SearchStep | ExtractStep, Field(discriminator="do")]


class Display(_Asked):
    """How a figure is written. places: digits after the point; rounding: of ties."""

    style: Literal["number", "currency", "percent", "date", "text"] = "number"
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] | None = None
    places: Annotated[int, Field(ge=0, le=18)] | None = None
    rounding: Literal["half-up", "half-even"] = "half-up"


def _from_list(value: object, name: str, held: str | None) -> object:
    """A map that was given as a list of named items, as constrained decoding must; else as it is.

    name: the item's key that becomes the key of the map. held: the one other key that becomes
    the value, or None for the rest of the item.
    """
    if not isinstance(value, list):
        return value
    found: dict[object, object] = {}
    for item in value:
        if not isinstance(item, dict) or not isinstance(item.get(name), str):
            raise ValueError(f"each item is an object with a text {name!r}")  # noqa: TRY004
        if item[name] in found:
            raise ValueError(f"{item[name]!r} is given twice")
        rest = {key: part for key, part in item.items() if key != name}
        if held is not None and set(rest) != {held}:
            raise ValueError(f"each item has exactly {name!r} and {held!r}")
        found[item[name]] = rest if held is None else rest[held]
    return found


def _named(value: object) -> object:
    return _from_list(value, "name", None)


def _columns(value: object) -> object:
    return _from_list(value, "column", "value")


class FigureDraft(_Asked):
    """Where a figure stands: a cell of a step's result. row: texts of columns; {} for one row."""

    step: StepId
    row: Annotated[dict[Name, RowValue], Field(max_length=20), BeforeValidator(_columns)] = {}
    column: Name
    display: Display = Display()


class QuoteDraft(_Asked):
    """A passage: of a document by its exact words, or of an extraction by its step."""

    source: Name | None = None
    document: Name | None = None
    quote: Annotated[str, Field(min_length=1, max_length=5_000)] | None = None
    step: StepId | None = None
    occurrence: Annotated[int, Field(ge=1, le=10_000)] | None = None


class AnswerDraft(_Asked):
    """Prose with {placeholders}, and the cells and passages that fill them."""

    prose: Annotated[str, Field(min_length=1, max_length=PROSE_CHARS_MAX)]
    figures: Annotated[
        dict[Placeholder, FigureDraft], Field(max_length=FIGURES_MAX), BeforeValidator(_named)
    ] = {}
    quotes: Annotated[
        dict[Placeholder, QuoteDraft], Field(max_length=FIGURES_MAX), BeforeValidator(_named)
    ] = {}


class StepsTurn(_Asked):
    """A turn that asks for steps."""

    steps: Annotated[list[Step], Field(min_length=1, max_length=STEPS_PER_TURN_MAX)]


class AnswerTurn(_Asked):
    """A turn that answers."""

    answer: AnswerDraft


Turn: TypeAlias = StepsTurn | AnswerTurn


@dataclass(frozen=True, slots=True)
class ParsedTurn:
    """A turn and, for each of its steps (or its answer), the text exactly as it was written."""

    turn: Turn
    asked: tuple[str, ...]


def parse_turn(text: str) -> ParsedTurn:
    """Read one turn of a plan. Raises PlanRefused with line and column.

    Codes: plan.not_json, plan.repeated_key, plan.shape (neither steps nor answer, or both),
    plan.unknown_field, plan.field (missing, of a wrong type or out of range), plan.repeated_id.
    """
    document = parse_json(text)
    kind = _kind(document)
    try:
        turn: Turn = kind.model_validate(document.value)
    except ValidationError as error:
        raise _refused(document, error) from error
    if isinstance(turn, AnswerTurn):
        return ParsedTurn(turn, (document.slice(("answer",)),))
    _check_ids(document, turn)
    asked = tuple(document.slice(("steps", index)) for index in range(len(turn.steps)))
    return ParsedTurn(turn, asked)


def _kind(document: PlacedJson) -> type[StepsTurn | AnswerTurn]:
    value = document.value
    keys = set(value) if isinstance(value, dict) else set()
    if keys == {"steps"}:
        return StepsTurn
    if keys == {"answer"}:
        return AnswerTurn
    unknown = sorted(keys - {"steps", "answer"})
    at = document.offset((unknown[0],)) if unknown else 0
    raise PlanRefused(
        "plan.shape",
        f"the turn has the field {unknown[0]!r}, which is not known"
        if unknown
        else "a turn is an object with either steps or an answer",
        text=document.text,
        offset=at,
        remedy='Send {"steps": […]} to ask for results or {"answer": {…}} to finish, not both.',
    )


def _check_ids(document: PlacedJson, turn: StepsTurn) -> None:
    seen: set[str] = set()
    for index, step in enumerate(turn.steps):
        if step.id in seen:
            raise PlanRefused(
                "plan.repeated_id",
                f"two steps of the turn are called {step.id!r}",
                text=document.text,
                offset=document.offset(("steps", index, "id")),
                remedy="Give each step an id of its own.",
            )
        seen.add(step.id)


def _refused(document: PlacedJson, error: ValidationError) -> PlanRefused:
    """The first fault of a validation, with the place in the text."""
    first = error.errors(include_url=False, include_input=False)[0]
    path = _path(document, tuple(first["loc"]))
    where = ".".join(str(part) for part in path)
    kind = first["type"]
    if kind == "extra_forbidden":
        code, message = "plan.unknown_field", f"the field {where} is not known"
        remedy = "Leave it out; the grammar admits no other fields."
    elif kind == "missing":
        code, message = "plan.field", f"the field {where} is missing"
        remedy = "Add it."
    else:
        code, message = "plan.field", f"the field {where} is not right: {first['msg']}"
        remedy = "Give it the form that the grammar states."
    return PlanRefused(
        code, message, text=document.text, offset=document.offset(path), remedy=remedy
    )


def _path(document: PlacedJson, location: tuple[str | int, ...]) -> Path:
    """The path in the document for a pydantic location.

    Below an item of `steps` pydantic puts the verb of the step, which is no key of the document.
    """
    if location[:1] == ("steps",) and len(location) > 2:
        location = (*location[:2], *location[3:])
    path: list[str | int] = []
    value: Json = document.value
    for part in location:
        path.append(part)
        if isinstance(value, dict) and isinstance(part, str):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            break
    return tuple(path)
