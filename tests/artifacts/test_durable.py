"""The four writes: whole or absent after refusals and races; leftovers; what the system says."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tieout.artifacts import durable
from tieout.artifacts.disk_errors import read_error, write_error
from tieout.artifacts.errors import ArtifactError, Exit

PAYLOAD = b"journal line\n" * 400


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(ArtifactError) as caught:
        call()
    assert caught.value.remedy
    return caught.value.code


# --- the four writes ---------------------------------------------------------------------


def test_create_exclusive_makes_the_file_once(tmp_path: Path) -> None:
    path = tmp_path / "note"
    durable.create_exclusive(path, PAYLOAD)
    assert path.read_bytes() == PAYLOAD
    assert code_of(lambda: durable.create_exclusive(path, PAYLOAD)) == "file.exists"
    assert code_of(lambda: durable.create_exclusive(path, b"")) == "file.exists"
    assert path.read_bytes() == PAYLOAD
    assert names(tmp_path) == ["note"]


def test_of_many_exclusive_creators_one_succeeds(tmp_path: Path) -> None:
    path = tmp_path / "note"

    def create(number: int) -> int | None:
        try:
            durable.create_exclusive(path, str(number).encode())
        except ArtifactError as error:
            assert error.code == "file.exists"
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        winners = [number for number in pool.map(create, range(24)) if number is not None]
    assert [path.read_bytes()] == [str(winner).encode() for winner in winners]
    assert names(tmp_path) == ["note"]


def test_create_idempotent_finds_the_same_and_refuses_the_other(tmp_path: Path) -> None:
    path = tmp_path / "note"
    assert durable.create_idempotent(path, PAYLOAD)
    assert not durable.create_idempotent(path, PAYLOAD)
    for other in (b"", PAYLOAD[:-1], PAYLOAD + b"x", b"X" + PAYLOAD[1:]):
        assert code_of(lambda other=other: durable.create_idempotent(path, other)) == (
            "file.exists_other"
        )
    assert path.read_bytes() == PAYLOAD
    assert names(tmp_path) == ["note"]


@pytest.mark.parametrize("kind", ["folder", "fifo", "link", "link to nothing"])
def test_what_is_not_a_file_is_never_taken_for_one(tmp_path: Path, kind: str) -> None:
    path, elsewhere = tmp_path / "note", tmp_path / "elsewhere"
    elsewhere.write_bytes(PAYLOAD)
    {
        "folder": path.mkdir,
        "fifo": lambda: os.mkfifo(path),
        "link": lambda: path.symlink_to(elsewhere),
        "link to nothing": lambda: path.symlink_to(tmp_path / "nothing"),
    }[kind]()
    assert code_of(lambda: durable.create_idempotent(path, PAYLOAD)) == "file.exists_other"
    assert code_of(lambda: durable.create_exclusive(path, PAYLOAD)) == "file.exists"
    assert elsewhere.read_bytes() == PAYLOAD


def test_replace_puts_new_bytes_in_the_place_of_old(tmp_path: Path) -> None:
    path = tmp_path / "state"
    durable.replace(path, b"old")
    with path.open("rb") as reader:
        durable.replace(path, b"new and longer")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new and longer"
    assert names(tmp_path) == ["state"]
    (tmp_path / "folder").mkdir()
    assert code_of(lambda: durable.replace(tmp_path / "folder", b"x")) == "file.exists_other"
    assert names(tmp_path) == ["folder", "state"]


def test_append_adds_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    for line in (b"one\n", b"", b"two\n"):
        durable.append(path, line)
    assert path.read_bytes() == b"one\ntwo\n"
    path.with_name("link").symlink_to(path)
    assert code_of(lambda: durable.append(path.with_name("link"), b"x")) == "file.exists_other"


def test_appends_of_many_threads_do_not_mix(tmp_path: Path) -> None:
    lines = [bytes([65 + number]) * 3000 + b"\n" for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda line: durable.append(tmp_path / "journal", line), lines))
    assert sorted((tmp_path / "journal").read_bytes().splitlines(keepends=True)) == lines


def test_make_folder_makes_parents_and_is_idempotent(tmp_path: Path) -> None:
    durable.make_folder(tmp_path / "a" / "b" / "c")
    durable.make_folder(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()
    (tmp_path / "file").write_bytes(b"")
    assert code_of(lambda: durable.make_folder(tmp_path / "file")) == "file.exists_other"
    assert code_of(lambda: durable.make_folder(tmp_path / "file" / "x")) == "file.exists_other"
    assert code_of(lambda: durable.make_folder(tmp_path / "nul\0")) == "file.name"


@pytest.mark.parametrize("write", ["create_exclusive", "create_idempotent", "replace", "append"])
def test_a_folder_that_is_not_there(tmp_path: Path, write: str) -> None:
    call = getattr(durable, write)
    assert code_of(lambda: call(tmp_path / "no" / "file", b"x")) == "file.no_folder"
    assert code_of(lambda: call(tmp_path / "nul\0", b"x")) == "file.name"
    assert code_of(lambda: call(tmp_path / ("x" * 300), b"x")) == "file.unwritable"
    assert names(tmp_path) == []


def test_modes_and_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        durable.create_idempotent(tmp_path / "object", b"x", mode=durable.OBJECT_MODE)
        durable.replace(tmp_path / "state", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "object").stat().st_mode & 0o777 == 0o440
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o640


def test_a_payload_of_several_write_calls(tmp_path: Path) -> None:
    payload = bytes(durable.WRITE_BYTES_MAX + 5)
    durable.create_exclusive(tmp_path / "large", payload)
    assert (tmp_path / "large").stat().st_size == len(payload)


# --- temp files --------------------------------------------------------------------------


def test_sweep_removes_leftovers_and_nothing_else(tmp_path: Path) -> None:
    for name in (".tieout-7-0.temp", ".tieout-123456-99.temp"):
        (tmp_path / name).write_bytes(b"half")
    kept = [".tieout-7-0.temp.bak", ".tieout-x-0.temp", "tieout-7-0.temp", "ab" * 31]
    for name in kept:
        (tmp_path / name).write_bytes(b"kept")
    assert durable.sweep(tmp_path) == 2
    assert names(tmp_path) == sorted(kept)
    assert durable.sweep(tmp_path) == 0


def test_sweep_leaves_what_a_living_writer_has_locked(tmp_path: Path) -> None:
    path = tmp_path / ".tieout-7-0.temp"
    path.write_bytes(b"half")
    with path.open("rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        assert durable.sweep(tmp_path) == 0
    assert durable.sweep(tmp_path) == 1


def _write_many(folder: str, start: int) -> None:
    for number in range(start, start + 40):
        durable.create_idempotent(Path(folder) / f"o{number}", PAYLOAD)


def test_writers_and_a_sweeper_at_once_lose_nothing(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_write_many, args=(str(tmp_path), at)) for at in (0, 20)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        durable.sweep(tmp_path)
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert len(names(tmp_path)) == 60
    assert all(path.read_bytes() == PAYLOAD for path in tmp_path.iterdir())


# --- what the system can say -------------------------------------------------------------

SAID = {
    errno.ENOSPC: ("disk.full", "store.refused"),
    errno.EDQUOT: ("disk.full", "store.refused"),
    errno.EROFS: ("disk.read_only", "store.refused"),
    errno.EACCES: ("file.forbidden", "store.refused"),
    errno.EPERM: ("file.forbidden", "store.refused"),
    errno.EIO: ("disk.failing", "disk.failing"),
    errno.EFBIG: ("disk.limit", "store.refused"),
    errno.EMFILE: ("file.too_many_open", "store.refused"),
    errno.EOPNOTSUPP: ("disk.unsupported", "store.refused"),
    errno.ESTALE: ("file.unwritable", "store.refused"),
}


@pytest.mark.parametrize("number", list(SAID), ids=lambda number: errno.errorcode[number])
def test_each_reason_has_its_code_and_says_what_to_do(number: int) -> None:
    error = OSError(number, os.strerror(number))
    write, read = SAID[number]
    for said, code in (
        (write_error(error, Path("p"), wanted_bytes=4711), write),
        (read_error(error, Path("p")), read),
    ):
        assert said.code == code
        assert said.place == "p"
        assert said.exit_code is Exit.ENVIRONMENT
        assert said.remedy
    if write == "disk.full":
        assert "4711 bytes" in write_error(error, Path("p"), wanted_bytes=4711).message
