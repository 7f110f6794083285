"""Whether rows tied where our own order chose: the query once more, with that order turned round.

Equal contents say that the choice made no difference; others, that rows tie and it did, and where
rows can be told apart, in which columns. The result itself does not depend on this: it has the
order that was added, and is the same every time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.table import canonical
from tieout.executor.engine import Engine, TableBytes
from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.sql.plan_columns import EVERY_ROW, Reach, reached, rows_reached
from tieout.executor.sql.shape import Node, as_node, nodes, walk, word
from tieout.executor.sql.validate import ValidatedSql

Arrow: TypeAlias = Any
"""pyarrow is untyped: a pyarrow.Table."""


class Ties(StrEnum):
    """IMPOSSIBLE: no order that could choose was added. NONE: it chose nothing. DECIDED: rows tie,
    and it chose. UNCHECKED: the check reached a bound."""

    IMPOSSIBLE = ""
    NONE = "none"
    DECIDED = "decided"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class Countercheck:
    """What was found, and in which columns of the result it made a difference."""

    ties: Ties
    tied: frozenset[str] = frozenset()


def countercheck(
    engine: Engine,
    validated: ValidatedSql,
    tables: Mapping[str, TableBytes],
    result: Arrow,
    *,
    key: Sequence[str] = (),
) -> Countercheck:
    """Run the countercheck of a query, if it has one, and compare it with the result as bags.

    key: columns that identify a row of the result. Raises what `Engine.run` raises, but where a
    bound was reached or the turned text failed.
    """
    if not validated.countercheck:
        return Countercheck(Ties.IMPOSSIBLE)
    try:
        turned = engine.run(validated, tables, opposite=True)
        same = _content(turned.table) == _content(result)
    except ExecutorError as error:
        if error.exit_code is not Exit.INCOMPLETE:
            raise
        return Countercheck(Ties.UNCHECKED)
    except ArtifactError:  # a value that cannot be stored, met in one of the two orders only
        return Countercheck(Ties.UNCHECKED)
    if not turned.complete:
        return Countercheck(Ties.UNCHECKED)
    if same:
        return Countercheck(Ties.NONE)
    return Countercheck(Ties.DECIDED, _differing(validated, result, turned.table, list(key)))


def _differing(
    validated: ValidatedSql, result: Arrow, turned: Arrow, key: list[str]
) -> frozenset[str]:
    """The columns in which the two results differ; all of them where that cannot be said.

    Rows that were themselves chosen by an added order are compared as a whole only: one of their
    columns may agree in both orders and differ in the rows between. Only the columns by which an
    outermost LIMIT was asked to order are equal in all rows that tie there.
    """
    names = list(result.column_names)
    plan = as_node(json.loads(validated.plan))
    if any(map(_cuts, walk(plan))) or rows_reached(plan, _ORDERED) is not False:
        ordered = [names[place] for place in _in_order(validated, plan) if place < len(names)]
        return frozenset(names).difference(n for n in ordered if _same(result, turned, [n]))
    one_row = result.num_rows == turned.num_rows == 1
    if one_row or (key and _same(result, turned, key)):
        told = [] if one_row else key
        return frozenset(n for n in names if not _same(result, turned, dict.fromkeys([*told, n])))
    found = reached(plan, _ORDERED)
    rest = [n for n, open_ in zip(names, found or (), strict=False) if not open_]
    if found is None or len(found) != len(names) or (rest and not _same(result, turned, rest)):
        return frozenset(names)
    return frozenset(names) - frozenset(rest)


def _cuts(node: Node) -> bool:
    """An operator that takes some rows by their order."""
    kind = word(node, "type")
    on_columns = word(node, "distinct_type") == "DISTINCT_ON"
    return kind in ("LOGICAL_LIMIT", "LOGICAL_TOP_N", "LOGICAL_ASOF_JOIN") or on_columns


def _in_order(validated: ValidatedSql, plan: Node) -> frozenset[int]:
    """The result columns that the asked ORDER BY of an outermost LIMIT names.

    Empty where anything else takes rows by an order too, since they would be other rows then.
    """
    made = [r for r in validated.verdict.rewrites if r.name in _ORDERS]
    alone = len(made) == 1 and made[0].name == "total_order"
    if not alone or sum(map(_cuts, walk(plan))) != 1 or any(map(_takes_an_order, walk(plan))):
        return frozenset()
    top, shown = plan, None
    if word(top, "type") == "LOGICAL_PROJECTION":
        shown = [_place(e) for e in nodes(top.get("expressions"))]
        top = nodes(top.get("children"))[0]
    below = nodes(top.get("children"))
    if word(top, "type") != "LOGICAL_LIMIT" or word(below[0], "type") != "LOGICAL_ORDER_BY":
        return frozenset()
    orders = [_place(as_node(o["expression"])) for o in nodes(below[0].get("orders"))]
    asked = set(orders[: max(0, len(orders) - made[0].inserted.count(","))])
    places = range(len(validated.columns)) if shown is None else shown
    return frozenset(at for at, place in enumerate(places) if place in asked - {None})


_ORDERS = frozenset({"total_order", "ordered_limit", "ordered_window", "ordered_aggregate"})


def _place(expression: Node) -> int | None:
    """The place that a bare reference names."""
    index = expression.get("index")
    bare = word(expression, "expression_class") == "BOUND_REF" and isinstance(index, int)
    return index if bare and isinstance(index, int) else None


def _takes_an_order(node: Node) -> bool:
    """A call whose value may be that of the rows that an order puts first."""
    kind = word(node, "expression_class")
    if kind == "BOUND_AGGREGATE":
        return bool(nodes(as_node(node.get("order_bys") or {}).get("orders")))
    return kind == "BOUND_WINDOW"


_ORDERED = Reach(table=lambda _table, _column: False, expression=_takes_an_order, conditions=True)


def _same(one: Arrow, other: Arrow, names: Iterable[str]) -> bool:
    chosen = list(names)
    return _content(one.select(chosen)) == _content(other.select(chosen))


def _content(table: Arrow) -> str:
    """The content digest of the rows, whatever order they came in."""
    return str(canonical(table).digest)


def tied_by_earlier(
    validated: ValidatedSql, earlier: Mapping[str, tuple[frozenset[str], int]]
) -> frozenset[str]:
    """The result's columns that tied columns of earlier steps reach, or rows chosen by them.

    earlier: by table, its tied columns and how many columns it has; where all are tied, which
    rows there are is too.
    """
    held = {name.lower(): (cs, len(cs) >= width) for name, (cs, width) in earlier.items() if cs}
    if not held:
        return frozenset()

    def is_tied(table: str, column: str) -> bool:
        columns, whole = held.get(table, (frozenset(), False))
        return whole if column == EVERY_ROW else column in columns

    names = [name for name, _type in validated.columns]
    reach = Reach(table=is_tied, expression=lambda _node: False, conditions=True)
    found = reached(as_node(json.loads(validated.plan)), reach)
    if found is None or len(found) != len(names):
        return frozenset(names)
    return frozenset(name for name, hit in zip(names, found, strict=True) if hit)
