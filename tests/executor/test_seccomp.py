"""The filter of each processor as a program, run by a small machine of our own: no ARM is needed."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from tieout.executor import landlock, seccomp


def verdict(program, number: int, *arguments: int, audit: int) -> int:
    """A machine for the few instructions that are used: the filter's answer to one call."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    memory = struct.pack("<iIQ6Q", number, audit, 0, *(a & (2**64 - 1) for a in padded))
    place, held = 0, 0
    while True:
        code, true, false, constant = program[place]
        place += 1
        if code == seccomp.LOAD:
            (held,) = struct.unpack_from("<I", memory, constant)
        elif code == seccomp.RETURN:
            return constant
        else:
            tests = {
                seccomp.EQUAL: held == constant,
                seccomp.AT_LEAST: held >= constant,
                seccomp.ANY_BIT: bool(held & constant),
            }
            place += true if tests[code] else false


@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES.values(), ids=seccomp.ARCHITECTURES)
def test_the_filter_of_each_processor(machine):
    numbers, audit = machine.numbers, machine.audit
    made = {
        "reading": seccomp.reading(machine, 77),
        "keeping": seccomp.keeping(machine, 77),
        "closed": seccomp.closed(machine),
    }
    assert all(max(true, false) < 256 for p in made.values() for _, true, false, _ in p)
    cases = [
        ("read", (), "ALLOW ALLOW ALLOW"),
        ("openat", (0, 0, 0), "ALLOW ALLOW REFUSE"),
        ("openat", (0, 0, 0o101), "REFUSE ALLOW REFUSE"),
        ("openat", (0, 0, 2), "REFUSE ALLOW REFUSE"),
        ("unlinkat", (), "REFUSE ALLOW ALLOW"),
        ("newfstatat", (0, 0, 0, 0x1000), "ALLOW ALLOW ALLOW"),
        ("newfstatat", (0, 0, 0, 0), "ALLOW ALLOW REFUSE"),
        ("statx", (), "ALLOW ALLOW REFUSE"),
        ("mmap", (0, 4096, 3), "ALLOW ALLOW ALLOW"),
        ("mmap", (0, 4096, 5), "REFUSE REFUSE ALLOW"),
        ("mprotect", (0, 4096, 4), "REFUSE REFUSE ALLOW"),
        ("tgkill", (77, 77, 6), "ALLOW ALLOW ALLOW"),
        ("tgkill", (78, 78, 6), "REFUSE REFUSE ALLOW"),
        ("prlimit64", (0, 0, 0, 1), "ALLOW ALLOW ALLOW"),
        ("prlimit64", (0, 0, 1 << 32, 0), "REFUSE REFUSE ALLOW"),
        ("prlimit64", (5, 0, 0, 1), "REFUSE REFUSE ALLOW"),
        ("fcntl", (0, 8, 1), "REFUSE REFUSE ALLOW"),
    ]
    for name, arguments, wanted in cases:
        found = [verdict(p, numbers[name], *arguments, audit=audit) for p in made.values()]
        assert found == [getattr(seccomp, w) for w in wanted.split()], (name, arguments)
    for program in made.values():
        assert verdict(program, numbers["read"], audit=0x40000003) == seccomp.KILL
        assert verdict(program, 0x40000000, audit=audit) == seccomp.KILL
    known = set(numbers.values()) | {machine.seccomp}
    for number in set(range(600)) - known:
        assert verdict(made["reading"], number, audit=audit) == seccomp.REFUSE
        assert verdict(made["keeping"], number, audit=audit) == seccomp.REFUSE


@pytest.mark.parametrize(
    ("machine", "header"),
    [
        (seccomp.X86_64, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        (seccomp.AARCH64, "/usr/include/asm-generic/unistd.h"),
    ],
)
def test_the_call_numbers_are_those_of_the_kernel(machine, header):
    if not Path(header).exists():
        pytest.skip("no kernel headers here")
    text = Path(header).read_text()
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)
    known = {"newfstatat" if n == "fstatat" else n: int(v) for n, v in found}
    assert {n: known[n] for n in machine.numbers} == machine.numbers
    assert known["seccomp"] == machine.seccomp


@pytest.mark.parametrize(
    ("version", "count"), [(1, 13), (2, 14), (3, 15), (4, 15), (5, 16), (6, 16), (7, 16)]
)
def test_every_right_of_an_abi_is_handled(version, count):
    assert landlock.file_rights(version) == (1 << count) - 1
