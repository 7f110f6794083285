"""The cases that others got wrong, and real files, as data; they lie outside the repository."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path

import pyarrow.compute as pc
import pytest

from tieout.executor.errors import ExecutorError
from tieout.executor.ingest.reading import (
    ColumnDeclaration,
    CsvDeclaration,
    CsvReading,
    read_csv,
)

SHARED = os.environ.get("TIEOUT_SHARED")
pytestmark = pytest.mark.skipif(not SHARED, reason="TIEOUT_SHARED is not set")

# Case files that stop and ask: what has to be declared, and the code without it.
ASKS = {
    "13-subtotals-and-footer/stmt.csv": (
        CsvDeclaration(footer=("Subtotal", "Total", "Printed")),
        "csv.total_line",
    ),
    "15-row-width-grows/pay.csv": (CsvDeclaration(wide_rows="extend"), "csv.rejected"),
    "24-round-half-up-cents/r.csv": (
        CsvDeclaration(columns={"amount": ColumnDeclaration(decimal=".")}),
        "csv.ambiguous_number",
    ),
}


MONEY = {"amount", "betrag", "montant", "net_amount", "line_amount", "total", "net", "gross", "fee"}


def cases() -> Path:
    return Path(SHARED or "") / "cases" / "recon"


def real() -> Path:
    return Path(SHARED or "") / "data" / "close"


def read(name: str) -> CsvReading:
    declaration, _ = ASKS.get(name, (CsvDeclaration(), ""))
    return read_csv((cases() / name).read_bytes(), declaration, name="src")


def expected(case: str) -> dict:
    return json.loads((cases() / case / "case.json").read_text())["expected"]


def total(reading: CsvReading, column: str) -> str | None:
    return next(c.control_total for c in reading.columns if c.name == column)


def column_sum(reading: CsvReading, name: str, keep) -> Decimal:
    rows = reading.table.to_pylist()
    return sum((row[name] for row in rows if keep(row)), Decimal(0))


@pytest.mark.parametrize("name", list(ASKS))
def test_files_that_stop_and_ask(name):
    with pytest.raises(ExecutorError) as caught:
        read_csv((cases() / name).read_bytes(), CsvDeclaration(), name="src")
    assert ASKS[name][1] == caught.value.code


def test_every_csv_file_is_read_and_accounted_for():
    paths = sorted(cases().glob("*/*.csv")) + sorted(real().glob("*/*.csv"))
    assert len(paths) > 70
    for path in paths:
        raw = path.read_bytes()
        name = "/".join(path.parts[-2:])
        declaration, _ = ASKS.get(name, (CsvDeclaration(), ""))
        reading = read_csv(raw, declaration, name="src")
        assert reading.account.rejected == 0
        assert reading.account.lines == len(raw.splitlines())
        assert reading.data_rows > 0
        money = [c for c in reading.columns if c.name.lower() in MONEY and c.nulls == 0]
        assert all(c.control_total is not None for c in money), name


TOTALS = [
    ("01-decimal-comma-point-groups", "umsatz.csv", "Betrag", "total"),
    ("02-parentheses-negative", "export.csv", "Amount", "net"),
    ("03-trailing-minus", "mf.csv", "Amount", "total"),
    ("05-bom-and-preamble", "konto.csv", "Betrag (EUR)", "total"),
    ("10-long-ids-beyond-double", "bank.csv", "amount", "bank_total"),
    ("10-long-ids-beyond-double", "ledger.csv", "amount", "ledger_total"),
    ("13-subtotals-and-footer", "stmt.csv", "Amount", "detail_sum"),
    ("15-row-width-grows", "pay.csv", "amount", "total"),
    ("16-quote-appears-late", "long.csv", "amount", "total"),
    ("18-duplicate-header-names", "d.csv", "Amount", "out_total"),
    ("18-duplicate-header-names", "d.csv", "Amount_2", "in_total"),
    ("19-apostrophe-and-thin-space-groups", "ch.csv", "Betrag", "ch_total"),
    ("19-apostrophe-and-thin-space-groups", "fr.csv", "Montant", "fr_total"),
]


@pytest.mark.parametrize(("case", "file", "column", "key"), TOTALS)
def test_control_totals_of_cases(case, file, column, key):
    assert expected(case)[key] == total(read(f"{case}/{file}"), column)


ROWS = [
    ("01-decimal-comma-point-groups", "umsatz.csv", "row_count"),
    ("05-bom-and-preamble", "konto.csv", "row_count"),
    ("13-subtotals-and-footer", "stmt.csv", "detail_rows"),
    ("14-dialect-flip-tiny", "three.csv", "row_count"),
    ("15-row-width-grows", "pay.csv", "row_count"),
    ("16-quote-appears-late", "long.csv", "row_count"),
    ("17-newline-in-header-and-field", "nl.csv", "row_count"),
]


@pytest.mark.parametrize(("case", "file", "key"), ROWS)
def test_rows_of_cases(case, file, key):
    assert expected(case)[key] == read(f"{case}/{file}").data_rows


def test_header_below_account_lines():
    want = expected("05-bom-and-preamble")
    reading = read("05-bom-and-preamble/konto.csv")
    assert want["header_line"] == reading.header_line
    assert want["first_column"] == reading.columns[0].name
    assert reading.bom


def test_windows_names_match_those_in_utf_8():
    bank = read("06-cp1252-names/bank.csv")
    ledger = read("06-cp1252-names/ledger.csv")
    assert (bank.encoding, ledger.encoding) == ("cp1252", "utf-8")
    keys = [(row["name"], row["amount"]) for row in ledger.table.to_pylist()]
    open_rows = [r["ref"] for r in bank.table.to_pylist() if (r["name"], r["amount"]) not in keys]
    assert expected("06-cp1252-names")["bank_open"] == open_rows


def test_date_order_of_the_column():
    want = expected("07-date-order-from-column")
    reading = read("07-date-order-from-column/act.csv")
    assert want["date_order"] == reading.columns[0].rule["date_order"]
    assert want["dates"] == [day.isoformat() for day in reading.table["Date"].to_pylist()]
    july = column_sum(reading, "Amount", lambda row: row["Date"].month == 7)
    assert Decimal(want["july_total"]) == july


def test_ids_stay_text():
    want = expected("09-leading-zero-accounts")
    reading = read("09-leading-zero-accounts/tx.csv")
    assert want["accounts"] == len(pc.unique(reading.table["account"]))
    balance = column_sum(reading, "amount", lambda row: row["account"] == "00123")
    assert Decimal(want["balance_00123"]) == balance
    reading = read("10-long-ids-beyond-double/bank.csv")
    for damaged in expected("10-long-ids-beyond-double")["damaged_ids"]:
        assert f"damaged id in scientific notation (line 5: {damaged})" in reading.columns[0].reason


def test_one_column_and_line_breaks():
    want = expected("14-dialect-flip-tiny")
    reading = read("14-dialect-flip-tiny/three.csv")
    assert want["columns"] == [column.name for column in reading.columns]
    assert want["values"] == reading.table["item"].to_pylist()
    reading = read("17-newline-in-header-and-field/nl.csv")
    assert expected("17-newline-in-header-and-field")["column_count"] == len(reading.columns)
    assert reading.columns[1].name == "Amount (EUR)"
    late = read("16-quote-appears-late/long.csv").table["name"][-1].as_py()
    assert expected("16-quote-appears-late")["last_name"] == late


def test_rows_wider_than_the_header():
    reading = read("15-row-width-grows/pay.csv")
    want = expected("15-row-width-grows")["rows_wider_than_header"]
    assert want == len(reading.table) - reading.table["extra_1"].null_count


def test_footer_lines_are_kept_as_records():
    reading = read("13-subtotals-and-footer/stmt.csv")
    raw = (cases() / "13-subtotals-and-footer" / "stmt.csv").read_bytes()
    footers = [r for r in reading.records.to_pylist() if r["kind"] == "footer"]
    texts = [raw[r["byte_start"] : r["byte_end"]].decode() for r in footers]
    assert texts[1] == f"Total,,{expected('13-subtotals-and-footer')['control_total']}"
    assert len(texts) == 3


REAL = [
    ("xero_gl/xero_journal_line_data.csv", "net_amount", "DECIMAL(18,2)", "0.00"),
    ("xero_gl/xero_invoice_data.csv", "total", "DECIMAL(18,2)", "461832.94"),
    ("xero_gl/xero_invoice_data.csv", "currency_rate", "DECIMAL(18,6)", "499.116734"),
    ("xero_gl/xero_invoice_data.csv", "updated_date_utc", "TIMESTAMPTZ", None),
    ("xero_gl/xero_contact_data.csv", "_fivetran_deleted", "BOOLEAN", None),
    ("stripe/balance_transaction_data.csv", "net", "BIGINT", "20463341"),
    ("council_spend/gla_all.csv", "Amount", "DECIMAL(18,2)", "1000083306.00"),
    ("council_spend/gla_all.csv", "VendorID", "VARCHAR", None),
]


@pytest.mark.parametrize(("file", "column", "type_text", "control"), REAL)
def test_real_columns(file, column, type_text, control):
    reading = read_csv((real() / file).read_bytes(), CsvDeclaration(), name="src")
    found = next(c for c in reading.columns if c.name == column)
    assert (type_text, control) == (found.type, found.control_total)


def test_real_spending_by_year():
    reading = read_csv(
        (real() / "council_spend/gla_all.csv").read_bytes(), CsvDeclaration(), name="s"
    )
    path = Path(SHARED or "") / "cases" / "close" / "r13-gla-control-totals" / "case.json"
    want = json.loads(path.read_text())["expected"]
    assert want["rows"] == reading.data_rows
    years: dict[str, Decimal] = {}
    negative = []
    for row in reading.table.to_pylist():
        year = str(row["Date"].year)
        years[year] = years.get(year, Decimal(0)) + row["Amount"]
        if row["Amount"] < 0:
            negative.append(row["Amount"])
    assert want["per_year"] == {year: str(value) for year, value in years.items()}
    assert (want["negative_rows"], want["negative_total"]) == (len(negative), str(sum(negative)))
