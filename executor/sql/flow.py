"""The values that the tracing of literals computes with, and how they join."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

Literal = tuple[int, str]
"""Place in the text (bytes, -1 for a literal of an earlier step) and the literal's text."""

EVERY_ROW = "*"
"""The column of a source of which only the number of rows flows."""


class NotUnderstoodError(Exception):
    """The tracer met a shape it does not know; the caller then blames every literal."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What may flow into one value. operation "" is a plain copy of one source column."""

    literals: frozenset[Literal] = frozenset()
    sources: frozenset[tuple[str, str]] = frozenset()
    operation: str = "expression"

    def plus(self, literals: frozenset[Literal]) -> Flow:
        """The same value with more literals behind it."""
        return replace(self, literals=self.literals | literals) if literals else self


NOTHING = Flow()


def joined(flows: list[Flow], operation: str = "expression") -> Flow:
    """A value made of several."""
    literals = frozenset(x for f in flows for x in f.literals)
    sources = frozenset(x for f in flows for x in f.sources)
    return Flow(literals=literals, sources=sources, operation=operation)


@dataclass(frozen=True, slots=True)
class Relation:
    """Columns in order as (name, flow), what the number of rows depends on, and the alias."""

    columns: tuple[tuple[str, Flow], ...]
    rows: Flow = NOTHING
    alias: str = ""

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
        return Relation(columns=columns, rows=self.rows, alias=alias)

    def whole(self) -> Flow:
        """All columns at once."""
        return joined([flow for _, flow in self.columns] + [self.rows])


@dataclass(slots=True)
class Scope:
    """What names mean at one level: relations of FROM, select aliases so far, and the level out."""

    relations: list[Relation]
    outer: Scope | None = None
    aliases: dict[str, Flow] = field(default_factory=dict)
    locals: frozenset[str] = frozenset()

    def rows(self) -> Flow:
        """What the number of rows at this level depends on."""
        return joined([r.rows for r in self.relations])

    def find(self, parts: list[str]) -> Flow:
        """The flow of a column reference; alternatives are joined, the unknown is an error."""
        low = [p.lower() for p in parts]
        if len(low) == 1 and low[0] in self.locals:
            return NOTHING
        found = self._here(low)
        if not found and low[0] in self.locals:
            return NOTHING
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
