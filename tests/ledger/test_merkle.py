"""The Merkle tree against a recursive oracle, the vectors of Certificate Transparency, and lies."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieout.ledger import merkle
from tieout.ledger.errors import LedgerError

SIZES = list(range(34))
LEAVES = [merkle.leaf_hash(bytes([number])) for number in range(34)]
# certificate-transparency, merkletree/merkle_tree_test.cc
CT_INPUTS = [
    bytes.fromhex(text)
    for text in (
        "", "00", "10", "2021", "3031", "40414243", "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]  # fmt: skip
CT_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
CT_PATH_OF_LEAF_0_IN_8 = [
    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
]


def oracle(entries: list[bytes]) -> bytes:
    """RFC 6962 §2.1, word for word."""
    if not entries:
        return sha256(b"").digest()
    if len(entries) == 1:
        return sha256(b"\x00" + entries[0]).digest()
    split = 1
    while split * 2 < len(entries):
        split *= 2
    return sha256(b"\x01" + oracle(entries[:split]) + oracle(entries[split:])).digest()


def oracle_path(index: int, entries: list[bytes]) -> list[bytes]:
    """RFC 6962 §2.1.1, word for word."""
    if len(entries) == 1:
        return []
    split = 1
    while split * 2 < len(entries):
        split *= 2
    if index < split:
        return [*oracle_path(index, entries[:split]), oracle(entries[split:])]
    return [*oracle_path(index - split, entries[split:]), oracle(entries[:split])]


def oracle_proof(old: int, entries: list[bytes], *, whole: bool = True) -> list[bytes]:
    """RFC 6962 §2.1.2, word for word."""
    if old == len(entries):
        return [] if whole else [oracle(entries)]
    split = 1
    while split * 2 < len(entries):
        split *= 2
    if old <= split:
        return [*oracle_proof(old, entries[:split], whole=whole), oracle(entries[split:])]
    return [*oracle_proof(old - split, entries[split:], whole=False), oracle(entries[:split])]


@given(st.lists(st.binary(max_size=8), max_size=40))
def test_the_root_is_the_oracles(entries: list[bytes]) -> None:
    assert merkle.root(map(merkle.leaf_hash, entries)) == oracle(entries)


@given(st.lists(st.binary(max_size=8), max_size=40), st.integers(0, 40))
def test_a_frontier_grows_as_the_tree_does(entries: list[bytes], cut: int) -> None:
    leaves = [merkle.leaf_hash(entry) for entry in entries]
    grown = merkle.Frontier().extend(leaves[:cut]).extend(leaves[cut:])
    assert grown.root() == oracle(entries)
    assert (grown.size, len(grown.peaks)) == (len(entries), len(entries).bit_count())


def test_the_roots_of_certificate_transparency() -> None:
    leaves = [merkle.leaf_hash(entry) for entry in CT_INPUTS]
    assert [merkle.root(leaves[:size]).hex() for size in range(9)] == CT_ROOTS
    assert [node.hex() for node in merkle.inclusion_proof(leaves, 0)] == CT_PATH_OF_LEAF_0_IN_8


@pytest.mark.parametrize("size", SIZES[1:])
def test_every_leaf_is_proved_in_every_tree_and_nowhere_else(size: int) -> None:
    leaves = LEAVES[:size]
    entries = [bytes([number]) for number in range(size)]
    root = merkle.root(leaves)
    for index in range(size):
        proof = merkle.inclusion_proof(leaves, index)
        assert list(proof) == oracle_path(index, entries)
        for other in range(size):
            proved = merkle.verify_inclusion(
                leaves[index], index=other, size=size, proof=proof, root=root
            )
            assert proved == (other == index)


@pytest.mark.parametrize("size", SIZES)
def test_every_prefix_is_proved_and_no_other_size(size: int) -> None:
    leaves = LEAVES[:size]
    entries = [bytes([number]) for number in range(size)]
    new_root = merkle.root(leaves)
    for old in range(size + 1):
        proof = merkle.consistency_proof(leaves, old)
        assert list(proof) == (oracle_proof(old, entries) if old else [])
        old_root = merkle.root(leaves[:old])
        for claimed in range(size + 1):
            proved = merkle.verify_consistency(
                old_size=claimed,
                new_size=size,
                old_root=old_root,
                new_root=new_root,
                proof=proof,
            )
            assert proved == (claimed == old)


def test_one_changed_bit_anywhere_is_refused() -> None:
    size, index = 21, 13
    leaves = LEAVES[:size]
    root = merkle.root(leaves)
    path = merkle.inclusion_proof(leaves, index)
    for number in range(len(path)):
        for bit in range(256):
            bent = list(path)
            bent[number] = flip(bent[number], bit)
            assert not merkle.verify_inclusion(
                leaves[index], index=index, size=size, proof=bent, root=root
            )
    proof = merkle.consistency_proof(leaves, index)
    for number in range(len(proof)):
        for bit in range(256):
            bent = list(proof)
            bent[number] = flip(bent[number], bit)
            assert not merkle.verify_consistency(
                old_size=index,
                new_size=size,
                old_root=merkle.root(leaves[:index]),
                new_root=root,
                proof=bent,
            )


def test_proofs_too_long_too_short_or_of_other_things_are_refused() -> None:
    leaves = LEAVES[:7]
    root, path = merkle.root(leaves), merkle.inclusion_proof(leaves, 2)
    for bent in (path[:-1], (*path, LEAVES[0]), (), (b"short", *path[1:])):
        assert not merkle.verify_inclusion(leaves[2], index=2, size=7, proof=bent, root=root)
    for index, size in ((-1, 7), (7, 7), (2, 0), (2, 3)):
        assert not merkle.verify_inclusion(leaves[2], index=index, size=size, proof=path, root=root)
    proof = merkle.consistency_proof(leaves, 3)
    old_root = merkle.root(leaves[:3])
    for bent in (proof[:-1], (*proof, LEAVES[0]), (), (b"short", *proof[1:])):
        assert not merkle.verify_consistency(
            old_size=3, new_size=7, old_root=old_root, new_root=root, proof=bent
        )
    for old, new in ((-1, 7), (8, 7)):
        assert not merkle.verify_consistency(
            old_size=old, new_size=new, old_root=old_root, new_root=root, proof=proof
        )


@pytest.mark.parametrize("index", [-1, 3, 99])
def test_a_leaf_that_is_not_there_cannot_be_asked_for(index: int) -> None:
    with pytest.raises(LedgerError) as caught:
        merkle.inclusion_proof(LEAVES[:3], index)
    assert caught.value.code == "merkle.range"
    if index != 3:
        with pytest.raises(LedgerError):
            merkle.consistency_proof(LEAVES[:3], index)


def flip(node: bytes, bit: int) -> bytes:
    changed = bytearray(node)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
