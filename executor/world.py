"""What a question may see: its pinned sources, and the results of its earlier steps.

Loaded from snapshot manifests in the store; nothing else of the workspace exists for a plan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.store import Store
from tieout.artifacts.table import HIDDEN_PREFIX, Column
from tieout.artifacts.table_reader import TableReader
from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.record import Receipt
from tieout.executor.search import Document
from tieout.executor.snapshot import SNAPSHOT_FORMAT
from tieout.executor.sql.validate import ColumnOrigin, GrantedColumn, GrantedTable, RowOrigin
from tieout.ledger.canon import Json, encode


@dataclass(frozen=True, slots=True)
class PinnedDocument:
    """A document of a text snapshot. All addresses are texts."""

    name: str
    raw: str
    text: str
    map: str
    title: str
    published: str | None


@dataclass(frozen=True, slots=True)
class Pinned:
    """A source as its snapshot's manifest states it."""

    name: str
    kind: Literal["table", "text"]
    manifest: Address
    note: str = ""
    file: str = ""
    raw: str = ""
    table: Address | None = None
    records: str = ""
    rows: int = 0
    columns: tuple[Column, ...] = ()
    column_notes: Mapping[str, str] = field(default_factory=dict)
    domains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    totals: tuple[tuple[str, str], ...] = ()
    rejected: int = 0
    documents: tuple[PinnedDocument, ...] = ()
    index: str = ""
    index_manifest: str = ""


def load_pinned(store: Store, manifest: Address) -> Pinned:
    """Read a snapshot's manifest. Raises ExecutorError snapshot.unreadable."""
    payload = store.get(manifest)
    try:
        document = json.loads(payload)
        make = {"table": _pinned_table, "text": _pinned_text}[document["kind"]]
        pinned = make(document, manifest) if document["format"] == SNAPSHOT_FORMAT else None
    except (ValueError, KeyError, TypeError, ArtifactError) as error:
        raise _no_manifest(manifest) from error
    if pinned is None:
        raise _no_manifest(manifest)
    return pinned


def _no_manifest(manifest: Address) -> ExecutorError:
    return ExecutorError(
        "snapshot.unreadable",
        "the artifact is not a snapshot's manifest of this format",
        place=str(manifest),
        remedy="Run `tieout verify`; pin the source again with `tieout snapshot`.",
        exit_code=Exit.OTHER_FORMAT,
    )


def _pinned_table(document: dict[str, Any], manifest: Address) -> Pinned:
    table, reading = document["table"], document["reading"]
    declared = json.loads(document["declaration"]).get("column", {})
    return Pinned(
        name=document["source"],
        kind="table",
        manifest=manifest,
        note=document["note"],
        file=document["file"]["name"],
        raw=document["file"]["address"],
        table=Address.parse(table["address"]),
        records=document["records"]["address"],
        rows=table["rows"],
        columns=tuple(Column(c["name"], c["type"]) for c in reading["columns"]),
        column_notes={c["name"]: c["note"] for c in reading["columns"] if c["note"]},
        domains={n: tuple(c["domain"]) for n, c in declared.items() if "domain" in c},
        ranges={n: (c["range"][0], c["range"][1]) for n, c in declared.items() if "range" in c},
        key=tuple(table["key"]),
        totals=tuple((name, value) for name, value in table["control_totals"]),
        rejected=reading["lines"]["rejected"],
    )


def _pinned_text(document: dict[str, Any], manifest: Address) -> Pinned:
    return Pinned(
        name=document["source"],
        kind="text",
        manifest=manifest,
        note=document["note"],
        rows=len(document["documents"]),
        documents=tuple(
            PinnedDocument(d["name"], d["raw"], d["text"], d["map"], d["title"], d["published"])
            for d in document["documents"]
        ),
        index=document["index"],
        index_manifest=document["index_manifest"],
    )


def is_known(published: str | None, as_of: str | None) -> bool:
    """Whether a document was published by then; one without a date is not known to be."""
    return as_of is None or (published is not None and published <= as_of)


def catalog_text(sources: Mapping[str, Pinned], as_of: str | None = None) -> bytes:
    """What a model is told of the sources it may use; canonical JSON.

    as_of: documents that were not published by then are not even named.
    """
    described: list[Json] = []
    for name in sorted(sources):
        source = sources[name]
        entry: dict[str, Json] = {"source": name, "kind": source.kind, "rows": source.rows}
        if source.note:
            entry["note"] = source.note
        if source.kind == "table":
            entry["columns"] = [
                [c.name, c.type, source.column_notes.get(c.name, "")] for c in source.columns
            ]
            if source.domains:
                entry["domains"] = [[n, list(v)] for n, v in sorted(source.domains.items())]
            if source.ranges:
                entry["ranges"] = [[n, *v] for n, v in sorted(source.ranges.items())]
            entry["key"] = [n for n in source.key if not n.startswith(HIDDEN_PREFIX)]
            entry["control_totals"] = [list(total) for total in source.totals]
            entry["rejected_lines"] = source.rejected
        else:
            known = [d for d in source.documents if is_known(d.published, as_of)]
            entry["rows"] = len(known)
            entry["documents"] = [[d.name, d.title, d.published or ""] for d in known]
        described.append(entry)
    return encode({"catalog": described})


@dataclass(frozen=True, slots=True)
class StepResult:
    """A step that was performed: its receipt, and what later steps and figures need of it.

    ok: there is a table. origins: per column, what flowed into its values; row_origin: what
    decided which rows there are, and how many. tied: the columns in which an order that was added
    to it, or to a step that it reads, chose among rows that tie.
    """

    id: str
    verb: str
    receipt: Receipt
    ok: bool
    code: str = ""
    columns: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()
    origins: Mapping[str, ColumnOrigin] = field(default_factory=dict)
    row_origin: RowOrigin | None = None
    rows: int = 0
    complete: bool = True
    source: str = ""
    tied: frozenset[str] = frozenset()


def _handed_on(
    column: Column, origin: ColumnOrigin, tables: Mapping[str, GrantedTable]
) -> GrantedColumn:
    """A column of a step; a plain copy keeps what its source column is declared to hold."""
    if origin.operation == "" and len(origin.sources) == 1:
        ((table, name),) = origin.sources
        given = tables[table].columns if table in tables else ()
        for source in given:
            if source.name == name and source.type == column.type:
                return GrantedColumn(column.name, column.type, origin, source.domain, source.range)
    return GrantedColumn(column.name, column.type, origin)


@dataclass(slots=True)
class World:
    """The sources and steps of one question. as_of: ISO date set by the question, or None.

    reserved: names of the catalog's other sources; a step may not pass itself off as one.
    """

    store: Store
    sources: Mapping[str, Pinned]
    as_of: str | None = None
    reserved: frozenset[str] = frozenset()
    steps: dict[str, StepResult] = field(default_factory=dict)
    _tables: dict[Address, TableReader] = field(default_factory=dict, repr=False)
    _documents: dict[tuple[str, str], Document] = field(default_factory=dict, repr=False)

    def granted(self) -> dict[str, GrantedTable]:
        """The tables that SQL may name: table sources and earlier results."""
        tables = {
            name: GrantedTable(
                name=name,
                columns=tuple(
                    GrantedColumn(
                        c.name,
                        c.type,
                        domain=source.domains.get(c.name, ()),
                        range=source.ranges.get(c.name, ("", "")),
                    )
                    for c in source.columns
                ),
                key=tuple(k for k in source.key if not k.startswith(HIDDEN_PREFIX)),
            )
            for name, source in self.sources.items()
            if source.kind == "table"
        }
        for step in self.steps.values():
            if step.ok:
                tables[step.id] = GrantedTable(
                    name=step.id,
                    columns=tuple(
                        _handed_on(c, step.origins[c.name], tables) for c in step.columns
                    ),
                    key=step.key,
                    rows=step.row_origin,
                )
        return tables

    def address(self, table: str) -> Address:
        """The address of a granted table's artifact."""
        step = self.steps.get(table)
        if step is not None:
            return step.receipt.parts["output"]
        address = self.sources[table].table
        if address is None:
            raise AssertionError(f"{table} is a text source and was granted as a table")
        return address

    def failed(self, name: str) -> StepResult | None:
        """The earlier step of this name that has no result, if it is one."""
        step = self.steps.get(name)
        return step if step is not None and not step.ok else None

    def reader(self, address: Address) -> TableReader:
        """A stored table, read once."""
        if address not in self._tables:
            self._tables[address] = TableReader(self.store.get(address))
        return self._tables[address]

    def document(self, source: Pinned, name: str) -> Document:
        """A document of a text source with its text, read from the store."""
        pinned = next((d for d in source.documents if d.name == name), None)
        if pinned is None:
            raise ExecutorError(
                "source.unknown_document",
                f"source {source.name!r} has no document {name!r}",
                place=source.name,
                remedy="Name a document of the catalog.",
            )
        place = (name, pinned.text)
        if place not in self._documents:
            text = self.store.get(Address.parse(pinned.text)).decode("utf-8")
            self._documents[place] = Document(
                name=name,
                address=pinned.text,
                raw=pinned.raw,
                text=text,
                published=pinned.published,
            )
        return self._documents[place]
