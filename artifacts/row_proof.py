"""Checks that one row stands in a table, from its proof and the table's row root alone.

Source: docs/FORMAT.md, row leaves; test vectors in docs/vectors/rows.json. Needs blake3 and
nothing else: whoever checks a row has neither the table nor Arrow.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from blake3 import blake3

from tieout.artifacts.errors import ArtifactError, Exit
from tieout.artifacts.row_text import LENGTH_BYTES, Malformed, read_row, readable, skip_row

ROWS_FORMAT: Final = "tieout.rows/1"
PROOF_MAGIC: Final = b"tieout.row-proof/1\n"
LEAF, NODE, ROOT = b"\x00", b"\x01", b"\x02"
HASH_BYTES: Final = 32
SINGLE_ROWS_MAX: Final = 200_000
"""Tables of up to so many rows have a leaf for each row."""
GROUP_ROWS: Final = 64
"""Rows of a leaf in larger tables."""
GROUP_ROWS_MAX: Final = 65_536
ROWS_MAX: Final = 1 << 53
HEADER_BYTES_MAX: Final = 1 << 20
PROOF_BYTES_MAX: Final = 64 << 20
_ROOT: Final = re.compile(re.escape(ROWS_FORMAT) + r":([0-9a-f]{64})")
_MEMBERS: Final = {"columns", "format", "key", "rows", "rows_per_leaf"}


@dataclass(frozen=True, slots=True)
class RowHeader:
    """What every leaf of a table is bound to.

    columns: (name, canonical type name) from left to right. rows: of the whole table.
    """

    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    rows: int
    rows_per_leaf: int

    def payload(self) -> bytes:
        """The header as canonical JSON."""
        document = {
            "columns": [list(column) for column in self.columns],
            "format": ROWS_FORMAT,
            "key": list(self.key),
            "rows": self.rows,
            "rows_per_leaf": self.rows_per_leaf,
        }
        return json.dumps(
            document, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        ).encode()

    @property
    def leaves(self) -> int:
        """How many leaves the tree has."""
        return -(-self.rows // self.rows_per_leaf)


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A row that its proof and the root agree upon.

    position: from 0. values: (column, text as docs/FORMAT.md §5 has it, None for null) from left
    to right. columns, key, rows: of the table the root stands for.
    """

    position: int
    values: tuple[tuple[str, str | None], ...]
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    rows: int


def rows_per_leaf(rows: int) -> int:
    """How many rows a leaf holds in a table of so many rows."""
    return 1 if rows <= SINGLE_ROWS_MAX else GROUP_ROWS


def leaf_prefix(header_hash: bytes, first: int) -> bytes:
    """What is hashed before the rows of a leaf; first: position of its first row, from 0."""
    return LEAF + header_hash + first.to_bytes(8, "little")


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node."""
    return blake3(NODE + left + right).digest()


def root_text(header_hash: bytes, tree: bytes) -> str:
    """The row root as text: header and tree bound together."""
    return f"{ROWS_FORMAT}:{blake3(ROOT + header_hash + tree).hexdigest()}"


def proof_payload(
    header: bytes, *, position: int, rows: bytes, siblings: tuple[bytes, ...]
) -> bytes:
    """The bytes of a proof. rows: the encoded rows of the leaf; siblings: from the leaf upwards."""
    return b"".join(
        (
            PROOF_MAGIC,
            len(header).to_bytes(LENGTH_BYTES, "little"),
            header,
            position.to_bytes(8, "little"),
            len(rows).to_bytes(LENGTH_BYTES, "little"),
            rows,
            *siblings,
        )
    )


def check_row(proof: bytes, root: str) -> CheckedRow:
    """The row that a proof shows to stand in the table of this row root.

    proof: the bytes that `prove_row` gave. root: `tieout.rows/1:<64 hex>`, taken from elsewhere
    than the proof. Raises ArtifactError row_proof.malformed (not a proof), row_root.malformed,
    row_proof.wrong (it is one, but not of this root).
    """
    try:
        found = _ROOT.fullmatch(root)
    except TypeError:
        found = None
    if found is None:
        raise ArtifactError(
            "row_root.malformed",
            "the root is not one",
            remedy=f"A row root is {ROWS_FORMAT}: and 64 lower-case hexadecimal digits.",
        )
    try:
        return _checked(proof, root)
    except Malformed as error:
        raise ArtifactError(
            "row_proof.malformed",
            f"the bytes are not the proof of a row: {error}",
            remedy="Take the proof again from whoever made it.",
            exit_code=Exit.OTHER_FORMAT,
        ) from error


def _checked(proof: bytes, root: str) -> CheckedRow:
    if not isinstance(proof, bytes):
        raise Malformed("a proof is bytes")
    if len(proof) > PROOF_BYTES_MAX:
        raise Malformed(f"it has over {PROOF_BYTES_MAX} bytes")
    if not proof.startswith(PROOF_MAGIC):
        raise Malformed(f"it does not begin with {PROOF_MAGIC.decode().strip()}")
    raw, place = _run(proof, len(PROOF_MAGIC), HEADER_BYTES_MAX)
    header = _header(raw)
    if len(proof) < place + 8:
        raise Malformed("it ends within the position")
    position = int.from_bytes(proof[place : place + 8], "little")
    if position >= header.rows:
        raise Malformed(f"position {position} in a table of {header.rows} rows")
    rows, place = _run(proof, place + 8, PROOF_BYTES_MAX)
    index = position // header.rows_per_leaf
    first = index * header.rows_per_leaf
    header_hash = blake3(raw).digest()
    leaf = blake3(leaf_prefix(header_hash, first) + rows).digest()
    tree = _climb(leaf, index, header.leaves, proof[place:])
    if root_text(header_hash, tree) != root:
        raise ArtifactError(
            "row_proof.wrong",
            f"the row at position {position + 1} does not stand in the table of this row root",
            remedy="Take root and proof from the same table; else one of the two was changed.",
            place=root,
            exit_code=Exit.DOES_NOT_HOLD,
        )
    texts = _texts(rows, header, first, position)
    names = (name for name, _ in header.columns)
    values = tuple(zip(names, texts, strict=True))
    return CheckedRow(position, values, header.columns, header.key, header.rows)


def _run(proof: bytes, place: int, most: int) -> tuple[bytes, int]:
    """Bytes that follow their length, and the place behind them."""
    start = place + LENGTH_BYTES
    length = int.from_bytes(proof[place:start], "little")
    if length > most or len(proof) < start + length:
        raise Malformed("a length reaches beyond its end")
    return proof[start : start + length], start + length


def _climb(leaf: bytes, index: int, leaves: int, siblings: bytes) -> bytes:
    """The hash of the tree of RFC 6962 over so many leaves, from one leaf and its siblings."""
    found, last, place = leaf, leaves - 1, 0
    while last:
        # The last node of an odd level has no sibling: it goes up as it is.
        if index % 2 or index < last:
            sibling = siblings[place : place + HASH_BYTES]
            if len(sibling) < HASH_BYTES:
                raise Malformed("it has too few siblings")
            found = node_hash(sibling, found) if index % 2 else node_hash(found, sibling)
            place += HASH_BYTES
        index, last = index // 2, last // 2
    if place != len(siblings):
        raise Malformed("it has more bytes than siblings")
    return found


def _texts(rows: bytes, header: RowHeader, first: int, position: int) -> tuple[str | None, ...]:
    """The texts of the row; the other rows of the leaf are stepped over, and nothing may follow."""
    kinds = [kind for _, kind in header.columns]
    wanted: tuple[str | None, ...] = ()
    place = 0
    for number in range(first, min(first + header.rows_per_leaf, header.rows)):
        if number == position:
            wanted, place = read_row(rows, place, kinds)
        else:
            place = skip_row(rows, place, kinds)
    if place != len(rows):
        raise Malformed("bytes follow the last row of the leaf")
    return wanted


def _header(raw: bytes) -> RowHeader:
    try:
        document = json.loads(raw)
        if not isinstance(document, dict) or set(document) != _MEMBERS:
            raise Malformed("its header has other members")
        header = RowHeader(
            tuple((name, kind) for name, kind in document["columns"]),
            tuple(document["key"]),
            document["rows"],
            document["rows_per_leaf"],
        )
        _check_header(header)
        written = header.payload()
    except (ValueError, TypeError, RecursionError) as error:
        raise Malformed("its header is not what a header is") from error
    if written != raw:
        raise Malformed("its header is not in canonical form")
    return header


def _check_header(header: RowHeader) -> None:
    names = [name for name, _ in header.columns]
    if not names or not all(type(name) is str for name in (*names, *header.key)):
        raise Malformed("its header names no columns")
    if len(set(names)) != len(names) or not set(header.key) <= set(names):
        raise Malformed("its header names a column twice, or a key that is none")
    if len(set(header.key)) != len(header.key):
        raise Malformed("its header names a key column twice")
    for _, kind in header.columns:
        if type(kind) is not str or not readable(kind):
            raise Malformed("its header has a type that no table has")
    if type(header.rows) is not int or not 0 < header.rows < ROWS_MAX:
        raise Malformed("its header has no number of rows")
    if type(header.rows_per_leaf) is not int or not 0 < header.rows_per_leaf <= GROUP_ROWS_MAX:
        raise Malformed("its header has no number of rows for each leaf")
