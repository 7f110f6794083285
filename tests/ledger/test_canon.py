"""Canonical JSON: the fast encoder against an independent one, and all that it refuses."""

from __future__ import annotations

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from tieout.artifacts.errors import RoomError
from tieout.ledger.canon import DEPTH_MAX, decode, encode
from tieout.ledger.errors import LedgerError

KEYS = st.text(st.characters(max_codepoint=127), max_size=8)
LEAVES = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=12)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_the_fast_encoder_writes_what_rfc8785_asks_for(value) -> None:
    assert encode(value) == rfc8785.dumps(value)


@given(VALUES)
def test_what_was_written_is_read_back(value) -> None:
    assert decode(encode(value)) == value


OUTSIDE = {
    "a float": 1.0,
    "a float inside": {"a": [0, 1.5]},
    "an integer of 2^53": 2**53,
    "a negative one": -(2**53),
    "a key that is not ASCII": {"é": 1},
    "a key that is no text": {1: 1},
    "a lone surrogate": "\ud800",
    "a set": {1},
    "bytes": b"x",
}


@pytest.mark.parametrize("value", list(OUTSIDE.values()), ids=list(OUTSIDE))
def test_values_outside_the_profile_are_refused(value) -> None:
    with pytest.raises(LedgerError) as caught:
        encode(value)
    assert caught.value.code == "json.profile"


def test_the_place_of_what_is_refused_is_named() -> None:
    with pytest.raises(LedgerError) as caught:
        encode({"a": {"b": [0, {"c": 1.5}]}})
    assert caught.value.place == "a.b[1].c"


def test_depth_is_bounded() -> None:
    value: list[object] = []
    for _ in range(DEPTH_MAX - 1):
        value = [value]
    assert decode(encode(value)) == value
    with pytest.raises(LedgerError):
        encode([value])


MALFORMED = {
    "nothing": (b"", "json.malformed"),
    "no UTF-8": (b'"\xff"', "json.malformed"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "json.malformed"),
    "two values": (b"{}{}", "json.malformed"),
    "a repeated key": (b'{"a":1,"a":1}', "json.malformed"),
    "a float": (b"1.0", "json.malformed"),
    "an exponent": (b"1e3", "json.malformed"),
    "NaN": (b"NaN", "json.malformed"),
    "endless digits": (b"9" * 10_000, "json.malformed"),
    "endless depth": (b"[" * 50_000, "json.malformed"),
    "deep": (b"[" * 40 + b"]" * 40, "json.profile"),
    "2^53": (b"9007199254740992", "json.profile"),
    "an escaped surrogate": (b'"\\ud800"', "json.profile"),
    "white space": (b'{"a": 1}', "json.not_canonical"),
    "a line end": (b"{}\n", "json.not_canonical"),
    "keys out of order": (b'{"b":1,"a":1}', "json.not_canonical"),
    "an escape too many": (b'"\\u0041"', "json.not_canonical"),
    "an escaped slash": (b'"\\/"', "json.not_canonical"),
    "upper-case hex": (b'"\\u001F"', "json.not_canonical"),
    "minus zero": (b"-0", "json.not_canonical"),
}


@pytest.mark.parametrize(("payload", "code"), list(MALFORMED.values()), ids=list(MALFORMED))
def test_bytes_that_are_not_canonical_are_refused(payload: bytes, code: str) -> None:
    with pytest.raises(LedgerError) as caught:
        decode(payload)
    assert caught.value.code == code


@given(
    st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace"))
)
def test_no_other_error_leaks(payload: bytes) -> None:
    try:
        assert encode(decode(payload)) == payload
    except RoomError as error:
        assert error.code.startswith("json.")
