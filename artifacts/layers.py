"""Stores over stores, with the same interface: each adds one rule and passes the rest on."""

from __future__ import annotations

import errno
import heapq
import os
import random
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO, Final, Literal

from tieout.artifacts.address import Address
from tieout.artifacts.checked import checked, stream
from tieout.artifacts.errors import ArtifactError, Exit
from tieout.artifacts.pieces import Payload
from tieout.artifacts.store import ObjectStat, RetentionClass, Store, Stored

Call = Literal["put", "get", "open", "stat", "addresses"]
CALLS: Final[tuple[Call, ...]] = ("put", "get", "open", "stat", "addresses")


class _Layer:
    """Passes every call on to the inner store."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    @property
    def location(self) -> str:
        return self._inner.location

    def put(self, payload: Payload, *, retention: RetentionClass = RetentionClass.RETAIN) -> Stored:
        return self._inner.put(payload, retention=retention)

    def get(self, address: Address) -> bytes:
        return self._inner.get(address)

    def open(self, address: Address) -> BinaryIO:
        return self._inner.open(address)

    def scan(self, address: Address) -> AbstractContextManager[BinaryIO]:
        return self._inner.scan(address)

    def stat(self, address: Address) -> ObjectStat:
        return self._inner.stat(address)

    def addresses(self) -> Iterator[Address]:
        return self._inner.addresses()


class ReadOnly(_Layer):
    """Refuses every put with ArtifactError store.read_only."""

    def put(self, payload: Payload, *, retention: RetentionClass = RetentionClass.RETAIN) -> Stored:
        del retention
        raise ArtifactError(
            "store.read_only",
            f"this store was opened for reading; {len(payload)} bytes were not stored",
            place=self.location,
            remedy="Use a command that runs or snapshots to add to the store.",
        )


class Verifying(_Layer):
    """Checks again what the inner store gives, for an inner store that is not to be believed."""

    def get(self, address: Address) -> bytes:
        return checked(address, self._inner.get(address), location=self.location)

    def open(self, address: Address) -> BinaryIO:
        return stream(self.get(address))

    def scan(self, address: Address) -> AbstractContextManager[BinaryIO]:
        return self.open(address)


class Counting(_Layer):
    """Counts the calls of each kind; safe for threads."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._lock = threading.Lock()
        self._counts: dict[Call, int] = dict.fromkeys(CALLS, 0)

    @property
    def counts(self) -> dict[Call, int]:
        """How often each call was made so far; a copy."""
        with self._lock:
            return dict(self._counts)

    def put(self, payload: Payload, *, retention: RetentionClass = RetentionClass.RETAIN) -> Stored:
        self._count("put")
        return self._inner.put(payload, retention=retention)

    def get(self, address: Address) -> bytes:
        self._count("get")
        return self._inner.get(address)

    def open(self, address: Address) -> BinaryIO:
        self._count("open")
        return self._inner.open(address)

    def scan(self, address: Address) -> AbstractContextManager[BinaryIO]:
        """Counted as a get: all of it is read."""
        self._count("get")
        return self._inner.scan(address)

    def stat(self, address: Address) -> ObjectStat:
        self._count("stat")
        return self._inner.stat(address)

    def addresses(self) -> Iterator[Address]:
        self._count("addresses")
        return self._inner.addresses()

    def _count(self, call: Call) -> int:
        with self._lock:
            self._counts[call] += 1
            return self._counts[call]


class Harm(StrEnum):
    """What a planned fault does."""

    FAIL = "fail"  # ArtifactError disk.failing, nothing done
    FULL = "full"  # ArtifactError disk.full, nothing done
    FLIP = "flip"  # one bit of what get or open gives is turned
    KILL_BEFORE = "kill before"  # SIGKILL to this process, nothing done
    KILL_AFTER = "kill after"  # SIGKILL to this process, the call done and not answered


@dataclass(frozen=True, slots=True)
class Fault:
    """Harm to the nth call of a kind, counted from 1. bit: which one FLIP turns, modulo size."""

    call: Call
    nth: int
    harm: Harm
    bit: int = 0


def seeded_faults(
    seed: int, *, calls: Iterable[Call], harms: Iterable[Harm], count: int, nth_max: int
) -> tuple[Fault, ...]:
    """`count` faults drawn from these kinds, the same for the same seed on any machine."""
    source = random.Random(seed)  # noqa: S311  a plan of faults, not a secret

    def below(bound: int) -> int:
        # Only random() is promised to give the same sequence in every release of Python.
        return int(source.random() * bound)

    kinds, effects = tuple(calls), tuple(harms)
    return tuple(
        Fault(
            call=kinds[below(len(kinds))],
            nth=1 + below(nth_max),
            harm=effects[below(len(effects))],
            bit=below(1 << 30),
        )
        for _ in range(count)
    )


class Faulty(Counting):
    """Does the planned harm, for tests; without a plan it is the inner store.

    FLIP gives bytes that are not what the address names, as a store with a broken check
    would: put `Verifying` over it to see them found. A plan with two faults for one call
    does the first.
    """

    def __init__(self, inner: Store, faults: Iterable[Fault] = ()) -> None:
        super().__init__(inner)
        self._faults: dict[tuple[Call, int], Fault] = {}
        for fault in faults:
            self._faults.setdefault((fault.call, fault.nth), fault)

    def put(self, payload: Payload, *, retention: RetentionClass = RetentionClass.RETAIN) -> Stored:
        fault = self._before("put", wanted_bytes=len(payload))
        stored = self._inner.put(payload, retention=retention)
        self._after(fault)
        return stored

    def get(self, address: Address) -> bytes:
        fault = self._before("get")
        payload = _flipped(self._inner.get(address), fault)
        self._after(fault)
        return payload

    def open(self, address: Address) -> BinaryIO:
        fault = self._before("open")
        opened = self._inner.open(address)
        if fault is not None and fault.harm is Harm.FLIP:
            with opened:
                return stream(_flipped(opened.read(), fault))
        self._after(fault)
        return opened

    def scan(self, address: Address) -> AbstractContextManager[BinaryIO]:
        """A get, with the harm that is planned for it."""
        return stream(self.get(address))

    def stat(self, address: Address) -> ObjectStat:
        fault = self._before("stat")
        found = self._inner.stat(address)
        self._after(fault)
        return found

    def addresses(self) -> Iterator[Address]:
        self._after(self._before("addresses"))
        return self._inner.addresses()

    def _before(self, call: Call, *, wanted_bytes: int = 0) -> Fault | None:
        fault = self._faults.get((call, self._count(call)))
        if fault is None:
            return None
        if fault.harm is Harm.KILL_BEFORE:
            os.kill(os.getpid(), signal.SIGKILL)
        if fault.harm in (Harm.FAIL, Harm.FULL):
            full = fault.harm is Harm.FULL
            number = errno.ENOSPC if full else errno.EIO
            raise ArtifactError(
                "disk.full" if full else "disk.failing",
                f"planned fault at {call} {fault.nth}: {os.strerror(number)}, "
                f"{wanted_bytes} bytes wanted",
                place=self.location,
                remedy="Free some space and run again." if full else "Check the disk.",
                exit_code=Exit.ENVIRONMENT,
            )
        return fault

    @staticmethod
    def _after(fault: Fault | None) -> None:
        if fault is not None and fault.harm is Harm.KILL_AFTER:
            os.kill(os.getpid(), signal.SIGKILL)


class Restricted(_Layer):
    """Shows only the objects that are allowed; the rest is ArtifactError object.hidden.

    Used by replay, which must make the results again and so must not see them. Whether a
    hidden object exists is not told either. `put` passes.
    """

    def __init__(
        self, inner: Store, allowed: AbstractSet[Address] | Callable[[Address], bool]
    ) -> None:
        super().__init__(inner)
        self._allowed = allowed.__contains__ if isinstance(allowed, AbstractSet) else allowed

    def get(self, address: Address) -> bytes:
        return self._inner.get(self._permitted(address))

    def open(self, address: Address) -> BinaryIO:
        return self._inner.open(self._permitted(address))

    def scan(self, address: Address) -> AbstractContextManager[BinaryIO]:
        return self._inner.scan(self._permitted(address))

    def stat(self, address: Address) -> ObjectStat:
        return self._inner.stat(self._permitted(address))

    def addresses(self) -> Iterator[Address]:
        return (address for address in self._inner.addresses() if self._allowed(address))

    def _permitted(self, address: Address) -> Address:
        if not self._allowed(address):
            raise ArtifactError(
                "object.hidden",
                "this object may not be read here: it has to be made again",
                place=str(address),
                remedy="Look at the first step that differs; what it made has another address.",
                exit_code=Exit.DOES_NOT_HOLD,
            )
        return address


class Overlay(_Layer):
    """Reads from the upper store, else from the base; writes only into the upper store."""

    def __init__(self, base: Store, upper: Store) -> None:
        super().__init__(upper)
        self._base = base

    @property
    def location(self) -> str:
        return f"{self._inner.location} over {self._base.location}"

    def get(self, address: Address) -> bytes:
        return self._holder(address).get(address)

    def open(self, address: Address) -> BinaryIO:
        return self._holder(address).open(address)

    def scan(self, address: Address) -> AbstractContextManager[BinaryIO]:
        return self._holder(address).scan(address)

    def stat(self, address: Address) -> ObjectStat:
        return self._holder(address).stat(address)

    def addresses(self) -> Iterator[Address]:
        latest: Address | None = None
        for address in heapq.merge(self._inner.addresses(), self._base.addresses()):
            if address != latest:
                yield address
            latest = address

    def _holder(self, address: Address) -> Store:
        """Which of the two has it; the base when neither does, to say so."""
        try:
            self._inner.stat(address)
        except ArtifactError as error:
            if error.code != "object.missing":
                raise
            return self._base
        return self._inner


def _flipped(payload: bytes, fault: Fault | None) -> bytes:
    """The payload with the planned bit turned, when the fault is a FLIP and there is a bit."""
    if fault is None or fault.harm is not Harm.FLIP or not payload:
        return payload
    turned = bytearray(payload)
    bit = fault.bit % (8 * len(turned))
    turned[bit // 8] ^= 1 << (bit % 8)
    return bytes(turned)
