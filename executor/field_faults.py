"""What is wrong with a key of a TOML file, in words: its place, the fault, what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

_CORRECT: Final = "Correct it."
_KINDS: Final[Mapping[str, str]] = {
    "string_type": "a text in quotes",
    "list_type": "a list in brackets",
    "dict_type": "a table",
    "model_type": "a table",
    "int_type": "a whole number",
    "bool_type": "true or false",
}
_BOUNDS: Final[Mapping[str, str]] = {
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "string_too_short": "at least {min_length} characters long",
    "string_too_long": "at most {max_length} characters long",
    "too_short": "a list of at least {min_length}",
    "too_long": "a list of at most {max_length}",
}


def field_fault(
    kind: type[BaseModel],
    document: Mapping[str, Any],
    error: ErrorDetails,
    rules: Mapping[str, str],
) -> tuple[str, str]:
    """Message and remedy of the first fault pydantic found in a document of this kind.

    rules: a pattern of the kind to the words that say it.
    """
    place, what = error["loc"], error["type"]
    where = _where(document, place)
    if what == "extra_forbidden":
        table = _table(kind, place[:-1])
        known = ", ".join(table.model_fields) if table else ""
        listed = f"; known there: {known}" if known else ""
        return f"the key {where} is not known{listed}", "Correct or remove it."
    if what == "missing":
        return f"the key {where} is missing", "Add it."
    return f"the key {where} {_wanted(error, rules)}", _CORRECT


def _wanted(error: ErrorDetails, rules: Mapping[str, str]) -> str:
    what, bounds = error["type"], error.get("ctx", {})
    if what == "string_pattern_mismatch" and bounds["pattern"] in rules:
        return f"must be {rules[bounds['pattern']]}"
    if what == "literal_error":
        return f"must be one of {bounds['expected']}"
    if what in _KINDS:
        return f"must be {_KINDS[what]}"
    if what in _BOUNDS:
        return f"must be {_BOUNDS[what].format(**bounds)}"
    return f"is not right: {error['msg']}"


def _where(document: object, place: Sequence[str | int]) -> str:
    """The key with the tables around it; an item of a list by its number from 1 and its id."""
    said: list[str] = []
    for part in place:
        try:
            document = document[part]  # type: ignore[index]
        except (LookupError, TypeError):
            document = None
        if isinstance(part, str):
            said.append(part)
            continue
        named = document.get("id") if isinstance(document, dict) else None
        said[-1] += f" {part + 1}" + (f" ({named!r})" if isinstance(named, str) else "")
    return ".".join(said)


def _table(kind: type[BaseModel], place: Sequence[str | int]) -> type[BaseModel] | None:
    """The kind of the table at this place, or None where the place leads through no tables."""
    found: Any = kind
    for part in place:
        if isinstance(found, type) and issubclass(found, BaseModel):
            field = found.model_fields.get(str(part))
            found = None if field is None else _bare(field.annotation)
        else:  # a list's item or a dictionary's value, of which the last argument is the kind
            arguments = get_args(found)
            found = _bare(arguments[-1]) if arguments else None
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def _bare(annotation: Any) -> Any:
    """The annotation without its constraints, and without None."""
    while get_origin(annotation) in (Annotated, Union, UnionType):
        arguments = [a for a in get_args(annotation) if a is not type(None)]
        annotation = arguments[0]
    return annotation
