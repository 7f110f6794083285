"""The row root of a stored table, and proofs of single rows against it.

Source: docs/FORMAT.md, row leaves. Made from the table artifact alone: of results of ordinary size
when they are recorded, of larger tables on request, since it costs several times what the canonical
form does (bench/results/rows.json). Rows are put together by Arrow, column by column; Python only
hashes leaves.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3

from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.row_proof import (
    GROUP_ROWS_MAX,
    PROOF_BYTES_MAX,
    RowHeader,
    leaf_prefix,
    node_hash,
    proof_payload,
    root_text,
    rows_per_leaf,
)
from tieout.artifacts.table_reader import TableReader

ArrowTable: TypeAlias = Any
ArrowArray: TypeAlias = Any

RUN_ROWS: Final = 65_536
"""Rows that are encoded at a time, at most."""
RUN_BYTES: Final = 16 << 20
"""Bytes of a table that are encoded at a time: fewer rows where they are long."""
_BYTES: Final = pa.large_binary()  # 64-bit offsets: a run of rows may have over 2 GiB


@dataclass(frozen=True, slots=True)
class RowRoot:
    """A table's row root: `tieout.rows/1:<64 hex>`, the number of leaves, the rows of each."""

    root: str
    leaves: int
    rows_per_leaf: int


class RowTree:
    """The tree over a table's rows, kept for as many proofs as are wanted.

    grouped: rows of a leaf, 1 to 65,536; left out, what the format says for the table's size.
    Only that makes the table's own row root.
    """

    def __init__(self, table: bytes | TableReader, *, grouped: int | None = None) -> None:
        reader = TableReader(table) if isinstance(table, bytes) else table
        size = rows_per_leaf(reader.rows) if grouped is None else grouped
        if not 0 < size <= GROUP_ROWS_MAX:
            raise ArtifactError(
                "row_root.grouped",
                f"a leaf cannot hold {size} rows",
                remedy=f"Leave it out, or choose 1 to {GROUP_ROWS_MAX}.",
            )
        self._table = reader.arrow
        self.header = RowHeader(
            tuple((column.name, column.type) for column in reader.columns),
            reader.key,
            reader.rows,
            size,
        )
        self._header = self.header.payload()
        self._header_hash = blake3(self._header).digest()
        try:
            self._levels = _levels(list(_leaves(self._table, self._header_hash, size)))
        except pa.ArrowException as error:
            raise ArtifactError(
                "row_root.unusable",
                f"the rows of the table cannot be encoded ({type(error).__name__})",
                remedy="Check the table; `tieout verify` says whether it is in canonical form.",
            ) from error
        tree = self._levels[-1][0] if self._levels[0] else blake3().digest()
        self.root: Final = RowRoot(root_text(self._header_hash, tree), self.header.leaves, size)

    def prove(self, position: int) -> bytes:
        """The proof of the row at a position from 0; `check_row` checks it.

        Raises ArtifactError row_proof.no_row, row_proof.too_large.
        """
        if not 0 <= position < self.header.rows:
            raise ArtifactError(
                "row_proof.no_row",
                f"there is no row at position {position + 1} of {self.header.rows}",
                remedy="Positions count from 0; `TableReader.positions` finds rows by their key.",
            )
        size = self.header.rows_per_leaf
        index = position // size
        rows = b"".join(_encoded(self._table.slice(index * size, size)).to_pylist())
        siblings = []
        for level in self._levels[:-1]:
            if index ^ 1 < len(level):
                siblings.append(level[index ^ 1])
            index //= 2
        proof = proof_payload(self._header, position=position, rows=rows, siblings=tuple(siblings))
        if len(proof) > PROOF_BYTES_MAX:
            raise ArtifactError(
                "row_proof.too_large",
                f"the proof would have over {PROOF_BYTES_MAX} bytes",
                remedy="Show the table itself: its address proves it whole.",
            )
        return proof


def row_root(table: bytes | TableReader) -> RowRoot:
    """The row root of a stored table.

    table: the bytes of a table artifact, or its reader. Raises ArtifactError table.unreadable.
    """
    return RowTree(table).root


def prove_row(table: bytes | TableReader, position: int) -> bytes:
    """The proof that a row stands at a position (from 0) of a stored table.

    It reads the whole table: for many rows keep a RowTree. Raises ArtifactError as that does.
    """
    return RowTree(table).prove(position)


def _levels(leaves: list[bytes]) -> list[list[bytes]]:
    """The nodes of the tree of RFC 6962, leaves first; a last node without a pair goes up."""
    levels = [leaves]
    while len(levels[-1]) > 1:
        below = levels[-1]
        pairs = iter(below)
        level = [node_hash(left, right) for left, right in zip(pairs, pairs, strict=False)]
        if len(below) % 2:
            level.append(below[-1])
        levels.append(level)
    return levels


def _leaves(table: ArrowTable, header_hash: bytes, size: int) -> Iterator[bytes]:
    """The hash of every leaf; runs are of whole leaves."""
    row_bytes = table.nbytes // max(table.num_rows, 1) + 1
    run = max(min(RUN_ROWS, RUN_BYTES // row_bytes) // size, 1) * size
    for start in range(0, table.num_rows, run):
        encoded = _encoded(table.slice(start, run))
        ends = array("q", encoded.buffers()[1].slice(0, 8 * (len(encoded) + 1)).to_pybytes())
        content = encoded.buffers()[2].to_pybytes()
        place = ends[0]
        for first in range(0, len(encoded), size):
            end = ends[min(first + size, len(encoded))]
            prefix = leaf_prefix(header_hash, start + first)
            yield blake3(prefix + content[place:end]).digest()
            place = end


def _encoded(rows: ArrowTable) -> ArrowArray:
    """The encoding of each row, as an array of bytes."""
    pieces = []
    for column in rows.combine_chunks().columns:
        if column.num_chunks:
            pieces += _pieces(column.combine_chunks() if column.num_chunks > 1 else column.chunk(0))
    # Null pieces vanish: of a null value only the byte of its validity is left.
    nothing = pa.scalar(b"", type=_BYTES)
    return pc.binary_join_element_wise(
        *pieces, nothing, null_handling="replace", null_replacement=b""
    )


def _pieces(column: ArrowArray) -> list[Any]:
    """What each value of a column adds to its row: validity, length where it has one, bytes."""
    pieces = [_fixed(pc.is_valid(column).cast(pa.uint8()))]
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return [*pieces, _fixed(pc.binary_length(column)), column.cast(_BYTES)]
    plain = column.cast(pa.uint8()) if pa.types.is_boolean(column.type) else column
    return [*pieces, _fixed(plain)]


def _fixed(column: ArrowArray) -> ArrowArray:
    """The values of a column as the bytes they stand in, nulls kept."""
    return column.view(pa.binary(column.type.bit_width // 8)).cast(_BYTES)
