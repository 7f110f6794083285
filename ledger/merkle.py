"""The Merkle tree of RFC 6962 over SHA-256: pure functions on hashes, no storage.

Section numbers are those of RFC 6962. Leaves are given as their hashes (32 bytes), so that a
caller with ten million entries hashes each of them once. A verifier returns False for whatever
does not prove its claim; only a caller's own mistake (an index beyond the tree) raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from tieout.artifacts.errors import Exit
from tieout.ledger.errors import LedgerError

HASH_BYTES: Final = 32
# §2.1: the hash of an empty list is the hash of an empty string.
EMPTY_ROOT: Final = sha256(b"").digest()


def leaf_hash(entry: bytes) -> bytes:
    """§2.1: SHA-256(0x00 || entry)."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """§2.1: SHA-256(0x01 || left || right); the prefix keeps a node from passing for a leaf."""
    return sha256(b"\x01" + left + right).digest()


@dataclass(frozen=True, slots=True)
class Frontier:
    """The right edge of a tree: all that is needed to append and to state the root.

    size: leaves. peaks: the roots of the perfect subtrees, largest (leftmost) first; there is
    one for each bit that is set in `size`.
    """

    size: int = 0
    peaks: tuple[bytes, ...] = ()

    def extend(self, leaves: Iterable[bytes]) -> Frontier:
        """The frontier after these leaf hashes."""
        size = self.size
        peaks = list(self.peaks)
        for leaf in leaves:
            node = leaf
            bits = size
            while bits & 1:
                node = node_hash(peaks.pop(), node)
                bits >>= 1
            peaks.append(node)
            size += 1
        return Frontier(size, tuple(peaks))

    def root(self) -> bytes:
        """The Merkle tree hash of all leaves so far (32 bytes)."""
        if not self.peaks:
            return EMPTY_ROOT
        node = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            node = node_hash(peak, node)
        return node


def root(leaves: Iterable[bytes]) -> bytes:
    """§2.1: the Merkle tree hash over these leaf hashes."""
    return Frontier().extend(leaves).root()


def inclusion_proof(leaves: Sequence[bytes], index: int) -> tuple[bytes, ...]:
    """§2.1.1: the audit path of leaf `index` (from 0), nearest first.

    Raises LedgerError `merkle.range` when there is no such leaf.
    """
    _require(0 <= index < len(leaves), f"no leaf {index} in a tree of {len(leaves)}")
    path: list[bytes] = []
    low, high = 0, len(leaves)
    while high - low > 1:
        split = low + _split(high - low)
        if index < split:
            path.append(root(leaves[split:high]))
            high = split
        else:
            path.append(root(leaves[low:split]))
            low = split
    return tuple(reversed(path))


def verify_inclusion(
    leaf: bytes, *, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> bool:
    """Whether the proof shows that `leaf` (a leaf hash) is number `index` of a tree of `size`
    leaves with this root. Steps as in RFC 9162 §2.1.3.2. A path of the same shape fits other
    sizes too: take size and root from one and the same statement."""
    if not 0 <= index < size or not _are_hashes(leaf, root, *proof):
        return False
    number, last = index, size - 1
    node = leaf
    for sibling in proof:
        if last == 0:
            return False
        if number & 1 or number == last:
            node = node_hash(sibling, node)
            while not number & 1 and number:
                number >>= 1
                last >>= 1
        else:
            node = node_hash(node, sibling)
        number >>= 1
        last >>= 1
    return last == 0 and node == root


def consistency_proof(leaves: Sequence[bytes], old_size: int) -> tuple[bytes, ...]:
    """§2.1.2: the proof that the tree of the first `old_size` leaves is a prefix of this tree.

    Empty when `old_size` is 0 or the whole. Raises LedgerError `merkle.range` when it is more.
    """
    _require(0 <= old_size <= len(leaves), f"no size {old_size} in a tree of {len(leaves)}")
    if old_size in (0, len(leaves)):
        return ()
    path: list[bytes] = []
    low, high = 0, len(leaves)
    old = old_size
    whole = True  # the old tree is a whole subtree of the new one so far (the b of §2.1.2)
    while old != high - low:
        split = _split(high - low)
        if old <= split:
            path.append(root(leaves[low + split : high]))
            high = low + split
        else:
            path.append(root(leaves[low : low + split]))
            low += split
            old -= split
            whole = False
    if not whole:
        path.append(root(leaves[low:high]))
    return tuple(reversed(path))


def verify_consistency(
    *, old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
) -> bool:
    """Whether the proof shows that the tree of `new_size` leaves begins with the older one.
    Steps as in RFC 9162 §2.1.4.2."""
    if not 0 <= old_size <= new_size or not _are_hashes(old_root, new_root, *proof):
        return False
    if old_size == new_size:
        return not proof and old_root == new_root
    if old_size == 0:
        return not proof and old_root == EMPTY_ROOT
    path = list(proof)
    if old_size & (old_size - 1) == 0:
        path.insert(0, old_root)
    if not path:
        return False
    return _walk(path, old_size=old_size, new_size=new_size) == (old_root, new_root)


def _walk(path: Sequence[bytes], *, old_size: int, new_size: int) -> tuple[bytes, bytes] | None:
    """The two roots that a consistency path leads to, or None if its length does not fit."""
    number, last = old_size - 1, new_size - 1
    while number & 1:
        number >>= 1
        last >>= 1
    old = new = path[0]
    for sibling in path[1:]:
        if last == 0:
            return None
        if number & 1 or number == last:
            old = node_hash(sibling, old)
            new = node_hash(sibling, new)
            while not number & 1 and number:
                number >>= 1
                last >>= 1
        else:
            new = node_hash(new, sibling)
        number >>= 1
        last >>= 1
    return (old, new) if last == 0 else None


def _split(size: int) -> int:
    """§2.1: the largest power of two smaller than `size` (which is at least 2)."""
    return 1 << ((size - 1).bit_length() - 1)


def _are_hashes(*values: bytes) -> bool:
    return all(len(value) == HASH_BYTES for value in values)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise LedgerError(
            "merkle.range",
            message,
            remedy="Ask for an index or size that the log has.",
            exit_code=Exit.USAGE,
        )
