"""Proofs of single rows: what is tampered, exchanged, cut, odd or huge is refused."""

from __future__ import annotations

import json
import struct
import subprocess
import sys

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st
from support.row_oracle import Oracle, tables, vectors

from tieout.artifacts import row_proof
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.row_proof import check_row


def refused(proof, root):
    with pytest.raises(ArtifactError) as caught:
        check_row(proof, root)
    assert caught.value.remedy
    return caught.value.code


WRONG = {"row_proof.wrong", "row_proof.malformed"}


@given(tables(least=1), st.data())
@settings(max_examples=150)
def test_a_changed_byte_anywhere_is_found(case, data):
    columns, rows, size = case
    oracle = Oracle(columns, [], rows, size)
    own = data.draw(st.integers(0, len(rows) - 1))
    proof = bytearray(oracle.prove(own))
    place = data.draw(st.integers(0, len(proof) - 1))
    proof[place] ^= data.draw(st.integers(1, 255))
    header = len(b"tieout.row-proof/1\n") + 4 + len(oracle.header)
    position = int.from_bytes(proof[header : header + 8], "little")
    if header <= place < header + 8 and own // size == position // size and position < len(rows):
        # The position within a leaf only chooses among rows that are proved together.
        values = check_row(bytes(proof), oracle.root).values
        assert [text for _, text in values] == rows[position]
        return
    assert refused(bytes(proof), oracle.root) in WRONG


@given(tables(least=1), st.data())
@settings(max_examples=100)
def test_cut_or_longer_proofs_are_refused(case, data):
    columns, rows, size = case
    oracle = Oracle(columns, [], rows, size)
    proof = oracle.prove(data.draw(st.integers(0, len(rows) - 1)))
    assert (
        refused(proof[: data.draw(st.integers(0, len(proof) - 1))], oracle.root)
        == "row_proof.malformed"
    )
    extra = data.draw(st.binary(min_size=1, max_size=40) | st.just(bytes(32)))
    assert refused(proof + extra, oracle.root) == "row_proof.malformed"


@given(tables(least=2), st.data())
@settings(max_examples=100)
def test_rows_positions_and_tables_cannot_be_exchanged(case, data):
    columns, rows, _ = case
    first, second = data.draw(st.permutations(range(len(rows))))[:2]
    oracle = Oracle(columns, [], rows, 1)
    # Two rows swapped: another table, even where only their order differs.
    swapped = list(rows)
    swapped[first], swapped[second] = rows[second], rows[first]
    if rows[first] != rows[second]:
        other = Oracle(columns, [], swapped, 1)
        assert refused(other.prove(first), oracle.root) == "row_proof.wrong"
    # The proof of a row does not serve for another position, even of an equal row.
    proof = bytearray(oracle.prove(first))
    place = len(b"tieout.row-proof/1\n") + 4 + len(oracle.header)
    proof[place : place + 8] = struct.pack("<Q", second)
    assert refused(bytes(proof), oracle.root) in WRONG
    # Equal rows under another name, another key, in a table of other length.
    renamed = [["d" + name, kind] for name, kind in columns]
    for other in (
        Oracle(renamed, [], rows, 1),
        Oracle(columns, [columns[0][0]], rows, 1),
        Oracle(columns, [], [*rows, rows[0]], 1),
        Oracle(columns, [], rows, 2),
    ):
        assert other.root != oracle.root
        assert refused(other.prove(first), oracle.root) == "row_proof.wrong"


HEADER = {
    "columns": [["a", "BIGINT"]],
    "format": "tieout.rows/1",
    "key": [],
    "rows": 1,
    "rows_per_leaf": 1,
}


def forged(raw, rows=b"\x01" + bytes(8), position=0):
    """A proof around any header, and the root that would go with it."""
    hashed = blake3(raw).digest()
    leaf = blake3(b"\x00" + hashed + struct.pack("<Q", position) + rows).digest()
    root = "tieout.rows/1:" + blake3(b"\x02" + hashed + leaf).hexdigest()
    proof = b"tieout.row-proof/1\n" + struct.pack("<I", len(raw)) + raw
    return proof + struct.pack("<QI", position, len(rows)) + rows, root


def packed(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def test_the_forged_shape_would_hold():
    assert check_row(*forged(packed(HEADER))).values == (("a", "0"),)


ODD = {
    "nothing": b"",
    "not JSON": b"{",
    "not UTF-8": b"\xff\xfe",
    "a list": b"[]",
    "null": b"null",
    "deep": b"[" * 100_000,
    "deep within": b'{"columns":' + b"[" * 100_000,
    "a long number": b'{"rows":' + b"9" * 10_000 + b"}",
    "spaces": json.dumps(HEADER, sort_keys=True).encode(),
    "a repeated member": packed(HEADER)[:-1] + b',"rows":1}',
    "another order": json.dumps(dict(reversed(HEADER.items())), separators=(",", ":")).encode(),
    "a lone surrogate": packed(HEADER).replace(b'"a"', rb'"\ud800"'),
    "an escape": packed(HEADER).replace(b'"a"', rb'"\u0061"'),
    "a member more": packed({**HEADER, "more": 1}),
    "a member less": packed({k: v for k, v in HEADER.items() if k != "key"}),
    "another format": packed({**HEADER, "format": "tieout.rows/2"}),
    "no columns": packed({**HEADER, "columns": []}),
    "columns as text": packed({**HEADER, "columns": "ab"}),
    "columns of texts": packed({**HEADER, "columns": ["ab"]}),
    "columns as null": packed({**HEADER, "columns": None}),
    "a column of three": packed({**HEADER, "columns": [["a", "BIGINT", "b"]]}),
    "a name that is a number": packed({**HEADER, "columns": [[1, "BIGINT"]]}),
    "a name that is a list": packed({**HEADER, "columns": [[[], "BIGINT"]]}),
    "a type that is a list": packed({**HEADER, "columns": [["a", []]]}),
    "a type of no table": packed({**HEADER, "columns": [["a", "INTERVAL"]]}),
    "a DECIMAL too wide": packed({**HEADER, "columns": [["a", "DECIMAL(39,0)"]]}),
    "a DECIMAL with more places": packed({**HEADER, "columns": [["a", "DECIMAL(2,3)"]]}),
    "a DECIMAL with zeros": packed({**HEADER, "columns": [["a", "DECIMAL(018,2)"]]}),
    "a DECIMAL in other digits": packed({**HEADER, "columns": [["a", "DECIMAL(१,0)"]]}),
    "a column twice": packed({**HEADER, "columns": [["a", "BIGINT"], ["a", "BIGINT"]]}),
    "a key of no column": packed({**HEADER, "key": ["b"]}),
    "a key twice": packed({**HEADER, "key": ["a", "a"]}),
    "a key as text": packed({**HEADER, "key": "a"}),
    "a key of lists": packed({**HEADER, "key": [["a"]]}),
    "no rows": packed({**HEADER, "rows": 0}),
    "rows as text": packed({**HEADER, "rows": "1"}),
    "rows as truth": packed({**HEADER, "rows": True}),
    "rows as float": packed({**HEADER, "rows": 1.0}),
    "rows below zero": packed({**HEADER, "rows": -1}),
    "very many rows": packed({**HEADER, "rows": 2**53}),
    "NaN rows": packed({**HEADER, "rows": float("nan")}),
    "no rows in a leaf": packed({**HEADER, "rows_per_leaf": 0}),
    "too many rows in a leaf": packed({**HEADER, "rows_per_leaf": 65_537}),
    "rows of a leaf as truth": packed({**HEADER, "rows_per_leaf": True}),
    "a long header": packed({**HEADER, "columns": [["a" * (1 << 20), "BIGINT"]]}),
}


@pytest.mark.parametrize("name", list(ODD))
def test_odd_headers_are_refused_even_with_their_own_root(name):
    assert refused(*forged(ODD[name])) == "row_proof.malformed"


BAD_ROWS = {
    "neither there nor null": ("BIGINT", b"\x02" + bytes(8)),
    "nothing": ("BIGINT", b""),
    "a value cut off": ("BIGINT", b"\x01" + bytes(7)),
    "bytes behind": ("BIGINT", b"\x01" + bytes(9)),
    "bytes behind a null": ("BIGINT", b"\x00" + bytes(8)),
    "truth of two": ("BOOLEAN", b"\x01\x02"),
    "text that is not UTF-8": ("VARCHAR", b"\x01\x01\x00\x00\x00\xff"),
    "a surrogate": ("VARCHAR", b"\x01\x03\x00\x00\x00\xed\xa0\x80"),
    "a text too short": ("VARCHAR", b"\x01\x05\x00\x00\x00abc"),
    "a length cut off": ("VARCHAR", b"\x01\x05\x00"),
    "a text of 4 GB": ("BLOB", b"\x01\xff\xff\xff\xff"),
    "minus zero": ("DOUBLE", b"\x01" + bytes(7) + b"\x80"),
    "another NaN": ("DOUBLE", b"\x01\x01" + bytes(5) + b"\xf8\x7f"),
    "a negative NaN": ("FLOAT", b"\x01\x00\x00\xc0\xff"),
    "a DECIMAL of 19 digits": ("DECIMAL(18,2)", b"\x01" + (10**18).to_bytes(16, "little")),
    "a day before the year 1": ("DATE", b"\x01" + struct.pack("<i", -719_163)),
    "a day after the year 9999": ("DATE", b"\x01" + struct.pack("<i", 2_932_897)),
    "the largest day": ("DATE", b"\x01" + struct.pack("<i", 2**31 - 1)),
    "infinity as a moment": ("TIMESTAMP", b"\x01" + struct.pack("<q", 2**63 - 1)),
    "a time of 24 hours": ("TIME", b"\x01" + struct.pack("<q", 86_400_000_000)),
    "a time below zero": ("TIME", b"\x01" + struct.pack("<q", -1)),
}


@pytest.mark.parametrize("name", list(BAD_ROWS))
def test_rows_no_writer_makes_are_refused_even_with_their_own_root(name):
    kind, rows = BAD_ROWS[name]
    header = packed({**HEADER, "columns": [["a", kind]]})
    assert refused(*forged(header, rows)) == "row_proof.malformed"


def test_the_edges_of_what_a_writer_makes_are_read():
    for kind, raw, text in [
        ("DATE", struct.pack("<i", -719_162), "0001-01-01"),
        ("DATE", struct.pack("<i", 2_932_896), "9999-12-31"),
        ("TIME", struct.pack("<q", 86_399_999_999), "23:59:59.999999"),
        ("DECIMAL(18,2)", (1 - 10**18).to_bytes(16, "little", signed=True), "-9999999999999999.99"),
        ("DECIMAL(5,5)", (-1).to_bytes(16, "little", signed=True), "-0.00001"),
        ("UBIGINT", b"\xff" * 8, str(2**64 - 1)),
        ("TINYINT", b"\x80", "-128"),
        ("FLOAT", struct.pack("<f", 0.1), repr(struct.unpack("<f", struct.pack("<f", 0.1))[0])),
        ("DOUBLE", struct.pack("<d", float("-inf")), "-Infinity"),
    ]:
        header = packed({**HEADER, "columns": [["a", kind]]})
        assert check_row(*forged(header, b"\x01" + raw)).values == (("a", text),)


@given(st.binary(max_size=200) | st.binary(max_size=100).map(lambda b: b"tieout.row-proof/1\n" + b))
def test_noise_is_refused(noise):
    assert refused(noise, "tieout.rows/1:" + "0" * 64) == "row_proof.malformed"


@pytest.mark.parametrize(
    "root",
    ["", "0" * 64, "blake3:" + "0" * 64, "tieout.rows/1:" + "A" * 64, "tieout.rows/1:" + "0" * 65,
     "tieout.rows/1:" + "0" * 64 + "\n", None, b"tieout.rows/1:" + b"0" * 64],
)  # fmt: skip
def test_a_root_is_refused_by_its_form(root):
    assert refused(forged(packed(HEADER))[0], root) == "row_root.malformed"


@pytest.mark.parametrize("proof", [None, "text", 7, ["a"], {"position": 0}])
def test_a_proof_is_bytes(proof):
    assert refused(proof, "tieout.rows/1:" + "0" * 64) == "row_proof.malformed"


def test_a_proof_over_its_bound_is_refused_unread(monkeypatch):
    proof, root = forged(packed(HEADER))
    monkeypatch.setattr(row_proof, "PROOF_BYTES_MAX", len(proof) - 1)
    assert refused(proof, root) == "row_proof.malformed"


def test_whoever_checks_needs_blake3_and_nothing_else():
    vector = next(v for v in vectors() if v["proofs"])
    script = f"""
import sys
for name in ("pyarrow", "pydantic", "duckdb"):
    sys.modules[name] = None
from tieout.artifacts import check_row
print(check_row(bytes.fromhex({vector["proofs"][0]["proof_hex"]!r}), {vector["root"]!r}).position)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == (f"{vector['proofs'][0]['position']}\n", "")
