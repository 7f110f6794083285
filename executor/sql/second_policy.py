"""The second gate's own rules over sqlglot's tree: nodes, names, tables, calls, types, ranges."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from tieout.executor.sql.complaints import pivot_without_list
from tieout.executor.sql.refusal import SqlRefused, Text
from tieout.executor.sql.second_vocabulary import (
    ADMITTED,
    AGGREGATES_BY_NAME,
    ARGUMENT_CODES,
    CALL_CODES,
    CLOCK_WITH_ONE,
    CLOCK_WORDS,
    NAMES_AGGREGATE,
    NODES,
    RANGES,
    REFUSED,
    SESSION_WORDS,
    SYNTAX_CALLS,
    TYPES,
)
from tieout.executor.sql.tree import Granted
from tieout.executor.sql.vocabulary import CTE_USES_MAX, CTES_MAX, RANGE_ROWS_MAX

NAME_CHARS_MAX = 1_000
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w $-]*")


@dataclass(slots=True)
class SecondSeen:
    """What this gate found, all in lower case: names in FROM with their counts, WITH names, calls.

    made: the classes of all nodes, by which functions that nobody wrote are explained.
    """

    refs: Counter[str] = field(default_factory=Counter)
    tables: set[str] = field(default_factory=set)
    ctes: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    made: set[type[exp.Expr]] = field(default_factory=set)


def check_policy(text: Text, root: exp.Expr, granted: Granted) -> SecondSeen:
    """Every node of the tree against the lists; raises SqlRefused at the first outside them."""
    walk = _Walk(text, granted, SecondSeen(), _rows(root))
    for node in root.walk():
        walk.node(node)
    walk.bounds()
    return walk.seen


class _Walk:
    """One pass over all nodes, in no scope but the one that a table name climbs to."""

    def __init__(
        self, text: Text, granted: Granted, seen: SecondSeen, rows: frozenset[str]
    ) -> None:
        self.rows = rows
        self.text = text
        self.granted = granted
        self.seen = seen
        self.uses: Counter[int] = Counter()
        self.rules: dict[type[exp.Expr], Callable[[exp.Expr], None]] = {
            exp.Identifier: self.identifier,
            exp.Table: self.table,
            exp.Column: self.column,
            exp.Anonymous: self.call,
            exp.Dot: self.dot,
            exp.DataType: self.type,
            exp.CTE: self.cte,
            exp.Join: self.join,
            exp.Pivot: self.pivot,
            exp.Select: self.select,
            exp.Cast: self.cast,
            exp.TryCast: self.cast,
        }

    def refuse(self, code: str, message: str, node: exp.Expr) -> SqlRefused:
        """A refusal at the first place that the parser knows below a node."""
        places = (n.meta.get("start") for n in node.walk())
        place = next((p for p in places if isinstance(p, int)), None)
        return self.text.refuse(code, message, offset=place)

    def node(self, node: exp.Expr) -> None:
        """The class and its arguments, then the rule of the class."""
        kind = type(node)
        allowed = NODES.get(kind)
        if allowed is None:
            code = next((c for k, c in REFUSED.items() if issubclass(kind, k)), "sql.construct")
            raise self.refuse(code, f"{kind.__name__} is not admitted", node)
        if isinstance(node, exp.Pivot) and node.args.get("unpivot"):
            raise self.text.refuse(
                "sql.construct",
                "UNPIVOT is not admitted",
                word="unpivot",
                remedy="Write one SELECT for each of its columns, joined by UNION ALL.",
            )
        for key, value in node.args.items():
            if key not in allowed and value not in (None, False, [], ""):
                code = ARGUMENT_CODES.get(key, "sql.construct")
                message = f"{key} of {kind.__name__} is not admitted"
                raise self.refuse(code, message, node)
        self.seen.made.add(kind)
        rule = self.rules.get(kind)
        if rule is not None:
            rule(node)

    def bounds(self) -> None:
        """How many WITH queries there are, and how often one is used."""
        if len(self.seen.ctes) > CTES_MAX or any(n > CTE_USES_MAX for n in self.uses.values()):
            raise self.text.refuse("sql.too_complex", "there are too many WITH queries or uses")

    def identifier(self, node: exp.Expr) -> None:
        """No name that begins with two underscores, whatever it names."""
        if node.name.startswith("__"):
            message = f"the name {node.name} begins with two underscores"
            raise self.refuse("sql.reserved_name", message, node)
        if len(node.name) > NAME_CHARS_MAX:
            message = f"a name has over {NAME_CHARS_MAX} characters"
            raise self.refuse("sql.too_long", message, node)

    def table(self, node: exp.Expr) -> None:
        """A granted table, a visible WITH query or a range; unqualified."""
        if isinstance(node.this, exp.Anonymous):
            return  # its own rule
        name = node.name
        if not isinstance(node.this, exp.Identifier) or not _PLAIN_NAME.fullmatch(name):
            message = "a file, address or pattern stands where a table belongs"
            raise self.refuse("sql.file_access", message, node)
        if node.args.get("db") or node.args.get("catalog"):
            message = f"the table {name} is named with a schema or catalog"
            raise self.refuse("sql.qualified_table", message, node)
        low = name.lower()
        self.seen.refs[low] += 1
        found = next((c for c in _visible(node) if c.alias.lower() == low), None)
        if found is not None:
            self.uses[id(found)] += 1
        elif low in self.granted.columns:
            self.seen.tables.add(low)
        else:
            message = f"the table {name} is not one of the granted tables"
            raise self.refuse("sql.unknown_table", message, node)

    def table_function(self, call: exp.Expr) -> None:
        """Only range and generate_series with literal bounds; unnest is a class of its own."""
        name = call.name.lower()
        if name == "unnest":
            return
        if name not in RANGES:
            message = f"the table function {name} is not admitted"
            raise self.refuse("sql.function", message, call)
        if not _small_range(call.expressions):
            message = f"{name} needs literal whole numbers and at most {RANGE_ROWS_MAX} rows"
            raise self.refuse("sql.range", message, call)

    def column(self, node: exp.Expr) -> None:
        """Not rowid, and no word that reads clock or session."""
        name = node.name.lower()
        if name == "rowid":
            raise self.refuse("sql.rowid", "rowid is not a column of the data", node)
        alone = not node.args.get("table")
        known = any(name in columns for columns in self.granted.columns.values())
        if alone and not known and name in CLOCK_WORDS | SESSION_WORDS:
            code = "sql.clock" if name in CLOCK_WORDS else "sql.catalog"
            raise self.refuse(code, f"{name} is not in the data", node)

    def call(self, node: exp.Expr) -> None:
        """A function by its written name."""
        name = node.name.lower()
        self.seen.calls.add(name)
        if isinstance(node.parent, (exp.Table, exp.Lateral)):
            self.table_function(node)
            return
        if name in SYNTAX_CALLS | {"unnest"}:
            return
        if name not in ADMITTED:
            code = CALL_CODES.get(name, "sql.function")
            raise self.refuse(code, f"the function {name} is not admitted", node)
        if name in CLOCK_WITH_ONE and len(node.expressions) != 2:
            raise self.refuse("sql.clock", f"{name} with one argument reads the clock", node)
        if name in NAMES_AGGREGATE and not _names_aggregate(node):
            message = f"{name} needs the literal name of a plain aggregate"
            raise self.refuse("sql.function", message, node)

    def dot(self, node: exp.Expr) -> None:
        """A field of a struct, never a call: neither x.f() nor schema.f()."""
        if not isinstance(node.expression, exp.Identifier):
            raise self.refuse("sql.function", "a function stands behind a dot", node)

    def type(self, node: exp.Expr) -> None:
        """A type from the list."""
        if node.this not in TYPES:
            raise self.refuse("sql.type", f"the type {node.sql('duckdb')} is not admitted", node)

    def cte(self, node: exp.Expr) -> None:
        """A WITH query must not take the name of a granted table."""
        name = node.alias.lower()
        self.seen.ctes.add(name)
        if name in self.granted.columns:
            message = f"the WITH query {name} has the name of a granted table"
            raise self.refuse("sql.shadowed_table", message, node)

    def join(self, node: exp.Expr) -> None:
        """No join by position."""
        if str(node.args.get("method") or "").upper() not in {"", "ASOF", "NATURAL"}:
            raise self.refuse("sql.construct", "this join is not admitted", node)

    def pivot(self, node: exp.Expr) -> None:
        """PIVOT with the list of its columns: without one the data would name them."""
        listed = node.args.get("fields") or node.expressions
        if not all(isinstance(f, exp.In) and f.expressions for f in listed):
            raise pivot_without_list(self.text)

    def select(self, node: exp.Expr) -> None:
        """A select list; this parser does without one, the engine does not."""
        if not node.expressions:
            raise self.refuse("sql.parse", "a SELECT has no columns", node)

    def cast(self, node: exp.Expr) -> None:
        """No whole row of a table as a text: the names of its columns would be among the values."""
        given = node.this.unnest()
        row = isinstance(given, exp.Column) and not given.args.get("table")
        name = given.name.lower()
        if row and name in self.rows and not any(name in c for c in self.granted.columns.values()):
            raise self.refuse("sql.type", f"a row of {name} cannot be turned into a text", node)


def _rows(root: exp.Expr) -> frozenset[str]:
    """Names in FROM by which a whole row can be meant: those that are no column's alias too."""
    aliases = {a.alias.lower() for a in root.find_all(exp.Alias)}
    for listed in root.find_all(exp.TableAlias):
        aliases |= {column.name.lower() for column in listed.columns}
    froms = root.find_all(exp.Table, exp.Subquery)
    return frozenset(f.alias_or_name.lower() for f in froms) - aliases - {""}


def _visible(node: exp.Expr) -> Iterator[exp.CTE]:
    """The WITH queries that a table name can see, the nearest first.

    Inside a list of WITH queries those before; itself only where the engine makes it recursive:
    WITH RECURSIVE over a UNION (not over INTERSECT or EXCEPT).
    """
    inside: exp.Expr | None = None
    place: exp.Expr | None = node
    while place is not None:
        if isinstance(place, exp.CTE):
            inside = place
        listed = place.args.get("with_")
        if listed is not None:
            names = listed.expressions
            known = next((n for n, cte in enumerate(names) if cte is inside), None)
            if known is not None and listed.args.get("recursive") and _united(names[known].this):
                yield names[known]
            yield from reversed(names[:known])
            inside = None
        place = place.parent


def _united(body: exp.Expr) -> bool:
    while isinstance(body, exp.Subquery):
        body = body.this
    return isinstance(body, exp.Union)


def _names_aggregate(node: exp.Expr) -> bool:
    """list_aggregate(l, 'sum'): the literal name of a plain aggregate."""
    given = node.expressions[1:2]
    return bool(given) and given[0].is_string and given[0].name.lower() in AGGREGATES_BY_NAME


def _small_range(given: list[exp.Expr]) -> bool:
    bounds: list[int] = []
    for argument in given:
        inner = argument.this if isinstance(argument, exp.Neg) else argument
        number = isinstance(inner, exp.Literal) and not inner.is_string
        if not number or not re.fullmatch(r"\d{1,18}", inner.name):
            return False
        bounds.append(-int(inner.name) if inner is not argument else int(inner.name))
    if not 1 <= len(bounds) <= 3:
        return False
    start, stop = (0, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
    step = abs(bounds[2]) if len(bounds) == 3 else 1
    return step > 0 and abs(stop - start) // step <= RANGE_ROWS_MAX
