"""A source's newest snapshot, and a document of one, as `tieout show` prints them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

from tieout.artifacts.printable import lines as printable_lines
from tieout.artifacts.printable import page
from tieout.artifacts.text import TextSnapshot
from tieout.executor.errors import ExecutorError
from tieout.ledger.audit.drill import Drill, Use
from tieout.ledger.canon import Json
from tieout.output import Document
from tieout.pinned_text import manifest_lines
from tieout.references import NamedDocument, newest_snapshot

DOCUMENTS_SHOWN: Final = 12
USES_SHOWN: Final = 12
TEXT_SHOWN: Final = 4_000


def show_source(drill: Drill, source: str, command: Callable[[str, str], str]) -> Document:
    """A source's newest snapshot: how it was read, and the addresses to go on with.

    command: how a next command is written here. Raises ExecutorError source.not_pinned.
    """
    entry = newest_snapshot(drill, source)
    output = None if entry is None else entry.row.deterministic_output
    if entry is None or output is None:
        raise ExecutorError(
            "source.not_pinned",
            f"source {source!r} was never pinned",
            remedy=f"Run {command('snapshot', source)}.",
        )
    manifest = json.loads(drill.store.get(output.address))
    row = entry.row
    data: dict[str, Json] = {
        "source": source,
        "snapshot": str(output.address),
        "run": row.trace_id,
        "at": row.execution_timestamp,
        "manifest": manifest,
    }
    lines = [
        f"{source}  {output.address}",
        f"  pinned    entry {entry.index} in {row.trace_id} at {row.execution_timestamp}",
        *manifest_lines(manifest),
    ]
    if manifest["kind"] == "table":
        following = manifest["table"]["address"]
        lines += [f"  table     {following}", f"  file      {manifest['file']['address']}"]
    else:
        documents = manifest["documents"]
        following = documents[0]["text"]
        lines += [f"  text      {d['text']}  {d['name']}" for d in documents[:DOCUMENTS_SHOWN]]
        if len(documents) > DOCUMENTS_SHOWN:
            lines.append(
                f"  text      and {len(documents) - DOCUMENTS_SHOWN} more (--json lists all)"
            )
    lines.append(f"  next      {command('show', following)}")
    return Document(data, page(lines))


def show_document(drill: Drill, document: NamedDocument) -> Document:
    """A document's text; of a file as received only what it is, since it may be anything."""
    text = TextSnapshot.load(drill.store.get(document.text), drill.store.get(document.map)).text
    what = "text" if document.role == "text" else "file as received"
    address = document.text if document.role == "text" else document.raw
    data: dict[str, Json] = {
        "address": str(address),
        "what": what,
        "document": document.name,
        "source": document.source,
        "text_address": str(document.text),
        "raw": str(document.raw),
        "characters": len(text),
        "used_by": uses_data(document.used_by),
    }
    lines = [
        str(address),
        f"  {what} of document {document.name} of source {document.source}",
        f"  text      {document.text}, {len(text)} characters",
        f"  file      {document.raw}",
        *use_lines("used by", document.used_by),
    ]
    if document.role == "text":
        data["text"] = text
        cut = "…" if len(text) > TEXT_SHOWN else ""
        lines += ["", *printable_lines(text[:TEXT_SHOWN] + cut)]
    return Document(data, page(lines))


def uses_data(uses: Sequence[Use]) -> list[Json]:
    """Ledger rows that name an artifact, as JSON values."""
    return [
        {"index": u.index, "run": u.run, "subject": u.subject, "kind": u.kind, "role": u.role}
        for u in uses
    ]


def use_lines(title: str, uses: Sequence[Use]) -> list[str]:
    """The same for people."""
    lines = [
        f"  {title:<9} entry {u.index}: {u.kind} {u.subject} ({u.role}) in {u.run}"
        for u in uses[:USES_SHOWN]
    ]
    more = len(uses) - USES_SHOWN
    return lines + ([f"  {title:<9} and {more} more"] if more > 0 else [])
