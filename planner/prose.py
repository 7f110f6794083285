"""The numbers of a finished prose: where each came from, and one label for each.

A number inside a filled placeholder is that figure's; any other was typed by the model. A
number that what stands around it turns into another ("{x}000", "-{x}", "{x} million") is
neither: altered. Source: DESIGN §7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise

from tieout.artifacts.values import is_numeric
from tieout.executor.numbers import NumberToken, find_numbers
from tieout.executor.world import World
from tieout.ledger.citation import Figure, Flag, Label, NumberInProse, Reason
from tieout.planner.labels import QuestionNumbers
from tieout.planner.prose_candidates import candidates
from tieout.planner.prose_reading import Prose, owner_of, reads_as_filled
from tieout.planner.prose_spans import Span


def audit_prose(
    prose: str,
    filled: Sequence[Span],
    figures: Mapping[str, Figure],
    world: World,
    question: QuestionNumbers,
) -> tuple[NumberInProse, ...]:
    """One entry for each number-like token of the prose. filled: (start, end, placeholder)."""
    known = Prose.of(prose, filled)
    tokens = find_numbers(prose)
    typed = [t for t in tokens if not known.filled.touching(t.start, t.end)]
    unknown = [t for t in typed if not question.holds(t)]
    found = candidates(world, [t.value for t in unknown if t.value is not None])
    uncited = {token.start: _uncited(token, found) for token in unknown}
    asked = {token.start: _typed(token, Label.QUESTION, None, ()) for token in typed}
    entries = []
    for token, after in pairwise((*tokens, None)):
        assert token is not None
        entry = uncited.get(token.start) or asked.get(token.start)
        entries.append(entry or _touched(known, token, after, figures))
    return tuple(entries)


def _uncited(token: NumberToken, found: Mapping[Decimal, tuple[str, ...]]) -> NumberInProse:
    cells = () if token.value is None else found.get(token.value, ())
    reason = Reason.AMBIGUOUS if len(cells) > 1 else Reason.UNCITED
    return _typed(token, Label.UNSOURCED, reason, cells)


def _touched(
    prose: Prose, token: NumberToken, after: NumberToken | None, figures: Mapping[str, Figure]
) -> NumberInProse:
    """A token that a filled span touches: the figure's own, or altered by what is around it."""
    owner = owner_of(prose, token)
    if owner is not None:
        figure = figures.get(owner[2])
        numeric = figure is not None and is_numeric(figure.type)
        if reads_as_filled(prose, token, after, owner, numeric=numeric):
            return _filled_number(token, owner[2], figure)
    return _typed(token, Label.UNSOURCED, Reason.ALTERED, ())


def _filled_number(token: NumberToken, name: str, figure: Figure | None) -> NumberInProse:
    if figure is None:  # inside a quote, which code resolved to its place in the document
        return NumberInProse(
            token.start, token.end, token.text, Label.SOURCED, None, (), figure=name
        )
    return NumberInProse(
        start=token.start,
        end=token.end,
        text=token.text,
        label=figure.label,
        reason=figure.reason,
        flags=tuple(flag for flag in figure.flags if flag is not Flag.NO_VALUE),
        figure=name,
    )


def _typed(
    token: NumberToken, label: Label, reason: Reason | None, cells: tuple[str, ...]
) -> NumberInProse:
    return NumberInProse(token.start, token.end, token.text, label, reason, candidates=cells)
