"""Which result columns something of the bound plan reaches: floats, columns that rows tied in.

Followed operator by operator, as the engine resolved it: each reference is a place among the
columns of the operator below. What is not known here ends in None, and the caller's whole answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

from tieout.executor.sql.shape import Json, Node, as_node, nodes, word

EVERY_ROW = "*"
"""The column of a table that stands for which rows it has."""
PASSES_MAX = 8
"""Rounds through a recursive query; more than it has columns adds nothing new."""
_ONE_SIDED = {"SEMI": 0, "ANTI": 0, "RIGHT_SEMI": 1, "RIGHT_ANTI": 1}
_TWO_SIDED = frozenset({"INNER", "LEFT", "RIGHT", "OUTER", "FULL", "SINGLE"})
_JOINS = frozenset(
    {
        *("LOGICAL_COMPARISON_JOIN", "LOGICAL_ANY_JOIN", "LOGICAL_ASOF_JOIN"),
        *("LOGICAL_CROSS_PRODUCT", "LOGICAL_DELIM_JOIN"),
    }
)
_OF_NOTHING = {"LOGICAL_CHUNK_GET": "chunk_types", "LOGICAL_EMPTY_RESULT": "return_types"}
"""Rows of constants, or none at all, and where the types of the columns stand."""
_NOT_BY_PLACE = frozenset({"function_data", "lambda_expr"})
_ELSEWHERE = frozenset({"BOUND_COLUMN_REF", "BOUND_SUBQUERY", "BOUND_PARAMETER"})


class _UnknownShapeError(Exception):
    """An operator or reference that is not followed."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What is followed. table: whether (granted table, column) is reached, and ("t", "*") whether
    its rows are; expression: whether a bound expression is reached by itself; conditions: whether
    what chose rows counts too, and not only what they are grouped and put in order by.
    """

    table: Callable[[str, str], bool]
    expression: Callable[[Node], bool]
    conditions: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """What is reached of an operator's columns, and of which rows it has."""

    columns: tuple[bool, ...]
    rows: bool = False

    def taken(self, places: Json) -> tuple[bool, ...]:
        """The columns of a projection map; all where there is none."""
        if not isinstance(places, list) or not places:
            return self.columns
        return tuple(_at(self.columns, place) for place in places)


_Shared = Mapping[int, _Found]


def reached(plan: Node, reach: Reach) -> tuple[bool, ...] | None:
    """For each result column of a bound plan whether it is reached; None where not followed."""
    try:
        found = _operator(plan, reach, {})
    except (_UnknownShapeError, RecursionError):
        return None
    everything = found.rows and reach.conditions
    return tuple(column or everything for column in found.columns)


def rows_reached(plan: Node, reach: Reach) -> bool | None:
    """Whether what chose the rows of a result is reached; None where not followed."""
    try:
        return _operator(plan, reach, {}).rows
    except (_UnknownShapeError, RecursionError):
        return None


def _at(columns: tuple[bool, ...], place: Json) -> bool:
    if not isinstance(place, int) or not 0 <= place < len(columns):
        raise _UnknownShapeError("reference")
    return columns[place]


def _operator(node: Node, reach: Reach, shared: _Shared) -> _Found:
    kind = word(node, "type")
    if kind in ("LOGICAL_MATERIALIZED_CTE", "LOGICAL_RECURSIVE_CTE"):
        return _common_table(node, reach, shared, recursive=kind == "LOGICAL_RECURSIVE_CTE")
    below = [_operator(child, reach, shared) for child in nodes(node.get("children"))]
    if kind in _JOINS:
        return _join(node, reach, below)
    if kind in ("LOGICAL_UNION", "LOGICAL_EXCEPT", "LOGICAL_INTERSECT"):
        return _set_operation(below, compared=kind != "LOGICAL_UNION")
    if kind == "LOGICAL_CTE_REF":
        return _reference(node, shared)
    if kind == "LOGICAL_GET" and not below:
        return _scan(node, reach)
    if kind == "LOGICAL_DUMMY_SCAN":
        return _Found((False,))
    if kind in _OF_NOTHING:
        return _Found((False,) * len(nodes(node.get(_OF_NOTHING[kind]))))
    if len(below) != 1:
        raise _UnknownShapeError(kind)
    return _single(kind, node, reach, below[0])


def _single(kind: str, node: Node, reach: Reach, below: _Found) -> _Found:
    """An operator above one other."""
    if kind == "LOGICAL_PROJECTION":
        return _Found(_each(node, "expressions", reach, below), below.rows)
    if kind == "LOGICAL_WINDOW":
        made = _each(node, "expressions", reach, below)
        return _Found((*below.columns, *(m or below.rows for m in made)), below.rows)
    if kind == "LOGICAL_UNNEST":
        made = _each(node, "expressions", reach, below)
        return _Found(below.columns + made, below.rows or any(made))
    if kind == "LOGICAL_AGGREGATE_AND_GROUP_BY":
        return _aggregate(node, reach, below)
    if kind == "LOGICAL_EXPRESSION_GET":
        return _values(node, reach, below)
    if kind == "LOGICAL_FILTER":
        chosen = reach.conditions and _touched(node.get("expressions"), reach, below.columns)
        return _Found(below.taken(node.get("projection_map")), below.rows or chosen)
    if kind in ("LOGICAL_ORDER_BY", "LOGICAL_TOP_N", "LOGICAL_LIMIT", "LOGICAL_DISTINCT"):
        own = {name: part for name, part in node.items() if name != "children"}
        chosen = _touched(own, reach, below.columns)
        places = node.get("projection_map") or node.get("projections")
        return _Found(below.taken(places), below.rows or chosen)
    raise _UnknownShapeError(kind)


def _each(node: Node, key: str, reach: Reach, below: _Found) -> tuple[bool, ...]:
    return tuple(_touched(part, reach, below.columns) for part in nodes(node.get(key)))


def _aggregate(node: Node, reach: Reach, below: _Found) -> _Found:
    """Groups, then aggregates: what the groups are made by decides what is in each."""
    groups = _each(node, "groups", reach, below)
    split = below.rows or any(groups)
    made = tuple(m or split for m in _each(node, "expressions", reach, below))
    grouping = node.get("grouping_functions")
    told = (split,) * (len(grouping) if isinstance(grouping, list) else 0)
    return _Found(groups + made + told, split)


def _values(node: Node, reach: Reach, below: _Found) -> _Found:
    """VALUES: each column over all of its rows."""
    listed = node.get("expressions")
    rows = [
        tuple(_touched(part, reach, below.columns) for part in row)
        for row in (listed if isinstance(listed, list) else [])
        if isinstance(row, list)
    ]
    return _Found(_either(rows))


def _either(rows: list[tuple[bool, ...]]) -> tuple[bool, ...]:
    if not rows or len({len(row) for row in rows}) != 1:
        raise _UnknownShapeError("width")
    return tuple(any(column) for column in zip(*rows, strict=True))


def _join(node: Node, reach: Reach, below: list[_Found]) -> _Found:
    if len(below) != 2:
        raise _UnknownShapeError("join")
    left, right = below
    own = {k: v for k, v in node.items() if k not in ("children", "conditions")}
    compared = _touched(own, reach, left.columns + right.columns)
    for condition in nodes(node.get("conditions")):
        compared |= _touched(condition.get("left"), reach, left.columns)
        compared |= _touched(condition.get("right"), reach, right.columns)
        rest = {k: v for k, v in condition.items() if k not in ("left", "right")}
        compared |= _touched(rest, reach, left.columns + right.columns)
    rows = left.rows or right.rows or (reach.conditions and compared)
    ours = left.taken(node.get("left_projection_map"))
    theirs = right.taken(node.get("right_projection_map"))
    how = word(node, "join_type")
    if how == "MARK":  # whether there is a row on the right is a value
        return _Found((*ours, compared or right.rows), left.rows)
    if how in _ONE_SIDED:
        return _Found((ours, theirs)[_ONE_SIDED[how]], rows)
    if how in _TWO_SIDED or word(node, "type") == "LOGICAL_CROSS_PRODUCT":
        return _Found(ours + theirs, rows)
    raise _UnknownShapeError(how)


def _set_operation(below: list[_Found], *, compared: bool) -> _Found:
    columns = _either([b.columns for b in below])
    return _Found(columns, any(b.rows for b in below) or (compared and any(columns)))


def _common_table(node: Node, reach: Reach, shared: _Shared, *, recursive: bool) -> _Found:
    """A table that is made once and read by its number; a recursive one until nothing is new."""
    children, place = nodes(node.get("children")), node.get("table_index")
    if len(children) != 2 or not isinstance(place, int) or node.get("payload_aggregates"):
        raise _UnknownShapeError("cte")
    found = _operator(children[0], reach, shared)
    if not recursive:
        return _operator(children[1], reach, {**shared, place: found})
    for _round in range(PASSES_MAX):
        again = _operator(children[1], reach, {**shared, place: found})
        # UNION, not UNION ALL: equal rows are taken out by all columns.
        told = _set_operation([found, again], compared=node.get("union_all") is not True)
        if told == found:
            return found
        found = told
    raise _UnknownShapeError("recursion")


def _reference(node: Node, shared: _Shared) -> _Found:
    place = node.get("cte_index")
    if not isinstance(place, int) or place not in shared:
        raise _UnknownShapeError("cte")
    return shared[place]


def _scan(node: Node, reach: Reach) -> _Found:
    """A granted table, or a function of constants that makes rows."""
    names, listed = node.get("names"), nodes(node.get("column_indexes"))
    data = as_node(node.get("function_data") or {})
    path = as_node(data.get("qualified_name") or {}).get("path")
    table = str(path[-1]).lower() if isinstance(path, list) and path else ""
    if not isinstance(names, list) or not listed:
        raise _UnknownShapeError("scan")
    columns = tuple(table != "" and _column(names, c.get("index"), table, reach) for c in listed)
    filters = as_node(node.get("table_filters") or {})
    chosen = any(filters.values()) and any(reach.table(table, str(name)) for name in names)
    rows = table != "" and (reach.table(table, EVERY_ROW) or (reach.conditions and chosen))
    return _Found(_Found(columns).taken(node.get("projection_ids")), rows)


def _column(names: list[Json], place: Json, table: str, reach: Reach) -> bool:
    """A place beyond the columns is the engine's own number of a row."""
    known = isinstance(place, int) and place < len(names)
    return known and reach.table(table, str(names[place])) if isinstance(place, int) else False


def _touched(part: Json, reach: Reach, columns: tuple[bool, ...]) -> bool:
    """Whether an expression, or a list or object of them, is reached."""
    return reduce(bool.__or__, _marks(part, reach, columns), False)


def _marks(part: Json, reach: Reach, columns: tuple[bool, ...]) -> Iterator[bool]:
    """All of an expression's parts: every one is looked at, so that an unknown one is met."""
    open_: list[tuple[Json, bool]] = [(part, True)]
    while open_:
        here, by_place = open_.pop()
        if isinstance(here, list):
            open_ += [(child, by_place) for child in here]
        elif isinstance(here, dict):
            kind = word(here, "expression_class")
            if kind in _ELSEWHERE:
                raise _UnknownShapeError(kind)
            if kind == "BOUND_REF":  # in a lambda it may mean one of its own names
                yield _at(columns, here.get("index")) if by_place else any(columns)
            if kind:
                yield reach.expression(here)
            inside = by_place and kind != "BOUND_LAMBDA"
            open_ += [(v, inside and k not in _NOT_BY_PLACE) for k, v in here.items()]
