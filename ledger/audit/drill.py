"""From an address to what it is, what it came from and what used it; from a row to its line.

Reads the ledger and the store alone: no engine, no model. Candidate source rows are those that
carry the same key values as the row looked at; that they suffice for the figure is not shown
here (lineage will).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tieout.artifacts.address import Address
from tieout.artifacts.store import Store
from tieout.artifacts.table import HIDDEN_PREFIX, ORDINAL, TABLE_MEDIA
from tieout.artifacts.table_reader import TableReader
from tieout.artifacts.values import parse_row_key
from tieout.ledger.errors import Exit, LedgerError
from tieout.ledger.log import Entry, Log
from tieout.ledger.row import Input, Kind

PREFIX_MIN: Final = 8
SOURCE_ROWS_MAX: Final = 50
DEPTH_MAX: Final = 20
MANIFEST_MEDIA: Final = "application/vnd.tieout.snapshot+json"


@dataclass(frozen=True, slots=True)
class Use:
    """A ledger row that names an artifact. role: what it is to the row."""

    index: int
    run: str
    subject: str
    kind: str
    role: str


@dataclass(frozen=True, slots=True)
class Origin:
    """What an artifact is: who made it, who used it."""

    address: Address
    media_type: str
    size: int
    made_by: tuple[Use, ...]
    used_by: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A row of a snapshot and where it stands in the file as received.

    lines: first and last physical line, from 1; raw: address of the file's bytes.
    """

    source: str
    file: str
    raw: str
    table: Address
    row: str
    lines: tuple[int, int]
    bytes: tuple[int, int]
    text: str
    cells: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Rows of one source that carry a result row's key values. how: the values compared."""

    source: str
    table: Address
    how: tuple[tuple[str, str | None], ...]
    total: int
    lines: tuple[SourceLine, ...]


@dataclass(slots=True)
class Drill:
    """Looks through a ledger and its store. The ledger is read once."""

    log: Log
    store: Store
    _made: dict[Address, list[Use]] = field(default_factory=dict)
    _used: dict[Address, list[Use]] = field(default_factory=dict)
    _kinds: dict[Address, tuple[str, int]] = field(default_factory=dict)
    _manifests: dict[Address, Address] = field(default_factory=dict)
    _entries: dict[Address, list[Entry]] = field(default_factory=dict)
    _tables: dict[Address, TableReader] = field(default_factory=dict)
    _latest: str = ""
    _snapshots: list[Address] = field(default_factory=list)

    def __post_init__(self) -> None:
        for entry in self.log.entries():
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        row = entry.row
        if row.kind is Kind.RUN:
            self._latest = row.trace_id
        output = row.deterministic_output
        if output is not None:
            self._note(self._made, output.address, entry, "output")
            self._kinds[output.address] = (output.media_type, output.size)
            self._entries.setdefault(output.address, []).append(entry)
            if row.kind is Kind.SNAPSHOT:
                self._snapshots.append(output.address)
                for part in row.attachments:
                    if part.role == "table":
                        self._manifests.setdefault(part.address, output.address)
        for part in row.attachments:
            self._note(self._made, part.address, entry, part.role)
            self._kinds.setdefault(part.address, (part.media_type, part.size))
        for item in row.inputs:
            self._note(self._used, item.address, entry, item.role)

    @staticmethod
    def _note(where: dict[Address, list[Use]], address: Address, entry: Entry, role: str) -> None:
        row = entry.row
        use = Use(entry.index, row.trace_id, row.subject, str(row.kind), role)
        where.setdefault(address, []).append(use)

    def latest_run(self) -> str:
        """The id of the newest run, "" when there is none."""
        return self._latest

    def resolve(self, text: str) -> Address:
        """The address of a whole or shortened name (8 or more digits).

        Raises LedgerError show.not_found, show.ambiguous.
        """
        digits = text.removeprefix("blake3:").lower()
        if len(digits) == 64:
            return Address.parse(f"blake3:{digits}")
        known = {*self._kinds, *self._used}
        found = sorted(a for a in known if len(digits) >= PREFIX_MIN and a.hex.startswith(digits))
        if len(found) == 1:
            return found[0]
        raise LedgerError(
            "show.ambiguous" if found else "show.not_found",
            f"{len(found)} artifacts begin with {text!r}",
            place=", ".join(str(a) for a in found[:4]),
            remedy=f"Give {PREFIX_MIN} or more digits of an address that `tieout log` lists.",
            exit_code=Exit.REFUSED,
        )

    def origin(self, address: Address) -> Origin:
        """What the ledger says of an artifact. Raises LedgerError show.not_found."""
        made, used = self._made.get(address, []), self._used.get(address, [])
        if not made and not used:
            raise LedgerError(
                "show.not_found",
                "no ledger row names this artifact",
                place=str(address),
                remedy="`tieout log` lists what there is; documents are named by their snapshot.",
            )
        media, size = self._kinds.get(address, ("", self.store.stat(address).size))
        return Origin(address, media, size, tuple(made), tuple(used))

    def manifests(self) -> tuple[Address, ...]:
        """The snapshots' manifests, oldest first."""
        return tuple(self._snapshots)

    def made_by(self, address: Address, *, run: str = "", subject: str = "") -> Entry | None:
        """The entry whose output this is: equal results share one address, so the one of this
        run and question first, else the first there is."""
        entries = self._entries.get(address, [])
        near = [
            entry
            for entry in entries
            if entry.row.trace_id == run and entry.row.subject.startswith(subject)
        ]
        return next(iter([*near, *entries]), None)

    def table(self, address: Address) -> TableReader:
        """A table artifact, read once."""
        if address not in self._tables:
            self._tables[address] = TableReader(self.store.get(address))
        return self._tables[address]

    def is_table(self, address: Address) -> bool:
        """Whether the ledger calls it a table."""
        return self._kinds.get(address, ("", 0))[0] == TABLE_MEDIA

    def manifest_of(self, table: Address) -> Mapping[str, Any] | None:
        """The snapshot's manifest whose table this is, or None."""
        address = self._manifests.get(table)
        if address is None:
            return None
        manifest: Mapping[str, Any] = json.loads(self.store.get(address))
        return manifest

    def position(self, table: Address, row: str) -> int:
        """The position (from 0) of the row of this key.

        Raises LedgerError show.no_row, ArtifactError row_key.malformed.
        """
        reader = self.table(table)
        wanted = parse_row_key(row)
        if isinstance(wanted, int):
            found = [wanted] if wanted < reader.rows else []
        else:
            found = reader.positions(wanted)
        if len(found) == 1:
            return found[0]
        raise LedgerError(
            "show.no_row",
            f"the row {row!r} selects {len(found)} of {reader.rows} rows",
            place=str(table),
            remedy="Give the row's key as the report prints it.",
        )

    def line(self, table: Address, position: int) -> SourceLine | None:
        """Where a snapshot's row stands in the file; None for a table that is no snapshot."""
        manifest = self.manifest_of(table)
        if manifest is None:
            return None
        reader = self.table(table)
        ordinal = reader.value(position, ORDINAL)
        records = self.table(Address.parse(manifest["records"]["address"]))
        (record,) = records.positions({"row": str(ordinal)})
        first, last, start, end = (
            int(records.text(record, name) or 0)
            for name in ("line_first", "line_last", "byte_start", "byte_end")
        )
        raw = manifest["file"]["address"]
        body = self.store.get(Address.parse(raw))[start:end]
        encoding = manifest["reading"]["encoding"]
        return SourceLine(
            source=manifest["source"],
            file=manifest["file"]["name"],
            raw=raw,
            table=table,
            row=reader.row_key(position),
            lines=(first, last),
            bytes=(start, end),
            text=_decoded(body, encoding),
            cells=self.cells(table, position),
        )

    def cells(self, table: Address, position: int) -> tuple[tuple[str, str | None], ...]:
        """The visible cells of a row as (column, text)."""
        reader = self.table(table)
        return tuple(
            (c.name, reader.text(position, c.name))
            for c in reader.columns
            if not c.name.startswith(HIDDEN_PREFIX)
        )

    def sources(self, table: Address, position: int) -> tuple[SourceRows, ...]:
        """Rows of every source below a result that carry this row's key values; last the sources
        of which no row can be told from another."""
        found = self._sources(table, position, 0, set())
        return tuple(sorted(found, key=lambda rows: not rows.how))

    def _sources(
        self, table: Address, position: int | None, depth: int, seen: set[tuple[Address, Any]]
    ) -> Iterator[SourceRows]:
        """position: None for a table of which no row can be told from another."""
        entry = self.made_by(table)
        if entry is None or depth > DEPTH_MAX:
            return
        for item in entry.row.inputs:
            role, _, name = item.role.partition(":")
            if role != "table":
                continue
            every: list[dict[str, str | None]] = [{}]
            shared = every if position is None else self._shared(entry, table, position, name, item)
            for wanted in shared:
                place = (item.address, tuple(sorted(wanted.items(), key=str)))
                if place not in seen:
                    seen.add(place)
                    yield from self._matching(name, item.address, wanted, depth, seen)

    def _matching(
        self,
        name: str,
        table: Address,
        wanted: dict[str, str | None],
        depth: int,
        seen: set[tuple[Address, Any]],
    ) -> Iterator[SourceRows]:
        """The rows with these values of a snapshot, or what lies below them in a result."""
        found = self.table(table).positions(wanted)
        if self.manifest_of(table) is not None:
            lines = [self.line(table, p) for p in found[:SOURCE_ROWS_MAX]]
            yield SourceRows(
                source=name,
                table=table,
                how=tuple(wanted.items()),
                total=len(found),
                lines=tuple(line for line in lines if line is not None),
            )
        elif not wanted and len(found) > 1:
            # Nothing in common: each row by itself would claim lines that it has no part in.
            yield from self._sources(table, None, depth + 1, seen)
        else:
            for below in found[:SOURCE_ROWS_MAX]:
                yield from self._sources(table, below, depth + 1, seen)

    def _shared(
        self, entry: Entry, table: Address, position: int, name: str, item: Input
    ) -> list[dict[str, str | None]]:
        """Values of this row that the table below it carries too: plain copies of its columns,
        else key columns of the same name.

        More than one where a query names the table twice, so that one column was copied with
        two values: then each value of its first such column, the key first.
        """
        reader, other = self.table(table), self.table(item.address)
        names = {c.name.lower(): c for c in other.columns}
        copied: dict[str, list[str | None]] = {}
        for origin in self._validation(entry).get("origins", []):
            pairs = [source for source in origin["sources"] if source[0] == name]
            if not origin["operation"] and len(pairs) == 1 and pairs[0][1].lower() in names:
                values = copied.setdefault(names[pairs[0][1].lower()].name, [])
                value = reader.text(position, origin["name"])
                if value not in values:
                    values.append(value)
        several = [column for column, values in copied.items() if len(values) > 1]
        if several:
            first = min(several, key=lambda column: column not in other.key)
            return [{first: value} for value in copied[first]]
        wanted: dict[str, str | None] = {column: values[0] for column, values in copied.items()}
        if wanted:
            return [wanted]
        for column in reader.columns:
            match = names.get(column.name.lower())
            if column.name in reader.key and match is not None and match.type == column.type:
                wanted[match.name] = reader.text(position, column.name)
        return [wanted]

    def _validation(self, entry: Entry) -> dict[str, Any]:
        for part in entry.row.attachments:
            if part.role == "validation":
                document: dict[str, Any] = json.loads(self.store.get(part.address))
                return document
        return {}

    def part_text(self, entry: Entry, role: str) -> str | None:
        """The text of an attachment of an entry, or None."""
        for part in entry.row.attachments:
            if part.role == role:
                return self.store.get(part.address).decode("utf-8", "replace")
        return None


def _decoded(body: bytes, encoding: str) -> str:
    """The line as text for a reader; the bytes are cited, so replacement is harmless here."""
    try:
        return body.decode(encoding, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")
