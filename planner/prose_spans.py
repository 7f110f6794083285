"""Where code filled a prose: the spans, and which of them a place or a token touches."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Span: TypeAlias = tuple[int, int, str]
"""Start, end (half-open), and the placeholder that was filled there."""


@dataclass(frozen=True, slots=True)
class Filled:
    """The filled spans of a prose, in order; none overlap."""

    spans: tuple[Span, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @classmethod
    def of(cls, spans: Sequence[Span]) -> Filled:
        """Spans that are empty hold no character and are left out."""
        kept = tuple(sorted(span for span in spans if span[0] < span[1]))
        return cls(kept, tuple(s[0] for s in kept), tuple(s[1] for s in kept))

    def touching(self, start: int, end: int) -> tuple[Span, ...]:
        """The spans that hold a character of [start, end)."""
        return self.spans[bisect_right(self.ends, start) : bisect_left(self.starts, end)]

    def holds(self, at: int) -> bool:
        """Whether the character at this place was filled in by code."""
        return bool(self.touching(at, at + 1))
