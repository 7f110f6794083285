"""The only way from a stranger's text to `ValidatedSql`: the values, and the one constructor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.verdict import Verdict, derived

__all__ = [
    "ColumnOrigin",
    "Finding",
    "GrantedColumn",
    "GrantedTable",
    "RowOrigin",
    "SqlRefused",
    "ValidatedSql",
    "validate",
]


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """Where the values of one result column come from; over-stated when in doubt.

    literals: texts of the literals that may flow into a value.
    sources: (table, column) that may flow in; ("t", "*") when only the number of its rows does.
    operation: "" for a plain copy of one source column, else "sum", "subtract", "expression", ...
    inexact: a binary floating point number may stand on the way.
    roots: the sources followed through earlier steps to snapshots; empty for a constant, None
    where the sources are snapshots themselves.
    conditions: texts of literals that only chose the rows behind a value (WHERE, FILTER, CASE).
    parameters: of casts (precision, scale); literals as soon as a later step measures the text.
    generated: it numbers rows, so that a literal compared with it picks itself out.
    """

    name: str
    literals: tuple[str, ...]
    sources: tuple[tuple[str, str], ...]
    operation: str
    inexact: bool
    roots: tuple[tuple[str, str], ...] | None = None
    conditions: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    generated: bool = False

    @property
    def rooted(self) -> tuple[tuple[str, str], ...]:
        """The (snapshot, column) pairs behind a value; empty for a constant."""
        return self.sources if self.roots is None else self.roots


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """What decides which rows a result has, and how many.

    literals: made rows (VALUES, range), so that they count for all that is read beside the rows.
    counts: count only when rows are counted or repeated (LIMIT 42, GROUP BY an expression);
    "one row" says that there is never more than one. sources, roots, conditions: as in
    ColumnOrigin, of (table, "*"). shape: "join" or "union" when it may repeat rows of a source.
    """

    literals: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    roots: tuple[tuple[str, str], ...] = ()
    conditions: tuple[str, ...] = ()
    shape: str = ""


@dataclass(frozen=True, slots=True)
class GrantedColumn:
    """name; type: DuckDB type text; origin: what flowed in earlier, None in a snapshot.

    domain: the values that the catalog declares, as texts; range: its declared lowest and highest
    value as texts, "" where open. Literals compared with the column are held to them.
    """

    name: str
    type: str
    origin: ColumnOrigin | None = None
    domain: tuple[str, ...] = ()
    range: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class GrantedTable:
    """A table the query may read. Columns whose names begin "__" are hidden from it.

    rows: what decides the rows of an earlier step's result; None for a snapshot.
    """

    name: str
    columns: tuple[GrantedColumn, ...]
    key: tuple[str, ...] = ()
    rows: RowOrigin | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What the examination in the worker found; only `validate` makes it a ValidatedSql."""

    executed: str
    countercheck: str
    verdict: Verdict
    formatted: str
    tables: tuple[str, ...]
    functions: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    origins: tuple[ColumnOrigin, ...]
    rows: RowOrigin
    ordered: bool
    literals: tuple[str, ...]
    tree: str
    plan: str


_TOKEN = object()


class ValidatedSql:
    """An admitted query, frozen; only `validate` can make one.

    asked: the model's text. executed: the text given to the engine, the same unless a rewrite is
    named. formatted: for readers, never run. tables: granted names it reads. columns: (name,
    DuckDB type) of the result, in its order. ordered: it has an outermost ORDER BY. literals: all
    in the text. verdict: whether, and how, it is a function of the data. countercheck: the executed
    text with every order that was added turned round; "" when none was added that could choose.
    tree, plan: the engine's parse tree and bound plan of the executed text, as JSON.
    """

    __slots__ = ("_finding", "asked")

    asked: str
    _finding: Finding

    def __init__(self, token: object, asked: str, finding: Finding) -> None:
        if token is not _TOKEN:
            raise AssertionError("only validate() makes a ValidatedSql")
        object.__setattr__(self, "asked", asked)
        object.__setattr__(self, "_finding", finding)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"ValidatedSql is frozen: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"ValidatedSql is frozen: {name}")

    def __reduce__(self) -> str:
        raise TypeError("a ValidatedSql is made anew by validate(), never copied in")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ValidatedSql):
            return NotImplemented
        return (self.asked, self._finding) == (other.asked, other._finding)

    def __hash__(self) -> int:
        return hash((self.asked, self._finding))

    def __repr__(self) -> str:
        return f"ValidatedSql({self.executed!r})"

    @property
    def executed(self) -> str:
        return self._finding.executed

    @property
    def countercheck(self) -> str:
        return self._finding.countercheck

    @property
    def verdict(self) -> Verdict:
        return self._finding.verdict

    @property
    def rewrites(self) -> tuple[str, ...]:
        """The names of the rewrites, sorted."""
        return self._finding.verdict.names

    @property
    def formatted(self) -> str:
        return self._finding.formatted

    @property
    def tables(self) -> tuple[str, ...]:
        return self._finding.tables

    @property
    def functions(self) -> tuple[str, ...]:
        return self._finding.functions

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return self._finding.columns

    @property
    def origins(self) -> tuple[ColumnOrigin, ...]:
        return self._finding.origins

    @property
    def rows(self) -> RowOrigin:
        return self._finding.rows

    @property
    def ordered(self) -> bool:
        return self._finding.ordered

    @property
    def literals(self) -> tuple[str, ...]:
        return self._finding.literals

    @property
    def tree(self) -> str:
        return self._finding.tree

    @property
    def plan(self) -> str:
        return self._finding.plan


def validate(
    sql: str,
    tables: Mapping[str, GrantedTable],
    *,
    examine: Callable[[str, Mapping[str, GrantedTable]], Finding],
) -> ValidatedSql:
    """Admit a text over the granted tables (name to table) or refuse it.

    examine: runs `tieout.executor.sql.examine.examine` where it can be killed (`Engine.validate`
    does); all parsing happens there. No type of Python's keeps another function out: that nothing
    else is handed over, and that nothing else makes a Finding, is held by a test over all of the
    source, and here what runs must be what was asked and the rewrites that are told, nothing more.

    Raises SqlRefused, and what examine raises.
    """
    finding = examine(sql, tables)
    if derived(sql, finding.verdict.rewrites) != finding.executed:
        raise AssertionError("the text that runs is not the one asked and its rewrites")
    return ValidatedSql(_TOKEN, sql, finding)
