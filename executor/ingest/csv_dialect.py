"""Which delimiter and which header a CSV text has, decided on the whole text, with reasons.

DuckDB's sniffer is not used: it looks at a sample and silently drops what does not fit.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tieout.executor.errors import ExecutorError
from tieout.executor.ingest.amounts import WHITE
from tieout.executor.ingest.columns import kind_of
from tieout.executor.ingest.csv_records import (
    ONE_COLUMN,
    QUOTED_EMPTY,
    Dialect,
    Lines,
    Records,
    split_records,
)
from tieout.executor.ingest.declaration import CsvDeclaration, source_table, under

DELIMITERS = (b",", b";", b"\t", b"|")
DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
QUOTE = b'"'
NO_HEADER = -1

_SEPARATOR_LINE = re.compile(rb"(?i:sep)=([,;|\t])")
_DIGITS = str.maketrans("123456789", "000000000")


@dataclass(frozen=True, slots=True)
class Layout:
    """A text under one dialect.

    widths: fields per record, MALFORMED where text follows a closing quote. aside: per record,
    "" for a record that counts, else "blank" or "footer". header: index of the header record,
    NO_HEADER for none. width: fields of the header. reasons: of delimiter, quote and header.
    """

    dialect: Dialect
    records: Records
    widths: Sequence[int]
    aside: Sequence[str]
    header: int
    width: int
    reasons: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Footer:
    """What is declared of footer records."""

    patterns: tuple[re.Pattern[str], ...]
    lines: int


@dataclass(frozen=True, slots=True)
class _Fit:
    """One candidate: its layout, how many records have the header's width, how many do not."""

    layout: Layout
    fitting: int
    other: int
    preamble: int
    used_below: bool
    doubt: str


def find_layout(
    work: bytes, lines: Lines, declaration: CsvDeclaration, footer: Footer, *, name: str
) -> Layout:
    """The dialect and the header of a text that has at least one line that is not blank.

    Raises ExecutorError csv.ambiguous_delimiter, csv.header, csv.header_line or
    csv.unclosed_quote.
    """
    quote = QUOTE if declaration.quote is None else declaration.quote.encode()
    given, why = _given_delimiter(work, declaration)
    if given is not None:
        dialect = Dialect(given, quote)
        fit = _examined(work, lines, dialect, declaration, footer, name=name)
        return _settled(fit, {"delimiter": why}, name=name)
    fits, unclosed = [], None
    for delimiter in DELIMITERS:
        if delimiter not in work:
            continue
        try:
            dialect = Dialect(delimiter, quote)
            fits.append(_examined(work, lines, dialect, declaration, footer, name=name))
        except ExecutorError as error:
            if error.code != "csv.unclosed_quote":
                raise
            unclosed = error
    usable = [fit for fit in fits if fit.used_below and (fit.layout.width > 1 or fit.doubt)]
    chosen = _best(usable, name=name)
    if chosen is not None:
        mark = chosen.layout.dialect.delimiter.decode()
        reason = _delimiter_reason(chosen, DELIMITER_NAMES[mark])
        return _settled(chosen, {"delimiter": reason}, name=name)
    if unclosed is not None:
        raise unclosed
    alone = _examined(work, lines, Dialect(ONE_COLUMN, quote), declaration, footer, name=name)
    reason = "no delimiter divides the header and the records below it: one column"
    return _settled(alone, {"delimiter": reason}, name=name)


def _given_delimiter(work: bytes, declaration: CsvDeclaration) -> tuple[bytes | None, str]:
    if declaration.delimiter is not None:
        return declaration.delimiter.encode(), "declared"
    first = work.split(b"\n", 1)[0].rstrip(b"\r")
    said = _SEPARATOR_LINE.fullmatch(first)
    return (said[1], "line 1 of the file names it") if said else (None, "")


def _settled(fit: _Fit, reasons: Mapping[str, str], *, name: str) -> Layout:
    if fit.doubt:
        line = fit.layout.records.first_lines()[fit.layout.header]
        raise ExecutorError(
            "csv.header",
            fit.doubt,
            place=f"{name}, line {line}",
            remedy="Look at the file and declare the line of its header, 0 if it has none: "
            + under(source_table(name), f"header_line = {line}"),
        )
    layout = fit.layout
    return Layout(
        layout.dialect,
        layout.records,
        layout.widths,
        layout.aside,
        layout.header,
        layout.width,
        {**layout.reasons, **reasons},
    )


def _delimiter_reason(fit: _Fit, word: str) -> str:
    total = fit.fitting + fit.other
    share = "every record" if not fit.other else f"{fit.fitting} of {total} records"
    return f"with the {word}, {share} from the header on has {fit.layout.width} fields"


def _best(fits: list[_Fit], *, name: str) -> _Fit | None:
    whole = [fit for fit in fits if not fit.other and not fit.preamble]
    if not whole:
        most = max((fit.fitting for fit in fits), default=0)
        whole = [fit for fit in fits if fit.fitting == most]
    if len(whole) < 2:
        return whole[0] if whole else None
    marks = [fit.layout.dialect.delimiter.decode() for fit in whole]
    words = " and ".join(DELIMITER_NAMES[mark] for mark in marks)
    shown = "\\t" if marks[0] == "\t" else marks[0]
    raise ExecutorError(
        "csv.ambiguous_delimiter",
        f"{words} divide the records equally well",
        place=name,
        remedy="Declare the delimiter: " + under(source_table(name), f'delimiter = "{shown}"'),
    )


def _examined(
    work: bytes,
    lines: Lines,
    dialect: Dialect,
    declaration: CsvDeclaration,
    footer: Footer,
    *,
    name: str,
) -> _Fit:
    records = split_records(work, lines, dialect, name=name)
    widths = array("q", map(dialect.width, records.texts))
    aside = _set_aside(records, widths, dialect, footer, len(lines.texts))
    counted = [index for index, kind in enumerate(aside) if not kind]
    if counted and _SEPARATOR_LINE.fullmatch(records.texts[0]) and declaration.delimiter is None:
        counted = counted[1:] if counted[0] == 0 else counted
    reasons = {"quote": _quote_reason(dialect, work, declared=declaration.quote is not None)}
    if declaration.header_line == 0:
        header, doubt, reasons["header"] = NO_HEADER, "", "declared: there is none"
        usual = Counter(widths[index] for index in counted if widths[index] > 0).most_common(1)
        width = usual[0][0] if usual else 1
    elif declaration.header_line is not None:
        header = _declared_header(records, declaration.header_line, name=name)
        width, doubt, reasons["header"] = widths[header], "", "declared"
    else:
        header, doubt, reasons["header"] = _found_header(records, widths, dialect, counted)
        width = widths[header]
    below = [widths[index] for index in counted if index >= header]
    fitting = below.count(width)
    layout = Layout(dialect, records, widths, aside, header, width, reasons)
    return _Fit(
        layout=layout,
        fitting=fitting,
        other=len(below) - fitting,
        preamble=len(counted) - len(below),
        used_below=len(below) < 2 or any(one > 1 for one in below[1:]),
        doubt=doubt,
    )


def _quote_reason(dialect: Dialect, work: bytes, *, declared: bool) -> str:
    if declared:
        return "declared"
    return "it is in the file" if dialect.quote in work else "the usual one; none is in the file"


def _set_aside(
    records: Records, widths: Sequence[int], dialect: Dialect, footer: Footer, lines: int
) -> list[str]:
    """Per record "blank", "footer" or ""."""
    edge = b" \t\v\f\r\n" + dialect.delimiter + dialect.quote
    aside = []
    line = 1
    for text, width, count in zip(records.texts, widths, records.line_counts, strict=True):
        kind = ""
        if not text.strip(edge) and _is_blank(text, dialect):
            kind = "blank"
        elif (footer.lines and line > lines - footer.lines) or (
            footer.patterns and _is_footer(text, width, dialect, footer.patterns)
        ):
            kind = "footer"
        aside.append(kind)
        line += count
    return aside


def _is_blank(text: bytes, dialect: Dialect) -> bool:
    fields = dialect.fields(text)
    return fields is not None and not any(f.strip(b" \t\v\f\r\n" + QUOTED_EMPTY) for f in fields)


def _is_footer(
    text: bytes, width: int, dialect: Dialect, patterns: tuple[re.Pattern[str], ...]
) -> bool:
    whole = text.decode("utf-8")
    fields = dialect.fields(text) if width > 0 else None
    first = whole if fields is None else fields[0].replace(QUOTED_EMPTY, b"").decode("utf-8")
    return any(pattern.match(first) or pattern.match(whole) for pattern in patterns)


def _declared_header(records: Records, line: int, *, name: str) -> int:
    for index, first in enumerate(records.first_lines()):
        if first == line:
            return index
        if first > line:
            break
    raise ExecutorError(
        "csv.header_line",
        f"no record begins on line {line}, which is declared to be the header",
        place=f"{name}, line {line}",
        remedy="Declare the physical line, counted from 1, on which the header begins.",
    )


def _found_header(
    records: Records, widths: Sequence[int], dialect: Dialect, counted: list[int]
) -> tuple[int, str, str]:
    """Index of the header, a doubt to be asked or "", and the reason.

    The first record is the header, unless what follows has another width which holds, begins
    with a record of names, and has columns that differ in kind from those names.
    """
    first = counted[0] if counted else 0
    lines = records.first_lines()
    plain = "the first record of the file"
    if not counted or len(counted) == 1:
        return first, "", plain
    common = Counter(widths[index] for index in counted).most_common(1)[0][0]
    if common in (widths[first], -1) or common < 2:
        named = _names_below(records, dialect, counted, widths[first])
        if named is not None:
            doubt = (
                f"line {lines[first]} leaves fields empty and line {lines[named]} is full of"
                " names: nothing decides which of them is the header"
            )
            return named, doubt, plain
        headless = _reads_like_data(records, dialect, counted, widths[first])
        doubt = f"every field of line {lines[first]} reads like the values below it"
        return first, (doubt if headless else ""), plain
    start = next(index for index in counted if widths[index] == common)
    body = [index for index in counted if index > start and widths[index] == common]
    names = _texts(records, dialect, start)
    if not body or not _are_names(names):
        return first, "", plain
    if any(_kinds_below(records, dialect, body, common)):
        reason = f"line {lines[start]} is the first with {common} fields, as the records below"
        return start, "", reason
    doubt = (
        f"line {lines[first]} has {widths[first]} fields and most records have {common}, from"
        f" line {lines[start]} on: nothing decides where the header is"
    )
    return first, doubt, plain


def _texts(records: Records, dialect: Dialect, index: int) -> list[str]:
    fields = dialect.fields(records.texts[index]) or []
    return [f.replace(QUOTED_EMPTY, b"").decode("utf-8").strip(WHITE) for f in fields]


def _are_names(fields: list[str]) -> bool:
    return all(field and kind_of(field) == "text" for field in fields)


def _names_below(records: Records, dialect: Dialect, counted: list[int], width: int) -> int | None:
    """The first record as full as most, when it is one of names and the first of all is not full.

    Where the names are like the values below them, the first of all must be mostly empty: a
    header may lack a name.
    """
    filled = sum(map(bool, _texts(records, dialect, counted[0])))
    if filled >= width:
        return None
    body = [index for index in counted[1:] if dialect.width(records.texts[index]) == width]
    counts = [sum(map(bool, _texts(records, dialect, index))) for index in body]
    usual = Counter(counts).most_common(1)[0][0] if counts else 0
    if filled >= usual:
        return None
    place = next(place for place, count in enumerate(counts) if count >= usual)
    names = [text for text in _texts(records, dialect, body[place]) if text]
    below = body[place + 1 :]
    if not below or not _are_names(names) or len(set(names)) < len(names):
        return None
    typed = any(_kinds_below(records, dialect, below, width))
    return body[place] if typed or 2 * filled < usual else None


def _reads_like_data(records: Records, dialect: Dialect, counted: list[int], width: int) -> bool:
    """Whether no column with dates, decimals or booleans below has a name above it."""
    head = [kind_of(text) if text else "" for text in _texts(records, dialect, counted[0])]
    if len(head) != width or not {"moment", "number", "boolean"} & set(head):
        return False
    body = [index for index in counted[1:] if dialect.width(records.texts[index]) == width]
    kinds = _kinds_below(records, dialect, body, width)
    typed = [(above, below) for above, below in zip(head, kinds, strict=True) if below]
    return bool(typed) and all(above in ("", below) for above, below in typed)


def _kinds_below(records: Records, dialect: Dialect, body: list[int], width: int) -> list[str]:
    """Per column the one kind of all its values, "" when it has several or is text or empty."""
    kinds = [""] * width
    shapes: list[set[str]] = [set() for _ in kinds]
    alive = list(range(width))
    for index in body:
        fields = dialect.fields(records.texts[index]) or []
        mixed = set()
        for place in alive:
            text = fields[place].decode("utf-8").strip(WHITE + "\0")
            shape = text.translate(_DIGITS)
            if not shape or shape in shapes[place]:
                continue
            shapes[place].add(shape)
            kind = kind_of(shape)
            if kind == "text" or kinds[place] not in ("", kind):
                mixed.add(place)
                kinds[place] = ""
            else:
                kinds[place] = kind
        if mixed:
            alive = [place for place in alive if place not in mixed]
        if not alive:
            break
    return kinds
