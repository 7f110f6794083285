"""The one address type: vectors of BLAKE3, exact text, exact key, nothing else accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tieout.artifacts.address import READ_BYTES, Address
from tieout.artifacts.errors import ArtifactError

EMPTY = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
ABC = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
HEX = st.text("0123456789abcdef", min_size=64, max_size=64)


@pytest.mark.parametrize(("payload", "digest"), [(b"", EMPTY), (b"abc", ABC)])
def test_published_vectors(payload: bytes, digest: str) -> None:
    assert str(Address.of(payload)) == "blake3:" + digest


def test_key_is_the_same_text_in_a_folder_and_in_s3() -> None:
    assert Address(ABC).key == f"objects/blake3/64/{ABC[2:]}"


@given(HEX)
def test_text_and_key_read_back(digest: str) -> None:
    address = Address(digest)
    assert Address.parse(str(address)) == address
    assert Address.from_key(address.key) == address


@given(st.binary(max_size=400), st.integers(1, 50))
def test_chunks_do_not_matter(payload: bytes, size: int) -> None:
    chunks = [payload[at : at + size] for at in range(0, len(payload), size)]
    assert Address.of_chunks(chunks) == Address.of(payload)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_other_bytes_have_another_address(one: bytes, other: bytes) -> None:
    assume(one != other)
    assert Address.of(one) != Address.of(other)


@given(st.lists(HEX, min_size=2, max_size=6))
def test_order_is_the_order_of_the_text(digests: list[str]) -> None:
    assert [address.hex for address in sorted(map(Address, digests))] == sorted(digests)


MALFORMED = {
    "empty": "",
    "no scheme": ABC,
    "other scheme": "sha256:" + ABC,
    "capitals": "blake3:" + ABC.upper(),
    "scheme in capitals": "BLAKE3:" + ABC,
    "short": "blake3:" + ABC[:-1],
    "long": "blake3:" + ABC + "0",
    "line end": "blake3:" + ABC + "\n",
    "blank before": " blake3:" + ABC,
    "not hex": "blake3:" + "g" * 64,
    "digits of another script": "blake3:" + "\u0661" * 64,
    "path": "blake3:../../../../etc/passwd",
    "fragment": "blake3:" + ABC + "#row",
    "nul": "blake3:" + ABC[:-1] + "\0",
}


@pytest.mark.parametrize("name", list(MALFORMED))
def test_malformed_text_is_refused(name: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        Address.parse(MALFORMED[name])
    assert caught.value.code == "address.malformed"
    with pytest.raises(ArtifactError):
        Address(MALFORMED[name].removeprefix("blake3:").ljust(65, "0"))


@given(st.text(max_size=80))
def test_no_other_text_is_an_address_and_no_other_exception_leaks(text: str) -> None:
    try:
        assert str(Address.parse(text)) == text
    except ArtifactError as error:
        assert error.code == "address.malformed"


@given(st.text("abcdef0123456789/.objectsblake3", max_size=90) | st.text(max_size=40))
def test_no_other_key_is_read(key: str) -> None:
    try:
        assert Address.from_key(key).key == key
    except ArtifactError as error:
        assert error.code == "address.malformed"


@pytest.mark.parametrize("size", [0, 1, READ_BYTES - 1, READ_BYTES, READ_BYTES + 1])
def test_a_file_has_the_address_of_its_bytes(tmp_path: Path, size: int) -> None:
    payload = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    (tmp_path / "file").write_bytes(payload)
    assert Address.of_file(tmp_path / "file") == Address.of(payload)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(ArtifactError) as caught:
            Address.of_file(path)
        assert caught.value.code == "file.unreadable"
        assert caught.value.place == str(path)
