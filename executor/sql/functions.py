"""Which engine functions a query may name: the committed classes, denied when absent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tieout.executor.sql.dialects import CLOCKS


@dataclass(frozen=True, slots=True)
class FunctionClass:
    """One entry: kind (scalar, aggregate, macro, table, ...), class, policy."""

    kind: str
    group: str
    policy: str


TABLE_KINDS = frozenset({"table", "table_macro", "pragma"})

CODES = {
    "filesystem": "sql.file_access",
    "external_resource": "sql.file_access",
    "extension": "sql.file_access",
    "clock": "sql.clock",
    "clock_overload": "sql.clock",
    "random": "sql.random",
    "random_state": "sql.random",
    "sequence": "sql.write",
    "write": "sql.write",
    "setting": "sql.setting",
    "pragma": "sql.setting",
    "catalog": "sql.catalog",
    "session": "sql.catalog",
    "secrets": "sql.catalog",
    "storage_state": "sql.catalog",
    "layout_or_statistics": "sql.catalog",
}
"""The refusal code of a denied class; every other class is sql.function."""

REASON_OF_GROUP = {
    "approximate": "approximate",
    "collation": "collation",
    "engine_hash": "hash_order",
    "hash_order": "hash_order",
    "names_as_values_of_rows": "unordered_aggregate",
}
"""Classes whose refusal is a reason of the verdict (verdict.REASONS), where the code says none."""
COLLATIONS = ("collate_", "icu_collate_")
"""How the functions begin that compare by a collation; there is one for each language."""


@cache
def classes() -> dict[str, tuple[FunctionClass, ...]]:
    """Lower-case name to its entries; read once from the file beside this one."""
    raw = json.loads(files(__package__).joinpath("functions.json").read_text("utf-8"))
    found: dict[str, list[FunctionClass]] = {}
    for label, kinds in raw["classes"].items():
        group, policy = label.split(":")
        for kind, names in kinds.items():
            for name in names:
                entry = FunctionClass(kind=kind, group=group, policy=policy)
                found.setdefault(name.lower(), []).append(entry)
    return {name: tuple(entries) for name, entries in found.items()}


def of_name(name: str, *, table: bool) -> tuple[FunctionClass, ...]:
    """The entries of a name, table functions apart from the functions of expressions."""
    entries = classes().get(name.lower(), ())
    return tuple(e for e in entries if (e.kind in TABLE_KINDS) == table)


def is_open(name: str, *, table: bool = False) -> bool:
    """Whether the name may appear at all: an entry exists and none of them is denied."""
    entries = of_name(name, table=table)
    return bool(entries) and all(e.policy != "deny" for e in entries)


def groups(name: str) -> frozenset[str]:
    """The classes that a name has in expressions."""
    return frozenset(e.group for e in of_name(name, table=False))


def code_of(name: str, *, table: bool) -> str:
    """The refusal code for a name that is not open."""
    entries = of_name(name, table=table) or of_name(name, table=not table)
    for entry in entries:
        if entry.group in CODES:
            return CODES[entry.group]
    return "sql.clock" if name.lower() in CLOCKS else "sql.function"


def reason_of(name: str) -> str:
    """The reason of the verdict (verdict.REASONS) for a refused name; "" where its code says it."""
    if name.lower().startswith(COLLATIONS):
        return "collation"
    found = (REASON_OF_GROUP.get(e.group, "") for e in of_name(name, table=False))
    return next(filter(None, found), "")
