"""Put the figures and passages of a draft into its prose, and say what cannot be delivered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tieout.ledger.citation import Figure, SpanCitation
from tieout.planner.prose_characters import hidden_at, visible
from tieout.planner.prose_spans import Span

PLACEHOLDER: Final = re.compile(r"\{([a-zA-Z][a-zA-Z0-9_]{0,39})\}")
_KEPT: Final = "\n"
"""The one control character of prose and passages: the end of a line."""


@dataclass(frozen=True, slots=True)
class FilledProse:
    """The final prose, the spans that code filled, the placeholders without a value.

    hidden: (place in the draft, character) of what a reader would not see as it is; the prose
    shows its escape.
    """

    text: str
    spans: tuple[Span, ...]
    missing: tuple[str, ...]
    hidden: tuple[tuple[int, str], ...]


def fill_prose(
    prose: str, figures: Mapping[str, Figure], quotes: Mapping[str, SpanCitation]
) -> FilledProse:
    """Fill each `{name}` with the figure's shown form or the passage's words."""
    parts: list[str] = []
    spans: list[Span] = []
    missing: dict[str, None] = {}
    hidden: list[tuple[int, str]] = []
    at = length = 0
    for match in [*PLACEHOLDER.finditer(prose), None]:
        typed = prose[at : len(prose) if match is None else match.start()]
        hidden += [(at + place, typed[place]) for place in hidden_at(typed, keep=_KEPT)]
        typed = visible(typed, keep=_KEPT)
        parts.append(typed)
        length += len(typed)
        if match is None:
            break
        name, at = match[1], match.end()
        piece = _piece(name, figures, quotes)
        if piece is None:
            piece = f"[{name}: nothing to show]"
            missing[name] = None
        else:
            spans.append((length, length + len(piece), name))
        parts.append(piece)
        length += len(piece)
    return FilledProse("".join(parts), tuple(spans), tuple(missing), tuple(hidden))


def _piece(
    name: str, figures: Mapping[str, Figure], quotes: Mapping[str, SpanCitation]
) -> str | None:
    if name in figures:
        return figures[name].shown
    return visible(quotes[name].quote, keep=_KEPT) if name in quotes else None
