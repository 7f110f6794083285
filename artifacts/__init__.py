"""Bytes with names: addresses, stores, canonical tables, texts. Knows no meaning."""

from __future__ import annotations

from importlib import import_module
from typing import Final

_WHERE: Final = {
    "Address": "address",
    "ArtifactError": "errors",
    "CheckedRow": "row_proof",
    "RetentionClass": "store",
    "RowRoot": "rows",
    "RowTree": "rows",
    "Store": "store",
    "Stored": "store",
    "TableArtifact": "table",
    "TableReader": "table_reader",
    "TextSnapshot": "text",
    "canonical": "table",
    "check_row": "row_proof",
    "create_store": "opening",
    "open_store": "opening",
    "prove_row": "rows",
    "row_root": "rows",
}
__all__ = sorted(_WHERE)  # noqa: PLE0605  (names and their modules stand in one place)


def __getattr__(name: str) -> object:
    if name in _WHERE:
        return getattr(import_module(f"tieout.artifacts.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
