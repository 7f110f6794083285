"""The grammar as a JSON schema that constrained decoding accepts: no free keys, no recursion.

Servers that honour a schema want every object closed, so the maps of an answer (figures, quotes,
row) are given as lists of named items here; the executor's grammar reads both forms. The schema
only helps a model to write what the grammar admits: the reply is parsed strictly in any case.
"""

from __future__ import annotations

from collections.abc import Mapping

from tieout.executor.grammar import HITS_MAX, STEPS_PER_TURN_MAX

Schema = dict[str, object]


def turn_schema() -> Mapping[str, object]:
    """The schema of one turn: steps or an answer."""
    return {
        "anyOf": [
            _closed({"steps": {"type": "array", "items": {"anyOf": _steps()}}}),
            _closed({"answer": _answer()}),
        ],
        "description": f"At most {STEPS_PER_TURN_MAX} steps in a turn.",
    }


def _closed(properties: Mapping[str, object], optional: tuple[str, ...] = ()) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _verb(name: str) -> Schema:
    return {"type": "string", "enum": [name]}


_TEXT: Schema = {"type": "string"}


def _steps() -> list[Schema]:
    names = {"type": "array", "items": _TEXT}
    limit = {"type": "integer", "description": f"1 to {HITS_MAX}"}
    return [
        _closed(
            {"do": _verb("sql"), "id": _TEXT, "sql": _TEXT, "key": names, "why": _TEXT},
            ("key", "why"),
        ),
        _closed(
            {
                "do": _verb("search"),
                "id": _TEXT,
                "source": _TEXT,
                "query": _TEXT,
                "limit": limit,
                "why": _TEXT,
            },
            ("limit", "why"),
        ),
        _closed(
            {
                "do": _verb("extract"),
                "id": _TEXT,
                "from": _TEXT,
                "quote": _TEXT,
                "near": _TEXT,
                "as": {"type": "string", "enum": ["number", "text"]},
                "unit": _TEXT,
                "document": _TEXT,
                "why": _TEXT,
            },
            ("near", "as", "unit", "document", "why"),
        ),
    ]


def _answer() -> Schema:
    display = _closed(
        {
            "style": {
                "type": "string",
                "enum": ["number", "currency", "percent", "date", "text"],
            },
            "currency": _TEXT,
            "places": {"type": "integer"},
            "rounding": {"type": "string", "enum": ["half-up", "half-even"]},
        },
        ("currency", "places", "rounding"),
    )
    cell = _closed({"column": _TEXT, "value": {"anyOf": [_TEXT, {"type": "null"}]}})
    figure = _closed(
        {
            "name": _TEXT,
            "step": _TEXT,
            "row": {"type": "array", "items": cell},
            "column": _TEXT,
            "display": display,
        },
        ("row", "display"),
    )
    quote = _closed(
        {"name": _TEXT, "source": _TEXT, "document": _TEXT, "quote": _TEXT, "step": _TEXT},
        ("source", "document", "quote", "step"),
    )
    return _closed(
        {
            "prose": _TEXT,
            "figures": {"type": "array", "items": figure},
            "quotes": {"type": "array", "items": quote},
        },
        ("figures", "quotes"),
    )
