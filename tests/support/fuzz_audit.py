"""What the children of the layers' server did, read from a trace of the kernel's calls."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

OPENS = ("open", "openat", "openat2", "creat")
FORKS = ("clone", "clone3", "fork", "vfork")
CHANGES = (
    *("unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "link"),
    *("linkat", "symlink", "symlinkat", "truncate", "chmod", "fchmodat", "mknod", "mknodat"),
    *("chown", "fchownat", "mount", "setxattr"),
)
REACHES = ("socket", "connect", "bind", "sendto", "execve", "execveat", "ptrace", "memfd_create")
TRACED = (*OPENS, *FORKS, *CHANGES, *REACHES)
STRACE = (
    "strace",
    "-f",
    "-qq",
    "--seccomp-bpf",
    "-e",
    "signal=none",
    "-e",
    f"trace={','.join(TRACED)}",
)
READABLE = (
    "/proc/",
    "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
    "/usr/",
    "/lib",
    sys.prefix,
    sys.base_prefix,
)
"""What Python and the engine read for themselves: their own files, their own limits."""
NEVER = ("/environ", "/mem", "/maps", "/fd/")

_CALL = re.compile(r"^(?P<pid>\d+) +(?P<call>\w+)\((?P<given>.*)\) += (?P<result>-?\d+)")
_CUT = re.compile(r"^(?P<pid>\d+) +(?P<call>\w+)\((?P<given>.*) <unfinished \.\.\.>$")
_REST = re.compile(
    r"^(?P<pid>\d+) +<\.\.\. (?P<call>\w+) resumed>(?P<given>.*)\) += (?P<result>-?\d+)"
)


def _calls(trace: Path) -> Iterator[tuple[int, str, str, int]]:
    """Process, call, arguments and result of each call that ended."""
    begun: dict[tuple[int, str], str] = {}
    with trace.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if found := _CUT.match(line):
                begun[int(found["pid"]), found["call"]] = found["given"]
            elif found := _REST.match(line) or _CALL.match(line):
                pid, call = int(found["pid"]), found["call"]
                given = begun.pop((pid, call), "") + found["given"]
                yield pid, call, given, int(found["result"])


def audit(trace: Path) -> list[str]:
    """Everything a child did that it must not do: empty when all is well. Failed calls are none."""
    found: list[str] = []
    server: int | None = None
    for pid, call, given, result in _calls(trace):
        server = pid if server is None else server
        if pid == server or result < 0:
            continue
        if call in OPENS:
            path = given.split('"')[1] if '"' in given else ""
            writes = any(flag in given for flag in ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"))
            own = path.startswith(READABLE) and not any(n in path for n in NEVER)
            listed = "O_DIRECTORY" in given and path in sys.path  # a search for a module
            if writes or not (own or listed):
                found.append(f"{call}({given})")
        elif call not in FORKS or "CLONE_THREAD" not in given:
            found.append(f"{call}({given})")
    return found
