"""The judge: every reason why a query is no function of the data, with the edits that remove it.

Exact arithmetic comes first, since it changes types; orders come last, in one round, so that one
text with all of them turned round can be made (the countercheck).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tieout.executor.sql import domains, equal_values, exact
from tieout.executor.sql.edits import Edit
from tieout.executor.sql.keys import Keyed
from tieout.executor.sql.needs import Need
from tieout.executor.sql.orders_places import Places
from tieout.executor.sql.reading import Reading
from tieout.executor.sql.refusal import Text
from tieout.executor.sql.ties import order_needs
from tieout.executor.sql.tree import Granted
from tieout.executor.sql.verdict import Reason, Rewrite, Standing, Verdict

HARMLESS = frozenset({"sequence", "outside_range"})
"""Reasons that leave the content a function of the data: only the sequence of rows was open, or a
literal was moved to where it gives the same rows."""


def keyed_of(granted: Granted) -> dict[str, Keyed]:
    """What tells the rows of each granted table apart."""
    return {
        name: Keyed(columns, (granted.keys[name],) if granted.keys[name] else ())
        for name, columns in granted.columns.items()
    }


def judge(reading: Reading) -> tuple[Need, ...]:
    """What must be done before the text is a function of the data; empty when nothing."""
    clamps = domains.needs(reading)
    if clamps:
        return clamps
    inexact = exact.needs(reading) or equal_values.needs(reading)
    if inexact:
        return inexact
    names = [name for name, _kind in reading.columns]
    places = Places(reading.text, reading.tokens)
    return _apart(order_needs(places, reading.root, keyed_of(reading.granted), names))


def _apart(needs: Sequence[Need]) -> tuple[Need, ...]:
    """The needs; one whose edits would overlap another's loses them, and is refused."""
    taken: list[Edit] = []
    found = []
    for need in needs:
        clash = any(
            edit.start < other.end and other.start < edit.end
            for edit in need.edits
            for other in taken
        )
        taken += () if clash else need.edits
        found.append(replace(need, edits=()) if clash else need)
    return tuple(found)


def verdict_of(text: Text, told: Sequence[Need]) -> Verdict:
    """The verdict of an admitted text. told: needs that were met, at places of the asked text.

    The rewrites are the very edits that led to the text, in order of place.
    """
    asked = Text(text.asked)
    reasons, rewrites = list[Reason](), list[Rewrite]()
    for need in told:
        line, column = asked.position(need.offset) if need.offset is not None else (None, None)
        reasons.append(Reason(need.reason, need.message, line, column))
    for number, (sql, edits) in enumerate(text.earlier, start=1):
        left = Text(sql, text.earlier[: number - 1])
        for edit in edits:
            line, column = left.position(edit.start)
            removed, at = sql[edit.start : edit.end], edit.start
            rewrites.append(
                Rewrite(edit.rewrite, removed, edit.text, line, column, round=number, at=at)
            )
    rewrites.sort(key=lambda r: (r.line, r.column))
    harmless = all(r.name in HARMLESS for r in reasons)
    standing = Standing.FUNCTION if harmless else Standing.REWRITTEN
    return Verdict(standing, tuple(reasons), tuple(rewrites))
