"""The type of each column, chosen once for the whole column, and its values in that type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from tieout.executor.ingest.amounts import is_scientific, read_form
from tieout.executor.ingest.cells import ArrowType, Cells, Plan, Texts, Typed, with_empties
from tieout.executor.ingest.dates import (
    has_two_digit_year,
    is_compact_date,
    read_moment_form,
)
from tieout.executor.ingest.declaration import (
    ColumnDeclaration,
    canonical_type,
    decimal_sizes,
)
from tieout.executor.ingest.moment_columns import declared_moments, infer_moments
from tieout.executor.ingest.number_columns import declared_numbers, infer_numbers

# Wide enough for the sum of any number of rows of any type.
SUM_DIGITS = 70

# 0001-01-01 in seconds from 1970.
YEAR_ONE = -62_135_596_800

_BOOLEANS = frozenset({"true", "false", "TRUE", "FALSE"})
_COMPACT_SHAPE = "00000000"
_WORDS = {
    "boolean": "true or false",
    "number": "a number",
    "scientific": "a number in scientific notation",
    "moment": "a date or time",
}


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """How one column was read.

    name: in the table. header: as received. type: canonical type. rule: every parameter of the
    conversion. reason: "declared" or the evidence. nulls: rows without a value. control_total:
    exact sum of a numeric column as decimal text. earliest, latest: of a date or time column,
    ISO text, times with a zone in UTC.
    """

    name: str
    header: str
    type: str
    rule: Mapping[str, str]
    reason: str
    nulls: int
    control_total: str | None
    earliest: str | None = None
    latest: str | None = None


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that does not fit the type of its column; row counts from 0."""

    row: int
    text: str


@dataclass(frozen=True, slots=True)
class Conversion:
    """A column in its type, how that came about, and the values that do not fit."""

    plan: Plan
    values: Typed
    misfits: tuple[Misfit, ...]


def convert_column(
    texts: Texts,
    declared: ColumnDeclaration,
    *,
    source: str,
    name: str,
    locate: Callable[[int], str],
) -> Conversion:
    """One column of texts in its type.

    texts: chunked strings, null where nothing stood between delimiters. locate gives "line 3"
    of a row counted from 0. Misfits occur in a column with a declared type only: without one,
    the whole column stays text, with the reason.
    Raises ExecutorError csv.ambiguous_number, csv.number_conflict, csv.ambiguous_date,
    csv.date_conflict or csv.declaration.
    """
    present = with_empties(texts, declared.empty)
    type_text = _declared_type(declared)
    if type_text == "VARCHAR":
        return Conversion(Plan("VARCHAR", {}, "declared"), present, ())
    cells = Cells(present, source=source, name=name, locate=locate)
    if type_text is not None:
        plan = _declared_plan(cells, declared, type_text)
        return Conversion(plan, *_converted(cells, plan))
    plan = _inferred_plan(cells, declared)
    if plan.plain is None:
        return Conversion(plan, present, ())
    values, misfits = _converted(cells, plan)
    if misfits:
        first = misfits[0].row
        kind = "number" if _is_numeric(plan.type) else "date"
        kept = Plan("VARCHAR", {}, f"{cells.shown(first)} is no {kind}, though it looks like one")
        return Conversion(kept, present, ())
    return Conversion(plan, values, ())


def describe_column(
    conversion: Conversion, values: Typed, *, name: str, header: str
) -> ColumnReading:
    """What is said of a column beside its values, which may be fewer than were converted."""
    plan = conversion.plan
    total = earliest = latest = None
    if _is_numeric(plan.type):
        total = control_total(values)
    elif plan.type in ("DATE", "TIMESTAMP", "TIMESTAMPTZ"):
        earliest, latest = _span(values, plan.type)
    return ColumnReading(
        name=name,
        header=header,
        type=plan.type,
        rule=MappingProxyType(dict(plan.rule)),
        reason=plan.reason,
        nulls=values.null_count,
        control_total=total,
        earliest=earliest,
        latest=latest,
    )


def control_total(values: Typed) -> str:
    """The exact sum of a BIGINT or DECIMAL column as decimal text; of no values, zero."""
    scale = values.type.scale if pa.types.is_decimal(values.type) else 0
    total = pc.sum(values.cast(pa.decimal256(SUM_DIGITS, scale))).as_py()
    if total is None:
        return f"0.{'0' * scale}" if scale else "0"
    return format(total, "f")


def arrow_type(type_text: str) -> ArrowType:
    """The Arrow type of a canonical type."""
    plain = {
        "BOOLEAN": pa.bool_(),
        "BIGINT": pa.int64(),
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us"),
        "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
        "VARCHAR": pa.string(),
    }
    return plain[type_text] if type_text in plain else pa.decimal128(*decimal_sizes(type_text))


def kind_of(text: str) -> str:
    """What a trimmed value, or its shape, looks like: boolean, number, … or text."""
    if text in _BOOLEANS:
        return "boolean"
    if read_form(text, side_marks=False) is not None:
        return "number"
    if is_scientific(text):
        return "scientific"
    return "moment" if read_moment_form(text) is not None else "text"


def _is_numeric(type_text: str) -> bool:
    return type_text == "BIGINT" or type_text.startswith("DECIMAL")


def _declared_type(declared: ColumnDeclaration) -> str | None:
    if declared.type is not None:
        return canonical_type(declared.type)
    if declared.format is None:
        return None
    if "%z" in declared.format:
        return "TIMESTAMPTZ"
    return "TIMESTAMP" if "%H" in declared.format else "DATE"


def _declared_plan(cells: Cells, declared: ColumnDeclaration, type_text: str) -> Plan:
    if type_text == "BOOLEAN":
        return Plan(type_text, {}, "declared", plain=_boolean)
    rows = dict(cells.shapes())
    if _is_numeric(type_text):
        return declared_numbers(cells, rows, declared, type_text)
    return declared_moments(cells, rows, declared, type_text)


def _inferred_plan(cells: Cells, declared: ColumnDeclaration) -> Plan:
    kinds: dict[str, int] = {}
    rows: dict[str, int] = {}
    marks = declared.negative in ("DR", "CR")
    for shape, row in cells.shapes():
        kind = kind_of(shape)
        if kind == "text" and marks and read_form(shape, side_marks=True) is not None:
            kind = "number"
        if kind == "text":
            return Plan("VARCHAR", {}, _text_reason(cells, row))
        kinds.setdefault(kind, row)
        rows[shape] = row
    if not kinds:
        return Plan("VARCHAR", {}, "no row has a value")
    if set(kinds) == {"boolean"}:
        return Plan("BOOLEAN", {}, "every value is true or false", plain=_boolean)
    if set(kinds) <= {"number", "scientific"}:
        plan = infer_numbers(cells, rows, declared)
        return _noting_compact_dates(cells, rows, plan)
    if set(kinds) == {"moment"}:
        return infer_moments(cells, rows, declared)
    seen = "; ".join(f"{cells.shown(row)} is {_WORDS[kind]}" for kind, row in kinds.items())
    return Plan("VARCHAR", {}, f"values of more than one kind ({seen})")


def _text_reason(cells: Cells, row: int) -> str:
    if has_two_digit_year(cells.at(row)):
        return f"{cells.shown(row)} may be a date without century; declare a format to read it"
    return f"{cells.shown(row)} is text"


def _noting_compact_dates(cells: Cells, rows: Mapping[str, int], plan: Plan) -> Plan:
    if plan.type != "BIGINT" or set(rows) != {_COMPACT_SHAPE}:
        return plan
    if not all(map(is_compact_date, cells.distinct())):
        return plan
    noted = f'{plan.reason}; all look like dates YYYYMMDD, declare type = "DATE" if they are'
    return Plan(plan.type, plan.rule, noted, plan.plain, plan.direct)


def _boolean(text: str) -> str | None:
    return text.lower() if text in _BOOLEANS else None


def _converted(cells: Cells, plan: Plan) -> tuple[Typed, tuple[Misfit, ...]]:
    target = arrow_type(plan.type)
    chunks: list[Typed] = []
    misfits: list[Misfit] = []
    base = 0
    for chunk in cells.texts.chunks:
        values = _cast(chunk, target) if plan.direct else None
        if values is None:
            values, refused = _spelled(chunk, plan, target)
            misfits.extend(Misfit(base + row, chunk[row].as_py()) for row in refused)
        chunks.append(values)
        base += len(chunk)
    return pa.chunked_array(chunks, target), tuple(misfits)


def _cast(chunk: Texts, target: ArrowType) -> Typed | None:
    try:
        values = chunk.cast(target)
    except pa.ArrowInvalid:
        return None  # a value such as 2026-02-30; the slower way finds it
    if pa.types.is_date32(target) or pa.types.is_timestamp(target):
        # The year 0, which Arrow reads and no calendar of Python or the engine's has alike.
        lowest = pc.min(values.cast(pa.timestamp("s"), safe=False).cast(pa.int64())).as_py()
        if lowest is not None and lowest < YEAR_ONE:
            return None
    return values


def _spelled(chunk: Texts, plan: Plan, target: ArrowType) -> tuple[Typed, list[int]]:
    """Each distinct value spelled once; rows whose value does not fit are null and listed."""
    if plan.plain is None:
        raise AssertionError("a column of texts is not converted")
    encoded = chunk.dictionary_encode()
    plains = [plan.plain(text) for text in encoded.dictionary.to_pylist()]
    values = pa.array(plains, pa.string()).cast(target).take(encoded.indices)
    bad = [code for code, plain in enumerate(plains) if plain is None]
    if not bad:
        return values, []
    hits = pc.is_in(encoded.indices, value_set=pa.array(bad, encoded.indices.type))
    return values, pc.indices_nonzero(hits).to_pylist()


def _span(values: Typed, type_text: str) -> tuple[str | None, str | None]:
    ends = pc.min_max(values.cast(pa.int32() if type_text == "DATE" else pa.int64()))
    raw = [ends["min"].as_py(), ends["max"].as_py()]
    if raw[0] is None:
        return None, None
    plain = pa.date32() if type_text == "DATE" else pa.timestamp("us")
    backed = pa.array(raw, pa.int32() if type_text == "DATE" else pa.int64()).cast(plain)
    low, high = (moment.isoformat() for moment in backed.to_pylist())
    zone = "Z" if type_text == "TIMESTAMPTZ" else ""
    return low + zone, high + zone
