"""A seccomp filter by plain system calls: the few kernel entries a locked engine needs, no others.

An allow-list: a call that is not listed answers EPERM, whatever a later kernel adds; no process
and no thread is started, no program, no socket. Source: linux/seccomp.h, linux/filter.h; the calls
were found by strace over the tests of this room.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from dataclasses import dataclass
from typing import Final, TypeAlias

Instruction: TypeAlias = "tuple[int, int, int, int]"
"""Operation, jump if true, jump if false, constant: struct sock_filter."""

LOAD, AND, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
ALLOW: Final = 0x7FFF0000
REFUSE: Final = 0x00050000 | errno.EPERM
KILL: Final = 0x80000000
AT_NUMBER, AT_ARCHITECTURE, AT_ARGUMENTS, ARGUMENT_BYTES = 0, 4, 16, 8
X32_BIT: Final = 0x40000000
"""x86-64 takes a second set of numbers, those of x32, through the same door."""
SET_MODE_FILTER: Final = 1

OPEN_FOR_CHANGE: Final = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000 | 0o20000000
"""O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND, and the bit of O_TMPFILE."""
PROT_EXEC: Final = 4
AT_EMPTY_PATH: Final = 0x1000
FCNTL_COMMANDS: Final = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1033, 1034)
"""Duplicate, flags, record locks, seals; none that directs signals."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """A processor's AUDIT_ARCH word, the number of seccomp, and its call numbers by name."""

    audit: int
    seccomp: int
    numbers: dict[str, int]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _numbers(table: str) -> dict[str, int]:
    pairs = (entry.split("=") for entry in table.split())
    return {name: int(number) for name, number in pairs}


PLAIN: Final = _words("""
    read write close lseek fstat munmap brk mremap madvise futex pread64 pwrite64 readv writev
    rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack sched_yield sched_getaffinity getpid
    gettid getuid geteuid getgid getegid getrandom clock_gettime clock_getres gettimeofday
    clock_nanosleep nanosleep sendto sendmsg recvfrom recvmsg getsockname getpeername
    poll ppoll dup dup3 ftruncate fallocate fsync fdatasync memfd_create set_robust_list rseq
    getrusage times uname
    sysinfo membarrier getcpu restart_syscall exit exit_group
""")
LOOKING: Final = _words(
    "stat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat"
)
KEEPING: Final = _words("unlink unlinkat openat getdents64 getcwd")

X86_64: Final = Architecture(
    audit=0xC000003E,
    seccomp=317,
    numbers=_numbers("""
        read=0 write=1 close=3 stat=4 fstat=5 lstat=6 poll=7 lseek=8 mmap=9 mprotect=10
        munmap=11 brk=12 rt_sigaction=13 rt_sigprocmask=14 rt_sigreturn=15 pread64=17
        pwrite64=18 readv=19 writev=20 access=21 sched_yield=24 mremap=25 madvise=28 dup=32
        nanosleep=35 getpid=39 sendto=44 recvfrom=45 sendmsg=46 recvmsg=47
        getsockname=51 getpeername=52 exit=60
        uname=63 fcntl=72 fsync=74 fdatasync=75 ftruncate=77 getcwd=79 unlink=87 readlink=89
        gettimeofday=96 getrusage=98 sysinfo=99 times=100 getuid=102 getgid=104 geteuid=107
        getegid=108 sigaltstack=131 gettid=186 futex=202 sched_getaffinity=204 getdents64=217
        restart_syscall=219 clock_gettime=228 clock_getres=229 clock_nanosleep=230
        exit_group=231 tgkill=234 openat=257 newfstatat=262 unlinkat=263 readlinkat=267
        faccessat=269 ppoll=271 set_robust_list=273 fallocate=285 dup3=292 prlimit64=302
        getcpu=309 getrandom=318 memfd_create=319 membarrier=324 statx=332 rseq=334
        faccessat2=439
    """),
)
AARCH64: Final = Architecture(
    audit=0xC00000B7,
    seccomp=277,
    numbers=_numbers("""
        dup=23 dup3=24 fcntl=25 unlinkat=35 ftruncate=46 fallocate=47 faccessat=48 openat=56
        close=57 getcwd=17 getdents64=61 lseek=62 read=63 write=64 readv=65 writev=66 pread64=67
        pwrite64=68 ppoll=73 readlinkat=78 newfstatat=79 fstat=80 fsync=82 fdatasync=83 exit=93
        exit_group=94 futex=98 set_robust_list=99 nanosleep=101 clock_gettime=113
        clock_getres=114 clock_nanosleep=115 sched_getaffinity=123 sched_yield=124
        restart_syscall=128 tgkill=131 sigaltstack=132 rt_sigaction=134 rt_sigprocmask=135
        rt_sigreturn=139 times=153 uname=160 getrusage=165 getcpu=168 gettimeofday=169
        getpid=172 getuid=174 geteuid=175 getgid=176 getegid=177 gettid=178 sysinfo=179
        getsockname=204 getpeername=205 sendto=206 recvfrom=207 sendmsg=211 recvmsg=212
        brk=214 munmap=215 mremap=216
        mmap=222 mprotect=226 madvise=233 prlimit64=261 getrandom=278 memfd_create=279
        membarrier=283 statx=291 rseq=293 faccessat2=439
    """),
)
ARCHITECTURES: Final = {"x86_64": X86_64, "aarch64": AARCH64}


def architecture() -> Architecture | None:
    """Of the machine this runs on, or None when its numbers are not known here."""
    return ARCHITECTURES.get(platform.machine())


def reading(machine: Architecture, pid: int) -> list[Instruction]:
    """While tables are loaded: files are opened for reading only; Landlock says which."""
    found = _common(machine, pid)
    for name in LOOKING:
        found += _plain(machine, name)
    found += _when(machine, "openat", _without_bits(2, OPEN_FOR_CHANGE))
    found += [(EQUAL, 0, 1, machine.seccomp), (RETURN, 0, 0, ALLOW)]  # for `closed`
    return [*found, (RETURN, 0, 0, REFUSE)]


def keeping(machine: Architecture, pid: int) -> list[Instruction]:
    """While an engine file is written, and no model's text is read: Landlock says where."""
    found = _common(machine, pid)
    for name in (*LOOKING, *KEEPING):
        found += _plain(machine, name)
    return [*found, (RETURN, 0, 0, REFUSE)]


def closed(machine: Architecture) -> list[Instruction]:
    """On top of `reading`, before a model's text is read: no path at all, only open files."""
    found = _gate(machine)
    found += _when(machine, "newfstatat", _with_bits(3, AT_EMPTY_PATH))  # how libc says fstat
    for name in ("openat", *(n for n in LOOKING if n != "newfstatat")):
        if name in machine.numbers:
            found += [(EQUAL, 0, 1, machine.numbers[name]), (RETURN, 0, 0, REFUSE)]
    found += [(EQUAL, 0, 1, machine.seccomp), (RETURN, 0, 0, REFUSE)]
    return [*found, (RETURN, 0, 0, ALLOW)]


def install(libc: ctypes.CDLL, machine: Architecture, program: list[Instruction]) -> None:
    """Add a filter to this thread; no_new_privs must be set. Raises OSError."""
    code = b"".join(struct.pack("=HBBI", *line) for line in program)
    kept = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HxxxxxxP", len(program), ctypes.addressof(kept))
    if libc.syscall(machine.seccomp, SET_MODE_FILTER, 0, header) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def _gate(machine: Architecture) -> list[Instruction]:
    """Calls by another architecture's door end the process; then the number is loaded."""
    return [
        (LOAD, 0, 0, AT_ARCHITECTURE),
        (EQUAL, 1, 0, machine.audit),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, AT_NUMBER),
        (AT_LEAST, 0, 1, X32_BIT),
        (RETURN, 0, 0, KILL),
    ]


def _common(machine: Architecture, pid: int) -> list[Instruction]:
    found = _gate(machine)
    for name in PLAIN:
        found += _plain(machine, name)
    found += _when(machine, "mmap", _without_bits(2, PROT_EXEC))
    found += _when(machine, "mprotect", _without_bits(2, PROT_EXEC))
    found += _when(machine, "fcntl", _one_of(1, FCNTL_COMMANDS))
    found += _when(machine, "tgkill", _one_of(0, (pid,)))  # abort() signals itself
    found += _when(machine, "prlimit64", _only_asks())
    return found


def _plain(machine: Architecture, name: str) -> list[Instruction]:
    number = machine.numbers.get(name)  # some calls exist on one architecture only
    return [] if number is None else [(EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW)]


def _when(machine: Architecture, name: str, body: list[Instruction]) -> list[Instruction]:
    return [(EQUAL, 0, len(body), machine.numbers[name]), *body]


def _low(argument: int) -> Instruction:
    """The low word: all that the kernel reads of an int; both machines are little-endian."""
    return (LOAD, 0, 0, AT_ARGUMENTS + ARGUMENT_BYTES * argument)


def _high(argument: int) -> Instruction:
    return (LOAD, 0, 0, AT_ARGUMENTS + ARGUMENT_BYTES * argument + 4)


def _without_bits(argument: int, bits: int) -> list[Instruction]:
    return [
        _low(argument),
        (ANY_BIT, 0, 1, bits),
        (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW),
    ]


def _with_bits(argument: int, bits: int) -> list[Instruction]:
    return [
        _low(argument),
        (ANY_BIT, 0, 1, bits),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE),
    ]


def _one_of(argument: int, values: tuple[int, ...]) -> list[Instruction]:
    found = [_low(argument)]
    for value in values:
        found += [(EQUAL, 0, 1, value), (RETURN, 0, 0, ALLOW)]
    return [*found, (RETURN, 0, 0, REFUSE)]


def _only_asks() -> list[Instruction]:
    """prlimit64(0, which, NULL, old): this process reads a limit of its own."""
    return [
        _low(0),
        (EQUAL, 0, 5, 0),
        _low(2),
        (EQUAL, 0, 3, 0),
        _high(2),
        (EQUAL, 0, 1, 0),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE),
    ]
