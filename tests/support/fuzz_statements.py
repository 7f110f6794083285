"""Statements for the gate's fuzzer: a grammar, and mutations of seeds, all from one seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from tieout.executor.sql import functions
from tieout.executor.sql.text import tokens

CHARS_MAX = 4_000
DEPTH_MAX = 4
TABLES = ("bank", "ledger", "step1", "floats", "secret_hr", "main.bank", "memory.main.ledger")
STRANGE_TABLES = (
    *("'secret.csv'", '"secret.txt"', "'secret.parquet'", "'other.duckdb'", "'/etc/passwd'"),
    *("'/proc/self/environ'", "'http://127.0.0.1:9/x.csv'", "'s3://bucket/x.parquet'", "'*.csv'"),
    *("information_schema.tables", "pg_catalog.pg_class", "sqlite_master", "duckdb_tables()"),
    *("system.information_schema.columns", "(SHOW TABLES)", "(DESCRIBE bank)", "(SUMMARIZE bank)"),
)
COLUMNS = ("id", "amt", "memo", "dt", "acct_key", "x", "total", "rowid", "name", "salary", "__row")
LITERALS = (
    *(
        "1",
        "0",
        "-1",
        "2.5",
        "1e300",
        "'x'",
        "''",
        "NULL",
        "true",
        "DATE '2026-01-31'",
        "'secret.csv'",
    ),
    *("INTERVAL 1 MONTH", "E'\\n'", "$$q$$", "9223372036854775807", "'%'", "[1, 2]", "{'a': 1}"),
    *("TIMESTAMP '2026-01-01 00:00:00'", "'{\"a\": 1}'", "MAP {'a': 1}", "x'41'", "'now'"),
)
TYPES = (
    *(
        "INTEGER",
        "DECIMAL(18,2)",
        "VARCHAR",
        "DATE",
        "TIMESTAMP",
        "DOUBLE",
        "BLOB",
        "JSON",
        "BIGINT",
    ),
    *("INTEGER[]", "INTEGER[3]", "STRUCT(a INTEGER)", "MAP(VARCHAR, INTEGER)", "VARIANT", "UUID"),
    *("ENUM('a')", "UNION(a INTEGER)", "TIMESTAMPTZ", "BIGNUM", "regclass", "HUGEINT"),
)
OPERATORS = (
    *("+", "-", "*", "/", "//", "%", "=", "<>", "<", ">=", "AND", "OR", "||", "LIKE", "ILIKE", "^"),
    *("IS DISTINCT FROM", "~", "->>", "&", "|", "<<", "**", "SIMILAR TO", "IN", "COLLATE", "@>"),
)
JOINS = (
    *("JOIN", "LEFT JOIN", "FULL JOIN", "CROSS JOIN", "NATURAL JOIN", "ASOF JOIN", "SEMI JOIN"),
    *("ANTI JOIN", "POSITIONAL JOIN", ",", "LEFT JOIN LATERAL", "RIGHT JOIN"),
)
HOSTILE = (
    *("COPY bank TO 'out.csv'", "COPY (SELECT 1) TO 'out.parquet'", "EXPORT DATABASE 'out'"),
    *("ATTACH 'out.duckdb' AS o", "DELETE FROM bank RETURNING id", "DROP TABLE bank", "LOAD json"),
    *("INSERT INTO bank SELECT * FROM ledger RETURNING id", "UPDATE bank SET amt = 0 RETURNING *"),
    *("CREATE TABLE t AS SELECT 1", "INSTALL httpfs", "SET threads = 8", "PRAGMA database_list"),
    *("SELECT content FROM read_text('secret.txt')", "FROM read_csv('secret.csv')", "CHECKPOINT"),
    *("FROM glob('*')", "FROM query('FROM secret_hr')", "FROM query_table('secret_hr')"),
    *("CALL enable_logging()", "FROM duckdb_settings()", "SELECT getenv('HOME')", "VACUUM"),
    *("FROM read_duckdb('other.duckdb')", "SELECT nextval('s')", "IMPORT DATABASE 'out'"),
    *("MERGE INTO bank USING ledger ON bank.id = ledger.id WHEN MATCHED THEN DELETE", "FROM bank"),
)
WORDS = (
    *("DISTINCT", "ON", "ALL", "FILTER", "WITHIN GROUP", "OVER ()", "QUALIFY", "USING SAMPLE 1"),
    *("TABLESAMPLE 10%", "LIMIT 1", "OFFSET 1", "FOR UPDATE", "INTO out", "AT (VERSION => 1)"),
    *(
        "RETURNING *",
        "#1",
        "?",
        "$1",
        ":a",
        ";",
        "--",
        "/*",
        "*/",
        "'",
        '"',
        "(",
        ")",
        "[",
        "]",
        "{",
    ),
    *("}", ".", "..", "*", "* EXCLUDE (id)", "COLUMNS(*)", "lambda x: x", "\u00a0", "\u200b", "\\"),
    *("WITH ORDINALITY", "RECURSIVE", "MATERIALIZED", "CURRENT_DATE", "current_user", "|>", "a: "),
)


class Statements:
    """An endless, reproducible row of statements, from usual queries and attacks."""

    def __init__(self, seed: int, usual: Sequence[str], attacks: Sequence[str]) -> None:
        self.random = Random(seed)
        self.usual = usual
        self.attacks = [s for s in attacks if 0 < len(s) <= CHARS_MAX]
        names = sorted(n for n in functions.classes() if n.isidentifier())
        self.names = names + [n for n in names if functions.is_open(n)] * 4
        self.mutations: tuple[Callable[[list[str]], list[str]], ...] = (
            *(self.drop, self.double, self.swap, self.change, self.splice, self.put, self.put),
            *(self.comment, self.case, self.call, self.hide, self.mild, self.mild, self.mild),
        )

    def next(self) -> str:
        """The next statement, at most CHARS_MAX characters."""
        if self.random.random() < 0.3:
            return self.query(self.random.randrange(DEPTH_MAX))[:CHARS_MAX]
        parts = self.seed()
        for _ in range(self.random.choice((1, 1, 1, 1, 2, 2, 3, 5))):
            parts = self.pick(self.mutations)(parts or ["SELECT"])
        return " ".join(parts)[:CHARS_MAX]

    def pick(self, given: Sequence[object]):  # noqa: ANN201 -- whatever the sequence holds
        return given[self.random.randrange(len(given))]

    def seed(self) -> list[str]:
        """The tokens of a usual query or, less often, of an attack."""
        given = self.usual if self.random.random() < 0.7 else self.attacks
        return [t.text for t in tokens(self.pick(given))]

    # Mutations: a list of tokens to another.

    def place(self, parts: list[str]) -> int:
        return self.random.randrange(len(parts) + 1)

    def drop(self, parts: list[str]) -> list[str]:
        at = self.place(parts)
        return parts[:at] + parts[at + self.random.randint(1, 3) :]

    def double(self, parts: list[str]) -> list[str]:
        at = self.place(parts)
        return parts[:at] + parts[at : at + 4] * 2 + parts[at + 4 :]

    def swap(self, parts: list[str]) -> list[str]:
        a, b = sorted((self.place(parts), self.place(parts)))
        return parts[:a] + parts[b:] + parts[a:b]

    def change(self, parts: list[str]) -> list[str]:
        at = self.place(parts)
        return [*parts[:at], self.piece(), *parts[at + 1 :]]

    def mild(self, parts: list[str]) -> list[str]:
        """One word for another of its kind, so that the statement may still be a query."""
        kinds = (COLUMNS[:6], TABLES[:2], LITERALS, OPERATORS[:12], self.names)
        places = [(n, k) for n, p in enumerate(parts) for k in kinds if p in k]
        if not places:
            return parts
        at, kind = self.pick(places)
        return [*parts[:at], self.pick(kind), *parts[at + 1 :]]

    def put(self, parts: list[str]) -> list[str]:
        at = self.place(parts)
        return [*parts[:at], self.piece(), *parts[at:]]

    def splice(self, parts: list[str]) -> list[str]:
        other = self.seed()
        return parts[: self.place(parts)] + other[self.place(other) :]

    def comment(self, parts: list[str]) -> list[str]:
        at = self.place(parts)
        mark = self.pick(("/* ; */", "/* /* */ */", "-- x\n", "/* ' */", '/* " */', "/*+ x */"))
        return [*parts[:at], mark, *parts[at:]]

    def case(self, parts: list[str]) -> list[str]:
        at = self.place(parts)
        return [*parts[:at], *(p.swapcase() for p in parts[at : at + 2]), *parts[at + 2 :]]

    def call(self, parts: list[str]) -> list[str]:
        at = self.place(parts)
        return [*parts[:at], self.pick(self.names), "(", *parts[at : at + 1], ")", *parts[at + 1 :]]

    def hide(self, parts: list[str]) -> list[str]:
        """A hostile statement inside, behind or around the query."""
        evil, text = self.pick(HOSTILE), " ".join(parts)
        forms = (
            f"WITH q AS ({evil}) {text}",
            f"WITH q AS MATERIALIZED ({evil}) SELECT 1 AS a FROM q",
            f"{text} ; {evil}",
            f"{evil} ; {text}",
            f"SELECT * FROM ({evil}) q",
            f"SELECT id FROM bank WHERE id IN ({evil})",
            f"SELECT ({evil}) AS a",
            f"EXPLAIN ANALYZE {evil}",
            f"{text} UNION ALL {evil}",
            f"SELECT list_transform([1], lambda x: ({evil})) AS l",
        )
        return [self.pick(forms)]

    # The grammar.

    def piece(self) -> str:
        kind = self.random.randrange(6)
        if kind == 0:
            return self.pick(WORDS)
        if kind == 1:
            return self.expression(DEPTH_MAX - 1)
        if kind == 2:
            return self.pick((*TABLES, *STRANGE_TABLES))
        if kind == 3:
            return self.pick(LITERALS)
        return self.pick(COLUMNS) if kind == 4 else self.pick(OPERATORS)

    def query(self, depth: int) -> str:
        chance = self.random.random
        columns = ", ".join(
            f"{self.expression(depth)} AS c{n}" for n in range(1 + int(chance() * 3))
        )
        head = self.pick(("SELECT", "SELECT", "SELECT", "SELECT DISTINCT", "SELECT ALL"))
        text = f"{head} {columns} FROM {self.source(depth)}"
        if chance() < 0.4:
            text += f" WHERE {self.expression(depth)}"
        if chance() < 0.3:
            text += f" GROUP BY {self.pick(('ALL', self.expression(depth), 'ROLLUP (id, memo)'))}"
        if chance() < 0.1:
            text += f" HAVING {self.expression(depth)}"
        if chance() < 0.1:
            text += f" QUALIFY {self.expression(depth)}"
        if chance() < 0.4:
            text += f" ORDER BY {self.pick(('ALL', '1', self.expression(depth)))}"
        if chance() < 0.2:
            text += f" LIMIT {self.pick(('1', '2 OFFSET 1', '10%', '(SELECT 1)', 'ALL'))}"
        if depth < DEPTH_MAX and chance() < 0.2:
            text = f"WITH w AS ({self.query(depth + 1)}) {text}"
        if depth < DEPTH_MAX and chance() < 0.15:
            text += f" {self.pick(('UNION ALL', 'EXCEPT', 'INTERSECT'))} {self.query(depth + 1)}"
        return text

    def source(self, depth: int) -> str:
        chance = self.random.random()
        if depth >= DEPTH_MAX or chance < 0.45:
            return self.pick(TABLES[:4])
        if chance < 0.55:
            return self.pick((*TABLES, *STRANGE_TABLES))
        if chance < 0.65:
            name = self.pick(("range", "generate_series", "unnest", self.pick(self.names)))
            return f"{name}({self.pick(('1, 5', '3', '[1, 2]', self.pick(LITERALS)))}) r"
        if chance < 0.75:
            return f"({self.query(depth + 1)}) s{depth}"
        if chance < 0.8:
            return f"(VALUES ({self.expression(depth + 1)}, 1)) v(a, b)"
        if chance < 0.85:
            return f"(PIVOT bank ON memo IN ('fee', 'rent') USING {self.expression(DEPTH_MAX)}) p"
        left, right = self.source(depth + 1), self.source(depth + 1)
        on = self.pick(("ON true", "USING (id)", f"ON {self.expression(depth + 1)}", ""))
        return f"{left} {self.pick(JOINS)} {right} {on}"

    def expression(self, depth: int) -> str:
        chance = self.random.random()
        if depth >= DEPTH_MAX or chance < 0.35:
            return self.pick((*COLUMNS[:6], *LITERALS)) if chance < 0.9 else self.pick(COLUMNS)
        if chance < 0.5:
            a, b = self.expression(depth + 1), self.expression(depth + 1)
            return f"({a} {self.pick(OPERATORS)} {b})"
        if chance < 0.75:
            given = ", ".join(self.expression(depth + 1) for _ in range(self.random.randrange(4)))
            tail = self.pick(
                ("", "", "", " FILTER (WHERE id > 1)", " OVER (ORDER BY id)", " OVER ()")
            )
            return f"{self.pick(self.names)}({given}){tail}"
        if chance < 0.82:
            return f"CAST({self.expression(depth + 1)} AS {self.pick(TYPES)})"
        if chance < 0.87:
            return f"CASE WHEN {self.expression(depth + 1)} THEN {self.expression(depth + 1)} END"
        if chance < 0.92:
            return f"({self.query(depth + 1)})"
        return self.pick(
            (
                "count(*)",
                "sum(amt ORDER BY id)",
                "list(id ORDER BY id)[1]",
                "list_transform([1, 2], lambda x: x + 1)",
                "[x FOR x IN [1, 2]]",
                "extract(year FROM dt)",
                "row_number() OVER (PARTITION BY memo ORDER BY id)",
                "memo[1:2]",
                "bank",
                "COLUMNS(*)",
            )
        )
