"""How the engine and its worker talk: one JSON document and some open files per message."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict
from typing import TypeAlias

from tieout.executor.sql.validate import (
    ColumnOrigin,
    Finding,
    GrantedColumn,
    GrantedTable,
    RowOrigin,
)
from tieout.executor.sql.verdict import Reason, Rewrite, Standing, Verdict

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Document: TypeAlias = "dict[str, Json]"

HEADER_BYTES = 8
FILES_MAX = 200
"""The kernel passes at most 253 open files at a time."""
CHUNK_BYTES = 1 << 20


def send(peer: socket.socket, document: Document, files: list[int]) -> None:
    """Send a document with open files beside its length. Raises OSError."""
    body = json.dumps(document).encode()
    socket.send_fds(peer, [len(body).to_bytes(HEADER_BYTES, "big")], files)
    peer.sendall(body)


def receive(peer: socket.socket) -> tuple[Document, list[int]] | None:
    """The next document and its files; None when the other side is gone. Raises OSError."""
    head, files, _flags, _address = socket.recv_fds(peer, HEADER_BYTES, FILES_MAX)
    body = bytearray()
    if len(head) == HEADER_BYTES:
        wanted = int.from_bytes(head, "big")
        while len(body) < wanted:
            part = peer.recv(min(CHUNK_BYTES, wanted - len(body)))
            if not part:
                break
            body += part
        if len(body) == wanted:
            found = json.loads(body)
            assert isinstance(found, dict)
            return found, files
    close_all(files)
    return None


def close_all(files: list[int]) -> None:
    """Close open files by number."""
    for number in files:
        os.close(number)


def tables_to_json(tables: dict[str, GrantedTable]) -> Document:
    """Granted tables as a document."""
    document: Document = json.loads(json.dumps({n: asdict(t) for n, t in tables.items()}))
    return document


def tables_from_json(document: Json) -> dict[str, GrantedTable]:
    """The inverse; the document comes from our own side."""
    assert isinstance(document, dict)
    found: dict[str, GrantedTable] = {}
    for name, value in document.items():
        assert isinstance(value, dict)
        columns = tuple(
            GrantedColumn(
                name=str(c["name"]),
                type=str(c["type"]),
                origin=_origin(c["origin"]) if isinstance(c["origin"], dict) else None,
                domain=texts(c["domain"]),
                range=_bounds(c["range"]),
            )
            for c in _documents(value["columns"])
        )
        found[name] = GrantedTable(
            name=str(value["name"]),
            columns=columns,
            key=texts(value["key"]),
            rows=_row_origin(value["rows"]) if isinstance(value["rows"], dict) else None,
        )
    return found


def _bounds(value: Json) -> tuple[str, str]:
    low, high = texts(value)
    return low, high


def _documents(value: Json) -> list[Document]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def rows(value: Json) -> list[list[Json]]:
    """A list of lists."""
    return [v for v in value if isinstance(v, list)] if isinstance(value, list) else []


def texts(value: Json) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(str(v) for v in value) if isinstance(value, list) else ()


def finding_to_json(finding: Finding) -> Document:
    """A finding as a document."""
    document: Document = json.loads(json.dumps(asdict(finding)))
    return document


def finding_from_json(document: Document) -> Finding:
    """The inverse; a worker is bounded, not trusted more than its shape."""
    counted = document["rows"]
    assert isinstance(counted, dict)
    return Finding(
        executed=str(document["executed"]),
        countercheck=str(document["countercheck"]),
        verdict=_verdict(document["verdict"]),
        formatted=str(document["formatted"]),
        tables=texts(document["tables"]),
        functions=texts(document["functions"]),
        columns=tuple((str(c[0]), str(c[1])) for c in rows(document["columns"])),
        origins=tuple(_origin(o) for o in _documents(document["origins"])),
        rows=_row_origin(counted),
        ordered=bool(document["ordered"]),
        literals=texts(document["literals"]),
        tree=str(document["tree"]),
        plan=str(document["plan"]),
    )


def _verdict(document: Json) -> Verdict:
    assert isinstance(document, dict)
    return Verdict(
        standing=Standing(str(document["standing"])),
        reasons=reasons_from_json(document["reasons"]),
        rewrites=tuple(
            Rewrite(
                name=str(r["name"]),
                removed=str(r["removed"]),
                inserted=str(r["inserted"]),
                line=whole(r["line"]),
                column=whole(r["column"]),
                round=whole(r["round"]),
                at=whole(r["at"]),
            )
            for r in _documents(document["rewrites"])
        ),
    )


def reasons_to_json(reasons: tuple[Reason, ...]) -> list[Json]:
    """Reasons as documents."""
    found: list[Json] = json.loads(json.dumps([asdict(r) for r in reasons]))
    return found


def reasons_from_json(value: Json) -> tuple[Reason, ...]:
    """The inverse."""
    return tuple(
        Reason(
            name=str(r["name"]),
            detail=str(r["detail"]),
            line=r["line"] if isinstance(r["line"], int) else None,
            column=r["column"] if isinstance(r["column"], int) else None,
        )
        for r in _documents(value)
    )


def whole(value: Json) -> int:
    """A value that is a whole number by our own making."""
    assert isinstance(value, int)
    return value


def _origin(document: Document) -> ColumnOrigin:
    return ColumnOrigin(
        name=str(document["name"]),
        literals=texts(document["literals"]),
        sources=_pairs(document["sources"]),
        operation=str(document["operation"]),
        inexact=bool(document["inexact"]),
        roots=None if document["roots"] is None else _pairs(document["roots"]),
        conditions=texts(document["conditions"]),
        parameters=texts(document["parameters"]),
        generated=bool(document["generated"]),
    )


def _row_origin(document: Document) -> RowOrigin:
    return RowOrigin(
        literals=texts(document["literals"]),
        counts=texts(document["counts"]),
        sources=_pairs(document["sources"]),
        roots=_pairs(document["roots"]),
        conditions=texts(document["conditions"]),
        shape=str(document["shape"]),
    )


def _pairs(value: Json) -> tuple[tuple[str, str], ...]:
    return tuple((str(pair[0]), str(pair[1])) for pair in rows(value))
