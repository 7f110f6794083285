"""Per result column: the literals and source columns that may flow into it, never too few.

An abstract run over the engine's own parse tree, so that it reads what will run. Whatever it does
not know (PIVOT, COLUMNS(), BY NAME) ends in the sound answer: every literal to every column.
Literals in WHERE, ON, HAVING, QUALIFY, GROUP BY and ORDER BY choose rows and are not counted, but
where rows come from no table (range, unnest, recursion) or are numbered (row_number), choosing is
making, and they are. How many rows there are is traced beside the columns, for later steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tieout.executor.sql.blocks import Tracer, weigh
from tieout.executor.sql.effects import BOOLEANS
from tieout.executor.sql.flow import (
    EARLIER,
    EVERY_ROW,
    Flow,
    Literals,
    NotUnderstoodError,
    Relation,
    joined,
)
from tieout.executor.sql.literals import all_literals
from tieout.executor.sql.shape import Node
from tieout.executor.sql.tree import Seen
from tieout.executor.sql.validate import ColumnOrigin, GrantedColumn, GrantedTable, RowOrigin

TRUTH = "boolean"


@dataclass(frozen=True, slots=True)
class Traced:
    """columns: the origin of each; rows: of their number; literals: all of the text in order."""

    columns: tuple[ColumnOrigin, ...]
    rows: RowOrigin
    literals: tuple[str, ...]


def trace(
    root: Node,
    tables: Mapping[str, GrantedTable],
    columns: Sequence[tuple[str, str]],
    seen: Seen,
    *,
    inexact: bool | tuple[bool, ...],
) -> Traced:
    """The origin of each result column and of the number of rows.

    columns: bound (name, type) of the result; a derived list of other names falls back.
    inexact: a float stands on the way of some value (from the bound plan); of each column, or of
    all. A width that is not the result's counts for all.
    """
    floats = _of_each(inexact, len(columns))
    literals = frozenset(all_literals(root))
    known = {n.lower(): granted_relation(n, t) for n, t in tables.items()}
    bare = seen.generates or not seen.tables
    names = [name.lower() for name, _ in columns]
    try:
        found = _checked(
            Tracer(known, conditions_count=bare).relation(root, None, nested=False), names
        )
    except (NotUnderstoodError, KeyError):
        flow = joined([known[n].whole() for n in sorted(seen.tables)])
        counts = literals.union(*(known[n].counts for n in sorted(seen.tables)))
        found = Relation(tuple((n, flow) for n in names), flow, counts=counts, shape="join")
        found = weigh(found, literals, generated=True)
    if bare:
        found = weigh(found, literals, generated=seen.generates)
    return Traced(
        tuple(
            _origin(name, kind, flow, inexact=through or _was_inexact(flow, tables))
            for (name, kind), (_, flow), through in zip(columns, found.columns, floats, strict=True)
        ),
        _row_origin(found),
        _texts(literals),
    )


def _of_each(inexact: bool | tuple[bool, ...], width: int) -> tuple[bool, ...]:
    if isinstance(inexact, bool):
        return (inexact,) * width
    return inexact if len(inexact) == width else (any(inexact),) * width


def _checked(relation: Relation, bound: Sequence[str]) -> Relation:
    """The relation, if the tracer arrived at the same columns as the binder."""
    names = [name.lower() for name, _ in relation.columns]
    if len(names) != len(bound):
        raise NotUnderstoodError("width")
    if any(name not in ("", other) for name, other in zip(names, bound, strict=True)):
        raise NotUnderstoodError("names")
    return relation


def _texts(literals: Literals) -> tuple[str, ...]:
    """Texts in the order of their places, each once."""
    return tuple(dict.fromkeys(text for _, text in sorted(literals)))


def _earlier(texts: Sequence[str]) -> Literals:
    return frozenset((EARLIER, text) for text in texts)


def _origin(name: str, kind: str, flow: Flow, *, inexact: bool) -> ColumnOrigin:
    """A plain copy is inexact by its type alone; anything else by the plan's."""
    floats = "DOUBLE" in kind or "FLOAT" in kind
    if flow.truth and kind.upper() not in BOOLEANS:
        flow = flow.plus(_earlier([TRUTH]))
    return ColumnOrigin(
        name=name,
        literals=_texts(flow.literals),
        sources=tuple(sorted(flow.sources)),
        operation=flow.operation,
        inexact=floats or (inexact and flow.operation != ""),
        roots=tuple(sorted(flow.roots)),
        conditions=_texts(flow.conditions),
        parameters=_texts(flow.parameters),
        generated=flow.generated,
    )


def _was_inexact(flow: Flow, tables: Mapping[str, GrantedTable]) -> bool:
    """Whether an earlier step let a float into one of the columns that flow in."""
    return any(
        (table, column.name) in flow.sources and column.origin is not None and column.origin.inexact
        for table, granted in tables.items()
        for column in granted.columns
    )


def _row_origin(relation: Relation) -> RowOrigin:
    rows = relation.rows
    return RowOrigin(
        literals=_texts(rows.literals),
        counts=_texts(relation.counts),
        sources=tuple(sorted(rows.sources)),
        roots=tuple(sorted(rows.roots)),
        conditions=_texts(rows.conditions),
        shape=relation.shape,
    )


def granted_relation(name: str, table: GrantedTable) -> Relation:
    """A granted table: a snapshot is its own root, an earlier step hands on what it came from."""
    columns = tuple(
        (c.name, _granted_column(name, c)) for c in table.columns if not c.name.startswith("__")
    )
    here = frozenset({(name, EVERY_ROW)})
    rows = table.rows
    if rows is None:
        return Relation(columns, Flow(sources=here, roots=here), name)
    flow = Flow(
        literals=_earlier(rows.literals),
        sources=here,
        roots=frozenset(rows.roots),
        conditions=_earlier(rows.conditions),
    )
    return Relation(columns, flow, name, _earlier(rows.counts), rows.shape)


def _granted_column(table: str, column: GrantedColumn) -> Flow:
    here = frozenset({(table, column.name)})
    truth = column.type.upper() in BOOLEANS
    origin = column.origin
    if origin is None:
        return Flow(sources=here, operation="", roots=here, truth=truth)
    return Flow(
        literals=_earlier(origin.literals),
        sources=here,
        operation="",
        roots=frozenset(origin.rooted),
        conditions=_earlier(origin.conditions),
        parameters=_earlier(origin.parameters),
        generated=origin.generated,
        truth=truth,
        null=not origin.rooted and not origin.literals,
    )
