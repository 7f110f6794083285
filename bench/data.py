"""The rows that are measured: 8 columns, the same on every machine, no chance in them."""

from __future__ import annotations

from pathlib import Path

SOURCE = """
[workspace]
name = "bench"
[source.entries]
file = "entries.csv"
key = ["id"]
[source.entries.column.amount]
type = "DECIMAL(18,2)"
[source.entries.column.rate]
type = "DECIMAL(9,6)"
[source.entries.column.booked]
type = "DATE"
"""
COLUMNS = {
    "id": "BIGINT",
    "account": "BIGINT",
    "booked": "DATE",
    "amount": "DECIMAL(18,2)",
    "currency": "VARCHAR",
    "memo": "VARCHAR",
    "quantity": "BIGINT",
    "rate": "DECIMAL(9,6)",
}
QUERIES = {
    "aggregate by 1,000 groups": (
        "SELECT account, sum(amount) AS total, count(*) AS entries, max(booked) AS last "
        "FROM entries GROUP BY account ORDER BY account"
    ),
    "filter a tenth": (
        "SELECT id, account, booked, amount, currency, memo, quantity, rate "
        "FROM entries WHERE quantity = 7"
    ),
    "all rows by key": (
        "SELECT id, account, booked, amount, currency, memo, quantity, rate "
        "FROM entries ORDER BY id"
    ),
}
PRIME = 2_147_483_647


def write_csv(path: Path, rows: int) -> None:
    """Write the file; ids ascend, all other columns jump about."""
    with path.open("w", encoding="ascii", newline="") as out:
        out.write(",".join(COLUMNS) + "\n")
        state = 1
        for number in range(rows):
            state = state * 48_271 % PRIME
            pence = state % 20_000_000 - 10_000_000
            sign, whole, part = "-" * (pence < 0), abs(pence) // 100, abs(pence) % 100
            out.write(
                f"{1_000_000 + number},{4_000 + state // 7 % 1_000},"
                f"2026-{state // 11 % 12 + 1:02d}-{state // 13 % 28 + 1:02d},"
                f"{sign}{whole}.{part:02d},{('GBP', 'EUR', 'USD')[state // 17 % 3]},"
                f"posting {state % 50_000} of batch {number // 500},"
                f"{state // 19 % 10},{state // 23 % 3}.{state // 29 % 1_000_000:06d}\n"
            )
