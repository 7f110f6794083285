"""The countercheck: the text that runs, with every order that was added in any round turned round.

An order that one round adds may hold what the next round puts in order (a query inside an argument,
which now stands in the ORDER BY too), so that the opposites of one round alone would leave the
others as they are, and the countercheck would find no difference where they chose.
"""

from __future__ import annotations

from collections.abc import Sequence

from tieout.executor.sql.edits import Edit, in_order
from tieout.executor.sql.orders_texts import TURNED
from tieout.executor.sql.refusal import Text

_CONTEXT_CHARS = 24
"""By so many characters before it a place is found again in a text that was written anew."""


def countercheck_of(text: Text) -> str:
    """The text with its added orders turned round; "" when none was added that could choose.

    Raises SqlRefused: sql.too_complex, where an order cannot be found again after later rounds.
    """
    places = list[int]()
    for sql, edits in text.earlier:
        moved = _moved(places, sql, edits)
        if moved is None:
            raise text.refuse("sql.too_complex", "an added order stands inside another")
        places = moved
    found, last = list[str](), 0
    for place in sorted(places):
        found += [text.sql[last:place], TURNED]
        last = place
    return "".join([*found, text.sql[last:]]) if places else ""


def _moved(places: list[int], sql: str, edits: Sequence[Edit]) -> list[int] | None:
    """Where TURNED goes in the text after some edits. places: where it goes in the text before.

    An order that ends where an edit puts something in is continued by it, and ends before it.
    """
    moved, left, shift = list[int](), sorted(places), 0
    for edit in in_order(edits):
        moved += [place + shift for place in left if place <= edit.start]
        inside = [place for place in left if edit.start < place < edit.end]
        left = [place for place in left if place >= edit.end and place > edit.start]
        start = edit.start + shift
        own = _turned_in(edit)
        again = [_again(sql[edit.start : place], edit.text) for place in inside]
        if own is None or None in again:
            return None
        moved += [start + place for place in [*own, *again] if place is not None]
        shift += len(edit.text) - (edit.end - edit.start)
    return sorted({*moved, *(place + shift for place in left)})


def _turned_in(edit: Edit) -> list[int] | None:
    """Where the opposite of an edit has TURNED and its text has not; None when they differ else."""
    if edit.opposite is None:
        return []
    text, opposite = edit.text, edit.opposite
    places, here, there = list[int](), 0, 0
    while there < len(opposite):
        if opposite.startswith(TURNED, there) and not text.startswith(TURNED, here):
            places.append(here)
            there += len(TURNED)
        elif here < len(text) and text[here] == opposite[there]:
            here, there = here + 1, there + 1
        else:
            return None
    return places if here == len(text) else None


def _again(before: str, text: str) -> int | None:
    """The one place in a text that follows the same characters."""
    context = before[-_CONTEXT_CHARS:]
    return text.find(context) + len(context) if text.count(context) == 1 else None
