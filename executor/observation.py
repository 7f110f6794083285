"""What a model is shown of a result, read off the stored bytes: schema, count, totals, rows.

Source: DESIGN §6. The text is canonical JSON, so a rebuilt prompt is equal byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence

from tieout.artifacts.address import Address
from tieout.artifacts.errors import RoomError
from tieout.artifacts.store import Store
from tieout.artifacts.table import HIDDEN_PREFIX
from tieout.artifacts.table_reader import TableHead, TableReader
from tieout.artifacts.values import cell_text
from tieout.executor.check_document import refusal_members
from tieout.executor.limits import Limits
from tieout.ledger.canon import Json, encode


def read_back(store: Store, address: Address, *, limits: Limits) -> TableReader:
    """The first rows of a table as the store gives them, and how many there are.

    All of its bytes are read and checked; raises ArtifactError as `Store.scan` does.
    """
    with store.scan(address) as stream:
        return TableHead(stream, limits.rows_shown_max)  # checked on the way out of the block


def observe(
    reader: TableReader,
    *,
    step: str,
    address: str,
    complete: bool,
    totals: tuple[tuple[str, str], ...],
    limits: Limits,
    rewrites: Sequence[Json] = (),
    ties: str = "",
    unseen: int = 0,
) -> bytes:
    """The observation of a table artifact. reader: what the store gave back (`read_back`).

    rewrites: what was changed in the text before it ran, with places in it as asked.
    ties: what the countercheck of an added order found; "" when there was none to make.
    unseen: documents that as_of keeps from the question; absence is not said of them.
    """
    columns = [c for c in reader.columns if not c.name.startswith(HIDDEN_PREFIX)]
    rows: list[Json] = []
    for position, row in enumerate(reader.page(0, limits.rows_shown_max)):
        shown: dict[str, Json] = {
            c.name: _cut(cell_text(row[c.name], c.type), limits.chars_shown_max) for c in columns
        }
        rows.append({"row": reader.row_key(position), "cells": _pairs(shown)})
    document: dict[str, Json] = {
        "observation": step,
        "address": address,
        "outcome": "complete" if complete else "partial",
        "rows": reader.rows,
        "rows_shown": len(rows),
        "columns": [[c.name, c.type] for c in columns],
        "key": [name for name in reader.key if not name.startswith(HIDDEN_PREFIX)],
        "control_totals": [list(total) for total in totals],
        "rewrites": list(rewrites),
        "first_rows": rows,
    }
    if ties:
        document["ties"] = ties
    if unseen:
        document["documents_not_seen"] = unseen
    if reader.rows == 0:
        document["outcome"] = "no_results"
    return encode(document)


def _pairs(row: dict[str, Json]) -> Json:
    """Cells as pairs: column names may be any text, canonical JSON wants ASCII keys."""
    return [[name, value] for name, value in row.items()]


def _cut(text: str | None, chars_max: int) -> str | None:
    if text is None or len(text) <= chars_max:
        return text
    return f"{text[:chars_max]}… ({len(text)} characters)"


def refusal_text(error: RoomError, *, step: str, line: int | None, column: int | None) -> bytes:
    """A refusal or failure as the model is shown it: code, place, reason, way out.

    As in the document of a check: `why` says what the code means, `reasons` why the text is no
    function of the data; both only where there is something to say.
    """
    members = refusal_members(error)
    said = {name: members[name] for name in ("why", "reasons") if members[name]}
    return encode(
        {
            "refused": step,
            "code": error.code,
            "message": error.message,
            **said,
            "line": line,
            "column": column,
            "way_out": error.remedy,
        }
    )
