"""Eleven usual finance queries, and the tables that they are asked of."""

from __future__ import annotations

TABLES = {
    "entries": {
        "line_id": "BIGINT",
        "account": "VARCHAR",
        "booked": "DATE",
        "amount": "DECIMAL(18,2)",
        "currency": "VARCHAR",
        "memo": "VARCHAR",
    },
    "bank": {
        "line_id": "BIGINT",
        "value_date": "DATE",
        "amount": "DECIMAL(18,2)",
        "reference": "VARCHAR",
    },
    "budget": {"account": "VARCHAR", "month": "DATE", "amount": "DECIMAL(18,2)"},
}
QUERIES = {
    "sum of an account": "SELECT sum(amount) AS total FROM entries WHERE account = '1010'",
    "trial balance": (
        "SELECT account, sum(amount) AS balance, count(*) AS lines FROM entries "
        "GROUP BY account ORDER BY account"
    ),
    "cut-off by month": (
        "SELECT date_trunc('month', booked) AS month, sum(amount) AS total FROM entries "
        "WHERE booked BETWEEN DATE '2026-01-01' AND DATE '2026-06-30' GROUP BY 1 ORDER BY 1"
    ),
    "debits and credits": (
        "SELECT account, sum(amount) FILTER (WHERE amount > 0) AS debit, "
        "sum(amount) FILTER (WHERE amount < 0) AS credit FROM entries GROUP BY account"
    ),
    "lines that the bank has not": (
        "SELECT e.line_id, e.amount FROM entries e LEFT JOIN bank b ON b.amount = e.amount "
        "AND b.value_date = e.booked WHERE b.line_id IS NULL ORDER BY e.line_id"
    ),
    "both sides by day": (
        "WITH gl AS (SELECT booked AS day, sum(amount) AS total FROM entries GROUP BY booked), "
        "st AS (SELECT value_date AS day, sum(amount) AS total FROM bank GROUP BY value_date) "
        "SELECT coalesce(gl.day, st.day) AS day, gl.total AS gl, st.total AS bank, "
        "coalesce(gl.total, 0) - coalesce(st.total, 0) AS difference "
        "FROM gl FULL JOIN st ON gl.day = st.day ORDER BY 1"
    ),
    "budget against actual": (
        "SELECT b.account, b.amount AS budget, sum(e.amount) AS actual FROM budget b "
        "JOIN entries e ON e.account = b.account GROUP BY b.account, b.amount"
    ),
    "duplicates": (
        "SELECT account, amount, booked, count(*) AS times FROM entries "
        "GROUP BY account, amount, booked HAVING count(*) > 1"
    ),
    "running balance": (
        "SELECT line_id, amount, sum(amount) OVER (PARTITION BY account ORDER BY booked, line_id) "
        "AS balance FROM entries"
    ),
    "aged": (
        "SELECT CASE WHEN DATE '2026-06-30' - booked <= 30 THEN 'to 30' "
        "WHEN DATE '2026-06-30' - booked <= 90 THEN 'to 90' ELSE 'over 90' END AS age, "
        "sum(amount) AS total FROM entries GROUP BY 1"
    ),
    "top accounts": (
        "SELECT account, sum(amount) AS total FROM entries GROUP BY account "
        "ORDER BY total DESC, account LIMIT 5"
    ),
}
