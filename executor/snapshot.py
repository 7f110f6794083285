"""Pinning a source: its bytes as received, what was read from them, and how.

A snapshot is named by its manifest, an artifact that says which raw bytes, which reading rules
(declared or decided, with the reason) and which table or texts belong together. Building it is
a function of the raw bytes and the catalog alone, so that replay builds it again and compares.

Source: DESIGN §4, §6, §10; docs/FORMAT.md §8.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow.compute as pc

from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.pieces import address_of
from tieout.artifacts.table import ORDINAL, TABLE_MEDIA, TableArtifact, canonical
from tieout.artifacts.text import MAP_MEDIA, TEXT_MEDIA, TextSnapshot, snapshot_text
from tieout.executor.catalog import Source, SourceTable
from tieout.executor.declared_columns import check_declared
from tieout.executor.errors import ExecutorError
from tieout.executor.ingest.reading import (
    ColumnDeclaration,
    CsvDeclaration,
    CsvReading,
    read_csv,
)
from tieout.executor.receive import Received
from tieout.executor.record import BYTES_MEDIA, JSON_MEDIA, Made
from tieout.executor.search import Document, build_index
from tieout.ledger.canon import Json, encode

SNAPSHOT_FORMAT: Final = "tieout.snapshot/1"
MANIFEST_MEDIA: Final = "application/vnd.tieout.snapshot+json"
TEXT_ENDINGS: Final[Mapping[str, str]] = {
    ".txt": "text/plain",
    ".md": "text/plain",
    ".html": "text/html",
    ".htm": "text/html",
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A source pinned: the manifest and every artifact it names, not stored yet.

    parts: named by the ledger row too. loose: named by the manifest alone, since a row has a
    bounded length and a folder may hold many documents.
    """

    source: str
    kind: str
    manifest: Made
    parts: tuple[Made, ...]
    loose: tuple[Made, ...]
    rows: int

    @property
    def address(self) -> Address:
        """The address of the manifest, which names the snapshot."""
        return address_of(self.manifest.payload)


def build(source: Source, received: Sequence[Received]) -> Snapshot:
    """The snapshot of these bytes under the catalog's declarations.

    Raises ExecutorError as reading does, with the source's name and file in the place.
    """
    if source.kind == "table":
        return _build_table(source, received[0])
    return _build_text(source, received)


def _build_table(source: Source, received: Received) -> Snapshot:
    try:
        reading = read_csv(received.payload, declaration(source.table), name=source.name)
        check_declared(source, reading)
    except ExecutorError as error:
        # The reader's remedies name the source, as tieout.toml does; people look for the file.
        error.place = f"{received.name}, source {error.place}"
        raise
    key = tuple(source.table.key) or (ORDINAL,)
    try:
        table = canonical(reading.table, key=key)
    except ArtifactError as error:
        raise _bad_key(source, received, reading, error) from error
    records = canonical(reading.records, key=("record",))
    manifest = encode(_table_manifest(source, received, reading, table, records))
    return Snapshot(
        source=source.name,
        kind="table",
        manifest=Made(
            role="output",
            payload=manifest,
            media_type=MANIFEST_MEDIA,
            rows=table.rows,
            totals=table.totals,
        ),
        parts=(
            Made("raw", received.payload, BYTES_MEDIA),
            Made("table", table.payload, TABLE_MEDIA),
            Made("records", records.payload, TABLE_MEDIA),
        ),
        loose=(),
        rows=table.rows,
    )


def declared_text(source: Source) -> str:
    """What the catalog declares of the source, as JSON text: a manifest rebuilds from itself.

    A text and not an object, since column names may be in any alphabet.
    """
    document = source.table.model_dump(mode="json", exclude_defaults=True)
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def source_of(manifest: bytes) -> tuple[Source, tuple[tuple[str, Address], ...]]:
    """The source as it was declared, and its files' names and raw addresses, of a manifest."""
    document = json.loads(manifest)
    table = SourceTable.model_validate_json(document["declaration"])
    if document["kind"] == "table":
        files = [(document["file"]["name"], document["file"]["address"])]
    else:
        files = [(entry["name"], entry["raw"]) for entry in document["documents"]]
    source = Source(document["source"], table)
    return source, tuple((name, Address.parse(address)) for name, address in files)


def declaration(table: SourceTable) -> CsvDeclaration:
    """The catalog's declarations in the reader's terms."""
    return CsvDeclaration(
        encoding=table.encoding,
        delimiter=table.delimiter,
        quote=table.quote,
        header_line=table.header_line,
        footer=tuple(table.footer),
        footer_lines=table.footer_lines,
        wide_rows=table.wide_rows,
        rejected=table.rejected,
        columns={
            name: ColumnDeclaration(
                type=column.type.replace(" ", "") if column.type else None,
                decimal=column.decimal,
                grouping=column.grouping,
                negative=column.negative,
                date_order=column.date_order,
                format=column.format,
                empty=tuple(column.empty),
            )
            for name, column in table.column.items()
        },
    )


def _bad_key(
    source: Source, received: Received, reading: CsvReading, error: ArtifactError
) -> ExecutorError:
    lines = ""
    if error.code == "table.key_not_unique":
        lines = f"; lines {_repeated_lines(reading, source.table.key)}"
    return ExecutorError(
        error.code.replace("table.", "source."),
        error.message + lines,
        place=f"{source.name}: {received.name}",
        remedy=f"Correct the file, or `key` of [source.{source.name}] in tieout.toml; "
        "without a key each row keeps its place in the file.",
    )


def _repeated_lines(reading: CsvReading, key: Sequence[str]) -> str:
    """The first lines of the file on which the first repeated key stands."""
    table = reading.table
    groups = table.group_by(list(key), use_threads=False).aggregate(
        [([], "count_all"), (ORDINAL, "min")]
    )
    repeated = groups.filter(pc.greater(groups["count_all"], 1))
    first = pc.min(repeated[f"{ORDINAL}_min"]).as_py()
    position = table.column(ORDINAL).to_pylist().index(first)
    wanted = [table.column(name)[position].as_py() for name in key]
    columns = [table.column(name).to_pylist() for name in key]
    rows = {
        table.column(ORDINAL)[i].as_py()
        for i, values in enumerate(zip(*columns, strict=True))
        if list(values) == wanted
    }
    records = reading.records.to_pylist()
    lines = [str(r["line_first"]) for r in records if r["row"] in rows]
    return " and ".join(lines[:4])


def _table_manifest(
    source: Source,
    received: Received,
    reading: CsvReading,
    table: TableArtifact,
    records: TableArtifact,
) -> dict[str, Json]:
    return {
        "format": SNAPSHOT_FORMAT,
        "kind": "table",
        "source": source.name,
        "declaration": declared_text(source),
        "note": source.table.note,
        "file": {
            "name": received.name,
            "size": len(received.payload),
            "address": str(Address.of(received.payload)),
        },
        "reading": _reading(source, reading),
        "table": {
            "address": str(table.address),
            "content_digest": table.digest,
            "rows": table.rows,
            "key": list(table.key),
            "control_totals": [list(total) for total in table.totals],
        },
        "records": {
            "address": str(records.address),
            "content_digest": records.digest,
            "rows": records.rows,
        },
    }


def _reading(source: Source, reading: CsvReading) -> dict[str, Json]:
    """How the file was read: every rule that was declared or decided, every line."""
    account = reading.account
    return {
        "encoding": reading.encoding,
        "bom": reading.bom,
        "delimiter": reading.delimiter,
        "quote": reading.quote,
        "newline": reading.newline,
        "header_line": reading.header_line,
        "reasons": dict(reading.reasons),
        "columns": [
            {
                "name": column.name,
                "header": column.header,
                "type": column.type,
                "rule": dict(column.rule),
                "reason": column.reason,
                "nulls": column.nulls,
                "control_total": column.control_total,
                "note": _column_note(source, column.name),
            }
            for column in reading.columns
        ],
        "lines": {
            "all": account.lines,
            "preamble": account.preamble,
            "header": account.header,
            "data": account.data,
            "blank": account.blank,
            "footer": account.footer,
            "rejected": account.rejected,
        },
        "rejects": [
            {"line": reject.line, "reason": reject.reason} for reject in reading.rejects[:1_000]
        ],
    }


def _column_note(source: Source, name: str) -> str:
    column = source.table.column.get(name)
    return column.note if column else ""


def _build_text(source: Source, received: Sequence[Received]) -> Snapshot:
    loose: list[Made] = []
    entries: list[Json] = []
    documents: list[Document] = []
    published = _published(source, received)
    for file in received:
        text = snapshot_text(
            file.payload, media=_media(source, file.name), charset=source.table.charset
        )
        body, text_map = text.text_bytes(), text.map_bytes()
        raw = Made("raw", file.payload, BYTES_MEDIA)
        loose += [raw, Made("text", body, TEXT_MEDIA), Made("map", text_map, MAP_MEDIA)]
        date = published.get(file.name)
        documents.append(
            Document(
                name=file.name,
                address=str(Address.of(body)),
                raw=str(Address.of(file.payload)),
                text=text.text,
                published=date,
            )
        )
        entries.append(_document_entry(file, text, body, text_map, date))
    index_manifest, index = build_index(documents)
    parts = (
        Made("index_manifest", index_manifest, JSON_MEDIA),
        Made("index", index, JSON_MEDIA),
    )
    manifest: dict[str, Json] = {
        "format": SNAPSHOT_FORMAT,
        "kind": "text",
        "source": source.name,
        "declaration": declared_text(source),
        "note": source.table.note,
        "documents": entries,
        "index": str(Address.of(index)),
        "index_manifest": str(Address.of(index_manifest)),
    }
    made = Made("output", encode(manifest), MANIFEST_MEDIA, rows=len(entries))
    return Snapshot(source.name, "text", made, parts, _distinct(loose), len(entries))


def _distinct(parts: Sequence[Made]) -> tuple[Made, ...]:
    """Parts by role and content once: two equal documents are one object."""
    return tuple({(part.role, part.payload): part for part in parts}.values())


def _document_entry(
    file: Received, text: TextSnapshot, body: bytes, text_map: bytes, published: str | None
) -> Json:
    return {
        "name": file.name,
        "size": len(file.payload),
        "raw": str(Address.of(file.payload)),
        "text": str(Address.of(body)),
        "map": str(Address.of(text_map)),
        "media": text.media,
        "encoding": text.encoding,
        "encoding_reason": text.encoding_reason,
        "characters": len(text.text),
        "title": text.title,
        "published": published,
    }


def _published(source: Source, received: Sequence[Received]) -> dict[str, str]:
    """Publication dates by document; a date for a document that is not there is an error."""
    dates = {name: str(value)[:10] for name, value in source.table.published.items()}
    unknown = sorted(set(dates) - {file.name for file in received})
    if unknown:
        raise ExecutorError(
            "source.unknown_document",
            f"a date is given for {unknown[0]!r}, which is not in the folder",
            place=f"source.{source.name}.published",
            remedy="Correct the name, or remove the line.",
        )
    return dates


def _media(source: Source, name: str) -> str:
    if source.table.media is not None:
        return source.table.media
    media = TEXT_ENDINGS.get(Path(name).suffix.lower())
    if media is None:
        raise ExecutorError(
            "source.file_kind",
            f"the ending of {name!r} does not say whether it is plain text or HTML",
            place=f"source.{source.name}",
            remedy='Set media = "text/plain" or "text/html" for the source, or move the file out.',
        )
    return media
