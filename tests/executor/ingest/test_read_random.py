"""Random tables in random dialects: they read back equal, and no byte goes missing."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from tieout.executor.errors import ExecutorError
from tieout.executor.ingest.reading import (
    ColumnDeclaration,
    CsvDeclaration,
    CsvReading,
    read_csv,
)

TEXT = ColumnDeclaration(type="VARCHAR")

words = st.text(
    st.sampled_from("aZ09 ,;|\t\"'\n\r.€ü-\u00a0"), max_size=6
)  # everything that a dialect gives a meaning
cells = st.one_of(st.none(), words)
amounts = st.one_of(st.none(), st.decimals(-(10**9), 10**9, places=2, allow_nan=False))


@st.composite
def dialects(draw):
    delimiter = draw(st.sampled_from([",", ";", "\t", "|"]))
    return {
        "delimiter": delimiter,
        "newline": draw(st.sampled_from(["\n", "\r\n", "\r"])),
        "encoding": draw(st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16"])),
        "quote_all": draw(st.booleans()),
        "decimal": draw(st.sampled_from([".", ","])),
        "grouped": draw(st.booleans()),
        "negative": draw(st.sampled_from(["-{}", "{}-", "({})", "\u2212{}"])),
        "last_end": draw(st.booleans()),
    }


def field(text: str | None, dialect) -> str:
    if text is None:
        return ""
    special = {dialect["delimiter"], '"', "\n", "\r"}
    if dialect["quote_all"] or not text or text[0] == '"' or special & set(text):
        return '"' + text.replace('"', '""') + '"'
    return text


def amount(value: Decimal | None, dialect) -> str | None:
    if value is None:
        return None
    plain = f"{abs(value):,.2f}" if dialect["grouped"] else f"{abs(value):.2f}"
    if dialect["decimal"] == ",":
        plain = plain.translate(str.maketrans(",.", ".,"))
    return dialect["negative"].format(plain) if value < 0 else plain


def rendered(table, dialect) -> bytes:
    lines = [dialect["delimiter"].join(field(h, dialect) for h in ("key", "text", "sum"))]
    for n, (text, value) in enumerate(table):
        fields = (f"k{n}", text, amount(value, dialect))
        lines.append(dialect["delimiter"].join(field(f, dialect) for f in fields))
    body = dialect["newline"].join(lines) + (dialect["newline"] if dialect["last_end"] else "")
    if dialect["encoding"] == "cp1252":
        body = body.replace("\u2212", "-")
    return body.encode(dialect["encoding"])


def assert_tiles(reading: CsvReading, raw: bytes) -> None:
    """Every byte belongs to the mark, one record or one line end; every line to one record."""
    width = 2 if reading.encoding.startswith("utf-16") else 1
    ends = [end.encode(reading.encoding) for end in ("\r\n", "\n", "\r", "")]
    spans = reading.records.select(["byte_start", "byte_end", "line_first", "line_last"])
    marks = {"utf-8": 3, "utf-16-le": 2, "utf-16-be": 2}
    reached = marks[reading.encoding] if reading.bom else 0
    line = 0
    for span in spans.to_pylist():
        assert span["byte_start"] == reached
        assert span["line_first"] == line + 1
        line = span["line_last"]
        end = next(e for e in ends if raw.startswith(e, span["byte_end"]))
        assert len(end) <= 2 * width
        reached = span["byte_end"] + len(end)
    assert (reached, line) == (len(raw), reading.account.lines)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(cells, amounts), min_size=1, max_size=8), dialects())
def test_a_table_reads_back_equal(table, dialect):
    raw = rendered(table, dialect)
    declaration = CsvDeclaration(
        encoding="cp1252" if dialect["encoding"] == "cp1252" else None,
        delimiter=dialect["delimiter"],
        columns={"key": TEXT, "text": TEXT, "sum": ColumnDeclaration(type="DECIMAL(18,2)")},
    )
    reading = read_csv(raw, declaration, name="src")
    assert [text for text, _ in table] == reading.table["text"].to_pylist()
    assert [value for _, value in table] == reading.table["sum"].to_pylist()
    total = sum((value for _, value in table if value is not None), Decimal("0.00"))
    assert total == Decimal(reading.columns[2].control_total)
    assert list(range(1, len(table) + 1)) == reading.table["__row"].to_pylist()
    assert_tiles(reading, raw)


@settings(max_examples=150, deadline=None)
@given(st.lists(amounts, min_size=1, max_size=8), dialects())
def test_an_undeclared_style_reads_back_equal(values, dialect):
    raw = rendered([("x", value) for value in values], dialect)
    reading = read_csv(raw, CsvDeclaration(), name="src")
    assert values == reading.table["sum"].to_pylist()
    if any(value is not None for value in values):
        assert reading.columns[2].type == "DECIMAL(18,2)"


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from('a0,;"\n\r. \u2212ü'), min_size=1, max_size=60), st.booleans())
def test_any_text_is_read_whole_or_refused(text, keep):
    raw = text.encode()
    declaration = CsvDeclaration(
        rejected="keep" if keep else "refuse", wide_rows="extend" if keep else "refuse"
    )
    try:
        reading = read_csv(raw, declaration, name="src")
    except ExecutorError as error:
        assert error.code.startswith("csv.")
        return
    assert_tiles(reading, raw)
    kinds = reading.records["kind"].to_pylist()
    assert kinds.count("data") == reading.data_rows == len(reading.table)
    assert kinds.count("header") == 1
    again = read_csv(raw, declaration, name="src")
    assert again.table.equals(reading.table)
    assert again.records.equals(reading.records)
    assert again.columns == reading.columns


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(raw):
    try:
        reading = read_csv(raw, CsvDeclaration(rejected="keep"), name="src")
    except ExecutorError as error:
        assert error.code.startswith("csv.")
    else:
        assert_tiles(reading, raw)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.decimals(-(10**12), 10**12, places=3, allow_nan=False), min_size=1, max_size=20))
def test_direct_and_spelled_values_are_equal(values):
    plain = "".join(f"r,{value}\n" for value in values)
    quoted = "".join(f'r,"{value:,} $"\n' for value in values)
    declared = {"x": ColumnDeclaration(decimal=".")}
    readings = [
        read_csv(f"n,x\n{body}".encode(), CsvDeclaration(columns=declared), name="src")
        for body in (plain, quoted)
    ]
    assert readings[0].table["x"].equals(readings[1].table["x"])
    assert readings[0].columns[1].control_total == readings[1].columns[1].control_total
