"""Lines that look like totals: which are asked about, what is said, and that the ways out work."""

from __future__ import annotations

import re
import tomllib

import pytest

from tieout.executor.errors import ExecutorError
from tieout.executor.ingest.reading import ColumnDeclaration, CsvDeclaration, read_csv
from tieout.executor.ingest.total_words import is_bare, is_opening, total_word

ADVICE = re.compile(
    r"under (\[source\..*?\]) (?:add|set): (\w+ = (?:\[.*?\](?=; |$)|\"[^\"]*\"|\d+))"
)


def read(raw: str, **settings: object):
    return read_csv(raw.encode(), CsvDeclaration(**settings), name="src")


def refusal(raw: str, **settings: object) -> ExecutorError:
    with pytest.raises(ExecutorError) as caught:
        read(raw, **settings)
    return caught.value


def advised(error: ExecutorError) -> list[dict]:
    """What each piece of TOML in a remedy declares of the source; fails when it is no TOML."""
    return [
        tomllib.loads("\n".join(found))["source"]["src"] for found in ADVICE.findall(error.remedy)
    ]


ASKED = {
    # file, lines asked about, words of the message, sum of the last column without them
    "does not foot": (
        "id,amount\nA1,10.00\nA2,20.50\nTotal,31.50\n",
        "line 4 looks",
        "column amount above it sums to 30.50, so it is off by 1.00",
        "30.50",
    ),
    "foots": ("id,amount\nA1,1.00\nA2,2.50\nTotal,3.50\n", "line 4", "is the sum", "3.50"),
    "groups": (
        "g,amount\nA,1.00\nA,2.00\nTotal A,3.00\nB,4\nB,7\nTotal B,11.00\nGrand Total,14.00\n",
        "lines 4, 7, 8",
        "is the sum of column amount",
        "14.00",
    ),
    "in the middle": (
        "id,amount\nA1,1.00\nSub-total,1.00\nA2,2.00\n",
        "line 3",
        "it is the sum",
        "3.00",
    ),
    "text left empty": (
        "id,who,amount\nA1,x,1.00\nReport total EUR,,9.00\nA2,y,2.00\n",
        "line 3",
        "off by 8.00",
        "3.00",
    ),
    "without a name": (
        "Datum;Text;Betrag\n01.02.2026;x;10,00\n13.02.2026;y;20,50\n;;30,50\n",
        "line 4",
        "it is the sum of column Betrag",
        "30.50",
    ),
    "without a name or a sum": (
        "Datum;Text;Betrag\n01.02.2026;x;10,00\n13.02.2026;y;20,50\n;;31,50\n",
        "line 4",
        "off by 1.00",
        "30.50",
    ),
    "in the second column": (
        'day,details,amount\n2026-01-02,a,1.00\n2026-01-03,b,2.00\n"","Closing balance",7.00\n',
        "line 4",
        "off by 4.00",
        "3.00",
    ),
    "beside data of that word": (
        "What,Amount\nTotal SA,2.00\nRent,3.00\nTotal,7.00\n",
        "line 4",
        "does not foot",
        "5.00",
    ),
    "with an apostrophe": (
        "What,Amount\nIt's,2.00\nRent,3.00\n'Total,7.00\n",
        "line 4",
        "does not foot",
        "5.00",
    ),
    "no amount": (
        "What,Amount\nA,2.00\nB,3.00\nPrinted 3 May 2026,\n",
        "line 4",
        "no column",
        "5.00",
    ),
}


@pytest.mark.parametrize("case", list(ASKED))
def test_asked_and_settled_either_way(case):
    raw, lines, words, kept = ASKED[case]
    error = refusal(raw)
    assert error.code == "csv.total_line"
    assert lines in error.message
    assert words in error.message
    footer, data = advised(error)
    settled = read(raw, footer=tuple(footer["footer"]))
    assert kept == settled.columns[-1].control_total
    asked = error.message.count("records look") and int(error.message.split()[0])
    assert settled.account.footer == max(1, asked)
    columns = {name: ColumnDeclaration(**said) for name, said in data["column"].items()}
    assert read(raw, columns=columns).account.footer == 0


HONEST = {
    "vendor": "What,Amount\nSale,1.00\nRent,-3.00\nTotal SA,7.00\n",
    "vendor with all its texts": "What,Ref,Amount\nA,r1,1.00\nB,r2,3.00\nTotal Energies,r3,7.00\n",
    "group without a name": "region,n\nA,10\nB,20\n,5\n",
    "key without a value": "k1,k2,amount\na,1,10.00\nb,2,20.00\n,3,30.00\n",
    "opening balance": "What,Ref,Amount\nOpening balance,,5.00\nA,r1,1.00\nB,r2,3.00\n",
    "nothing but totals": "What,Amount\nTotal,1.00\nTotal,2.00\n",
    "named in a later column": "id,kind,amount\nA1,x,1.00\nA2,Closing balance,1.00\n",
    "text missing": "id,city,n\n1,Oslo,5\n2,,6\n3,,11\n4,Rome,7\n",
}


@pytest.mark.parametrize("case", list(HONEST))
def test_honest_data_is_read(case):
    raw = HONEST[case]
    assert read(raw).data_rows == raw.count("\n") - 1


def test_a_total_among_kept_rejects_is_asked_about():
    raw = "id,day,amount\nA1,2026-01-02,1.00\nA2\nA3,2026-01-03,2.00\nTOTAL,,8.00\n"
    error = refusal(raw, rejected="keep")
    assert (error.code, error.place) == ("csv.total_line", "src, line 5")
    assert read(raw, rejected="keep", footer=("^TOTAL",)).columns[2].control_total == "3.00"


def test_declared_footers_stay_in_the_advice():
    error = refusal("id,n\nA,1\nB,2\nTotal,4\nPrinted\n", footer=("Pri'nted|Printed",))
    assert "under [source.src] set: " in error.remedy
    assert advised(error)[0] == {"footer": ["Pri'nted|Printed", "^Total"]}


WORDS = [
    # name, word, bare, opening
    ("Total", "Total", True, False),
    ("TOTAL (12 records):", "TOTAL", True, False),
    ("Grand-Total EUR 2026", "Grand-Total", True, False),
    ("Total C", "Total", False, False),
    ("Totaliser", "", False, False),
    ("Gesamtsumme", "Gesamtsumme", True, False),
    ("Endsaldo zum 30.06.2026", "Endsaldo", True, False),
    ("Summary", "", False, False),
    ("Balance carried forward", "Balance carried", True, False),
    ("Balance b/f", "Balance b/f", True, True),
    ("Opening balance", "Opening balance", True, True),
]


@pytest.mark.parametrize(("name", "word", "bare", "opening"), WORDS)
def test_words(name, word, bare, opening):
    assert (word, bare, opening) == (total_word(name), is_bare(name), is_opening(name))


DATES = "day\n05/06/2026\n"
REMEDIES = {
    "wide": ("a,b\n1,2\n1,2,3\n", {}, [{"wide_rows": "extend"}, {"footer": ["^1,2,3"]}]),
    "narrow": ("a,b\n1,2\nx'\\\n", {}, [{"footer": ["^x'\\\\"]}, {"rejected": "keep"}]),
    "print line": ("a,b\n1,2\nEnd of report\n", {}, [{"footer": ["^End of report"]}]),
    "delimiter": ("a;b\tc\nx;y\tz\n", {}, [{"delimiter": ";"}]),
    "tab": ("a\tb|c\nx\ty|z\n", {}, [{"delimiter": "\t"}]),
    "header": ("1.50,2.50\n1.25,2.25\n", {}, [{"header_line": 1}]),
    "quote": ('a,b\n"x,1\n', {}, [{"quote": ""}]),
    "date": (DATES, {}, [{"column": {"day": {"date_order": "day first"}}}]),
    "quoted name": (
        DATES.replace("day", "Tag (a.b) \\ ö"),
        {},
        [{"column": {"Tag (a.b) \\ ö": {"date_order": "day first"}}}],
    ),
    "dates that differ": (
        "day\n25/06/2026\n06/25/2026\n",
        {},
        [{"column": {"day": {"type": "VARCHAR"}}}],
    ),
    "number": ("n\n1.234\n", {}, [{"column": {"n": {"decimal": "."}}}]),
    "value": (
        "n\nx\n",
        {"columns": {"n": ColumnDeclaration(type="INTEGER")}},
        [{"rejected": "keep"}],
    ),
    "NUL": ("a\0\n", {}, [{"encoding": "utf-16-le"}]),
}


@pytest.mark.parametrize("case", list(REMEDIES))
def test_advice_can_be_pasted(case):
    raw, settings, expected = REMEDIES[case]
    found = advised(refusal(raw, **settings))
    assert [said for said in found if said in expected] == expected
    assert "] footer" not in refusal(raw, **settings).remedy


def test_advice_on_an_encoding_can_be_pasted():
    for raw, settings in ((b"a\n\xfc\n", {"encoding": "utf-8"}), (b"a\n\x81\n", {})):
        with pytest.raises(ExecutorError) as caught:
            read_csv(raw, CsvDeclaration(**settings), name="src")
        assert "encoding" in advised(caught.value)[0]


def test_what_was_declared_is_said():
    error = refusal("n\nx\n", columns={"n": ColumnDeclaration(type="INTEGER")})
    assert "declared INTEGER, which x" in error.message
    error = refusal("n\nx\n", columns={"n": ColumnDeclaration(format="%d.%m.%Y")})
    assert 'declared with format = "%d.%m.%Y"' in error.message


def test_one_record_and_several():
    assert refusal("a,b\n1,2\n1\n").message.startswith("1 record is not")
    assert refusal("a,b\n1,2\n1\n2\n").message.startswith("2 records are not")
