"""The numbers of a finished prose: where each came from, and one label for each.

A number inside a filled placeholder is that figure's; any other was typed by the model. A
number that typed characters grow out of a filled one ("{x}000", "-{x}") is neither: altered.
Source: DESIGN §7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from tieout.artifacts.values import cell_reference, decimal_scale, is_numeric
from tieout.executor.numbers import NumberToken, find_numbers
from tieout.executor.world import World
from tieout.ledger.citation import Figure, Flag, Label, NumberInProse, Reason
from tieout.planner.labels import QuestionNumbers

CANDIDATES_MAX: Final = 5
ROWS_SCANNED_MAX: Final = 100_000


def audit_prose(
    prose: str,
    filled: Sequence[tuple[int, int, str]],
    figures: Mapping[str, Figure],
    world: World,
    question: QuestionNumbers,
) -> tuple[NumberInProse, ...]:
    """One entry for each number-like token of the prose. filled: (start, end, placeholder)."""
    return tuple(_audit(token, filled, figures, world, question) for token in find_numbers(prose))


def _audit(
    token: NumberToken,
    filled: Sequence[tuple[int, int, str]],
    figures: Mapping[str, Figure],
    world: World,
    question: QuestionNumbers,
) -> NumberInProse:
    touched = overlapping(token, filled)
    if touched:
        name = _whose(token, touched)
        if name is None:
            return _typed(token, Label.UNSOURCED, Reason.ALTERED, ())
        return _filled_number(token, name, figures)
    if question.holds(token):
        return _typed(token, Label.QUESTION, None, ())
    candidates = () if token.value is None else _candidates(world, token.value)
    reason = Reason.AMBIGUOUS if len(candidates) > 1 else Reason.UNCITED
    return _typed(token, Label.UNSOURCED, reason, candidates)


def _whose(token: NumberToken, touched: Sequence[tuple[int, int, str]]) -> str | None:
    """The placeholder whose number this is; None when typed characters change how it reads.

    All digits must lie in one filled span. What else belongs to the token may be filled by
    another figure (a currency), or be plain words set apart by a space ("line 7"); a typed
    sign, digit, per cent, scale, currency or glued letter alters the number.
    """
    places = [(at, c) for at, c in enumerate(token.text, start=token.start)]
    digits = [at for at, character in places if character.isdigit()]
    owner = [s for s in touched if digits and s[0] <= digits[0] and digits[-1] < s[1]]
    if len(owner) != 1:
        return None
    start, end, name = owner[0]
    typed = [(at, c) for at, c in places if not any(s[0] <= at < s[1] for s in touched)]
    if any(not c.isspace() for _, c in typed):
        glued = any(at in (start - 1, end) and not c.isspace() for at, c in typed)
        words = all(c.isspace() or c.isalpha() or c == "." for _, c in typed)
        if glued or not words or token.scale or token.kind in _CHANGED_BY_WORDS:
            return None
    return name


_CHANGED_BY_WORDS: Final = frozenset({"money", "percent", "identifier"})


def _filled_number(token: NumberToken, name: str, figures: Mapping[str, Figure]) -> NumberInProse:
    figure = figures.get(name)
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
    token: NumberToken, label: Label, reason: Reason | None, candidates: tuple[str, ...]
) -> NumberInProse:
    return NumberInProse(token.start, token.end, token.text, label, reason, candidates=candidates)


def _candidates(world: World, value: Decimal) -> tuple[str, ...]:
    """Cells of the question's results that hold this value: for a reader, not for the label."""
    found: list[str] = []
    for step in world.steps.values():
        if not step.ok or step.rows > ROWS_SCANNED_MAX:
            continue
        address = step.receipt.parts["output"]
        reader = world.reader(address)
        for column in reader.columns:
            scale = decimal_scale(column.type)
            if not is_numeric(column.type) or (scale is None and value != int(value)):
                continue
            for position, cell in enumerate(reader.arrow.column(column.name).to_pylist()):
                if cell is None or cell != value:
                    continue
                found.append(cell_reference(str(address), reader.row_key(position), column.name))
                if len(found) >= CANDIDATES_MAX:
                    return tuple(found)
    return tuple(found)


def overlapping(
    token: NumberToken, filled: Sequence[tuple[int, int, str]]
) -> list[tuple[int, int, str]]:
    """The filled spans (start, end, name) that a token touches."""
    return [span for span in filled if token.start < span[1] and span[0] < token.end]
