"""A column of dates or times: its order from all its values, its type, its conversion."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.ingest.cells import Cells, Plan
from tieout.executor.ingest.dates import (
    FRACTION_DIGITS_MAX,
    IsoMoment,
    MomentForm,
    Order,
    OrderUnknown,
    compile_format,
    decide_order,
    read_moment_form,
)
from tieout.executor.ingest.declaration import ColumnDeclaration, column_table, under

_DIRECT = re.compile(r"0000-00-00(?:[T ]00:00:00(?:\.0{1,6})?Z?)?")
_ORDER_REMEDY = 'date_order = "day first" (or "month first")'


def infer_moments(cells: Cells, rows: Mapping[str, int], declared: ColumnDeclaration) -> Plan:
    """The plan for an undeclared column whose every shape is a date or a time.

    Raises ExecutorError csv.ambiguous_date or csv.date_conflict.
    """
    forms = {shape: form for shape in rows if (form := read_moment_form(shape)) is not None}
    mixed = _mixture(cells, rows, forms)
    if mixed:
        return Plan("VARCHAR", {}, mixed)
    shape, form = next(iter(forms.items()))
    first = rows[shape]
    kind = "DATE" if not form.timed else "TIMESTAMPTZ" if form.zoned else "TIMESTAMP"
    if form.year_first:
        order = Order("year first", f"every value begins with a year ({cells.shown(first)})")
    elif declared.date_order is not None:
        order = Order(declared.date_order, "the order is declared")
    else:
        found = decide_order(cells.distinct(), locate=_Locator(cells))
        if isinstance(found, OrderUnknown):
            never = _valid_in_no_order(cells, kind)
            if never is not None:
                return Plan("VARCHAR", {}, never)
            raise _ask(cells, found)
        order = found
    rule = {"date_order": order.text, "separator": form.separator}
    if kind == "TIMESTAMPTZ":
        rule["zone"] = "converted to UTC"
    plain = IsoMoment(kind, order=order.text, pattern=None, widen=False)
    return Plan(kind, rule, order.reason, plain, all(_DIRECT.fullmatch(shape) for shape in rows))


def declared_moments(
    cells: Cells, rows: Mapping[str, int], declared: ColumnDeclaration, type_text: str
) -> Plan:
    """The plan for a column declared DATE, TIMESTAMP or TIMESTAMPTZ.

    Raises ExecutorError csv.ambiguous_date, csv.date_conflict or csv.declaration (a format that
    cannot be followed).
    """
    if declared.format is not None:
        pattern = compile_format(declared.format)
        if isinstance(pattern, str):
            raise ExecutorError(
                "csv.declaration",
                f'format = "{declared.format}" cannot be followed: {pattern}',
                place=f"{cells.source}, column {cells.name}",
                remedy="Use %Y %m %d, with %y %b %B %H %M %S %f %z where the values need them.",
                exit_code=Exit.USAGE,
            )
        rule = {"format": declared.format}
        if "%y" in declared.format:
            rule["two_digit_years"] = "69 to 99 are 1969 to 1999, 00 to 68 are 2000 to 2068"
        plain = IsoMoment(type_text, order="", pattern=pattern, widen=True)
        return Plan(type_text, rule, "declared", plain)
    order = declared.date_order or ""
    reason = "declared"
    if not order and any(
        form is not None and not form.year_first for form in map(read_moment_form, rows)
    ):
        found = decide_order(cells.distinct(), locate=_Locator(cells))
        if isinstance(found, OrderUnknown):
            raise _ask(cells, found)
        order, reason = found.text, f"declared; {found.reason}"
    rule = {"date_order": order or "year first"}
    if type_text == "TIMESTAMPTZ":
        rule["zone"] = "converted to UTC"
    plain = IsoMoment(type_text, order=order, pattern=None, widen=True)
    direct = _is_direct(type_text, rows) and order in ("", "year first")
    return Plan(type_text, rule, reason, plain, direct)


def _is_direct(type_text: str, rows: Mapping[str, int]) -> bool:
    return all(
        _DIRECT.fullmatch(shape)
        and (":" in shape) == (type_text != "DATE")
        and shape.endswith("Z") == (type_text == "TIMESTAMPTZ")
        for shape in rows
    )


def _mixture(cells: Cells, rows: Mapping[str, int], forms: Mapping[str, MomentForm]) -> str:
    """Why one type cannot hold all forms, or ""."""
    kinds: dict[tuple[str, bool, bool, bool], str] = {}
    for shape, form in forms.items():
        if form.fraction > FRACTION_DIGITS_MAX:
            return f"{cells.shown(rows[shape])} is finer than a microsecond"
        kinds.setdefault((form.separator, form.year_first, form.timed, form.zoned), shape)
    if len(kinds) == 1:
        return ""
    seen = "; ".join(cells.shown(rows[shape]) for shape in list(kinds.values())[:2])
    return f"dates or times are written in more than one way ({seen})"


def _valid_in_no_order(cells: Cells, kind: str) -> str | None:
    readers = [
        IsoMoment(kind, order=order, pattern=None, widen=False)
        for order in ("day first", "month first")
    ]
    for text in cells.distinct():
        if all(reader(text) is None for reader in readers):
            return f"{cells.shown(cells.row_of(text))} is no date"
    return None


class _Locator:
    __slots__ = ("_cells",)

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def __call__(self, text: str) -> str:
        return self._cells.locate(self._cells.row_of(text))


def _ask(cells: Cells, unknown: OrderUnknown) -> ExecutorError:
    table = column_table(cells.source, cells.name)
    rows = [cells.row_of(text) for text in unknown.examples]
    if unknown.conflict:
        seen = " and ".join(cells.shown(row) for row in rows)
        return ExecutorError(
            "csv.date_conflict",
            f"column {cells.name} has dates that can only be day first and dates that can only"
            f" be month first ({seen})",
            place=cells.place(min(rows)),
            remedy="Ask the sender, or keep the column as text: "
            + under(table, 'type = "VARCHAR"', verb="set"),
        )
    return ExecutorError(
        "csv.ambiguous_date",
        f"in column {cells.name} every day is 12 or less, so nothing decides whether"
        f" {unknown.examples[0]} is day first or month first",
        place=cells.place(rows[0]),
        remedy=f"Declare the order: {under(table, _ORDER_REMEDY)}",
    )
