"""What only a store in a folder has: shards, strangers, temp files, bytes that change under it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tieout.artifacts import local
from tieout.artifacts.address import Address
from tieout.artifacts.checked import PAGE_BYTES
from tieout.artifacts.errors import ArtifactError, Exit
from tieout.artifacts.local import SHARDS, LocalStore
from tieout.artifacts.opening import create_store, open_store
from tieout.artifacts.s3 import S3Store


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore.create(tmp_path / "deep" / "store")


def path_of(store: LocalStore, address: Address) -> Path:
    return Path(store.location) / address.key


def test_objects_lie_where_b3sum_and_people_find_them(store: LocalStore) -> None:
    address = store.put(b"abc").address
    path = Path(store.location) / "objects" / "blake3" / address.hex[:2] / address.hex[2:]
    assert path.read_bytes() == b"abc"
    assert path.stat().st_mode & 0o777 == 0o440
    assert path.stat().st_nlink == 1


def test_create_is_idempotent_and_completes(store: LocalStore) -> None:
    address = store.put(b"abc").address
    shelf = Path(store.location) / "objects" / "blake3"
    assert sorted(path.name for path in shelf.iterdir()) == list(SHARDS)
    (shelf / ("00" if address.hex[:2] != "00" else "01")).rmdir()
    again = LocalStore.create(Path(store.location))
    assert sorted(path.name for path in shelf.iterdir()) == list(SHARDS)
    assert list(again.addresses()) == [address]


def test_a_store_that_lost_its_empty_folders_still_takes_objects(tmp_path: Path) -> None:
    # Git and many archives do not keep empty folders.
    (tmp_path / "store" / "objects" / "blake3").mkdir(parents=True)
    store = LocalStore(tmp_path / "store")
    assert list(store.addresses()) == []
    assert store.sweep() == 0
    address = store.put(b"abc").address
    assert store.get(address) == b"abc"
    assert list(store.addresses()) == [address]


@pytest.mark.parametrize("kind", ["absent", "empty folder", "file", "nul"])
def test_no_store_there(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "empty folder":
        place.mkdir()
    if kind == "file":
        place.write_bytes(b"")
    if kind == "nul":
        place = tmp_path / "nul\0"
    with pytest.raises(ArtifactError) as caught:
        LocalStore(place)
    if kind != "nul":
        assert caught.value.code == "store.missing"
        assert caught.value.exit_code is Exit.NO_WORKSPACE


def test_a_store_that_goes_away_is_not_an_object_that_is_missing(store: LocalStore) -> None:
    address = store.put(b"abc").address
    Path(store.location).rename(Path(store.location).with_name("moved"))
    calls = (
        lambda: store.get(address),
        lambda: store.stat(address),
        lambda: store.put(b"new"),
        lambda: store.put(b"abc"),
        lambda: list(store.addresses()),
    )
    for call in calls:
        with pytest.raises(ArtifactError) as caught:
            call()
        assert caught.value.code == "store.missing"
    assert not Path(store.location).exists()


@pytest.mark.parametrize("kind", ["folder", "fifo", "link", "socketless link"])
def test_what_is_not_a_file_is_corrupt(store: LocalStore, tmp_path: Path, kind: str) -> None:
    address = Address.of(b"abc")
    path = path_of(store, address)
    (tmp_path / "elsewhere").write_bytes(b"abc")
    {
        "folder": path.mkdir,
        "fifo": lambda: os.mkfifo(path),
        "link": lambda: path.symlink_to(tmp_path / "elsewhere"),
        "socketless link": lambda: path.symlink_to(tmp_path / "nowhere"),
    }[kind]()
    for ask in (store.get, store.open, store.stat, lambda _: store.put(b"abc")):
        with pytest.raises(ArtifactError) as caught:
            ask(address)
        assert caught.value.code == "object.corrupt"
        assert caught.value.place == str(address)


def test_strangers_are_told_and_neither_listed_nor_removed(store: LocalStore) -> None:
    address = store.put(b"abc").address
    root = Path(store.location)
    strange = [
        "objects/blake3/ab/notes.txt",
        "objects/blake3/ab/" + "A" * 62,
        "objects/blake3/ab/" + "0" * 61,
        "objects/blake3/zz",
        "objects/sha256",
        "README",
    ]
    for name in strange:
        (root / name).write_bytes(b"?")
    (root / "objects/blake3/ab/.tieout-7-0.temp").write_bytes(b"half")
    assert list(store.addresses()) == [address]
    assert store.strangers() == sorted(strange)
    assert store.sweep() == 1
    assert store.strangers() == sorted(strange)


def test_a_file_in_the_place_of_a_shard_is_told(store: LocalStore) -> None:
    shard = Path(store.location) / "objects" / "blake3" / "ab"
    shard.rmdir()
    shard.write_bytes(b"")
    assert store.strangers() == ["objects/blake3/ab"]
    with pytest.raises(ArtifactError) as caught:
        list(store.addresses())
    assert caught.value.code == "store.refused"


def test_bytes_that_change_after_the_check_are_not_given_out(store: LocalStore) -> None:
    payload = bytes(3 * PAGE_BYTES)
    address = store.put(payload).address
    path = path_of(store, address)
    path.chmod(0o640)
    with store.open(address) as stream:
        assert stream.read(10) == bytes(10)
        with path.open("r+b") as other:
            other.seek(2 * PAGE_BYTES + 7)
            other.write(b"\1")
        assert stream.read(PAGE_BYTES) == bytes(PAGE_BYTES)
        with pytest.raises(ArtifactError) as caught:
            stream.read()
    assert caught.value.code == "object.corrupt"
    with pytest.raises(ArtifactError):
        store.get(address)


def test_a_file_cut_short_while_it_is_read_is_an_error(store: LocalStore) -> None:
    address = store.put(bytes(3 * PAGE_BYTES)).address
    path = path_of(store, address)
    path.chmod(0o640)
    with store.open(address) as stream:
        os.truncate(path, PAGE_BYTES)
        with pytest.raises(ArtifactError) as caught:
            stream.read()
    assert caught.value.code == "object.corrupt"


# The address space left lets the process load neither file; only a check before loading tells.
GET_A_GIANT = """
import resource, sys
from pathlib import Path
from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.local import LocalStore
store = LocalStore.create(Path(sys.argv[1]))
address = store.put(b"abc").address
path = Path(sys.argv[1]) / address.key
path.chmod(0o640)
with path.open("r+b") as giant:
    giant.truncate(270 << 20)
resource.setrlimit(resource.RLIMIT_AS, (250 << 20, 250 << 20))
try:
    store.get(address)
except ArtifactError as error:
    print(error.code)
"""


def test_a_giant_in_the_place_of_an_object_does_not_fill_the_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", GET_A_GIANT, str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "object.corrupt\n", done.stderr


def test_a_large_object_comes_back(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LOAD_BYTES_MAX", 1000)
    payload = bytes(range(256)) * 8000
    assert store.get(store.put(payload).address) == payload


def test_open_streams_hold_no_file_after_they_are_closed(store: LocalStore) -> None:
    address = store.put(b"abc").address
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with store.open(address) as stream:
            stream.read(1)
            stream.close()
    path_of(store, address).chmod(0o640)
    path_of(store, address).write_bytes(b"abd")
    for ask in (store.get, store.open):
        with pytest.raises(ArtifactError):
            ask(address)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_rights_have_their_own_codes(store: LocalStore) -> None:
    address = store.put(b"abc").address
    path_of(store, address).chmod(0)
    with pytest.raises(ArtifactError) as caught:
        store.get(address)
    assert caught.value.code == "store.refused"


# --- from a text to a store --------------------------------------------------------------


def test_a_path_names_a_folder_below_the_base(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError) as caught:
        open_store(".tieout/store", base=tmp_path)
    assert caught.value.code == "store.missing"
    address = create_store(".tieout/store", base=tmp_path).put(b"abc").address
    assert open_store(".tieout/store", base=tmp_path).get(address) == b"abc"
    elsewhere = tmp_path / ".tieout" / "store"
    assert open_store(str(elsewhere), base=Path("/nowhere")).get(address) == b"abc"


def test_an_s3_address_names_a_bucket_and_asks_nothing_yet(tmp_path: Path) -> None:
    store = open_store("s3://evidence/close/2026", base=tmp_path)
    assert isinstance(store, S3Store)
    assert store.location == "s3://evidence/close/2026"


@pytest.mark.parametrize("text", ["", "gs://bucket/x", "http://host/x", "a\0b", "s3://", "s3:///x"])
def test_other_texts_name_no_store(tmp_path: Path, text: str) -> None:
    for opening in (open_store, create_store):
        with pytest.raises(ArtifactError) as caught:
            opening(text, base=tmp_path)
        assert caught.value.code == "store.location"
        assert caught.value.exit_code is Exit.REFUSED
