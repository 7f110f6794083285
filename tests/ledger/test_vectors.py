"""docs/vectors/ledger.json holds for the code, and for FORMAT.md §7 read literally."""

import json
from hashlib import sha256
from pathlib import Path

from tieout.ledger import merkle
from tieout.ledger.log import MemoryLog
from tieout.ledger.row import LedgerRow

VECTORS = json.loads(
    (Path(__file__).parents[2] / "docs" / "vectors" / "ledger.json").read_text("utf-8")
)


def literal_root(leaves):
    """RFC 6962, section 2.1, as it is written."""
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return sha256(b"\x01" + literal_root(leaves[:k]) + literal_root(leaves[k:])).digest()


def test_entries_hash_as_published():
    log = MemoryLog()
    leaves = []
    previous = bytes(32)
    assert len(VECTORS) >= 3
    for vector in VECTORS:
        entry = vector["entry"].encode()
        leaf = sha256(b"\x00" + entry).digest()
        leaves.append(leaf)
        chained = sha256(b"\x02" + previous + leaf).digest()
        assert (leaf.hex(), previous.hex(), chained.hex()) == (
            vector["leaf"],
            vector["previous"],
            vector["sha256_hash"],
        )
        assert literal_root(leaves).hex() == vector["root"] == merkle.root(leaves).hex()
        (recorded,) = log.append([LedgerRow.parse(entry)])
        assert (recorded.entry, recorded.sha256_hash) == (entry, chained)
        previous = chained
    assert log.root().hex() == VECTORS[-1]["root"]
