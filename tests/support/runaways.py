"""Texts that never end, or eat memory, by kind; and an engine that runs them without any gate."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from tieout.executor.engine import Engine
from tieout.executor.forked import Answer

PLUS = " + 1" * 5_000
DEEP_LISTS = "[" * 900 + "1" + "]" * 900
DOUBLING = ", ".join(f"c{n} AS (SELECT * FROM c{n - 1} a, c{n - 1} b)" for n in range(1, 26))
WIDE_OR = " OR ".join(f"r.range = {n}" for n in range(0, 20_000, 7))
JOINS = ", ".join(f"bank t{n}" for n in range(200))
CASES = "CASE WHEN r.range = 1 THEN 2 ELSE " * 2_000 + "3" + " END" * 2_000
UNIONS = " UNION ALL ".join(["SELECT 1 AS a"] * 12_000)
SUBQUERIES = "(SELECT " * 800 + "1" + ")" * 800
WINDOWS = ", ".join(f"sum(r.range) OVER (ORDER BY r.range % {n}) AS w{n}" for n in range(1, 200))

RUNAWAYS = {
    "a long range": "SELECT count(*) AS n FROM range(1000000000000)",
    "a sum over a long range": "SELECT sum(r.range) AS n FROM range(1000000000000) r",
    "generate_series": "SELECT count(*) AS n FROM generate_series(1, 1000000000000) g(a)",
    "a cross join": "SELECT count(*) AS n FROM range(1000000) a, range(1000000) b, range(1000) c "
    "WHERE a.range + b.range <> c.range",
    "a join by inequality": "SELECT count(*) AS n FROM range(9000000) a JOIN range(9000000) b "
    "ON a.range % 97 <> b.range % 89",
    "a join of one key": "SELECT max(a.range + b.range) AS n FROM range(5000000) a "
    "JOIN range(5000000) b ON a.range % 2 = b.range % 2",
    "a lateral join": "SELECT sum(x) AS n FROM range(1000000) a, "
    "LATERAL (SELECT count(*) AS x FROM range(100000) b WHERE b.range > a.range)",
    "an endless recursion": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) "
    "SELECT count(*) AS n FROM t",
    "a recursion that doubles": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n "
    "FROM t, range(2)) SELECT count(*) AS n FROM t",
    "a recursion without new rows": "WITH RECURSIVE t(n) AS (SELECT 1 UNION "
    "SELECT (n + 1) % 1000000000000 FROM t) SELECT count(*) AS n FROM t",
    "a text of 2 GB": "SELECT length(lpad('x', 2000000000, 'y')) AS n",
    "a repeated text": "SELECT length(repeat('x', 2000000000)) AS n",
    "many repeated texts": "SELECT sum(length(repeat('x', 100000 + r.range % 2))) AS n "
    "FROM range(1000000000) r",
    "a text that doubles": "WITH RECURSIVE t(n, s) AS (SELECT 1, 'x' UNION ALL SELECT n + 1, s || s "
    "FROM t WHERE n < 60) SELECT max(length(s)) AS n FROM t",
    "a width of format": "SELECT length(format('{:>2000000000}', 'x')) AS n",
    "a width of printf": "SELECT length(printf('%2000000000d', 1)) AS n",
    "a precision of printf": "SELECT length(printf('%.2000000000f', 1.5)) AS n",
    "a replacement that grows": "SELECT length(replace(repeat('a', 100000), 'a', "
    "repeat('b', 100000))) AS n",
    "a list of 2e9": "SELECT len(range(2000000000)) AS n",
    "a list that is gathered": "SELECT len(list(r.range)) AS n FROM range(1000000000) r",
    "a list of texts": "SELECT len(list(repeat('x', 1000) || r.range::VARCHAR)) AS n "
    "FROM range(100000000) r",
    "one text of many": "SELECT length(string_agg(repeat('x', 1000000) || r.range::VARCHAR, '')) "
    "AS n FROM range(100000) r",
    "a lambda over a long list": "SELECT list_reduce(range(1, 20000000), lambda x, y: x + y) AS n",
    "a sort of a long list": "SELECT len(list_sort(range(200000000))) AS n",
    "a lambda inside a lambda": "SELECT len(list_transform(range(100000), lambda x: "
    "list_transform(range(100000), lambda y: x * y))) AS n",
    "distinct rows": "SELECT count(*) AS n FROM (SELECT DISTINCT a.range, b.range, c.range "
    "FROM range(10000) a, range(10000) b, range(10000) c)",
    "many groups": "SELECT count(*) AS n FROM (SELECT r.range, count(*) FROM range(1000000000) r "
    "GROUP BY r.range)",
    "a histogram": "SELECT histogram(r.range) AS n FROM range(1000000000) r",
    "a sort": "SELECT r.range AS n FROM range(1000000000) r ORDER BY hash(r.range), r.range",
    "a window": "SELECT max(s) AS n FROM (SELECT sum(r.range) OVER (ORDER BY r.range % 7 "
    "ROWS BETWEEN 100000 PRECEDING AND CURRENT ROW) AS s FROM range(100000000) r)",
    "a quantile": "SELECT quantile_disc(r.range, 0.5) AS n FROM range(1000000000) r",
    "unnested lists": "SELECT count(*) AS n FROM (SELECT unnest(range(1000000)) AS a "
    "FROM range(1000000)) WHERE a % 3 = 1",
    "levenshtein": "SELECT levenshtein(repeat('a', 200000), repeat('b', 200000)) AS n",
    "jaro_winkler": "SELECT jaro_winkler_similarity(repeat('ab', 1200000), repeat('ba', 1200000)) "
    "AS n",
    "a regular expression": "SELECT regexp_matches(repeat('a', 100000), "
    "'(a{0,1000}){0,1000}b') AS n",
    "a large automaton": "SELECT count(*) AS n FROM range(100000000) r WHERE "
    "regexp_matches(repeat(r.range::VARCHAR, 2000), '(.*1.*2.*3.*){8}z')",
    "JSON in depth": "SELECT repeat('[', 1000000)::JSON AS n",
    "a wildcard of JSON": "SELECT json_extract(repeat('{\"a\":', 50000) || '1' || "
    "repeat('}', 50000), '$..a') AS n",
    "a number of 2,000,000 digits": "SELECT length((repeat('9', 2000000)::BIGNUM)::VARCHAR) AS n",
    "a factorial": "SELECT sum(factorial((r.range % 20)::INTEGER)) AS n FROM range(10000000000) r",
    "lists 900 deep": f"SELECT {DEEP_LISTS} AS n",
    "common tables that double": f"WITH c0 AS (SELECT * FROM range(2)), {DOUBLING} "
    "SELECT count(*) AS n FROM c25",
    "a wide OR": f"SELECT count(*) AS n FROM range(100000000) r WHERE {WIDE_OR}",
    "a long sum": f"SELECT 1{PLUS} AS n",
    "brackets in depth": "SELECT " + "(" * 20_000 + "1" + ")" * 20_000 + " AS n",
    "a run of minus signs": "SELECT " + "- " * 20_000 + "1 AS n",
    "cases in depth": f"SELECT sum({CASES}) AS n FROM range(1000) r",
    "subqueries in depth": f"SELECT {SUBQUERIES} AS n",
    "many unions": UNIONS,
    "many windows": f"SELECT {WINDOWS} FROM range(10000000) r",
    "a join of 200 tables": f"SELECT count(*) AS n FROM {JOINS}",
    "a wide pivot": "PIVOT (SELECT r.range AS r FROM range(200000) r) ON r USING count(*)",
    "a wait": "SELECT sleep_ms(60000) AS n",
    "many waits": "SELECT sum(sleep_ms(1000)) AS n FROM range(1000)",
    "a wait by another name": "SELECT pg_sleep(60) AS n",
    "a large result": "SELECT r.range AS a, r.range::VARCHAR AS b FROM range(1000000000) r",
    "a result of large texts": "SELECT repeat('x', 1000000) || r.range::VARCHAR AS a "
    "FROM range(100000) r",
}
SAMPLE = (
    *("a cross join", "a text of 2 GB", "a wait", "lists 900 deep"),
    *("a result of large texts",),
)
"""For the fast run: stopped by SIGXCPU, memory, the parent, a gate, the bound of bytes."""


def run_ungated(engine: Engine, text: str, table: bytes = b"") -> Answer:
    """Run a text with validation switched off, over one table named bank. Raises ExecutorError."""
    files = []
    if table:
        files.append(os.memfd_create("bank"))
        os.write(files[0], table)
    request = {
        "sql": text,
        "tables": [["bank", None]] if table else [],
        "rows_max": engine.limits.rows_max,
    }
    try:
        document, file = engine._ask("run", request, files)
    finally:
        for number in files:
            os.close(number)
    return Answer(document, file)


LOOK_S = 0.005


class Watch:
    """A context manager that reads the memory of a server's children while they live.

    It sleeps between two looks, and so measures how late this machine wakes a sleeper.
    """

    def __init__(self, server: int) -> None:
        self._server = server
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._starts: dict[int, int] = {}
        self.peak_bytes = 0
        """The largest resident memory of a child."""
        self.risen_bytes = 0
        """The most that a child's resident memory rose above what it was seen to begin with."""
        self.late_s = 0.0
        """The most that a sleep of this thread took longer than it was to."""

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        slept = time.monotonic()
        while not self._over.wait(LOOK_S):
            self.late_s = max(self.late_s, time.monotonic() - slept - LOOK_S)
            for child in children(self._server):
                most = peak(child)
                start = self._starts.setdefault(child, most)
                self.peak_bytes = max(self.peak_bytes, most)
                self.risen_bytes = max(self.risen_bytes, most - start)
            slept = time.monotonic()


def children(pid: int) -> list[int]:
    """The processes that a process has started and not yet reaped."""
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def peak(pid: int) -> int:
    """The high-water mark of a process's resident memory, in bytes; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def cpu_s(pid: int) -> float:
    """CPU seconds of a process and of the children it has reaped."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(f) for f in fields[11:15]) / 100
