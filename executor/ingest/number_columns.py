"""A column of numbers: its style from all its values, its exact type, its conversion."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tieout.executor.errors import ExecutorError
from tieout.executor.ingest.amounts import (
    Form,
    PlainNumber,
    Style,
    Undecided,
    decide_style,
    is_scientific,
    plain_sizes,
    read_form,
)
from tieout.executor.ingest.cells import Cells, Plan
from tieout.executor.ingest.declaration import (
    DECIMAL_DIGITS_MAX,
    ColumnDeclaration,
    column_table,
    decimal_sizes,
    under,
)

WHOLE_DIGITS_MAX = 18
SHORT_DECIMAL_DIGITS = 18
BIGINT_MAX = 2**63 - 1
DAMAGED_SHOWN_MAX = 5

_DIRECT = re.compile(r"-?0+(?:\.0+)?")
_DIGIT = re.compile(r"[1-9]")


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The forms of a column by shape, the row where each shape is first seen, the style."""

    forms: Mapping[str, Form]
    rows: Mapping[str, int]
    style: Style


def infer_numbers(cells: Cells, rows: Mapping[str, int], declared: ColumnDeclaration) -> Plan:
    """The plan for an undeclared column whose every shape is a number, plain or scientific.

    Raises ExecutorError csv.ambiguous_number or csv.number_conflict.
    """
    scientific = [shape for shape in rows if is_scientific(shape)]
    forms = _forms(rows, declared)
    if scientific:
        return _text(_scientific_reason(cells, rows, forms))
    for sign in (form.sign for form in forms.values()):
        if not _sign_admitted(sign, declared):
            return _text(f"the declared negative style, {declared.negative}, is not the only one")
    currencies = {form.currency: shape for shape, form in forms.items() if form.currency}
    if len(currencies) > 1:
        seen = "; ".join(cells.shown(rows[shape]) for shape in currencies.values())
        return _text(f"amounts in more than one currency ({seen})")
    numbers = _Numbers(forms, rows, _style(cells, forms, rows, declared, whole_only=False))
    refused = [shape for shape, form in forms.items() if form.body not in numbers.style.readings]
    if refused:
        row = min(rows[shape] for shape in refused)
        return _text(f"{cells.shown(row)} does not fit the declared number style")
    return _sized(cells, numbers, declared)


def declared_numbers(
    cells: Cells, rows: Mapping[str, int], declared: ColumnDeclaration, type_text: str
) -> Plan:
    """The plan for a column declared BIGINT or DECIMAL; values that do not fit become None.

    Raises ExecutorError csv.ambiguous_number or csv.number_conflict.
    """
    forms = {
        shape: form
        for shape, form in _forms(rows, declared).items()
        if _sign_admitted(form.sign, declared)
    }
    style = _style(cells, forms, rows, declared, whole_only=type_text == "BIGINT")
    numbers = _Numbers(forms, rows, style)
    if type_text == "DECIMAL":
        type_text = "DECIMAL({},{})".format(*(_sizes(numbers) or _widest(numbers)))
    precision, scale = (19, 0) if type_text == "BIGINT" else decimal_sizes(type_text)
    admitted = {shape for shape, form in forms.items() if form.body in style.readings}
    spell = _Fitting(
        style,
        negative_mark=_mark(declared),
        admitted=frozenset(admitted),
        whole=precision - scale,
        places=scale,
        whole_only=type_text == "BIGINT",
    )
    fits = all(
        shape in admitted
        and style.readings[forms[shape].body].whole <= min(precision - scale, WHOLE_DIGITS_MAX)
        and style.readings[forms[shape].body].places <= scale
        for shape in rows
    )
    return Plan(
        type_text,
        _rule(numbers, declared),
        "declared",
        plain=spell,
        direct=fits and _is_direct(numbers),
    )


class _Fitting:
    """Plain text of a value of a declared type, None when it does not fit exactly."""

    __slots__ = ("_admitted", "_padded", "_places", "_plain", "_whole", "_whole_only")

    def __init__(
        self,
        style: Style,
        *,
        negative_mark: str,
        admitted: frozenset[str],
        whole: int,
        places: int,
        whole_only: bool,
    ) -> None:
        """admitted: shapes. whole, places: digits that the type has room for."""
        self._plain = PlainNumber(decimal=style.decimal, negative_mark=negative_mark)
        # 0,500 is no group of thousands, whatever is declared.
        follows = re.escape(style.decimal) or "(?!)"
        self._padded = re.compile(f"[^0-9]*0[0-9]*(?!{follows})[^0-9]+[0-9]")
        self._admitted = admitted
        self._whole = whole
        self._places = places
        self._whole_only = whole_only

    def __call__(self, text: str) -> str | None:
        if _DIGIT.sub("0", text) not in self._admitted or self._padded.match(text):
            return None
        plain = self._plain(text)
        whole, places = plain_sizes(plain)
        if whole > self._whole or places > self._places:
            return None
        head, _, tail = plain.partition(".")
        sign = "-" if head.startswith("-") else ""
        head = sign + (head.lstrip("-0") or "0")
        if not self._whole_only:
            return f"{head}.{tail[: self._places]}" if self._places else head
        return head if -BIGINT_MAX <= int(head) <= BIGINT_MAX else None


def _forms(rows: Mapping[str, int], declared: ColumnDeclaration) -> dict[str, Form]:
    found = {}
    for shape in rows:
        form = read_form(shape, side_marks=bool(_mark(declared)))
        if form is not None:
            found[shape] = form
    return found


def _mark(declared: ColumnDeclaration) -> str:
    return declared.negative if declared.negative in ("DR", "CR") else ""


def _sign_admitted(sign: str, declared: ColumnDeclaration) -> bool:
    if declared.negative is None or sign in ("", "plus", declared.negative):
        return True
    return sign in ("DR", "CR") and bool(_mark(declared))


def _style(
    cells: Cells,
    forms: Mapping[str, Form],
    rows: Mapping[str, int],
    declared: ColumnDeclaration,
    *,
    whole_only: bool,
) -> Style:
    shapes_of: dict[str, list[str]] = {}
    for shape, form in forms.items():
        shapes_of.setdefault(form.body, []).append(shape)

    def begins_with_zero(body: str) -> str | None:
        row = cells.first_match("^[^0-9]*0", shapes_of[body])
        return None if row is None else cells.shown(row)

    style = decide_style(
        shapes_of, declared, whole_only=whole_only, begins_with_zero=begins_with_zero
    )
    if isinstance(style, Style):
        return style
    examples = [min(rows[shape] for shape in shapes_of[body]) for body in style.bodies]
    raise _ask(cells, style, sorted(examples))


def _ask(cells: Cells, undecided: Undecided, examples: list[int]) -> ExecutorError:
    table = column_table(cells.source, cells.name)
    if undecided.conflict:
        seen = " and ".join(cells.shown(row) for row in examples)
        return ExecutorError(
            "csv.number_conflict",
            f"the numbers of column {cells.name} are not written in one way ({seen})",
            place=cells.place(examples[0]),
            remedy="Ask the sender, or keep the column as text: "
            + under(table, 'type = "VARCHAR"', verb="set"),
        )
    return ExecutorError(
        "csv.ambiguous_number",
        f"in column {cells.name} nothing decides whether the separator in"
        f" {cells.at(examples[0])} groups thousands or begins decimals",
        place=cells.place(examples[0]),
        remedy="Declare the decimal sign: " + under(table, 'decimal = "." (or decimal = ",")'),
    )


def _sized(cells: Cells, numbers: _Numbers, declared: ColumnDeclaration) -> Plan:
    style = numbers.style
    whole_shapes = [
        shape for shape, form in numbers.forms.items() if not style.readings[form.body].decimal
    ]
    if whole_shapes:
        row = cells.first_match("^[^0-9]*0[0-9]", whole_shapes)
        if row is not None:
            return _text(f"{cells.shown(row)} begins with 0 as an id does")
    plain = PlainNumber(decimal=style.decimal, negative_mark=_mark(declared))
    rule, direct = _rule(numbers, declared), _is_direct(numbers)
    if len(whole_shapes) == len(numbers.forms):
        return _whole(cells, numbers, Plan("BIGINT", rule, "", plain, direct))
    sizes = _sizes(numbers)
    if sizes is None:
        row = _longest(numbers)
        return _text(f"{cells.shown(row)} needs more than {DECIMAL_DIGITS_MAX} digits")
    return Plan(
        f"DECIMAL({sizes[0]},{sizes[1]})", rule, _decimal_reason(cells, numbers), plain, direct
    )


def _whole(cells: Cells, numbers: _Numbers, plan: Plan) -> Plan:
    style = numbers.style
    longest = _longest(numbers)
    if any(reading.whole > WHOLE_DIGITS_MAX for reading in style.readings.values()):
        return _text(f"{cells.shown(longest)} has more than {WHOLE_DIGITS_MAX} digits")
    spaced = [numbers.rows[shape] for shape, form in numbers.forms.items() if " " in form.body]
    if spaced:
        return _text(
            f"{cells.shown(min(spaced))} may be a reference: digits in groups with spaces and"
            " no decimals in the column; declare a type if it is an amount"
        )
    return Plan("BIGINT", plan.rule, "every value is a whole number", plan.plain, plan.direct)


def _decimal_reason(cells: Cells, numbers: _Numbers) -> str:
    style = numbers.style
    if style.reason:
        return f"every value is a number; {style.reason}"
    deciding = [
        numbers.rows[shape]
        for shape, form in numbers.forms.items()
        if style.readings[form.body].decimal and style.readings[form.body].places != 3
    ] or [
        numbers.rows[shape]
        for shape, form in numbers.forms.items()
        if style.readings[form.body].decimal
    ]
    sign = "point" if style.decimal == "." else "comma"
    return f"every value is a number; {cells.shown(min(deciding))} has a decimal {sign}"


def _sizes(numbers: _Numbers) -> tuple[int, int] | None:
    readings = numbers.style.readings.values()
    places = max((reading.places for reading in readings), default=0)
    digits = places + max((reading.whole for reading in readings), default=0)
    if digits > DECIMAL_DIGITS_MAX:
        return None
    return (SHORT_DECIMAL_DIGITS if digits <= SHORT_DECIMAL_DIGITS else DECIMAL_DIGITS_MAX), places


def _widest(numbers: _Numbers) -> tuple[int, int]:
    places = max(reading.places for reading in numbers.style.readings.values())
    return DECIMAL_DIGITS_MAX, min(places, DECIMAL_DIGITS_MAX)


def _longest(numbers: _Numbers) -> int:
    def digits(shape: str) -> tuple[int, int]:
        reading = numbers.style.readings[numbers.forms[shape].body]
        return reading.whole + reading.places, -numbers.rows[shape]

    return numbers.rows[max(numbers.forms, key=digits)]


def _rule(numbers: _Numbers, declared: ColumnDeclaration) -> dict[str, str]:
    signs = {form.sign for form in numbers.forms.values()} - {"", "plus"}
    currencies = sorted({form.currency for form in numbers.forms.values()} - {""})
    rule = {
        "decimal": numbers.style.decimal,
        "grouping": numbers.style.grouping,
        "negative": declared.negative or ", ".join(sorted(signs)),
        "currency": ", ".join(currencies),
    }
    return {key: value for key, value in rule.items() if value}


def _is_direct(numbers: _Numbers) -> bool:
    # A point that groups has the shape of one that begins decimals.
    return numbers.style.grouping != "." and all(map(_DIRECT.fullmatch, numbers.rows))


def _scientific_reason(cells: Cells, rows: Mapping[str, int], forms: Mapping[str, Form]) -> str:
    shapes = sorted((shape for shape in rows if is_scientific(shape)), key=rows.__getitem__)
    seen = "; ".join(cells.shown(rows[shape]) for shape in shapes[:DAMAGED_SHOWN_MAX])
    if all(form.body.isdigit() for form in forms.values()):
        return f"damaged id in scientific notation ({seen}); ids stay text"
    return f"scientific notation ({seen}), whose exact digits are not in the file"


def _text(reason: str) -> Plan:
    return Plan("VARCHAR", {}, reason)
