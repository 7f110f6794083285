"""Which columns tell the rows of FROM apart: declared keys, followed through joins and queries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tieout.executor.sql.shape import Node, as_node, column_refs, names, nodes, word

Column = tuple[int, str]
"""Place of the relation in FROM, lower-case name."""

_NUMBER = re.compile(
    r"DECIMAL\(\d+,\d+\)|U?(TINYINT|SMALLINT|INTEGER|BIGINT)|HUGEINT", re.IGNORECASE
)
"""Types whose values are compared exactly, with each other too. UHUGEINT is not: it and HUGEINT
are compared as floats."""
_PLAIN = re.compile(r"VARCHAR|DATE|TIME|TIMESTAMP|BOOLEAN|UUID|BLOB|UHUGEINT", re.IGNORECASE)
"""Types whose equal values are one value. 0.0 equals -0.0, and 30 days a month."""
_SHORT = re.compile(r"-?\d{1,18}|-?\d{1,9}\.\d{1,9}")
"""A number that is written without an exponent, and so is exact."""
_NAMED = frozenset({"TINYINT", "SMALLINT", "INTEGER", "INT", "BIGINT", "HUGEINT", "DECIMAL"})


@dataclass(frozen=True, slots=True)
class Keyed:
    """A relation: column name to type ("" when not known), keys (sets of column names).

    columns None: not known. one: it never has more than one row. ordered: its rows were put in an
    order, which nothing keeps for a query around it.
    """

    columns: Mapping[str, str] | None
    keys: tuple[frozenset[str], ...] = ()
    alias: str = ""
    one: bool = False
    ordered: bool = False

    def named(self, alias: str, listed: list[str]) -> Keyed:
        """Under an alias; with a list of column names, whatever was known of names is gone."""
        if not listed or self.columns is None:
            return replace(self, alias=alias)
        old = list(self.columns)
        new = [n.lower() for n in listed] + old[len(listed) :]
        if len(set(new)) != len(old):
            return replace(self, columns=None, keys=(), alias=alias)
        back = dict(zip(old, new, strict=True))
        keys = tuple(frozenset(back[c] for c in key) for key in self.keys)
        columns = {back[c]: kind for c, kind in self.columns.items()}
        return replace(self, columns=columns, keys=keys, alias=alias)


UNKNOWN = Keyed(None)


@dataclass(slots=True)
class Block:
    """The relations of one FROM, and what holds between their columns.

    edges: (relations that must be told apart first, column, the column that it determines).
    constant: columns with one value only. opaque: names that USING merged into something new.
    merged: columns that USING leaves out of a star.
    """

    relations: list[Keyed] = field(default_factory=list)
    edges: list[tuple[frozenset[int], Column, Column]] = field(default_factory=list)
    constant: set[Column] = field(default_factory=set)
    opaque: set[str] = field(default_factory=set)
    merged: set[Column] = field(default_factory=set)
    aliases: dict[str, Node] = field(default_factory=dict)

    @property
    def ordered(self) -> bool:
        """Whether FROM is one query whose rows were put in an order."""
        return len(self.relations) == 1 and self.relations[0].ordered

    @property
    def known(self) -> bool:
        """Whether the columns of all relations are known."""
        return all(relation.columns is not None for relation in self.relations)

    def holds(self, name: str) -> bool:
        """Whether a relation is known to have a column of a name, in lower case."""
        return any(name in (relation.columns or {}) for relation in self.relations)

    def resolve(self, parts: list[str]) -> Column | None:
        """The column that a reference names here, None when it cannot be told."""
        low = [p.lower() for p in parts]
        if len(low) == 2:
            for place, relation in enumerate(self.relations):
                if relation.alias.lower() == low[0]:
                    known = relation.columns is not None and low[1] in relation.columns
                    return (place, low[1]) if known else None
        if len(low) != 1 or low[0] in self.opaque:
            return None
        if not self.known:
            return None
        for place, relation in enumerate(self.relations):
            if low[0] in (relation.columns or {}):
                return place, low[0]
        alias = self.aliases.get(low[0])
        if alias is not None and word(alias, "class") == "COLUMN_REF":
            inner = names(alias)
            return None if [p.lower() for p in inner] == low else self.resolve(inner)
        return None

    def plain(self, expressions: list[Node]) -> set[Column]:
        """The columns among some expressions."""
        found = (self.resolve(names(e)) for e in expressions if word(e, "class") == "COLUMN_REF")
        return {column for column in found if column is not None}

    def kind(self, column: Column) -> str:
        """The type of a column, "" when it is not known."""
        return (self.relations[column[0]].columns or {}).get(column[1], "")

    def closure(self, given: set[Column]) -> tuple[set[Column], set[int]]:
        """The columns that the given ones determine, and the relations that they tell apart."""
        have, told = given | self.constant, set[int]()
        changed = True
        while changed:
            before = len(have) + len(told)
            for place, relation in enumerate(self.relations):
                mine = {name for at, name in have if at == place}
                every = relation.columns is not None and mine >= relation.columns.keys()
                if relation.one or every or any(key <= mine for key in relation.keys):
                    told.add(place)
                    have |= {(place, name) for name in relation.columns or ()}
            have |= {to for needs, at, to in self.edges if at in have and needs <= told}
            changed = len(have) + len(told) > before
        return have, told

    def total(self, given: set[Column]) -> bool:
        """Whether rows that agree in the given columns are the same row, or alike in all."""
        return len(self.closure(given)[1]) == len(self.relations)

    def missing(self, given: set[Column]) -> list[Column] | None:
        """Columns that tell all rows apart, put beside the given ones: keys, else all columns.

        None where the columns of a relation are not known.
        """
        added: list[Column] = []
        for place, relation in enumerate(self.relations):
            have, told = self.closure(given | set(added))
            if place in told:
                continue
            if relation.columns is None:
                return None
            key = min(relation.keys, key=lambda k: (len(k), sorted(k)), default=None)
            wanted = [n for n in relation.columns if key is None or n in key]
            added += [(place, n) for n in wanted if (place, n) not in have]
        return added

    def extend(self, left: set[int], right: set[int], join: str, equal: set[Column]) -> None:
        """An outer join fills the relations of a side with NULL, in rows of their own.

        So one row is two there, a constant has two values, and a key, which may be NULL too, tells
        no rows apart; all columns still do. What an inner join found equal still is, both NULL.
        equal: columns that the condition makes equal to the other side's, or to a constant: what
        these determine, a row of the other side determines, or it is NULL.
        """
        sides = {"LEFT": right, "RIGHT": left, "FULL": left | right}.get(join, set())
        others = {"LEFT": left, "RIGHT": right}.get(join, set())
        have, told = self.closure({column for column in equal if column[0] in sides})
        for place in sides:
            self.relations[place] = replace(self.relations[place], keys=(), one=False)
        self.constant = {column for column in self.constant if column[0] not in sides}
        self.edges = [e for e in self.edges if not e[0] or e[2][0] not in sides]
        at = [(p, n) for p in sorted(others) for n in self.relations[p].columns or ()][:1]
        found = sorted(column for column in have if column[0] in sides & told)
        self.edges += [(frozenset(others), one, to) for one in at for to in found]

    def forget(self, start: int) -> None:
        """SEMI and ANTI drop the relations of their right side, and all that was learnt of them."""
        del self.relations[start:]
        self.constant = {column for column in self.constant if column[0] < start}
        self.merged = {column for column in self.merged if column[0] < start}
        self.edges = [
            edge for edge in self.edges if max([edge[1][0], edge[2][0], *edge[0]]) < start
        ]

    def equate(self, condition: Node, left: set[int], right: set[int], join: str) -> None:
        """Learn from ON or WHERE (join "INNER", both sets empty) what equals what."""
        for at, to in self._equalities(condition):
            if to is None:
                if join == "INNER":
                    self.constant.add(at)
                continue
            for one, other in ((at, to), (to, at)):
                if join == "INNER":
                    self.edges.append((frozenset(), one, other))
                elif join == "LEFT" and one[0] in left and other[0] in right:
                    self.edges.append((frozenset(left), one, other))
                elif join == "RIGHT" and one[0] in right and other[0] in left:
                    self.edges.append((frozenset(right), one, other))

    def _equalities(self, node: Node) -> Iterator[tuple[Column, Column | None]]:
        """Pairs of equal columns of one type; a column and None where it equals a constant."""
        if word(node, "type") == "CONJUNCTION_AND":
            for part in nodes(node.get("children")):
                yield from self._equalities(part)
        if word(node, "type") not in ("COMPARE_EQUAL", "COMPARE_NOT_DISTINCT_FROM"):
            return
        sides = [as_node(node["left"]), as_node(node["right"])]
        for one, other in (sides, sides[::-1]):
            column = self.resolve(names(one)) if word(one, "class") == "COLUMN_REF" else None
            if column is None:
                continue
            if word(other, "class") == "COLUMN_REF":
                partner = self.resolve(names(other))
                if partner is not None and _alike(self.kind(column), self.kind(partner)):
                    yield column, partner
                    return
            elif _fixes(other, self.kind(column)):
                yield column, None

    def equal(self, condition: Node | None, using: set[str], sides: list[set[int]]) -> set[Column]:
        """Columns that a join makes equal to a column of the other side, or to a constant."""
        pairs = list(self._equalities(condition)) if condition else []
        pairs += [p for name in sorted(using) if (p := self._shared(name, sides)) is not None]
        across = {
            column
            for one, other in pairs
            if other is not None and any((one[0] in s) != (other[0] in s) for s in sides)
            for column in (one, other)
        }
        return across | {one for one, other in pairs if other is None}

    def _shared(self, name: str, sides: list[set[int]]) -> tuple[Column, Column] | None:
        """The columns of one name on both sides, where equal values are one value."""
        found = [
            next(
                ((p, name) for p in sorted(side) if name in (self.relations[p].columns or {})), None
            )
            for side in sides
        ]
        one, other = found
        if one is None or other is None or not _alike(self.kind(one), self.kind(other)):
            return None
        return one, other

    def merge(self, names_: set[str], left: set[int], right: set[int], join: str) -> None:
        """USING: columns of one name on both sides are equal."""
        for name in sorted(names_):
            if join not in ("INNER", "LEFT"):
                self.opaque.add(name)
            holders = [p for p in sorted(right) if name in (self.relations[p].columns or {})]
            self.merged |= {(place, name) for place in holders[:1]}
            pair = self._shared(name, [left, right])
            if pair is None:
                continue
            one, other = pair
            if join == "INNER":
                self.edges += [(frozenset(), one, other), (frozenset(), other, one)]
            elif join == "LEFT":
                self.edges.append((frozenset(left), one, other))


def _alike(one: str, other: str) -> bool:
    """Whether equal values of two types are one value in each ('01' = 1 is not)."""
    if _NUMBER.fullmatch(one) and _NUMBER.fullmatch(other):
        return True
    return one == other and _PLAIN.fullmatch(one) is not None


def _fixes(node: Node, kind: str) -> bool:
    """Whether equality with a constant leaves a column of this type one value.

    The two are compared as values of a type that holds both, where several values of the column
    may be one: whole numbers as floats, texts as numbers.
    """
    literal = as_node(node.get("literal") or {})
    if literal.get("kind") == "STRING":
        return _alike(kind, kind)
    if _NUMBER.fullmatch(kind):
        return _exact_number(node)
    if word(node, "class") == "CAST":
        name = word(as_node(node["type_expr"]), "type_name").upper()
        return name in ("DATE", "TIMESTAMP") and kind in ("DATE", "TIMESTAMP")
    return kind == "BOOLEAN" and literal.get("kind") == "BOOLEAN"


def _exact_number(node: Node) -> bool:
    """Whether a constant is a number that is compared exactly."""
    if word(node, "class") == "CAST":
        constant = next(column_refs(node["child"]), None) is None
        return constant and word(as_node(node["type_expr"]), "type_name").upper() in _NAMED
    literal = as_node(node.get("literal") or {})
    written = str(literal.get("text"))
    return literal.get("kind") in ("INTEGER", "NUMERIC") and bool(_SHORT.fullmatch(written))
