"""What every store promises (artifacts/store.py), asked of each store and layer, unchanged."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.s3server import S3Server, s3_server

from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError, Exit
from tieout.artifacts.layers import Counting, Faulty, Overlay, Restricted, Verifying
from tieout.artifacts.local import LocalStore
from tieout.artifacts.memory import MemoryStore
from tieout.artifacts.pieces import JOINED_BYTES_MAX, Pieces
from tieout.artifacts.s3 import S3Store
from tieout.artifacts.store import ObjectStat, RetentionClass, Store

KINDS = ["local", "memory", "s3", "counting", "faulty", "verifying", "restricted", "overlay"]
SAMPLES = [
    b"",
    b"\0",
    b"abc",
    "Saldo: 1.234,56 €\r\n".encode(),
    bytes(range(256)) * 64,
    b"z" * (1 << 20),
    bytes(range(251)) * 20_000,  # 5 MB, over several pages
]


@dataclass
class Case:
    """A store and the way to change an object behind its back."""

    store: Store
    overwrite: Callable[[Address, bytes], None]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        yield running


@pytest.fixture(scope="module")
def client(server: S3Server) -> Iterator[Any]:
    with server.client() as made:
        yield made


@pytest.fixture(scope="module")
def connection(server: S3Server) -> Iterator[Any]:
    """The client that S3Store makes, shared by the stores of this module."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment().items():
            patch.setenv(name, value)
        maker = S3Store(server.bucket, "")
        made = maker._client()
    yield made
    maker.close()


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    kind = request.param
    if kind == "local":
        store = LocalStore.create(tmp_path / "store")
        yield Case(store, lambda address, payload: _overwrite_file(store, address, payload))
        return
    if kind == "s3":
        server = request.getfixturevalue("server")
        prefix = "contract/" + tmp_path.name
        client = request.getfixturevalue("client")
        bucket = S3Store(server.bucket, prefix)
        bucket._made = request.getfixturevalue("connection")  # making one costs 0.2 s
        yield Case(
            bucket,
            lambda address, payload: client.put_object(
                Bucket=server.bucket, Key=f"{prefix}/{address.key}", Body=payload
            ),
        )
        return
    memory = MemoryStore()
    layered: dict[str, Callable[[], Store]] = {
        "memory": lambda: memory,
        "counting": lambda: Counting(memory),
        "faulty": lambda: Faulty(memory),
        "verifying": lambda: Verifying(memory),
        "restricted": lambda: Restricted(memory, lambda _: True),
        "overlay": lambda: Overlay(MemoryStore("base"), memory),
    }
    yield Case(layered[kind](), lambda address, payload: memory._objects.update({address: payload}))


def _overwrite_file(store: LocalStore, address: Address, payload: bytes) -> None:
    path = Path(store.location) / address.key
    path.chmod(0o640)
    path.write_bytes(payload)


@pytest.mark.parametrize("payload", SAMPLES, ids=lambda sample: f"{len(sample)}-bytes")
def test_what_was_put_comes_back(case: Case, payload: bytes) -> None:
    stored = case.store.put(payload)
    assert stored.address == Address.of(payload)
    assert stored.size == len(payload)
    assert stored.sha256 == hashlib.sha256(payload).hexdigest()
    assert stored.created
    assert case.store.get(stored.address) == payload
    assert case.store.stat(stored.address) == ObjectStat(stored.address, len(payload))
    with case.store.open(stored.address) as stream:
        assert stream.read() == payload


@pytest.mark.parametrize("part_bytes", [1, 700_001])
def test_pieces_are_put_as_the_bytes_they_make(case: Case, part_bytes: int) -> None:
    for payload in (SAMPLES[2], SAMPLES[-1]) if part_bytes > 1 else SAMPLES[:4]:
        view = memoryview(payload)
        parts = [view[at : at + part_bytes] for at in range(0, len(view), part_bytes)]
        stored = case.store.put(Pieces(parts))
        assert stored.address == Address.of(payload)
        assert (stored.sha256, stored.size) == (hashlib.sha256(payload).hexdigest(), len(payload))
        assert case.store.get(stored.address) == payload
        assert stored.created
        for again in (Pieces(parts), payload):
            found = case.store.put(again)
            assert not found.created
            assert (found.address, found.sha256) == (stored.address, stored.sha256)


@pytest.mark.parametrize("there_already", [False, True])
def test_pieces_that_were_written_to_are_not_kept(case: Case, *, there_already: bool) -> None:
    """The address that a caller gives is not believed: the bytes are hashed on their way in."""
    buffer = bytearray(b"a" * (JOINED_BYTES_MAX + 1))
    before = bytes(buffer)
    if there_already:
        case.store.put(before)
    pieces = Pieces([memoryview(buffer)])
    buffer[-1] ^= 1
    with pytest.raises(ArtifactError) as caught:
        case.store.put(pieces)
    assert caught.value.code == "object.changed"
    assert caught.value.exit_code is Exit.BUG
    assert list(case.store.addresses()) == ([Address.of(before)] if there_already else [])


def test_the_same_bytes_again_are_the_same_object(case: Case) -> None:
    first = case.store.put(b"trial balance", retention=RetentionClass.REDACT)
    again = case.store.put(b"trial balance", retention=RetentionClass.REDACT)
    assert first.created
    assert not again.created
    assert (again.address, again.sha256, again.size) == (first.address, first.sha256, first.size)
    assert again.version == first.version
    assert first.retention is again.retention is RetentionClass.REDACT
    assert list(case.store.addresses()) == [first.address]


def test_retain_is_the_default_class(case: Case) -> None:
    assert case.store.put(b"x").retention is RetentionClass.RETAIN


def test_addresses_are_listed_in_ascending_order(case: Case) -> None:
    put = [case.store.put(str(number).encode()).address for number in range(40)]
    assert list(case.store.addresses()) == sorted(put)


def test_an_empty_store_lists_nothing(case: Case) -> None:
    assert list(case.store.addresses()) == []


def scanned(case: Case, size: int = -1) -> Callable[[Address], bytes]:
    """Read so many bytes in a scan; all by default."""

    def scan(address: Address) -> bytes:
        with case.store.scan(address) as stream:
            return stream.read(size)

    return scan


def test_a_scan_gives_the_bytes_in_order(case: Case) -> None:
    payload = bytes(range(251)) * 20_000
    address = case.store.put(payload).address
    with case.store.scan(address) as stream:
        first = [stream.read(size) for size in (0, 1, 3_000_000)]
        rest = stream.read()
        assert stream.read() == b""
        assert not stream.writable()
        with pytest.raises(io.UnsupportedOperation):
            stream.fileno()
    assert b"".join([*first, rest]) == payload
    assert stream.closed
    assert scanned(case, 5)(address) == payload[:5]


def test_a_block_that_fails_on_damaged_bytes_is_told_of_the_damage(case: Case) -> None:
    address = case.store.put(b"account 1010").address
    with pytest.raises(KeyError), case.store.scan(address) as stream:
        raise KeyError(stream.read())
    case.overwrite(address, b"account 1011")
    with pytest.raises(ArtifactError) as caught, case.store.scan(address) as stream:
        raise KeyError(stream.read())
    assert caught.value.code == "object.corrupt"


def test_an_object_that_is_not_there(case: Case) -> None:
    address = Address.of(b"never put")
    for ask in (case.store.get, case.store.open, scanned(case), case.store.stat):
        with pytest.raises(ArtifactError) as caught:
            ask(address)
        assert caught.value.code == "object.missing"
        assert caught.value.place == str(address)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "first bit": lambda payload: bytes([payload[0] ^ 1]) + payload[1:],
    "last bit": lambda payload: payload[:-1] + bytes([payload[-1] ^ 128]),
    "truncated": lambda payload: payload[:-1],
    "zero length": lambda payload: b"",
    "longer": lambda payload: payload + b"\0",
    "another": lambda payload: b"quite another object",
}


@pytest.mark.parametrize("damage", list(DAMAGE))
def test_a_damaged_object_is_an_error_with_its_address(case: Case, damage: str) -> None:
    payload = b"account 1010;41200.17\n" * 60_000  # 1.3 MB: more than a page
    address = case.store.put(payload).address
    case.overwrite(address, DAMAGE[damage](payload))
    for ask in (case.store.get, case.store.open, scanned(case), scanned(case, 5)):
        with pytest.raises(ArtifactError) as caught:
            ask(address)
        assert caught.value.code == "object.corrupt"
        assert caught.value.place == str(address)
        assert caught.value.exit_code is Exit.DOES_NOT_HOLD


@pytest.mark.parametrize("damage", list(DAMAGE))
def test_a_damaged_object_is_not_relied_on_by_put_and_not_overwritten(
    case: Case, damage: str
) -> None:
    payload = b"receivables control\n" * 50
    address = case.store.put(payload).address
    case.overwrite(address, DAMAGE[damage](payload))
    for _ in range(2):
        with pytest.raises(ArtifactError) as caught:
            case.store.put(payload)
        assert caught.value.code == "object.corrupt"
        assert caught.value.place == str(address)


def test_of_many_who_put_one_object_exactly_one_created_it(case: Case) -> None:
    payload = b"the same receipt" * 1000
    gate = threading.Barrier(8)

    def put(_: int) -> bool:
        gate.wait()
        return case.store.put(payload).created

    with ThreadPoolExecutor(8) as pool:
        created = list(pool.map(put, range(8)))
    assert created.count(True) == 1
    assert case.store.get(Address.of(payload)) == payload
    assert list(case.store.addresses()) == [Address.of(payload)]


def test_a_stream_can_be_read_in_pieces_and_sought(case: Case) -> None:
    payload = bytes(range(256)) * 10_000
    with case.store.open(case.store.put(payload).address) as stream:
        assert stream.read(3) == payload[:3]
        assert stream.seek(2_000_000) == 2_000_000
        assert stream.read(500_000) == payload[2_000_000:2_500_000]
        assert stream.seek(-5, io.SEEK_END) == len(payload) - 5
        assert stream.read() == payload[-5:]
        assert stream.read() == b""
        assert stream.seek(0) == 0
        assert stream.read() == payload


def test_a_stream_cannot_write_and_does_not_say_where_it_is(case: Case) -> None:
    with case.store.open(case.store.put(b"abc").address) as stream:
        assert not stream.writable()
        with pytest.raises(io.UnsupportedOperation):
            stream.write(b"x")
        with pytest.raises(io.UnsupportedOperation):
            stream.truncate(0)
        with pytest.raises(io.UnsupportedOperation):
            stream.fileno()
        assert not hasattr(stream, "name")
    with pytest.raises(ValueError, match="closed"):
        stream.read()


def test_no_store_can_delete_or_overwrite(case: Case) -> None:
    offered = {name for name in dir(case.store) if not name.startswith("_")}
    assert not offered & {"delete", "remove", "unlink", "overwrite", "replace", "update"}


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(payloads=st.lists(st.binary(max_size=300), max_size=4))
def test_any_bytes_in_any_order_come_back(case: Case, payloads: list[bytes]) -> None:
    for payload in payloads:
        case.store.put(payload)
    for payload in payloads:
        assert case.store.get(Address.of(payload)) == payload
    listed = list(case.store.addresses())
    assert listed == sorted(set(listed))
    assert {Address.of(payload) for payload in payloads} <= set(listed)
