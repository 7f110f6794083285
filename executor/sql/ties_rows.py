"""Aggregates that give back rows: all calls of one block read its rows in one order.

first(name) and first(amount) by their own arguments would give a name and an amount of two rows,
a row that never was; list(name) and list(amount) would not be parallel. So they are ordered by
what tells the rows of FROM apart: declared keys, else all columns. Where these are not known, by
the arguments of all such calls together: rows that agree in them are interchangeable to each. A
list that stands alone is ordered by itself: each of its elements is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tieout.executor.sql.keys import Block, Column
from tieout.executor.sql.literals import same
from tieout.executor.sql.needs import Need
from tieout.executor.sql.orders_places import Places
from tieout.executor.sql.orders_texts import Ordering
from tieout.executor.sql.session import quoted
from tieout.executor.sql.shape import Json, Node, word
from tieout.executor.sql.ties_aggregates import (
    LISTS,
    by_arguments,
    is_open,
    is_outside,
    need_of,
    orders_of,
    own_texts,
)
from tieout.executor.sql.ties_blocks import own_parts

KEEPS_ONE = frozenset({"first", "last", "any_value", "arbitrary"})
KEEPS_ONE |= {"arg_max", "arg_max_null", "arg_max_nulls_last", "argmax", "max_by"}
KEEPS_ONE |= {"arg_min", "arg_min_null", "arg_min_nulls_last", "argmin", "min_by"}
"""Give back a value of one row, or of some rows."""
NO_DISTINCT = "Leave DISTINCT out of the call, so that all of them can take one row."
_NO_STAR = "Name the columns one by one, without COLUMNS or *."


def row_needs(
    places: Places, parts: Sequence[Json], block: Block, groups: list[Node] | None
) -> dict[int, Need | None]:
    """What each call that gives back rows needs, by the id of its node; None when nothing.

    parts: the expressions of the block. groups: what all rows of a group agree in, if anything.
    """
    calls = [
        node
        for part in parts
        for node in own_parts(part)
        if word(node, "class") == "FUNCTION"
        and word(node, "function_name").lower() in KEEPS_ONE | LISTS
        and not is_outside(node, block)
    ]
    opened = [call for call in calls if is_open(call, block, groups)]
    rows = _Rows(places, block, groups or [], _together(opened))
    found: dict[int, Need | None] = dict.fromkeys(map(id, calls))
    return found | {id(call): rows.need(call) for call in opened}


def _together(opened: list[Node]) -> list[Node]:
    """The calls that must read the rows in one order, those that read alike once."""
    found: list[Node] = []
    for call in opened:
        lone = call.get("distinct") and word(call, "function_name").lower() in LISTS
        if not lone and not any(same(call, other) for other in found):
            found.append(call)
    return found


def _starred(call: Node) -> bool:
    """Whether a call is one for each of several columns."""
    return any(word(part, "class") == "STAR" for part in own_parts(call))


@dataclass(frozen=True, slots=True)
class _Rows:
    """A block with its open calls that must read the rows in one order."""

    places: Places
    block: Block
    groups: list[Node]
    together: list[Node]

    def need(self, call: Node) -> Need:
        """What one open call needs."""
        several = len(self.together) > 1 or _starred(call)
        listed = word(call, "function_name").lower() in LISTS
        order, remedy = by_arguments(self.places, call), ""
        if call.get("distinct"):  # the engine orders by arguments alone
            order, remedy = (order, "") if listed or not several else (None, NO_DISTINCT)
        elif several or not listed:
            given = [*orders_of(call), *self.groups]
            order = telling(self.block, given) or self._by_all(call)
            remedy = "" if order is not None else _NO_STAR
        return need_of(self.places, call, self.block, order, remedy)

    def _by_all(self, call: Node) -> Ordering | None:
        """The arguments of all calls that are to read the rows in one order."""
        if any(map(_starred, self.together)):
            return None
        given, texts = orders_of(call), list[str]()
        for other in self.together:
            found = own_texts(self.places, other)
            if found is None:
                return None
            for argument, text in found:
                if not any(same(argument, g) for g in given):
                    given.append(argument)
                    texts.append(text)
        return Ordering(tuple(texts))


def telling(block: Block, given: list[Node]) -> Ordering | None:
    """What tells the rows of FROM apart beside some expressions; None when it cannot be named."""
    added = block.missing(block.plain(given))
    if added is None:
        return None
    texts = [_column(block, column) for column in added]
    return Ordering(tuple(t for t in texts if t is not None)) if None not in texts else None


def _column(block: Block, column: Column) -> str | None:
    """A column of FROM by the name of its relation; None when it has none."""
    place, name = column
    alias = block.relations[place].alias
    if name.startswith("?"):
        return None
    if alias:
        return f"{quoted(alias)}.{quoted(name)}"
    holders = [r for r in block.relations if r.columns is None or name in r.columns]
    return quoted(name) if len(holders) == 1 else None
