"""The corpus as values: each query with its class, what the gate does with it, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CORPUS: Final = Path(__file__).with_name("corpus.sql")
HEADER: Final = re.compile(r"^-- ([a-z]+-\d+) \| ([^|]+) \| (\w+) \|(.*)$")


@dataclass(frozen=True, slots=True)
class Query:
    """expect: function, rewritten or refused. reasons: names that its verdict gives, sorted."""

    id: str
    kind: str
    expect: str
    reasons: tuple[str, ...]
    sql: str


def corpus() -> list[Query]:
    """In the order of the file."""
    found: list[Query] = []
    header: re.Match[str] | None = None
    for line in CORPUS.read_text("utf-8").splitlines():
        if line.startswith("--"):
            header = HEADER.match(line)
        elif line and header is not None:
            identity, kind, expect, listed = (part.strip() for part in header.groups())
            reasons = tuple(sorted(name.strip() for name in listed.split(",") if name.strip()))
            found.append(Query(identity, kind, expect, reasons, line))
            header = None
    return found
