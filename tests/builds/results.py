"""Prints the addresses and digests of the same queries over the same rows, as one JSON document.

    python tests/builds/results.py FOLDER

Runs in either environment and needs no more than duckdb, pyarrow and tieout.artifacts. The rows are
generated without chance; they are asked under every number of threads, in two orders of
insertion, in two layouts on disk and as two kinds of Arrow strings. FOLDER takes the database files.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import duckdb
import pyarrow as pa

from tieout.artifacts import canonical, row_root

ROWS = 10_000
THREADS = (1, 2, 8)
LAYOUTS = {"large groups": 122_880, "small groups": 2_048}
# 7,919 has no divisor in common with the number of rows: each i comes once, far from its neighbours.
INSERTED = {"by key": "i", "shuffled": f"i * 7919 % {ROWS}"}
STRINGS = (False, True)
GENERATED = """
SELECT
  i::BIGINT AS id,
  i % 3 = 0 AS truth,
  (i % 255 - 127)::TINYINT AS tiny,
  (i * 13 % 65535 - 32767)::SMALLINT AS small,
  (i * 48271 % 2147483647)::INTEGER AS whole,
  (i * 1299709 - 5000000000)::BIGINT AS big,
  (i % 256)::UTINYINT AS utiny,
  (i * 31 % 65536)::USMALLINT AS usmall,
  (i * 69621 % 4294967296)::UINTEGER AS uwhole,
  (18446744073709551615::HUGEINT - i)::UBIGINT AS ubig,
  (i::HUGEINT * 1000000000000000000 * (i % 7 - 3)) AS huge,
  ((i * 48271 % 20000000 - 10000000)::DECIMAL(18,2) * 0.01)::DECIMAL(18,2) AS amount,
  (i % 1000)::DECIMAL(4,1) AS d4,
  (i * 7 % 100000)::DECIMAL(9,4) AS d9,
  (i::DECIMAL(38,10) * 12345678901234567) AS d38,
  CASE i % 5 WHEN 0 THEN 'nan'::FLOAT WHEN 1 THEN '-0.0'::FLOAT ELSE (i / 8)::FLOAT END AS f4,
  CASE i % 7 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN '-0.0'::DOUBLE WHEN 2 THEN 'inf'::DOUBLE
             ELSE (i / 16)::DOUBLE END AS f8,
  DATE '0001-01-01' + (i * 365)::INTEGER AS day,
  TIME '00:00:00' + to_microseconds(i * 8639999) AS clock,
  TIMESTAMP '1900-01-01 00:00:00' + to_microseconds(i * 398765432101) AS moment,
  (TIMESTAMP '1900-01-01 00:00:00' + to_seconds(i * 398765))::TIMESTAMP_S AS moment_s,
  (TIMESTAMP '1900-01-01 00:00:00' + to_milliseconds(i * 398765432))::TIMESTAMP_MS AS moment_ms,
  (TIMESTAMP '2026-01-01 00:00:00' + to_microseconds(i * 1234567891))::TIMESTAMPTZ AS instant,
  ('posting ' || (i % 997) || CASE i % 4 WHEN 0 THEN ' Zürich 𝄞' ELSE '' END) AS memo,
  (['GBP', 'EUR', 'USD'][1 + i % 3])::ENUM ('USD', 'GBP', 'EUR') AS currency,
  encode('é' || (i % 11)) AS bytes,
  'account ' || lpad((i % 40)::VARCHAR, 4, '0') AS account
FROM (SELECT PLACE AS i FROM range(COUNT) numbers(i))
"""
# Every column but the key is null in some rows: a different seventeenth of them for each.
NULLED = "CASE WHEN (id + {number}) % 17 = 0 THEN NULL ELSE {name} END AS {name}"
QUERIES = {
    "every column by key": ("SELECT * FROM entries", ["id"], False),
    "every column by all columns": ("SELECT * EXCLUDE (id) FROM entries", [], False),
    "in the order of the query": (
        "SELECT account, amount, id FROM entries ORDER BY amount DESC NULLS LAST, id",
        [],
        True,
    ),
    "top five": ("SELECT id, d38, memo FROM entries ORDER BY d38 DESC, id LIMIT 5", ["id"], True),
    "totals by account": (
        (
            "SELECT account, sum(amount) AS total, count(*) AS entries, min(day) AS first, "
            "max(moment) AS last, sum(big) AS huge FROM entries GROUP BY account"
        ),
        ["account"],
        False,
    ),
    "distinct": ("SELECT DISTINCT currency, truth, tiny % 5 AS fifth FROM entries", [], False),
    "a join": (
        (
            "SELECT a.id, b.id AS other, (a.amount - b.amount)::DECIMAL(18,2) AS difference "
            "FROM entries a JOIN entries b ON a.id + 1 = b.id AND a.currency <> b.currency"
        ),
        ["id"],
        False,
    ),
    "a difference without a stated type": (
        "SELECT id, amount - amount AS nothing FROM entries",
        ["id"],
        False,
    ),
    "a window": (
        "SELECT id, sum(amount) OVER (PARTITION BY currency ORDER BY id) AS running FROM entries",
        ["id"],
        False,
    ),
    "nothing": ("SELECT * FROM entries WHERE id < 0", ["id"], False),
}  # fmt: skip


def make(path: Path, place: str, group_rows: int) -> None:
    """The rows in a database file of their own."""
    with duckdb.connect(config={"threads": 1}) as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute(f"ATTACH '{path}' AS made (ROW_GROUP_SIZE {group_rows})")
        generated = GENERATED.replace("PLACE", place).replace("COUNT", str(ROWS))
        names = [column[0] for column in db.execute(f"DESCRIBE {generated}").fetchall()]
        columns = ["id", *(
            NULLED.format(number=number, name=name)
            for number, name in enumerate(names)
            if name not in ("id", "account")
        ), "account"]  # fmt: skip
        db.execute(f"CREATE TABLE made.entries AS SELECT {', '.join(columns)} FROM ({generated})")


def asked(path: Path, threads: int, views: bool) -> dict[str, tuple[str, ...]]:
    """Query by query: address, content digest, row root and number of rows."""
    config = {"threads": threads, "access_mode": "READ_ONLY"}
    with duckdb.connect(str(path), config=config) as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute(f"SET produce_arrow_string_view = {views}")
        found = {}
        for name, (query, key, ordered) in QUERIES.items():
            made = canonical(db.sql(query).to_arrow_table(), key=key, ordered=ordered)
            root = row_root(made.payload).root
            found[name] = (str(made.address), made.digest, root, str(made.rows))
        return found


def kinds_of(path: Path) -> set[str]:
    """The canonical names of the types of all columns."""
    with duckdb.connect(str(path), config={"access_mode": "READ_ONLY"}) as db:
        made = canonical(db.sql("SELECT * FROM entries LIMIT 1").to_arrow_table())
    return {column.type for column in made.columns}


def main() -> int:
    folder = Path(sys.argv[1])
    kinds: set[str] = set()
    results: dict[str, dict[tuple[str, ...], list[str]]] = {name: {} for name in QUERIES}
    for (order, place), (layout, group_rows) in itertools.product(
        INSERTED.items(), LAYOUTS.items()
    ):
        path = folder / f"{order} {layout}.duckdb"
        make(path, place, group_rows)
        kinds |= kinds_of(path)
        for threads, views in itertools.product(THREADS, STRINGS):
            way = f"{order}, {layout}, {threads} threads, {'views' if views else 'strings'}"
            for name, found in asked(path, threads, views).items():
                results[name].setdefault(found, []).append(way)
    document = {
        "build": {"duckdb": duckdb.__version__, "pyarrow": pa.__version__},
        "types": sorted(kinds),
        "results": {
            name: [[*found, ways] for found, ways in different.items()]
            for name, different in results.items()
        },
    }
    print(json.dumps(document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
