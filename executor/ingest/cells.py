"""The texts of one column: where they stand, and the distinct shapes that they have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tieout.executor.ingest.amounts import WHITE

# pyarrow ships no types; these names say what a value is.
Texts: TypeAlias = Any
Typed: TypeAlias = Any
ArrowType: TypeAlias = Any

# A shape is a text with every digit written 0: a million amounts have a few dozen shapes, so
# that rules which look at shapes look at the whole column.
_MASK = bytes.maketrans(b"123456789", b"000000000")
SHOWN_MAX = 60


@dataclass(frozen=True, slots=True)
class Plan:
    """How a column will be read, and why.

    type: canonical type. rule: every parameter of the conversion. plain: gives a value's text
    as the engine-independent spelling of the type, None when it does not fit; no function means
    that texts stay as they are. direct: every value is spelled so already.
    """

    type: str
    rule: Mapping[str, str]
    reason: str
    plain: Callable[[str], str | None] | None = None
    direct: bool = False


class Cells:
    """The values of one column, trimmed at both ends; null where there is none.

    source, name: for messages. locate: gives "line 3" of a row counted from 0.
    """

    __slots__ = ("locate", "name", "source", "texts")

    def __init__(
        self, texts: Texts, *, source: str, name: str, locate: Callable[[int], str]
    ) -> None:
        """texts: chunked strings as received."""
        trimmed = [_trimmed(chunk) for chunk in texts.chunks]
        self.texts = pa.chunked_array(trimmed, pa.string())
        self.source = source
        self.name = name
        self.locate = locate

    def at(self, row: int) -> str:
        """The value of a row that has one."""
        return str(self.texts[row].as_py())

    def shown(self, row: int) -> str:
        """A row's place and value, for a message: line 3: 27/07/2026."""
        text = self.at(row)
        cut = text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
        return f"{self.locate(row)}: {cut}"

    def place(self, row: int) -> str:
        """A row's place, for the place of an error."""
        return f"{self.source}, column {self.name}, {self.locate(row)}"

    def shapes(self) -> Iterator[tuple[str, int]]:
        """Each distinct shape once, with the first row that has it, in order of rows.

        Within one chunk the order is that of first appearance.
        """
        seen: set[str] = set()
        base = 0
        for chunk in self.texts.chunks:
            masked = masked_digits(chunk)
            for shape in masked.unique().to_pylist():
                if shape is not None and shape not in seen:
                    seen.add(shape)
                    yield shape, base + int(pc.index(masked, shape).as_py())
            base += len(chunk)

    def first_match(self, pattern: str, shapes: list[str] | None) -> int | None:
        """The first row whose value matches, among all rows or those with one of the shapes."""
        base = 0
        for chunk in self.texts.chunks:
            hits = pc.match_substring_regex(chunk, pattern)
            if shapes is not None:
                wanted = pa.array(shapes, pa.string())
                hits = pc.and_(hits, pc.is_in(masked_digits(chunk), value_set=wanted))
            found = int(pc.index(hits, pa.scalar(value=True)).as_py())
            if found >= 0:
                return base + found
            base += len(chunk)
        return None

    def row_of(self, text: str) -> int:
        """The first row with this value."""
        return int(pc.index(self.texts, text).as_py())

    def distinct(self) -> list[str]:
        """Every distinct value, in order of first appearance."""
        return [text for text in self.texts.unique().to_pylist() if text is not None]


def masked_digits(chunk: Texts) -> Texts:
    """The shape of each value: its text with every digit written 0."""
    validity, offsets, content = chunk.buffers()
    if content is None:
        return chunk
    masked = pa.py_buffer(content.to_pybytes().translate(_MASK))
    return pa.StringArray.from_buffers(
        len(chunk), offsets, masked, validity, chunk.null_count, chunk.offset
    )


def with_empties(texts: Texts, empty: tuple[str, ...]) -> Texts:
    """The texts without those that mean no value."""
    if not empty:
        return texts
    meaning_none = pa.array(list(empty), pa.string())
    chunks = []
    for chunk in texts.chunks:
        gone = pc.is_in(pc.utf8_trim(chunk, characters=WHITE), value_set=meaning_none)
        chunks.append(pc.if_else(gone, pa.scalar(None, pa.string()), chunk))
    return pa.chunked_array(chunks, pa.string())


def _trimmed(chunk: Texts) -> Texts:
    trimmed = pc.utf8_trim(chunk, characters=WHITE)
    blank = pc.equal(pc.binary_length(trimmed), 0)
    if not pc.any(blank).as_py():
        return trimmed
    return pc.if_else(blank, pa.scalar(None, pa.string()), trimmed)
