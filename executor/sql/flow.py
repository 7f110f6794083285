"""The values that the tracing of literals computes with, and how they join."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

Literal = tuple[int, str]
"""Place in the text (bytes, -1 for a literal of an earlier step) and the literal's text."""
Literals = frozenset[Literal]
Sources = frozenset[tuple[str, str]]

EVERY_ROW = "*"
"""The column of a source of which only the number of rows flows."""
EARLIER = -1
ONE_ROW = (EARLIER, "one row")
"""Stands among the counts of a relation that has at most one row whatever the data are."""
NONE: Literals = frozenset()
SETS = "sets"
SHAPES = {"join": "a join", "union": "a union", SETS: "grouping sets"}
"""How rows may be repeated, and what is said of a sum over them."""


class NotUnderstoodError(Exception):
    """The tracer met a shape it does not know; the caller then blames every literal."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What may flow into one value. operation "" is a plain copy of one source column.

    sources: of the tables that the query names; roots: the snapshots behind them, none for a
    constant. conditions: literals that only chose rows. parameters: of casts; they become
    literals when the text of the value is measured. generated: it numbers rows. truth: a truth
    value is in it. null: it is NULL in every row.
    """

    literals: Literals = NONE
    sources: Sources = frozenset()
    operation: str = "expression"
    roots: Sources = frozenset()
    conditions: Literals = NONE
    parameters: Literals = NONE
    generated: bool = False
    truth: bool = False
    null: bool = False

    def plus(self, literals: Literals, conditions: Literals = NONE) -> Flow:
        """The same value with more literals behind it."""
        if not literals and not conditions:
            return self
        return replace(
            self,
            literals=self.literals | literals,
            conditions=self.conditions | conditions,
        )

    def settled(self, choice: Choice) -> Flow:
        """The value in the rows that a choice leaves."""
        picks = choice.picks if self.generated else NONE
        return self.plus(choice.literals | picks, choice.conditions)


@dataclass(frozen=True, slots=True)
class Choice:
    """What a condition leaves behind in the rows that it chooses.

    literals: count for every value. picks: a literal 1 compared with a numbering: counts for the
    numbering itself. counts: count when rows are counted. conditions: only chose.
    """

    literals: Literals = NONE
    conditions: Literals = NONE
    picks: Literals = NONE
    counts: Literals = NONE

    def and_(self, other: Choice) -> Choice:
        """Both conditions."""
        return Choice(
            self.literals | other.literals,
            self.conditions | other.conditions,
            self.picks | other.picks,
            self.counts | other.counts,
        )


NOTHING = Flow()


def joined(flows: Iterable[Flow], operation: str = "expression") -> Flow:
    """A value made of several."""
    given = list(flows)
    return Flow(
        literals=frozenset(x for f in given for x in f.literals),
        sources=frozenset(x for f in given for x in f.sources),
        operation=operation,
        roots=frozenset(x for f in given for x in f.roots),
        conditions=frozenset(x for f in given for x in f.conditions),
        parameters=frozenset(x for f in given for x in f.parameters),
        generated=any(f.generated for f in given),
        truth=any(f.truth for f in given),
    )


@dataclass(frozen=True, slots=True)
class Relation:
    """Columns in order as (name, flow), what the number of rows depends on, and the alias.

    rows: its literals make rows and count for everything read beside them. counts: literals that
    count only when rows are counted. shape: one of SHAPES when rows may be repeated.
    """

    columns: tuple[tuple[str, Flow], ...]
    rows: Flow = NOTHING
    alias: str = ""
    counts: Literals = NONE
    shape: str = ""

    def named(self, name: str) -> list[Flow]:
        """The flows of all columns of that name."""
        return [flow for column, flow in self.columns if column.lower() == name]

    def renamed(self, alias: str, names: list[str]) -> Relation:
        """Under an alias and with a column list; a list longer than the columns is not known."""
        if len(names) > len(self.columns):
            raise NotUnderstoodError("column list")
        columns = tuple(
            (names[i] if i < len(names) else name, flow)
            for i, (name, flow) in enumerate(self.columns)
        )
        return replace(self, columns=columns, alias=alias)

    def whole(self) -> Flow:
        """All columns at once."""
        return joined([flow for _, flow in self.columns] + [self.rows])


@dataclass(slots=True)
class Scope:
    """What names mean at one level: relations of FROM, select aliases so far, and the level out.

    repeated: what stands for the number of grouping sets, each of which has its own rows.
    """

    relations: list[Relation]
    outer: Scope | None = None
    aliases: dict[str, Flow] = field(default_factory=dict)
    locals: Mapping[str, Flow] = field(default_factory=dict)
    repeated: Literals = NONE

    def rows(self) -> Flow:
        """What the number of rows at this level depends on."""
        return joined([r.rows for r in self.relations])

    def counts(self) -> Literals:
        """What counting the rows at this level depends on besides."""
        single = all(ONE_ROW in r.counts for r in self.relations)
        found = frozenset(x for r in self.relations for x in r.counts if x != ONE_ROW)
        return found | {ONE_ROW} if single else found

    def shape(self) -> str:
        """One of SHAPES when a row of a source may stand here more than once."""
        several = [r for r in self.relations if ONE_ROW not in r.counts]
        if len(several) > 1:
            return "join"
        return several[0].shape if several else ""

    def find(self, parts: list[str]) -> Flow:
        """The flow of a column reference; alternatives are joined, the unknown is an error."""
        low = [p.lower() for p in parts]
        if len(low) == 1 and low[0] in self.locals:
            return self.locals[low[0]]
        found = self._here(low)
        if not found and low[0] in self.locals:
            return self.locals[low[0]]
        if found:
            return found[0] if len(found) == 1 else joined(found)
        if self.outer is None:
            raise NotUnderstoodError(".".join(parts))
        return self.outer.find(parts)

    def _here(self, low: list[str]) -> list[Flow]:
        found: list[Flow] = []
        for relation in self.relations:
            if len(low) > 1 and relation.alias.lower() == low[0]:
                found += relation.named(low[1])
        if found:
            return found if len(low) == 2 else [joined(found)]
        for relation in self.relations:
            found += relation.named(low[0])
        if low[0] in self.aliases:
            found.append(self.aliases[low[0]])
        if not found:
            found = [
                r.whole() for r in self.relations if r.alias.lower() == low[0] and len(low) == 1
            ]
        return found if len(low) == 1 or not found else [joined(found)]
