"""Each layer adds its one rule and passes the rest on."""

from __future__ import annotations

import multiprocessing
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError, Exit
from tieout.artifacts.layers import (
    CALLS,
    Counting,
    Fault,
    Faulty,
    Harm,
    Overlay,
    ReadOnly,
    Restricted,
    Verifying,
    seeded_faults,
)
from tieout.artifacts.local import LocalStore
from tieout.artifacts.memory import MemoryStore
from tieout.artifacts.store import RetentionClass, Store


@pytest.fixture
def memory() -> MemoryStore:
    return MemoryStore()


# --- read-only, verifying, counting ------------------------------------------------------


def test_read_only_reads_and_refuses_to_add(memory: MemoryStore) -> None:
    address = memory.put(b"abc").address
    store = ReadOnly(memory)
    assert store.location == memory.location
    assert store.get(address) == b"abc"
    assert store.stat(address).size == 3
    with store.open(address) as stream:
        assert stream.read() == b"abc"
    for payload in (b"abc", b"new"):
        with pytest.raises(ArtifactError) as caught:
            store.put(payload)
        assert caught.value.code == "store.read_only"
    assert list(store.addresses()) == [address]


def test_verifying_finds_what_a_broken_store_gives(memory: MemoryStore) -> None:
    address = memory.put(b"abc").address
    plan = [Fault("get", 2, Harm.FLIP, bit=5), Fault("get", 4, Harm.FLIP)]
    believed = Faulty(memory, plan)
    assert [believed.get(address) for _ in range(2)] == [b"abc", b"Abc"]
    checked = Verifying(Faulty(memory, plan))
    assert checked.get(address) == b"abc"
    with pytest.raises(ArtifactError) as caught:
        checked.get(address)
    assert caught.value.code == "object.corrupt"
    with checked.open(address) as stream:
        assert stream.read() == b"abc"
    with pytest.raises(ArtifactError):
        checked.open(address)


def test_counting_counts_also_what_fails_and_from_threads(memory: MemoryStore) -> None:
    store = Counting(memory)
    assert store.counts == dict.fromkeys(CALLS, 0)
    address = store.put(b"abc").address
    with pytest.raises(ArtifactError):
        store.get(Address.of(b"absent"))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: store.get(address), range(100)))
    store.open(address).close()
    store.stat(address)
    list(store.addresses())
    assert store.counts == {"put": 1, "get": 101, "open": 1, "stat": 1, "addresses": 1}
    store.counts["put"] = 9
    assert store.counts["put"] == 1


def test_the_class_of_retention_is_passed_on(memory: MemoryStore) -> None:
    layers: list[Store] = [
        Verifying(memory),
        Counting(memory),
        Faulty(memory),
        Restricted(memory, lambda _: True),
        Overlay(MemoryStore(), memory),
    ]
    for number, layer in enumerate(layers):
        stored = layer.put(str(number).encode(), retention=RetentionClass.DISCARD)
        assert stored.retention is RetentionClass.DISCARD


# --- planned faults ----------------------------------------------------------------------


def test_a_planned_failure_happens_at_its_call_and_stores_nothing(memory: MemoryStore) -> None:
    store = Faulty(memory, [Fault("put", 2, Harm.FULL), Fault("stat", 1, Harm.FAIL)])
    first = store.put(b"first").address
    with pytest.raises(ArtifactError) as full:
        store.put(b"second")
    assert full.value.code == "disk.full"
    assert full.value.exit_code is Exit.ENVIRONMENT
    with pytest.raises(ArtifactError) as failing:
        store.stat(first)
    assert failing.value.code == "disk.failing"
    assert list(memory.addresses()) == [first]
    assert store.put(b"second").created
    assert store.stat(first).size == 5


@pytest.mark.parametrize("call", CALLS)
def test_each_kind_of_call_can_fail(memory: MemoryStore, call: str) -> None:
    address = memory.put(b"abc").address
    store = Faulty(memory, [Fault(call, 1, Harm.FAIL)])
    calls = {
        "put": lambda: store.put(b"x"),
        "get": lambda: store.get(address),
        "open": lambda: store.open(address).close(),
        "stat": lambda: store.stat(address),
        "addresses": lambda: list(store.addresses()),
    }
    with pytest.raises(ArtifactError) as caught:
        calls[call]()
    assert caught.value.code == "disk.failing"
    for again in calls.values():
        again()


@given(
    st.binary(min_size=1, max_size=100), st.integers(0, 10_000), st.sampled_from(["get", "open"])
)
def test_a_flip_turns_exactly_one_bit(payload: bytes, bit: int, call: str) -> None:
    memory = MemoryStore()
    address = memory.put(payload).address
    store = Faulty(memory, [Fault(call, 1, Harm.FLIP, bit=bit)])
    if call == "get":
        given_out = store.get(address)
    else:
        with store.open(address) as stream:
            given_out = stream.read()
    assert len(given_out) == len(payload)
    turned = [one ^ other for one, other in zip(given_out, payload, strict=True)]
    assert sum(byte.bit_count() for byte in turned) == 1
    assert memory.get(address) == payload


def test_a_seed_gives_the_same_plan_everywhere() -> None:
    def plan(seed: int) -> tuple[Fault, ...]:
        return seeded_faults(
            seed, calls=["put", "get"], harms=[Harm.FAIL, Harm.FLIP], count=3, nth_max=50
        )

    assert plan(7) == plan(7)
    assert len({plan(seed) for seed in range(20)}) == 20
    assert plan(1) == (
        Fault("put", 43, Harm.FLIP, bit=273878280),
        Fault("put", 23, Harm.FLIP, bit=846885249),
        Fault("put", 2, Harm.FLIP, bit=464680100),
    )


def _put_and_die(folder: str, harm: Harm) -> None:
    store = Faulty(LocalStore(Path(folder)), [Fault("put", 2, harm)])
    store.put(b"first")
    store.put(b"second")


@pytest.mark.parametrize(("harm", "kept"), [(Harm.KILL_BEFORE, 1), (Harm.KILL_AFTER, 2)])
def test_a_planned_kill_is_a_real_one(tmp_path: Path, harm: Harm, kept: int) -> None:
    store = LocalStore.create(tmp_path / "store")
    spawn = multiprocessing.get_context("spawn")
    writer = spawn.Process(target=_put_and_die, args=(store.location, harm))
    writer.start()
    writer.join()
    assert writer.exitcode == -signal.SIGKILL
    expected = sorted([Address.of(b"first"), Address.of(b"second")][:kept])
    assert sorted(store.addresses()) == expected


# --- what replay may see -----------------------------------------------------------------


@pytest.mark.parametrize("as_set", [True, False])
def test_restricted_shows_only_what_is_allowed(memory: MemoryStore, *, as_set: bool) -> None:
    snapshot = memory.put(b"snapshot").address
    result = memory.put(b"result").address
    absent = Address.of(b"absent")
    store = Restricted(memory, {snapshot} if as_set else lambda address: address == snapshot)
    assert store.get(snapshot) == b"snapshot"
    assert store.stat(snapshot).size == 8
    with store.open(snapshot) as stream:
        assert stream.read() == b"snapshot"
    for address in (result, absent):
        for ask in (store.get, store.open, store.stat):
            with pytest.raises(ArtifactError) as caught:
                ask(address)
            assert caught.value.code == "object.hidden"
            assert caught.value.place == str(address)
    assert list(store.addresses()) == [snapshot]


def test_an_overlay_reads_through_and_writes_above(memory: MemoryStore) -> None:
    base = MemoryStore("base")
    below = base.put(b"below").address
    store = Overlay(ReadOnly(base), memory)
    above = store.put(b"above").address
    assert store.get(below) == b"below"
    assert store.get(above) == b"above"
    assert store.stat(below).size == store.stat(above).size == 5
    with store.open(below) as stream:
        assert stream.read() == b"below"
    assert store.put(b"below").created
    assert list(store.addresses()) == sorted([below, above])
    assert list(base.addresses()) == [below]
    assert "base" in store.location
    with pytest.raises(ArtifactError) as caught:
        store.get(Address.of(b"absent"))
    assert caught.value.code == "object.missing"


def test_replay_sees_a_hidden_result_only_after_it_made_it_again(memory: MemoryStore) -> None:
    original = MemoryStore("run")
    snapshot = original.put(b"snapshot").address
    result = original.put(b"result").address
    store = Overlay(Restricted(original, {snapshot}), memory)
    assert store.get(snapshot) == b"snapshot"
    with pytest.raises(ArtifactError) as caught:
        store.get(result)
    assert caught.value.code == "object.hidden"
    assert store.put(b"result").address == result
    assert store.get(result) == b"result"


def test_damage_in_the_upper_store_does_not_fall_through(memory: MemoryStore) -> None:
    base = MemoryStore("base")
    address = base.put(b"abc").address
    memory.put(b"abc")
    memory._objects[address] = b"abd"
    with pytest.raises(ArtifactError) as caught:
        Overlay(base, memory).get(address)
    assert caught.value.code == "object.corrupt"


def test_trouble_in_the_upper_store_does_not_fall_through(memory: MemoryStore) -> None:
    address = memory.put(b"abc").address
    store = Overlay(memory, Faulty(MemoryStore("upper"), [Fault("stat", 1, Harm.FAIL)]))
    with pytest.raises(ArtifactError) as caught:
        store.get(address)
    assert caught.value.code == "disk.failing"
    assert store.get(address) == b"abc"


@given(st.sets(st.binary(max_size=4)), st.sets(st.binary(max_size=4)))
def test_an_overlay_lists_the_union_once_and_in_order(below: set[bytes], above: set[bytes]) -> None:
    base, upper = MemoryStore("base"), MemoryStore("upper")
    for payload in below:
        base.put(payload)
    for payload in above:
        upper.put(payload)
    expected = sorted(Address.of(payload) for payload in below | above)
    assert list(Overlay(base, upper).addresses()) == expected
