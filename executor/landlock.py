"""Landlock by plain system calls: which files, ports and processes this process may still reach.

Source: linux/landlock.h up to ABI 7; later kernels know these rights too. A ruleset only takes
away: whatever it handles and no rule allows is denied, for this process and all that it starts.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

ABI_MAX: Final = 7
CREATE_RULESET: Final = 444
ADD_RULE: Final = 445
RESTRICT_SELF: Final = 446
"""The numbers are the same on every architecture."""
VERSION_FLAG: Final = 1
RULE_PATH_BENEATH: Final = 1
PR_SET_NO_NEW_PRIVS: Final = 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << n for n in range(6))
MAKE_REG: Final = 1 << 8
TRUNCATE: Final = 1 << 14
FILE_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 5: 16}
"""From this ABI on: how many rights over files there are, counted from the lowest bit."""
NET_FROM_ABI: Final = 4
NET_RIGHTS: Final = 0b11  # bind and connect of TCP
SCOPES_FROM_ABI: Final = 6
SCOPES: Final = 0b11  # abstract Unix sockets and signals of processes outside
READING: Final = READ_FILE
KEEPING: Final = READ_FILE | WRITE_FILE | READ_DIR | REMOVE_FILE | MAKE_REG | TRUNCATE


def no_new_privileges(libc: ctypes.CDLL) -> None:
    """No program started from here gains rights. Raises OSError."""
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")


def abi(libc: ctypes.CDLL) -> int:
    """The kernel's Landlock ABI, as far as it is known here; 0: the kernel has none."""
    found = libc.syscall(CREATE_RULESET, None, 0, VERSION_FLAG)
    return max(0, min(int(found), ABI_MAX))


def file_rights(version: int) -> int:
    """Every right over files that this ABI handles, as bits."""
    count = max(bits for since, bits in FILE_RIGHTS.items() if since <= version)
    return (1 << count) - 1


def restrict(
    libc: ctypes.CDLL, version: int, *, readable: Iterable[Path], kept: Path | None
) -> None:
    """Deny all but reading the named files and, with kept, writing files in that folder.

    version: of `abi`, at least 1. Raises OSError.
    """
    files = file_rights(version)
    attributes = struct.pack("=Q", files)
    if version >= NET_FROM_ABI:
        attributes += struct.pack("=Q", NET_RIGHTS)
    if version >= SCOPES_FROM_ABI:
        attributes += struct.pack("=Q", SCOPES)
    ruleset = libc.syscall(CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    try:
        for path in readable:
            _allow(libc, ruleset, path, READING)
        if kept is not None:
            _allow(libc, ruleset, kept, KEEPING & files)
        if libc.syscall(RESTRICT_SELF, ruleset, 0) != 0:
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path, rights: int) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, opened)
        if libc.syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, rule, 0) != 0:
            raise OSError(ctypes.get_errno(), "landlock_add_rule")
    finally:
        os.close(opened)
