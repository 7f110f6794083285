"""Which columns tell the rows of FROM apart: declared keys, followed through joins and queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tieout.executor.sql.shape import Node, as_node, column_refs, names, nodes, word

Column = tuple[int, str]
"""Place of the relation in FROM, lower-case name."""

_NUMBERS = ("DECIMAL", "INT", "HUGEINT")


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

    def extend(self, places: set[int]) -> None:
        """FULL JOIN fills rows of either side with NULL, which a key may hold too.

        So a key tells no rows apart there; all columns still do.
        """
        for place in places:
            self.relations[place] = replace(self.relations[place], keys=(), one=False)

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

    def merge(self, names_: set[str], left: set[int], right: set[int], join: str) -> None:
        """USING: columns of one name on both sides are equal."""
        for name in sorted(names_):
            sides = []
            for side in (left, right):
                found = [p for p in sorted(side) if name in (self.relations[p].columns or {})]
                sides.append((found[0], name) if found else None)
            if join not in ("INNER", "LEFT"):
                self.opaque.add(name)
            one, other = sides
            if other is not None:
                self.merged.add(other)
            if one is None or other is None or not _alike(self.kind(one), self.kind(other)):
                continue
            if join == "INNER":
                self.edges += [(frozenset(), one, other), (frozenset(), other, one)]
            elif join == "LEFT":
                self.edges.append((frozenset(left), one, other))


def _alike(one: str, other: str) -> bool:
    """Whether equal values of two types are one value in each ('01' = 1 is not)."""
    numbers = all(any(n in kind.upper() for n in _NUMBERS) for kind in (one, other))
    return one != "" and (one == other or numbers)


def _fixes(node: Node, kind: str) -> bool:
    """Whether equality with a constant leaves a column of this type one value."""
    if not kind or next(column_refs(node), None) is not None or word(node, "class") == "SUBQUERY":
        return False
    literal = as_node(node.get("literal") or {})
    return kind != "VARCHAR" or literal.get("kind") == "STRING"
