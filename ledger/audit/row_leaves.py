"""A table's row root, derived a second time from docs/FORMAT.md §12 for the audit alone.

It shares no code with the maker (artifacts/rows.py, row_proof.py): that joins columns by Arrow,
this takes each value out of the buffers. Nothing here imports pyarrow.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

from blake3 import blake3

ArrowArray: TypeAlias = Any

ROWS_FORMAT: Final = "tieout.rows/1"
ONE_ROW_LEAVES_MAX: Final = 200_000
"""Tables of up to so many rows have a leaf for each row."""
LEAF_ROWS: Final = 64
"""Rows of a leaf in larger tables."""


def canonical_json(document: Mapping[str, object]) -> bytes:
    """The bytes of a header (docs/FORMAT.md §2; the names of columns may be in any alphabet)."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8")


def cells(array: ArrowArray, form: str, width: int) -> list[bytes]:
    """What each value of a column adds to its row.

    array: of a batch that was validated, from its first value on. form: bits, sized or fixed;
    width: bytes of a fixed value.
    """
    buffers = [None if part is None else part.to_pybytes() for part in array.buffers()]
    length = len(array)
    if form == "bits":
        values = [b"\x01" if _bit(buffers[1] or b"", at) else b"\x00" for at in range(length)]
    elif form == "sized":
        values = _sized(length, buffers[1] or b"", buffers[2] or b"")
    else:
        plain = buffers[1] or b""
        values = [plain[at * width : (at + 1) * width] for at in range(length)]
    if not array.null_count:
        return [b"\x01" + value for value in values]
    valid = buffers[0] or b""
    return [b"\x01" + value if _bit(valid, at) else b"\x00" for at, value in enumerate(values)]


def _bit(bits: bytes, at: int) -> int:
    return bits[at >> 3] >> (at & 7) & 1


def _sized(length: int, offsets: bytes, content: bytes) -> list[bytes]:
    if length == 0:
        return []
    bounds = struct.unpack_from(f"<{length + 1}i", offsets)
    return [struct.pack("<I", end - start) + content[start:end] for start, end in pairwise(bounds)]


class RowLeaves:
    """The leaves of a table, taken in run by run.

    said: columns, key and rows of the header.
    """

    def __init__(self, said: Mapping[str, object], rows: int) -> None:
        self._size = 1 if rows <= ONE_ROW_LEAVES_MAX else LEAF_ROWS
        header = canonical_json({**said, "format": ROWS_FORMAT, "rows_per_leaf": self._size})
        self._header = blake3(header).digest()
        self._leaves: list[bytes] = []
        self._open: list[bytes] = []

    def add(self, columns: Sequence[Sequence[bytes]]) -> None:
        """The next rows; columns: what `cells` gave for each, from left to right."""
        for row in zip(*columns, strict=True):
            self._open.append(b"".join(row))
            if len(self._open) == self._size:
                self._close()

    def _close(self) -> None:
        first = struct.pack("<Q", len(self._leaves) * self._size)
        self._leaves.append(blake3(b"\x00" + self._header + first + b"".join(self._open)).digest())
        self._open.clear()

    def root(self) -> str:
        """The row root of all rows taken in."""
        if self._open:
            self._close()
        digest = blake3(b"\x02" + self._header + self._tree())
        return f"{ROWS_FORMAT}:{digest.hexdigest()}"

    def _tree(self) -> bytes:
        """Whole subtrees, largest first, as a stack; what is left over is joined from the right."""
        stack: list[tuple[int, bytes]] = []
        for leaf in self._leaves:
            size, node = 1, leaf
            while stack and stack[-1][0] == size:
                node = blake3(b"\x01" + stack.pop()[1] + node).digest()
                size *= 2
            stack.append((size, node))
        if not stack:
            return blake3(b"").digest()
        _, tree = stack.pop()
        while stack:
            tree = blake3(b"\x01" + stack.pop()[1] + tree).digest()
        return tree
