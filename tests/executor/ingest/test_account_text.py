"""The account of a file's lines, as it is said to people."""

from __future__ import annotations

import json
from types import SimpleNamespace

from tieout.artifacts.memory import MemoryStore
from tieout.executor.ingest.account import KINDS
from tieout.pinned_text import LINE_KINDS, pinned_lines


def test_kinds_are_those_of_the_account():
    assert LINE_KINDS == KINDS


def test_kinds_are_said_in_the_order_of_the_file():
    counts = dict.fromkeys(sorted(KINDS), 11) | {"data": 2, "all": 57}
    manifest = {
        "kind": "table",
        "declaration": "{}",
        "file": {"name": "a.csv"},
        "table": {"rows": 2, "control_totals": []},
        "reading": {"lines": counts, "encoding": "utf-8", "delimiter": ",", "columns": []},
    }
    store = MemoryStore()
    address = store.put(json.dumps(manifest).encode()).address
    pinned = SimpleNamespace(name="a", manifest=address, fresh=True, rows=2)
    said = pinned_lines(store, pinned)[1]
    expected = "11 preamble + 11 header + 2 data + 11 blank + 11 footer + 11 rejected"
    assert f"57 lines = {expected}; 2 rows" in said
