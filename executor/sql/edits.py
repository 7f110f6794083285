"""Changes of a text by place: applied together, undone for places, never by writing SQL anew."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters start to end become text; start == end inserts. rewrite: a name of REWRITES.

    opposite: the same change with every order that it adds turned round; None when it adds none.
    """

    start: int
    end: int
    text: str
    rewrite: str
    opposite: str | None = None


def in_order(edits: Sequence[Edit]) -> list[Edit]:
    """Sorted by place; insertions at one place stay as they were given. They must not overlap."""
    found = sorted(edits, key=lambda e: (e.start, e.end))
    for before, after in itertools.pairwise(found):
        if after.start < before.end:
            raise AssertionError("two edits overlap")
    return found


def apply(sql: str, edits: Sequence[Edit]) -> str:
    """The changed text."""
    parts: list[str] = []
    place = 0
    for edit in in_order(edits):
        parts += [sql[place : edit.start], edit.text]
        place = edit.end
    return "".join([*parts, sql[place:]])


def before(offset: int, edits: Sequence[Edit]) -> int:
    """Where a character of the changed text stood; what was put in stood where it was put in."""
    shift = 0
    for edit in in_order(edits):
        start = edit.start + shift
        if offset < start:
            break
        if offset < start + len(edit.text):
            return edit.start
        shift += len(edit.text) - (edit.end - edit.start)
    return offset - shift
