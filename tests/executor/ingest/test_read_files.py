"""Each rule for a whole file: its bytes, what is read of it, or how it is refused."""

from __future__ import annotations

import codecs

import pytest

from tieout.executor.errors import ExecutorError
from tieout.executor.ingest.reading import ColumnDeclaration, CsvDeclaration, read_csv


def read(raw: bytes, **settings: object):
    return read_csv(raw, CsvDeclaration(**settings), name="src")


def rows(reading) -> list[tuple[object, ...]]:
    table = reading.table.drop_columns(["__row"])
    return [tuple(row.values()) for row in table.to_pylist()]


def refusal(raw: bytes, **settings: object) -> ExecutorError:
    with pytest.raises(ExecutorError) as caught:
        read(raw, **settings)
    assert caught.value.remedy
    assert caught.value.place.startswith("src")
    return caught.value


DIALECTS = [
    # bytes, delimiter, names, rows
    (b"a,b\n1,x\n", ",", ("a", "b"), [(1, "x")]),
    (b"a;b\r\n1;x\r\n", ";", ("a", "b"), [(1, "x")]),
    (b"a\tb\r1\tx\r", "\t", ("a", "b"), [(1, "x")]),
    (b"a|b\n1|x", "|", ("a", "b"), [(1, "x")]),
    (b"sep=;\na;b\n1,5;x\n", ";", ("a", "b"), None),
    (b"a\nx\n", "", ("a",), [("x",)]),
    (b"item\nrent\nx;y\n", "", ("item",), [("rent",), ("x;y",)]),
    (b"Amount, EUR\nx\ny\n", "", ("Amount, EUR",), [("x",), ("y",)]),
    (b"Datum;Betrag\n1.;1,5\n2.;2,5\n", ";", ("Datum", "Betrag"), None),
    (b'a,b\n"1;2;3",x\n"4;5;6",y\n', ",", ("a", "b"), [("1;2;3", "x"), ("4;5;6", "y")]),
    (b'a,b\n"x\ny",""\n,z\n', ",", ("a", "b"), [("x\ny", ""), (None, "z")]),
    (b'a,b\n"say ""hi""",5" pipe\n', ",", ("a", "b"), [('say "hi"', '5" pipe')]),
    (b'a,b\n"",""""\n', ",", ("a", "b"), [("", '"')]),
    (b"a,b\n'x,y\n", ",", ("a", "b"), [("'x", "y")]),
    (b"a;b, c\n1;x, y\n2;z\n", ";", ("a", "b, c"), [(1, "x, y"), (2, "z")]),
    (b"a,b\n", ",", ("a", "b"), []),
    (b"a\n", "", ("a",), []),
]


@pytest.mark.parametrize(("raw", "delimiter", "names", "expected"), DIALECTS)
def test_dialect_is_found(raw, delimiter, names, expected):
    reading = read(raw)
    assert delimiter == reading.delimiter
    assert names == tuple(column.name for column in reading.columns)
    assert ["__row", *names] == reading.table.column_names
    if expected is not None:
        assert expected == rows(reading)
    assert set(reading.reasons) == {"delimiter", "encoding", "header", "newline", "quote"}


def test_delimiter_and_quote_can_be_declared():
    reading = read(b"a^b\n'x^y'^1\n", delimiter="^", quote="'")
    assert rows(reading) == [("x^y", 1)]
    reading = read(b'a,b\n"x,y"\n', quote="")
    assert rows(reading) == [('"x', 'y"')]
    reading = read(b"a;b\n1;2\n", delimiter=",")
    assert rows(reading) == [("1;2",)]


@pytest.mark.parametrize("raw", [b"a,b;c\n1,2;3\n", b"a;b\tc\nx;y\tz\n"])
def test_two_delimiters_that_fit_equally_are_asked_about(raw):
    error = refusal(raw)
    assert error.code == "csv.ambiguous_delimiter"
    assert "under [source.src] add: delimiter = " in error.remedy
    assert read(raw, delimiter=";").delimiter == ";"


NEWLINES = [
    (b"a,b\n1,2\n", "\n"),
    (b"a,b\r\n1,2\r\n", "\r\n"),
    (b"a,b\r1,2", "\r"),
    (b"a,b\r\n1,2\n", "mixed"),
    (b"a,b", ""),
    (b'a,b\r\n"x\ny",2\r\n', "\r\n"),
]


@pytest.mark.parametrize(("raw", "newline"), NEWLINES)
def test_line_ends(raw, newline):
    assert newline == read(raw).newline


UMLAUT = "name;n\nMüller €;1\nx;2\n"
ENCODINGS = [
    (UMLAUT.encode(), None, "utf-8", False),
    (codecs.BOM_UTF8 + UMLAUT.encode(), None, "utf-8", True),
    (UMLAUT.encode("cp1252"), None, "cp1252", False),
    (codecs.BOM_UTF16_LE + UMLAUT.encode("utf-16-le"), None, "utf-16-le", True),
    (codecs.BOM_UTF16_BE + UMLAUT.encode("utf-16-be"), None, "utf-16-be", True),
    (codecs.BOM_UTF16_LE + UMLAUT.encode("utf-16-le"), "utf-16", "utf-16-le", True),
    (UMLAUT.encode("utf-16-le"), "utf-16-le", "utf-16-le", False),
    (codecs.BOM_UTF8 + UMLAUT.encode(), "UTF-8-SIG", "utf-8", True),
    (UMLAUT.encode("iso8859-15"), "latin9", "iso8859-15", False),
]


@pytest.mark.parametrize(("raw", "declared", "encoding", "bom"), ENCODINGS)
def test_encoding_and_byte_offsets(raw, declared, encoding, bom):
    reading = read(raw, encoding=declared)
    assert (encoding, bom) == (reading.encoding, reading.bom)
    assert rows(reading) == [("Müller €", 1), ("x", 2)]
    spans = reading.records.select(["byte_start", "byte_end"]).to_pylist()
    texts = [raw[s["byte_start"] : s["byte_end"]].decode(encoding) for s in spans]
    assert texts == ["name;n", "Müller €;1", "x;2"]


def test_reason_of_windows_1252_names_the_byte():
    reading = read("a;b\nx;ü\n".encode("cp1252"))
    assert "line 2, byte 6: 0xfc is not UTF-8" in reading.reasons["encoding"]


REFUSED_BYTES = [
    (b"", {}, "csv.empty", "src"),
    (b"\n \r\n\t\n", {}, "csv.blank", "src"),
    (b",,\n,,\n", {}, "csv.blank", "src"),
    (codecs.BOM_UTF8, {}, "csv.blank", "src"),
    (b"a,b\nx\0,y\n", {}, "csv.nul_byte", "src, line 2, byte 5"),
    ("a,b\n1,2\n".encode("utf-16-le"), {}, "csv.nul_byte", "src, line 1, byte 1"),
    (codecs.BOM_UTF32_LE + "a".encode("utf-32-le"), {}, "csv.encoding", "src"),
    (b"a,b\n1,\xfc\n", {"encoding": "utf-8"}, "csv.encoding", "src, line 2, byte 6"),
    (codecs.BOM_UTF8 + b"a\n\xff", {}, "csv.encoding", "src, line 2, byte 5"),
    (b"a,b\r1,\x81\n", {}, "csv.encoding", "src, line 2, byte 6"),
    (codecs.BOM_UTF8 + b"a\n", {"encoding": "cp1252"}, "csv.encoding", "src, byte 0"),
    (b"\xff\xfea\0\n", {}, "csv.encoding", "src, line 1, byte 4"),
    (b'a,b\n1,2\n"x,3\n4,5\n', {}, "csv.unclosed_quote", "src, line 3"),
    (b'a\n"x\ny\n', {}, "csv.unclosed_quote", "src, line 2"),
    # Read in time linear in the run of quotes, or this test takes minutes.
    (b"a,b\n" + b'"' * 200_001 + b"\n", {}, "csv.unclosed_quote", "src, line 2"),
    (b"a,__row\n1,2\n", {}, "csv.reserved_name", "src, line 1"),
    (b"a,b\n1,2\n", {"header_line": 9}, "csv.header_line", "src, line 9"),
    (b'a,"b\nc"\n1,2\n', {"header_line": 2}, "csv.header_line", "src, line 2"),
    (b"a,b\n1,2\n", {"columns": {"c": ColumnDeclaration()}}, "csv.unknown_column", "src"),
    (b",".join([b"x"] * 5000), {}, "csv.columns", "src, line 1"),
    (b'"a"b,c\n1,2\n', {"delimiter": ","}, "csv.header", "src, line 1"),
    (b"2026-01-02,-5.00\n2026-01-03,7.00\n", {}, "csv.header", "src, line 1"),
    (b"Vendors\nid;name\nV1;Bob\n", {}, "csv.header", "src, line 1"),
    (b"a,b\nc,d\nx,y,z\nu,v,w\np,q,r\n", {}, "csv.header", "src, line 1"),
]


@pytest.mark.parametrize(("raw", "settings", "code", "place"), REFUSED_BYTES)
def test_refused_file(raw, settings, code, place):
    error = refusal(raw, **settings)
    assert code == error.code
    assert place == error.place


PREAMBLE = (
    '\ufeffAccount;7\r\n\r\n"Balance";1.234,56\r\nDay;Amount;To\r\n'
    "30.03.2026;-80,10;A\r\n31.03.2026;5,00;B\r\n"
)


def test_preamble_is_found_and_kept():
    reading = read(PREAMBLE.encode())
    assert reading.header_line == 4
    assert reading.delimiter == ";"
    assert (reading.account.preamble, reading.account.blank, reading.data_rows) == (2, 1, 2)
    assert reading.columns[1].control_total == "-75.10"
    assert "line 4 is the first with 3 fields" in reading.reasons["header"]


FILLED_UP = {
    # A first record that leaves fields empty, and the line that may be the header; 0: none.
    "account": ("Konto;DE12 3456;;;\nDatum;Text;Betrag;Saldo;Info\n13.02.2026;x;1,0;2,0;a\n", 2),
    "two lines": ("Konto;7;;\nZeitraum;Mai;;\n;;;\nTag;An;Betrag;Wer\n13.02.2026;x;1,0;a\n", 4),
    "each line ends so": ("Konto;7;;;\nTag;An;Betrag;Wer;\n13.02.2026;x;1,0;a;\n", 2),
    "title over texts": ("Report,,\nName,City,Note\nA,B,C\nD,E,F\n", 2),
    "a name is missing": ("a,b,\nx,y,z\nu,v,w\n", 0),
    "an index without a name": (",city\nx,Oslo\ny,Rome\n", 0),
    "values below": ("name,,,\nalice,p,q,1\nbob,r,s,2\n", 0),
    "a pivot": (",Q1,Q2\nrev,1,2\ncost,3,4\n", 0),
}


@pytest.mark.parametrize("case", list(FILLED_UP))
def test_preamble_filled_up_with_delimiters_is_asked_about(case):
    text, line = FILLED_UP[case]
    if not line:
        assert read(text.encode()).header_line == 1
        return
    error = refusal(text.encode())
    assert (error.code, error.place) == ("csv.header", f"src, line {line}")
    assert error.remedy.endswith(f"under [source.src] add: header_line = {line}")
    assert read(text.encode(), header_line=line).data_rows == text.count("\n") - line
    assert read(text.encode(), header_line=1).header_line == 1


def test_preamble_of_the_same_width_is_declared():
    raw = PREAMBLE.replace(";To", "").replace(";A\r", "\r").replace(";B\r", "\r").encode()
    reading = read(raw, header_line=4)
    assert (reading.account.preamble, reading.account.blank) == (2, 1)
    assert reading.reasons["header"] == "declared"
    assert [column.type for column in reading.columns] == ["DATE", "DECIMAL(18,2)"]


def test_header_can_be_absent():
    reading = read(b"2026-01-02,-5.00\n2026-01-03,7.00\n", header_line=0)
    assert tuple(column.name for column in reading.columns) == ("column_1", "column_2")
    assert (reading.header_line, reading.data_rows, reading.account.header) == (0, 2, 0)


def test_header_that_reads_like_data_can_be_declared():
    reading = read(b"2024,2025\n1,2\n", header_line=1)
    assert reading.table.column_names == ["__row", "2024", "2025"]


def test_a_wide_pivot_header_is_not_read_for_each_column_again():
    head = b"account," + b",".join(b"%d" % n for n in range(1000, 2000))
    body = b"".join(b"a%d" % n + b",7" * 1000 + b"\n" for n in range(300))
    assert refusal(head + b"\n" + body).code == "csv.header"
    assert len(read(head + b"\n" + body, header_line=1).columns) == 1001


NAMES = [
    (b"Amount,Amount,amount\n1,2,3\n", ["Amount", "Amount_2", "amount_3"]),
    (b"Amount_2,Amount,Amount\n1,2,3\n", ["Amount_2", "Amount", "Amount_3"]),
    (b"a,, \nx,y,z\n", ["a", "column_2", "column_3"]),
    (b'"a\nb",  c\t d \nx,y\n', ["a b", "c d"]),
    (b"column_2,\nx,y\n", ["column_2", "column_2_2"]),
]


@pytest.mark.parametrize(("raw", "names"), NAMES)
def test_names(raw, names):
    assert names == [column.name for column in read(raw).columns]


def test_header_as_received_is_kept():
    assert [column.header for column in read(b" A  b\nx\n").columns] == [" A  b"]


WIDE = b"day,amount\n2026-01-01,1.00\n2026-01-02,2.00,late,x\n2026-01-03\n"


def test_other_widths_are_refused_with_the_ways_out():
    error = refusal(WIDE)
    assert error.code == "csv.rejected"
    assert "line 3: 4 fields, wider" in error.message
    assert "line 4: 1 fields, narrower" in error.message
    assert 'wide_rows = "extend"' in error.remedy
    assert 'rejected = "keep"' in error.remedy
    assert "footer" in error.remedy


def test_only_the_first_rejects_are_listed():
    error = refusal(b"a,b\n1,2\n" + b"1\n" * 9)
    assert "line 7" in error.message
    assert "line 8" not in error.message
    assert "and 4 more" in error.message
    assert "extend" not in error.remedy


def test_rejects_can_be_kept_apart():
    reading = read(WIDE, rejected="keep")
    assert reading.data_rows == 1
    assert [reject.line for reject in reading.rejects] == [3, 4]
    assert reading.records["kind"].to_pylist() == ["header", "data", "rejected", "rejected"]
    assert reading.records["reason"].to_pylist()[3].startswith("1 fields")


def test_wide_rows_extend_the_table():
    reading = read(WIDE, wide_rows="extend", rejected="keep")
    assert reading.table.column_names == ["__row", "day", "amount", "extra_1", "extra_2"]
    assert reading.table["extra_1"].to_pylist() == [None, "late"]
    assert reading.account.rejected == 1


def test_text_after_a_closing_quote_is_rejected():
    error = refusal(b'a,b\n"x"y,1\nz,2\n')
    assert error.code == "csv.rejected"
    assert "text follows a closing quote" in error.message


def test_more_wide_rows_than_narrow_ones_hide_nothing():
    body = b"".join(b"2026-02-%02d,1.00,late\n" % day for day in range(1, 20))
    error = refusal(b"day,amount\n2026-01-01,1.00\n" + body)
    assert error.code == "csv.rejected"
    assert error.message.startswith("19 ")


STATEMENT = (
    b"Date,Description,Amount\n2026-05-02,Sale,100.00\nSubtotal,,100.00\n\n"
    b"2026-05-09,Sale,180.00\nTotal,,280.00\nPrinted today\n"
)


def test_footer_patterns_set_records_apart():
    reading = read(STATEMENT, footer=("Subtotal|Total", "Printed"))
    assert reading.columns[2].control_total == "280.00"
    account = reading.account
    assert (account.data, account.footer, account.blank) == (2, 3, 1)
    kinds = reading.records["kind"].to_pylist()
    assert kinds == ["header", "data", "footer", "blank", "data", "footer", "footer"]
    assert reading.records["row"].to_pylist() == [None, 1, None, None, 2, None, None]


def test_footer_lines_count_from_the_end():
    raw = b"a,b\n1,2\nTotal,2\nBye\n"
    reading = read(raw, footer_lines=2)
    assert (reading.data_rows, reading.account.footer) == (1, 2)


def test_undeclared_footer_is_named_in_the_refusal():
    error = refusal(STATEMENT)
    assert error.code == "csv.rejected"
    assert "footer = ['^Printed']" in error.remedy


def test_total_line_of_the_right_width_is_asked_about():
    error = refusal(b"Date,What,Amount\n2026-05-02,Sale,1.00\nSubtotal,,1.00\nTotal,,1.00\n")
    assert error.code == "csv.total_line"
    assert "['^Subtotal', '^Total']" in error.remedy
    declared = {"Date": ColumnDeclaration(type="DATE")}
    error = refusal(b"Date,Amount\n2026-05-02,1.00\nTotal,1.00\n", columns=declared)
    assert error.code == "csv.value"
    assert "['^Total']" in error.remedy


def test_sum_of_the_column_named_a_total_is_asked_about():
    raw = b"What,Amount\nSale,1.00\nRent,-3.00\nTotal,-2.00\n"
    assert refusal(raw).code == "csv.total_line"
    as_data = {"What": ColumnDeclaration(type="VARCHAR")}
    assert read(raw, columns=as_data).data_rows == 3
    # A vendor of that name is data.
    assert read(b"What,Amount\nSale,1.00\nRent,-3.00\nTotal SA,7.00\n").data_rows == 3


def test_blank_records_are_counted_apart():
    reading = read(b'a,b\n\n1,2\n , \n"",\n3,4\n\n')
    assert (reading.data_rows, reading.account.blank) == (2, 4)


def test_multi_line_records_count_all_their_lines():
    reading = read(b'"a\nb",c\n"x\n\ny",1\nz,2\n')
    account = reading.account
    assert (account.lines, account.header, account.data) == (6, 2, 4)
    assert reading.records["line_first"].to_pylist() == [1, 3, 6]
    assert reading.records["line_last"].to_pylist() == [2, 5, 6]


def test_evidence_after_a_million_bytes_still_decides():
    plain = b"a,b\n" + b"shop,05/06/2026\n" * 70_000
    assert refusal(plain).code == "csv.ambiguous_date"
    assert read(plain + b"shop,27/06/2026\n").columns[1].type == "DATE"
    late = read(plain + b'"x,y",27/06/2026\n')
    assert (late.data_rows, late.table["a"][-1].as_py()) == (70_001, "x,y")
    assert "line 70002: 27/06/2026" in late.columns[1].reason


@pytest.mark.parametrize(
    ("late", "reason"),
    [("x", "line 70002: x is text"), ("007", "line 70002: 007 begins with 0 as an id does")],
)
def test_a_late_value_decides_for_the_whole_column(late, reason):
    raw = b"a,b\n" + b"1,7\n" * 70_000 + f"1,{late}\n".encode()
    column = read(raw).columns[1]
    assert (column.type, column.reason) == ("VARCHAR", reason)
