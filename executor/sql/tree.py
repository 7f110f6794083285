"""The first gate: DuckDB's own parse tree against closed lists of nodes, names and functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tieout.executor.sql import functions
from tieout.executor.sql.dialects import instead
from tieout.executor.sql.refusal import Text
from tieout.executor.sql.shape import (
    Json,
    Node,
    arguments,
    as_node,
    location,
    names,
    nodes,
    word,
)
from tieout.executor.sql.vocabulary import (
    AGGREGATES_BY_NAME,
    CLOCK_WORDS,
    CTE_USES_MAX,
    CTES_MAX,
    EXPRESSIONS,
    LIST_ORDER_SAFE,
    MODIFIERS,
    QUERY_NODES,
    RANGE_ROWS_MAX,
    RANGES,
    SESSION_WORDS,
    TABLE_REFS,
    TYPES,
)

LIBM_PLACES_MAX = 12
DIGITS_MAX = 38
LIBM_DIGITS = dict.fromkeys(
    ("exp", "pow", "power", "^", "**", "sinh", "cosh", "tan", "cot", "gamma", "lgamma", "binom"), 13
)
"""Functions whose values grow, and how many digits of one can be kept: of 1M values of exp up to
22,026, 131 differ at DECIMAL(38,12) when the processor has no fused multiplication, none at 13."""
LIBM_INSIDE = frozenset({"entropy", "list_entropy"})
"""Aggregates that take a logarithm."""
LIBM_REMEDY = "Put it directly inside a cast of at most 13 digits: CAST(exp(x) AS DECIMAL(13,8))."

_PLAIN_NAME = re.compile(r"[A-Za-z_][\w $-]*")


@dataclass(frozen=True, slots=True)
class Granted:
    """Lower-case table name to its lower-case columns with their types, and to its key."""

    columns: Mapping[str, Mapping[str, str]]
    keys: Mapping[str, frozenset[str]]


@dataclass(slots=True)
class Seen:
    """What the walk found: granted tables and all names as written (lower case), and functions."""

    granted: Granted
    tables: set[str] = field(default_factory=set)
    refs: Counter[str] = field(default_factory=Counter)
    ctes: set[str] = field(default_factory=set)
    cte_uses: dict[str, int] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    table_functions: set[str] = field(default_factory=set)
    generates: bool = False
    """Whether rows can come from no table: ranges, unnest, recursion."""


def check_tree(text: Text, root: Node, granted: Granted) -> Seen:
    """Walk the whole tree; raises SqlRefused at the first node outside the lists."""
    walk = _Walk(text, granted, Seen(granted))
    walk.query(root, frozenset())
    for name, uses in walk.seen.cte_uses.items():
        if uses > CTE_USES_MAX:
            message = f"the WITH query {name} is used {uses} times, over {CTE_USES_MAX}"
            raise text.refuse("sql.too_complex", message, word=name)
    return walk.seen


class _Walk:
    """One pass; scope is the lower-case names of the WITH queries visible here."""

    def __init__(self, text: Text, granted: Granted, seen: Seen) -> None:
        self.text = text
        self.granted = granted
        self.seen = seen

    def query(self, node: Node, scope: frozenset[str]) -> None:
        """A query node with its WITH list, modifiers and parts."""
        kind = word(node, "type")
        if kind not in QUERY_NODES:
            verb = kind.removesuffix("_QUERY_NODE")
            code = "sql.file_access" if verb == "COPY" else "sql.write"
            code = code if kind.endswith("_QUERY_NODE") else "sql.construct"
            raise self.text.refuse(code, f"{verb} is not a query that reads", word=verb)
        if node.get("sample") is not None:
            raise self.text.refuse("sql.sample", "a sample is not admitted", word="sample")
        scope = self._with(node, scope)
        if kind == "RECURSIVE_CTE_NODE":
            self.seen.generates = True
            scope |= {word(node, "cte_name").lower()}
        for key, value in node.items():
            if key != "cte_map":
                self.value(value, scope, parent=node)

    def _with(self, node: Node, scope: frozenset[str]) -> frozenset[str]:
        entries = as_node(node.get("cte_map") or {}).get("map")
        for entry in nodes(entries):
            name = word(entry, "key").lower()
            if name in self.granted.columns:
                message = f"the WITH query {name} has the name of a granted table"
                raise self.text.refuse("sql.shadowed_table", message, word=name)
            self._reserved(name)
            self.seen.ctes.add(name)
            if len(self.seen.ctes) > CTES_MAX:
                message = f"there are over {CTES_MAX} WITH queries"
                raise self.text.refuse("sql.too_complex", message, word=name)
            body = as_node(entry["value"])
            inner = as_node(body["query_node"])
            self.query(inner, scope)
            for key, value in body.items():
                if key != "query_node":
                    self.value(value, scope, parent=body)
            scope |= {name}
        return scope

    def value(self, value: Json, scope: frozenset[str], *, parent: Node) -> None:
        """Any value: objects with a class are expressions, with a type refs and modifiers."""
        if isinstance(value, list):
            for item in value:
                self._reserved(item if isinstance(item, str) else "")
                self.value(item, scope, parent=parent)
        elif isinstance(value, dict):
            if "class" in value:
                self.expression(value, scope, parent)
            elif "cte_map" in value:
                self.query(value, scope)
            elif isinstance(value.get("type"), str):
                self.reference(value, scope)
            else:
                for key, item in value.items():
                    if key in ("sample", "at_clause") and item is not None:
                        raise self.text.refuse("sql.sample", f"{key} is not admitted")
                    self._reserved(item if isinstance(item, str) else "")
                    self.value(item, scope, parent=parent)

    def reference(self, node: Node, scope: frozenset[str]) -> None:
        """A table reference or a modifier."""
        kind = word(node, "type")
        where = location(node)
        if kind not in TABLE_REFS | MODIFIERS:
            raise self.text.refuse("sql.construct", f"{kind} is not admitted", location=where)
        if node.get("sample") is not None:
            raise self.text.refuse("sql.sample", "a sample is not admitted", location=where)
        if kind == "BASE_TABLE":
            self.table(node, scope)
        if kind == "JOIN" and word(node, "ref_type") == "POSITIONAL":
            message = "a positional join depends on the order of rows"
            raise self.text.refuse(
                "sql.construct", message, location=where, word="positional", reason="layout"
            )
        if kind == "TABLE_FUNCTION":
            self.table_function(node)
        self._reserved(word(node, "alias"))
        for key, item in node.items():
            if kind == "TABLE_FUNCTION" and key == "function":
                for part in arguments(as_node(item)):
                    self.value(part, scope, parent=as_node(item))
            else:
                self.value(item, scope, parent=node)

    def table(self, node: Node, scope: frozenset[str]) -> None:
        """A name in FROM: a granted table or a visible WITH query, unqualified."""
        name, where = word(node, "table_name"), location(node)
        if node.get("at_clause") is not None:
            raise self.text.refuse("sql.sample", "AT is not admitted", location=where)
        if not _PLAIN_NAME.fullmatch(name):
            message = "a file, address or pattern stands where a table belongs"
            raise self.text.refuse("sql.file_access", message, location=where)
        if word(node, "schema_name") or word(node, "catalog_name"):
            message = f"the table {name} is named with a schema or catalog"
            raise self.text.refuse("sql.qualified_table", message, location=where)
        low = name.lower()
        self.seen.refs[low] += 1
        if low in scope:
            self.seen.cte_uses[low] = self.seen.cte_uses.get(low, 0) + 1
        elif low in self.granted.columns:
            self.seen.tables.add(low)
        else:
            message = f"the table {name} is not one of the granted tables"
            have = ", ".join(sorted(self.granted.columns)) or "none"
            remedy = f"Use one of the granted tables: {have}."
            raise self.text.refuse("sql.unknown_table", message, location=where, remedy=remedy)

    def table_function(self, node: Node) -> None:
        """Only range, generate_series (literal, bounded) and unnest make rows."""
        call = as_node(node["function"])
        name, where = word(call, "function_name").lower(), location(node)
        if call.get("class") != "FUNCTION" or (name not in RANGES and name != "unnest"):
            code = functions.code_of(name, table=True)
            message = f"the table function {name} is not admitted"
            raise self.text.refuse(code, message, location=where, word=name)
        self._unqualified(call, where)
        if word(node, "with_ordinality") not in ("", "WITHOUT_ORDINALITY"):
            raise self.text.refuse(
                "sql.construct", "WITH ORDINALITY is not admitted", location=where
            )
        self.seen.generates = True
        self.seen.table_functions.add(name)
        if name in RANGES and not _small_range(name, arguments(call)):
            message = f"{name} needs literal whole numbers and at most {RANGE_ROWS_MAX} rows"
            raise self.text.refuse("sql.range", message, location=where)

    def expression(self, node: Node, scope: frozenset[str], parent: Node) -> None:
        """An expression of a known class and type, its own rules, then its parts."""
        kind, where = word(node, "class"), location(node)
        if word(node, "type") not in EXPRESSIONS.get(kind, ()):
            code = "sql.parameter" if kind == "PARAMETER" else "sql.construct"
            code = "sql.collation" if kind == "COLLATE" else code
            message = f"the construct {kind.lower()} ({word(node, 'type').lower()}) is not admitted"
            raise self.text.refuse(
                code, message, location=where, word="collate" * (kind == "COLLATE")
            )
        self._reserved(word(node, "alias"))
        if kind == "COLUMN_REF":
            self.column(node)
        elif kind in ("FUNCTION", "WINDOW"):
            self.function(node, parent)
        elif kind == "TYPE":
            self.type(node)
        elif kind == "SUBQUERY":
            self.value(node.get("child"), scope, parent=node)
            self.query(as_node(as_node(node["subquery"])["node"]), scope)
            return
        for key, item in node.items():
            if key not in ("literal", "qualified_name"):
                self.value(item, scope, parent=node)

    def column(self, node: Node) -> None:
        """A column: not rowid, not hidden, not one of the words that read clock or session."""
        parts = [p.lower() for p in names(node)]
        where = location(node)
        for part in parts:
            self._reserved(part, where)
        if parts[-1] == "rowid":
            message = "rowid is not a column of the data"
            raise self.text.refuse("sql.rowid", message, location=where)
        known = any(parts[-1] in columns for columns in self.granted.columns.values())
        if len(parts) == 1 and not known and parts[0] in CLOCK_WORDS | SESSION_WORDS:
            code = "sql.clock" if parts[0] in CLOCK_WORDS else "sql.catalog"
            message = f"{parts[0]} is not in the data"
            raise self.text.refuse(code, message, location=where)

    def _reserved(self, name: str, where: int | None = None) -> None:
        if name.startswith("__"):
            message = f"the name {name} begins with two underscores"
            raise self.text.refuse("sql.reserved_name", message, location=where, word=name)

    def _unqualified(self, node: Node, where: int | None) -> None:
        path = as_node(node.get("qualified_name") or {}).get("path")
        if (
            word(node, "schema")
            or word(node, "catalog")
            or (isinstance(path, list) and len(path) > 1)
        ):
            message = f"the function {word(node, 'function_name')} is named with a schema"
            raise self.text.refuse("sql.function", message, location=where)

    def type(self, node: Node) -> None:
        """A type name from the list; the engine's own types only."""
        name = word(node, "type_name").upper()
        if name not in TYPES or word(node, "schema") or word(node, "catalog"):
            message = f"the type {name} is not admitted"
            raise self.text.refuse("sql.type", message, location=location(node), word=name)

    def function(self, node: Node, parent: Node) -> None:
        """A function or window by its class, and the shape that its class asks for."""
        name, where = word(node, "function_name").lower(), location(node)
        self._unqualified(node, where)
        made = name == "unnest"  # a table function that may stand in a select list
        if not made and not functions.is_open(name):
            code = functions.code_of(name, table=False)
            message = f"the function {name} is not admitted"
            why, remedy = functions.reason_of(name), instead(name)
            raise self.text.refuse(
                code, message, location=where, word=name, remedy=remedy, reason=why
            )
        if node.get("export_state"):
            raise self.text.refuse("sql.construct", "EXPORT_STATE is not admitted", location=where)
        self.seen.functions.add(name)
        given = list(map(_uncast, arguments(node)))
        if name in RANGES and all(map(_is_number, given)) and not _small_range(name, given):
            message = f"{name} makes more than {RANGE_ROWS_MAX} elements"
            raise self.text.refuse("sql.range", message, location=where)
        groups = functions.groups(name)
        if name in RANGES or name in ("unnest", "generate_subscripts"):
            self.seen.generates = True
        inside = "libm" in groups or name in LIBM_INSIDE
        if inside and not _exact_cast(parent, LIBM_DIGITS.get(name, DIGITS_MAX)):
            message = f"{name} gives digits that depend on the processor"
            remedy = LIBM_REMEDY if name in LIBM_DIGITS else ""
            raise self.text.refuse("sql.libm", message, location=where, remedy=remedy)
        if "clock_overload" in groups and len(arguments(node)) != 2:
            message = f"{name} with one argument reads the clock"
            raise self.text.refuse("sql.clock", message, location=where)
        if "string_named_aggregate" in groups and not _names_aggregate(name, node):
            message = f"{name} needs the literal name of a plain aggregate"
            raise self.text.refuse("sql.function", message, location=where)
        unsafe = "hash_order" in groups and not name.endswith("_unique")
        if unsafe and word(parent, "function_name").lower() not in LIST_ORDER_SAFE:
            message = f"{name} gives its elements in no fixed order"
            remedy = f"Write list_sort({name}(...))."
            raise self.text.refuse(
                "sql.function", message, location=where, remedy=remedy, reason="hash_order"
            )


def _exact_cast(parent: Node, digits_max: int) -> bool:
    """CAST(f(x) AS DECIMAL(p <= digits_max, s <= 12)): digits in which processors agree."""
    if parent.get("class") != "CAST":
        return False
    kind = as_node(parent["type_expr"])
    parts = [as_node(c) for c in nodes(kind.get("children"))]
    digits = [str(as_node(p.get("literal") or {}).get("text")) for p in parts]
    if word(kind, "type_name").upper() not in {"DECIMAL", "NUMERIC", "DEC"}:
        return False
    if len(digits) != 2 or not all(d.isdecimal() and d.isascii() for d in digits):
        return False
    return int(digits[0]) <= digits_max and int(digits[1]) <= LIBM_PLACES_MAX


def _names_aggregate(name: str, node: Node) -> bool:
    """list_aggregate(l, 'sum'): macros over it fix the name themselves."""
    if name.startswith(("list_aggr", "array_aggr")) or name == "aggregate":
        given = arguments(node)[1:2]
        text = [as_node(a.get("literal") or {}).get("text") for a in given]
        return bool(text) and isinstance(text[0], str) and text[0].lower() in AGGREGATES_BY_NAME
    return True


def _uncast(node: Node) -> Node:
    while node.get("class") == "CAST":
        node = as_node(node["child"])
    return node


def _is_number(node: Node) -> bool:
    """Whether it is a literal whole number."""
    return as_node(node.get("literal") or {}).get("kind") == "INTEGER"


def _small_range(name: str, given: list[Node]) -> bool:
    """Whether the arguments are literal whole numbers that make few enough rows.

    generate_series has its last number too. Numbers in the other direction make none; they count.
    """
    bounds: list[int] = []
    for argument in given:
        literal = argument.get("literal")
        text = literal.get("text") if isinstance(literal, dict) else None
        if not isinstance(text, str) or not re.fullmatch(r"-?\d{1,18}", text):
            return False
        bounds.append(int(text))
    if not 1 <= len(bounds) <= 3:
        return False
    start, stop = (0, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
    step = abs(bounds[2]) if len(bounds) == 3 else 1
    made = abs(stop - start) + (step if name == "generate_series" else max(step - 1, 0))
    return step > 0 and made // step <= RANGE_ROWS_MAX
