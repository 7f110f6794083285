"""`tieout check`: what the gate says of a query, against the newest snapshots; nothing is recorded.

A check is no step: no model is asked, no ledger row and no object is written.
"""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from tieout.artifacts.errors import Exit, RoomError
from tieout.artifacts.printable import one_line
from tieout.executor.errors import ExecutorError
from tieout.ledger.canon import Json
from tieout.output import Document, shortened

if TYPE_CHECKING:
    from tieout.artifacts.address import Address
    from tieout.executor.sql.validate import SqlRefused, ValidatedSql
    from tieout.executor.sql.verdict import Reason, Verdict
    from tieout.workspace import Workspace

STDIN: Final = "-"
FILE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of a file with a query; the gate's own bound on characters is far below."""
CONTEXT_CHARS: Final = 60
"""How much of a long line stands on either side of the caret."""
BYTE_ORDER_MARK: Final = "\ufeff"
_CHANGES: Final = {
    "declaration": "its declaration in tieout.toml changed",
    "file": "its file changed",
    "missing": "its file can no longer be read",
}
_STANDINGS: Final = {
    "function_of_data": "a function of the data",
    "function_of_data_as_rewritten": "a function of the data, as rewritten",
    "not_a_function_of_data": "not a function of the data",
}


@dataclass(frozen=True, slots=True)
class Checked:
    """A query and what was said of it. name: of its file, or -; snapshots: manifest by source.

    unpinned: table sources that were left out, since no snapshot of them is there. changed: by
    source, what is not as it was pinned: "declaration", "file", "missing" (a file that cannot be
    read). marked: a byte order mark before the text was left out.
    """

    name: str
    sql: str
    found: ValidatedSql | SqlRefused
    snapshots: Mapping[str, Address]
    unpinned: tuple[str, ...]
    as_of: str | None
    changed: Mapping[str, tuple[str, ...]]
    marked: bool = False

    @property
    def refused(self) -> SqlRefused | None:
        """The refusal, if it is one."""
        from tieout.executor.sql.validate import SqlRefused

        return self.found if isinstance(self.found, SqlRefused) else None


def read_query(name: str, stdin: BinaryIO) -> str:
    """The text of a query's file, of stdin for "-". Raises ExecutorError check.missing,
    check.unreadable, check.too_large, check.not_utf8, all with exit 2."""
    try:
        if name == STDIN:
            payload = stdin.read(FILE_BYTES_MAX + 1)
        else:
            with Path(name).open("rb") as stream:
                payload = stream.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError as error:
        raise _unusable("missing", "there is no such file", name, "Check the path.") from error
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or "it has no usable path"
        message = f"the file cannot be read: {said}"
        raise _unusable("unreadable", message, name, "Check that it may be read.") from error
    if len(payload) > FILE_BYTES_MAX:
        message = f"the file has more than {FILE_BYTES_MAX} bytes"
        raise _unusable("too_large", message, name, "Give a file with one query.")
    try:
        return payload.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte {error.start + 1} is not UTF-8"
        raise _unusable("not_utf8", message, name, "Save the file as UTF-8.") from error


def check(
    workspace: Workspace, name: str, sql: str, *, sources: Sequence[str] = (), as_of: str = ""
) -> Checked:
    """What the gate says of a text over the newest snapshots of some table sources, else of all.

    name: of the file, for messages. A byte order mark that begins the text is no part of it:
    editors put it in unseen. Raises ExecutorError catalog.unknown_source, check.no_table,
    check.as_of, source.not_pinned (exit 10); limit.*, engine.* as examining does.
    """
    from tieout.executor.pinning import newest
    from tieout.executor.sql.validate import SqlRefused
    from tieout.executor.world import World, load_pinned

    day = _day(as_of)
    wanted = _tables(workspace, sources)
    snapshots: dict[str, Address] = {}
    for source in wanted:
        entry = newest(workspace.log(), source)
        if entry is not None and entry.row.deterministic_output is not None:
            snapshots[source] = entry.row.deterministic_output.address
    unpinned = tuple(source for source in wanted if source not in snapshots)
    if unpinned and (sources or not snapshots):
        named = " ".join(unpinned) if sources else ""
        raise ExecutorError(
            "source.not_pinned",
            f"there is no snapshot of {', '.join(unpinned) if sources else 'any source'}"
            " to check against",
            remedy=f"Run `{workspace.command('snapshot', named)}` first.",
            exit_code=Exit.NO_WORKSPACE,
        )
    store = workspace.store
    pinned = {source: load_pinned(store, address) for source, address in snapshots.items()}
    world = World(store, pinned, as_of=day)
    marked, sql = sql.startswith(BYTE_ORDER_MARK), sql.removeprefix(BYTE_ORDER_MARK)
    try:
        found: ValidatedSql | SqlRefused
        found = workspace.engine.validate(sql, world.granted(), as_of=day)
    except SqlRefused as refused:
        found = refused
    changed = {
        source: what for source in snapshots if (what := _changed(workspace, source, snapshots))
    }
    return Checked(name, sql, found, snapshots, unpinned, day, changed, marked)


def checked_document(checked: Checked) -> Document:
    """What was found, as JSON and for people."""
    from tieout.executor.check_document import check_document

    data: dict[str, Json] = {
        **check_document(checked.found),
        "file": checked.name,
        "as_of": checked.as_of,
        "snapshots": {name: str(address) for name, address in checked.snapshots.items()},
        "not_pinned": list(checked.unpinned),
        "changed": {name: list(what) for name, what in checked.changed.items()},
        "byte_order_mark": checked.marked,
    }
    refused = checked.refused
    lines = _refusal_lines(checked, refused) if refused is not None else _admission_lines(checked)
    if checked.unpinned:
        lines.append(f"  left out   {', '.join(checked.unpinned)}: not pinned yet")
    for name, what in checked.changed.items():
        told = " and ".join(_CHANGES[one] for one in what)
        lines.append(f"  changed    {name}: {told} since the snapshot that was checked against")
    if checked.marked:
        lines.append("  left out   the byte order mark before the text")
    return Document(data, "\n".join(lines))


def _unusable(code: str, message: str, name: str, remedy: str) -> ExecutorError:
    return ExecutorError(f"check.{code}", message, place=name, remedy=remedy, exit_code=Exit.USAGE)


def _day(text: str) -> str | None:
    try:
        return dt.date.fromisoformat(text).isoformat() if text else None
    except ValueError as error:
        raise _unusable(
            "as_of", f"{text[:40]!r} is not a date", "--as-of", "Give a date such as 2026-06-30."
        ) from error


def _changed(
    workspace: Workspace, source: str, snapshots: Mapping[str, Address]
) -> tuple[str, ...]:
    """What of a table source is not as it was when it was pinned."""
    from tieout.artifacts.address import Address
    from tieout.executor.receive import receive
    from tieout.executor.snapshot import declared_text, source_of

    then, files = source_of(workspace.store.get(snapshots[source]))
    now = workspace.catalog.source(source)
    found = ["declaration"] * (declared_text(now) != declared_text(then))
    try:
        received = receive(now, workspace.catalog.root, workspace.catalog.limits)
    except RoomError:
        return (*found, "missing")
    if [Address.of(r.payload) for r in received] != [address for _name, address in files]:
        found.append("file")
    return tuple(found)


def _tables(workspace: Workspace, sources: Sequence[str]) -> list[str]:
    """The table sources that are asked for, in the order of the catalog."""
    catalog = workspace.catalog
    for name in sources:
        if catalog.source(name).kind != "table":
            raise _unusable(
                "no_table", f"source {name!r} holds documents", "--source", "SQL reads tables."
            )
    chosen = [n for n, s in catalog.sources.items() if s.kind == "table"]
    return [name for name in chosen if not sources or name in sources]


def _refusal_lines(checked: Checked, refused: SqlRefused) -> list[str]:
    from tieout.executor.check_document import reasons_of
    from tieout.executor.sql.refusal import WHY

    place = "" if refused.line is None else f"{refused.line}:{refused.column}:"
    lines = [one_line(f"{checked.name}:{place} {refused.code}: {refused.message}")]
    if refused.line is not None and refused.column is not None:
        lines += pointed(checked.sql, refused.line, refused.column)
    lines += [f"  why        {WHY[refused.code]}", one_line(f"  way out    {refused.remedy}")]
    lines += _reason_lines(reasons_of(refused))
    return lines


def pointed(sql: str, line: int, column: int) -> list[str]:
    """The line of the text and a caret below the column, both from 1; a long line is cut."""
    shown = sql.split("\n")[line - 1].rstrip("\r")
    at = min(column - 1, len(shown))
    start = max(0, at - CONTEXT_CHARS)
    end = at + CONTEXT_CHARS
    head = ("…" if start else "") + _visible(shown[start:at])
    tail = _visible(shown[at:end]) + ("…" if end < len(shown) else "")
    number = str(line)
    blank = " " * sum(map(_width, head))
    return [f"  {number} │ {head}{tail}", f"  {' ' * len(number)} │ {blank}^"]


def _visible(text: str) -> str:
    return one_line(text.replace("\t", " "))


def _width(character: str) -> int:
    """Columns of a terminal that a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _admission_lines(checked: Checked) -> list[str]:
    from tieout.executor.sql.validate import SqlRefused

    found = checked.found
    assert not isinstance(found, SqlRefused)
    tables = [f"{n} {shortened(str(checked.snapshots[n]))}" for n in found.tables]
    columns = [f"{name} {kind}" for name, kind in found.columns]
    lines = [f"{checked.name}: admitted", f"  verdict    {_STANDINGS[found.verdict.standing]}"]
    lines += _reason_lines(found.verdict.reasons) + _rewrite_lines(found.verdict)
    lines += [
        f"  tables     {', '.join(tables) or 'none'}",
        f"  columns    {', '.join(columns)}",
        f"  functions  {', '.join(found.functions) or 'none'}",
        f"  literals   {', '.join(found.literals) or 'none'}",
    ]
    if found.countercheck:
        lines.append("  runs with  a second text with each added order turned round, to compare")
    lines = [one_line(line) for line in lines]
    if found.executed != checked.sql:
        lines.append("  executed")
        lines += [f"    │ {_visible(row)}" for row in found.executed.rstrip("\n").split("\n")]
    return lines


def _reason_lines(reasons: Sequence[Reason]) -> list[str]:
    return [one_line(f"  reason     {_at(r.line, r.column)}{r.name}: {r.detail}") for r in reasons]


def _rewrite_lines(verdict: Verdict) -> list[str]:
    lines = []
    for rewrite in verdict.rewrites:
        removed = f"{rewrite.removed.strip()!r} became " if rewrite.removed else "put in "
        place = _at(rewrite.line, rewrite.column)
        lines.append(f"  rewrite    {place}{rewrite.name}: {removed}{rewrite.inserted.strip()!r}")
    return lines


def _at(line: int | None, column: int | None) -> str:
    return "" if line is None else f"{line}:{column} "
