"""What recorded documents must look like: manifest, report and batch (docs/FORMAT.md §8, §9).

Written from the format, without the code that writes them. Where the format leaves a member's
inside open (`reading`, `steps`), only what the audit relies on is demanded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tieout.ledger.audit.forms import (
    ADDRESS,
    COUNT,
    DIGEST,
    TEXT,
    NotOfTheProfile,
    each,
    maybe,
    object_of,
    one_of,
    pattern,
    read_json,
    truth,
)

LABELS: Final = ("unsourced", "convention", "question", "sourced")
STATUSES: Final = ("answered", "answered_with_unsourced", "failed")
STANDINGS: Final = ("function_of_data", "function_of_data_as_rewritten")
TIES: Final = ("", "none", "decided", "unchecked")
LINE_KINDS: Final = ("preamble", "header", "data", "blank", "footer", "rejected")
_KINDS: Final = one_of("table", "text")


def _declaration(value: object, place: str) -> Iterator[str]:
    """JSON text, not canonical JSON: column names may be in any alphabet."""
    if not isinstance(value, str):
        yield f"{place} is not text"
        return
    try:
        inner, _ = read_json(value.encode("utf-8", "surrogatepass"), any_keys=True)
    except NotOfTheProfile as error:
        yield f"{place} is no JSON: {error}"
        return
    if not isinstance(inner, dict):
        yield f"{place} is no JSON object"


def totals(value: object, place: str) -> Iterator[str]:
    """Control totals: a list of [column, value]."""
    if not isinstance(value, list):
        yield f"{place} is not a list"
        return
    for pair in value:
        if not (
            isinstance(pair, list) and len(pair) == 2 and all(isinstance(p, str) for p in pair)
        ):
            yield f"{place} is not a list of [column, value]"
            return


_COMMON: Final = {
    "format": one_of("tieout.snapshot/1"),
    "kind": _KINDS,
    "source": TEXT,
    "declaration": _declaration,
    "note": TEXT,
}
_READING: Final = object_of(
    {
        "encoding": TEXT,
        "delimiter": TEXT,
        "quote": TEXT,
        "header_line": COUNT,
        "reasons": object_of({}, closed=False),
        "columns": each(
            object_of(
                {
                    "name": TEXT,
                    "type": TEXT,
                    "rule": object_of({}, closed=False),
                    "reason": TEXT,
                    "nulls": COUNT,
                    "control_total": maybe(TEXT),
                },
                closed=False,
            )
        ),
        "lines": object_of(dict.fromkeys(("all", *LINE_KINDS), COUNT)),
    },
    closed=False,
)
_TABLE: Final = object_of(
    _COMMON
    | {
        "file": object_of({"name": TEXT, "size": COUNT, "address": ADDRESS}),
        "reading": _READING,
        "table": object_of(
            {
                "address": ADDRESS,
                "content_digest": DIGEST,
                "rows": COUNT,
                "key": each(TEXT),
                "control_totals": totals,
            }
        ),
        "records": object_of({"address": ADDRESS, "content_digest": DIGEST, "rows": COUNT}),
    }
)
_TEXT: Final = object_of(
    _COMMON
    | {
        "documents": each(
            object_of(
                {
                    "name": TEXT,
                    "size": COUNT,
                    "raw": ADDRESS,
                    "text": ADDRESS,
                    "map": ADDRESS,
                    "media": TEXT,
                    "encoding": TEXT,
                    "encoding_reason": TEXT,
                    "characters": COUNT,
                    "title": TEXT,
                    "published": maybe(pattern(r"\d{4}-\d\d-\d\d", "a date")),
                }
            )
        ),
        "index": ADDRESS,
        "index_manifest": ADDRESS,
    }
)


def manifest(value: object, place: str) -> Iterator[str]:
    """A snapshot's manifest, of a table or of texts."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "table":
        yield from _TABLE(value, place)
    elif kind == "text":
        yield from _TEXT(value, place)
    else:
        yield from object_of(_COMMON, closed=False)(value, place)


_SPAN: Final = {
    "kind": one_of("span"),
    "snapshot": ADDRESS,
    "text": ADDRESS,
    "document": TEXT,
    "start": COUNT,
    "end": COUNT,
    "quote": TEXT,
}
_FIGURE: Final = object_of(
    {
        "name": TEXT,
        "value": maybe(TEXT),
        "shown": TEXT,
        "type": TEXT,
        "label": one_of(*LABELS),
        "reason": maybe(TEXT),
        "flags": each(TEXT),
        "step": TEXT,
        "address": maybe(ADDRESS),
        "row": maybe(TEXT),
        "column": maybe(TEXT),
        "span": maybe(object_of(_SPAN)),
        "operation": TEXT,
        "literals": each(TEXT),
    }
)


def _figure(value: object, place: str) -> Iterator[str]:
    yield from _FIGURE(value, place)
    if isinstance(value, dict):
        absent = {value.get(name) is None for name in ("address", "row", "column")}
        if len(absent) == 2:
            yield f"{place} names no cell: address, row and column are null together or not at all"


_NUMBER: Final = object_of(
    {
        "start": COUNT,
        "end": COUNT,
        "text": TEXT,
        "label": one_of(*LABELS),
        "reason": maybe(TEXT),
        "flags": each(TEXT),
        "figure": TEXT,
        "candidates": each(TEXT),
    }
)
_PLACE: Final = {"line": maybe(COUNT), "column": maybe(COUNT)}
_CHARACTER: Final = {"round": COUNT, "at": COUNT}
_STEP: Final = object_of(
    {
        "address": maybe(ADDRESS),
        "inputs": each(object_of({"address": ADDRESS}, closed=False)),
        "executed": maybe(ADDRESS),
        "standing": maybe(one_of(*STANDINGS)),
        "reasons": each(object_of({"name": TEXT, "detail": TEXT} | _PLACE)),
        "rewrites": each(
            object_of({"name": TEXT, "removed": TEXT, "inserted": TEXT, **_PLACE, **_CHARACTER})
        ),
        "ties": one_of(*TIES),
        "tied": each(TEXT),
    },
    closed=False,
)
REPORT: Final = object_of(
    {
        "format": one_of("tieout.report/1"),
        "question": object_of({"id": TEXT, "text": TEXT, "as_of": maybe(TEXT)}),
        "status": one_of(*STATUSES),
        "code": TEXT,
        "message": TEXT,
        "template": TEXT,
        "prose": TEXT,
        "figures": each(_figure),
        "quotes": each(object_of(_SPAN | {"name": TEXT})),
        "numbers": each(_NUMBER),
        "expectations": each(object_of({"name": TEXT, "holds": truth}, closed=False)),
        "steps": each(_STEP),
        "refusals": each(object_of({}, closed=False)),
        "unused_results": each(TEXT),
        "problems": each(TEXT),
    }
)
BATCH: Final = object_of(
    {
        "format": one_of("tieout.batch/1"),
        "questions": each(
            object_of({"id": TEXT, "status": one_of(*STATUSES), "ties": truth, "report": ADDRESS})
        ),
    }
)
