"""The catalog: `tieout.toml` as values. What sources there are and how each is to be read.

Source: DESIGN §6. Unknown keys are refused with the known ones named: a mistyped key that is
passed over would silently change how a file is read.
"""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.field_faults import field_fault
from tieout.executor.limits import Limits

CATALOG_NAME: Final = "tieout.toml"
SOURCE_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
TOML_BYTES_MAX: Final = 4 * 1024 * 1024

_TYPES: Final = "BOOLEAN|BIGINT|INTEGER|HUGEINT|DATE|TIMESTAMP|TIMESTAMPTZ|VARCHAR|DECIMAL"
_TYPE_PATTERN: Final = rf"^({_TYPES}|DECIMAL\(\d{{1,2}}, ?\d{{1,2}}\))$"
_RULES: Final = {
    _TYPE_PATTERN: f"one of {_TYPES.replace('|', ', ')}, or DECIMAL(18,2) with digits of your own",
}

TypeText = Annotated[str, Field(pattern=_TYPE_PATTERN)]
DOMAIN_VALUES_MAX: Final = 10_000


def _value_text(value: object) -> object:
    """A declared value as text; a number with a point must be one already, to stay exact."""
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return value.isoformat(" ")
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


ValueText = Annotated[str, BeforeValidator(_value_text)]
"""A text, whole number, date or local date and time of TOML."""


class _Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ColumnTable(_Declared):
    """`[source.NAME.column.COLUMN]`: how one column is read; what is left out is decided by
    the values and recorded."""

    type: TypeText | None = None
    decimal: Literal[".", ","] | None = None
    grouping: str | None = None
    negative: str | None = None
    date_order: Literal["day first", "month first", "year first"] | None = None
    format: str | None = None
    empty: list[str] = []
    note: str = ""
    domain: Annotated[list[ValueText], Field(max_length=DOMAIN_VALUES_MAX)] = []
    range: Annotated[list[ValueText], Field(min_length=2, max_length=2)] = []


class SourceTable(_Declared):
    """`[source.NAME]`: a file of rows or a folder of documents."""

    file: str | None = None
    folder: str | None = None
    key: list[str] = []
    note: str = ""
    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    header_line: Annotated[int, Field(ge=0)] | None = None
    footer: list[str] = []
    footer_lines: Annotated[int, Field(ge=0)] | None = None
    wide_rows: Literal["refuse", "extend"] = "refuse"
    rejected: Literal["refuse", "keep"] = "refuse"
    column: dict[str, ColumnTable] = {}
    media: Literal["text/plain", "text/html"] | None = None
    charset: str | None = None
    published: dict[str, Any] = {}


class WorkspaceTable(_Declared):
    """`[workspace]`."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    store: str = ".tieout/store"
    ledger: str = ".tieout/ledger.sqlite"


class ModelTable(_Declared):
    """`[model]`: which model plans when a question has no plan file."""

    name: str | None = None
    base_url: str | None = None
    retries: Annotated[int, Field(ge=0, le=10)] | None = None
    timeout_s: Annotated[int, Field(ge=1, le=3_600)] | None = None


class _File(_Declared):
    workspace: WorkspaceTable
    source: dict[str, SourceTable] = {}
    model: ModelTable = ModelTable()
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class Source:
    """A source by its catalog name."""

    name: str
    table: SourceTable

    @property
    def kind(self) -> Literal["table", "text"]:
        """Rows or documents."""
        return "table" if self.table.file is not None else "text"


@dataclass(frozen=True, slots=True)
class Catalog:
    """A workspace's `tieout.toml`. root: its folder; payload: its bytes as read."""

    root: Path
    payload: bytes
    workspace: WorkspaceTable
    sources: Mapping[str, Source]
    model: ModelTable
    limits: Limits

    def source(self, name: str) -> Source:
        """The source of this name. Raises ExecutorError catalog.unknown_source."""
        found = self.sources.get(name)
        if found is None:
            known = ", ".join(self.sources) or "none"
            raise ExecutorError(
                "catalog.unknown_source",
                f"there is no source {name!r}; the catalog has: {known}",
                place=str(self.root / CATALOG_NAME),
                remedy=f"Add [source.{name}] to {CATALOG_NAME}, or correct the name.",
            )
        return found


def load_catalog(path: Path) -> Catalog:
    """Read a tieout.toml. Raises ExecutorError catalog.unreadable, catalog.not_toml,
    catalog.field, catalog.source_name, catalog.source_kind."""
    payload = read_toml_bytes(path, "catalog")
    return parse_catalog(payload, root=path.parent, place=str(path))


def parse_catalog(payload: bytes, *, root: Path, place: str) -> Catalog:
    """The catalog in these bytes; `load_catalog` says what it raises."""
    document = parse_toml(payload, place=place, code="catalog")
    file = validate_toml(_File, document, place, "catalog", rules=_RULES)
    folded: dict[str, str] = {}
    for name, table in file.source.items():
        _check_source(name, table, place)
        if name.lower() in folded:
            raise _wrong(
                "catalog.source_name", f"two sources are called {name!r}", place, "Rename one."
            )
        folded[name.lower()] = name
    return Catalog(
        root=root,
        payload=payload,
        workspace=file.workspace,
        sources={name: Source(name, table) for name, table in file.source.items()},
        model=file.model,
        limits=file.limits,
    )


def _check_source(name: str, table: SourceTable, place: str) -> None:
    if not SOURCE_NAME.fullmatch(name):
        raise _wrong(
            "catalog.source_name",
            f"{name!r} cannot be the name of a source",
            place,
            "Use lower-case letters, digits and _, beginning with a letter, at most 40.",
        )
    if (table.file is None) == (table.folder is None):
        raise _wrong(
            "catalog.source_kind",
            f"source {name!r} has {'both' if table.file else 'neither'} file and folder",
            place,
            'Give it file = "NAME.csv" for rows or folder = "NAME" for documents.',
        )


def read_toml_bytes(path: Path, what: str) -> bytes:
    """The bytes of a small text file. Raises ExecutorError WHAT.unreadable, WHAT.too_large."""
    try:
        with path.open("rb") as stream:
            payload = stream.read(TOML_BYTES_MAX + 1)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise ExecutorError(
            f"{what}.missing" if missing else f"{what}.unreadable",
            f"cannot read the file: {error.strerror}",
            place=str(path),
            remedy="`tieout init` makes a workspace here."
            if missing and what == "catalog"
            else "Check the path and that the file may be read.",
            exit_code=Exit.NO_WORKSPACE if missing and what == "catalog" else Exit.REFUSED,
        ) from error
    if len(payload) > TOML_BYTES_MAX:
        raise ExecutorError(
            f"{what}.too_large",
            f"the file has more than {TOML_BYTES_MAX} bytes",
            place=str(path),
            remedy="Split it.",
        )
    return payload


def parse_toml(payload: bytes, *, place: str, code: str) -> dict[str, Any]:
    """TOML bytes as a dictionary. Raises ExecutorError CODE.not_toml with line and column."""
    try:
        return tomllib.loads(payload.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _wrong(
            f"{code}.not_toml", f"byte {error.start} is not UTF-8", place, "Save it as UTF-8."
        ) from error
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        twice = "overwrite" in message or "twice" in message
        remedy = (
            "A table or key stands twice; sources need names of their own."
            if twice
            else "Correct the line."
        )
        raise _wrong(f"{code}.not_toml", f"it is not TOML: {message}", place, remedy) from error


_M = TypeVar("_M", bound=BaseModel)


def validate_toml(
    kind: type[_M], document: dict[str, Any], place: str, code: str, *, rules: Mapping[str, str]
) -> _M:
    """The document as a value of this kind. rules: patterns of the kind in words.

    Raises ExecutorError CODE.field.
    """
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        message, remedy = field_fault(kind, document, first, rules)
        raise _wrong(f"{code}.field", message, place, remedy) from error


def _wrong(code: str, message: str, place: str, remedy: str) -> ExecutorError:
    return ExecutorError(code, message, place=place, remedy=remedy)
