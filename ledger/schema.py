"""The shape of a ledger's SQLite file, version 1 (docs/FORMAT.md §7).

The entry is a BLOB of exactly the bytes that were hashed; every other column that speaks of
its content is generated from it, so no column can say something else than the entry. The
triggers are guard rails against accidents, no protection: whoever owns the file can drop them.
`gapless` is not optional: without it INSERT OR REPLACE would pass the other two.
"""

from __future__ import annotations

from typing import Final

# "TIEO" in the file's header, so that `file` and we can tell it from any other database.
APPLICATION_ID: Final = 0x5449454F
FORMAT_VERSION: Final = 1

_GENERATED: Final = (
    ("req", "TEXT NOT NULL", "req"),
    ("kind", "TEXT", "kind"),
    ("trace_id", "TEXT", "trace_id"),
    ("subject", "TEXT", "subject"),
    ("step_sequence", "INT", "step_sequence"),
    ("attempt", "INT", "attempt"),
    ("tool_name", "TEXT", "tool_name"),
    ("output_address", "TEXT", "deterministic_output.address"),
    ("execution_timestamp", "TEXT", "execution_timestamp"),
    ("outcome_status", "TEXT", "outcome.status"),
    ("outcome_code", "TEXT", "outcome.code"),
)

TABLE: Final = (
    "CREATE TABLE entry(\n"
    "  idx INTEGER PRIMARY KEY,\n"
    "  entry BLOB NOT NULL,\n"
    "  previous BLOB NOT NULL CHECK(length(previous) = 32),\n"
    "  sha256_hash BLOB NOT NULL CHECK(length(sha256_hash) = 32),\n"
    + ",\n".join(
        f"  {name} {type_} GENERATED ALWAYS AS"
        f" (json_extract(CAST(entry AS TEXT), '$.{path}')) VIRTUAL"
        for name, type_, path in _GENERATED
    )
    + "\n) STRICT"
)

OBJECTS: Final[tuple[tuple[str, str, str], ...]] = (
    ("table", "entry", TABLE),
    ("index", "entry_req", "CREATE UNIQUE INDEX entry_req ON entry(req)"),
    ("index", "entry_trace", "CREATE INDEX entry_trace ON entry(trace_id, idx)"),
    (
        "trigger",
        "no_upd",
        (
            "CREATE TRIGGER no_upd BEFORE UPDATE ON entry"
            " BEGIN SELECT RAISE(ABORT, 'append-only'); END"
        ),
    ),
    (
        "trigger",
        "no_del",
        (
            "CREATE TRIGGER no_del BEFORE DELETE ON entry"
            " BEGIN SELECT RAISE(ABORT, 'append-only'); END"
        ),
    ),
    (
        "trigger",
        "gapless",
        (
            "CREATE TRIGGER gapless BEFORE INSERT ON entry"
            " WHEN NEW.idx IS NOT (SELECT coalesce(max(idx) + 1, 0) FROM entry)"
            " BEGIN SELECT RAISE(ABORT, 'gap'); END"
        ),
    ),
    (
        "trigger",
        "chained",
        (
            "CREATE TRIGGER chained BEFORE INSERT ON entry"
            " WHEN NEW.previous IS NOT coalesce("
            "(SELECT sha256_hash FROM entry ORDER BY idx DESC LIMIT 1), zeroblob(32))"
            " BEGIN SELECT RAISE(ABORT, 'not chained'); END"
        ),
    ),
)
