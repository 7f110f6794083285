"""Windows that number or walk rows: their order is continued by the keys of FROM, or the groups.

row_number, lag, lead and ntile walk the partition, and ROWS frames count rows: the ORDER BY of
the window is continued. What reads a frame of whole peer groups (first_value, last_value, lists)
gets an order inside the call, since another order of the window would change the frame.
"""

from __future__ import annotations

from dataclasses import dataclass

from tieout.executor.sql import functions
from tieout.executor.sql.edits import Edit
from tieout.executor.sql.keys import Block
from tieout.executor.sql.literals import same
from tieout.executor.sql.needs import Need
from tieout.executor.sql.orders_places import Call, Places, Spec
from tieout.executor.sql.orders_texts import Ordering
from tieout.executor.sql.session import quoted
from tieout.executor.sql.shape import Node, arguments, as_node, names, nodes, word
from tieout.executor.sql.ties_aggregates import INNER_ORDER, depends_on_order
from tieout.executor.sql.ties_blocks import covered, one_grouping, own_parts
from tieout.executor.sql.ties_rows import KEEPS_ONE, NO_DISTINCT, telling

ORDERED_WINDOW = "ordered_window"
WALKS = frozenset({"row_number", "lag", "lead", "ntile", "fill"})
"""Walk the rows of the partition in the order of the window, whatever the frame."""
RANKS = frozenset({"rank", "rank_dense", "dense_rank", "percent_rank", "cume_dist"})
"""Give rows that tie one value: another order would change it. Without an order inside the call
they, and what walks, heed no frame."""
_PEERS = frozenset({"GROUP", "TIES"})
_BASES_MAX = 8
"""Windows that continue windows; more is no usual query."""


@dataclass(frozen=True, slots=True)
class _Window:
    """A WINDOW node with what its block knows. of: the SELECT that it stands in."""

    places: Places
    node: Node
    block: Block
    groups: list[Node] | None
    of: Node

    def expressions(self, key: str) -> list[Node]:
        """The expressions of orders or arg_orders."""
        return [as_node(o["expression"]) for o in nodes(self.node.get(key))]

    def named(self, expression: Node) -> Node | None:
        """What the select list gives the name that an expression is, where FROM has none such."""
        parts = names(expression)
        if len(parts) != 1 or not self.free(parts[0]):
            return None
        return self.block.aliases.get(parts[0].lower())

    def free(self, name: str) -> bool:
        """Whether no column of FROM has a name."""
        known = [r.columns for r in self.block.relations]
        return all(columns is not None and name.lower() not in columns for columns in known)

    def among_others(self) -> bool:
        """Whether it takes a row, as another window of its block does that is not alike."""
        parts = [self.of.get(key) for key in ("select_list", "qualify", "modifiers")]
        takes = [
            part
            for part in own_parts(parts)
            if word(part, "class") == "WINDOW" and word(part, "function_name") in KEEPS_ONE
        ]
        taken = word(self.node, "function_name") in KEEPS_ONE
        return taken and not all(same(self.node, other) for other in takes)

    def told(self, orders: list[Node]) -> bool:
        """Whether no two rows of a partition tie in some orders."""
        given = [*orders, *nodes(self.node.get("partitions"))]
        if self.groups is None:
            return self.block.total(self.block.plain(given))
        given += [a for a in map(self.named, given) if a is not None]
        given += [arguments(e)[0] for e in given if _is_least(e)]
        settled = all(any(same(g, e) for e in given) for g in self.groups)
        return settled and one_grouping(self.of)


def window_need(
    places: Places, node: Node, block: Block, groups: list[Node] | None, of: Node
) -> Need | None:
    """What a WINDOW node needs to be a function of the rows; None when nothing."""
    window = _Window(places, node, block, groups, of)
    name = word(node, "function_name").lower()
    orders, own = window.expressions("orders"), window.expressions("arg_orders")
    rows = any("_ROWS" in word(node, key) for key in ("start", "end"))
    walks, reads = name in WALKS, _reads_frame(name)
    edits: list[Edit | None] = []
    ranks = name in RANKS
    rows = rows and not (walks and not own) and not (ranks and not own)
    if (rows or (walks and not own)) and not window.told(orders):
        peers = ranks or (rows and word(node, "exclude_clause") in _PEERS)
        usable = name != "fill" and not peers
        edits.append(_continued(window) if usable else None)
    if own:
        inside = (walks or reads) and not _settled(window, own)
    else:
        inside = reads and not _read_settled(window, orders, rows=rows)
    edits += [_inside(window, own)] if inside else []
    if not edits:
        return None
    found = tuple(e for e in edits if e is not None) if None not in edits else ()
    remedy = NO_DISTINCT if node.get("distinct") and not found else ""
    where = places.offset(node)
    if orders or own:
        message = f"the ORDER BY of {name} can leave ties"
        return Need("window_ties", "sql.window_ties", message, where, found, remedy)
    message = f"{name} needs an order of rows"
    if block.ordered:
        found, remedy = (), INNER_ORDER
    return Need("unordered_window", "sql.unordered_window", message, where, found, remedy)


def _reads_frame(name: str) -> bool:
    """Whether a function takes one row of its frame, or depends on their order."""
    peers = "window_peer_order" in functions.groups(name)
    return name not in WALKS and (peers or depends_on_order(name))


def _settled(window: _Window, own: list[Node]) -> bool:
    """Whether the order inside the call leaves nothing open."""
    if window.told(own):
        return True
    if word(window.node, "function_name").lower() in WALKS:
        return False
    return _values_settled(window, own)


def _values_settled(window: _Window, orders: list[Node]) -> bool:
    grouped = window.groups is not None
    given = [*orders, *nodes(window.node.get("partitions"))]
    return covered(arguments(window.node), given, window.block, grouped=grouped)


def _read_settled(window: _Window, orders: list[Node], *, rows: bool) -> bool:
    """Whether a frame without an order inside the call is read in one way.

    Rows of a ROWS frame have the order of the window, which is settled beside this.
    """
    if window.node.get("distinct"):
        return False
    return rows or window.told(orders) or _values_settled(window, orders)


def _spec(window: _Window) -> Spec | None:
    """What OVER says, with the windows that it names written out."""
    spec = window.places.over(window.node)
    for _step in range(_BASES_MAX):
        if spec is None or not spec.base:
            return spec
        base = window.places.definition(spec.base, spec.start)
        if base is None:
            return None
        spec = Spec(
            base.base,
            spec.partition or base.partition,
            spec.order or base.order,
            spec.frame or base.frame,
            -1,
            spec.start,
            spec.end,
        )
    return None


def _continued(window: _Window) -> Edit | None:
    """ORDER BY in OVER (...) continued by what tells the rows apart."""
    spec, order = _spec(window), _ordering(window, window.expressions("orders"))
    if spec is None or order is None or not order.texts:
        return None
    if spec.order_end >= 0 and window.places.text.sql[spec.start] == "(":
        edit = order.put(spec.order_end, ORDERED_WINDOW, after=bool(spec.order))
        if spec.order or spec.partition:
            return edit
        return Edit(
            edit.start,
            edit.end,
            edit.text.lstrip() + " " * bool(spec.frame),
            edit.rewrite,
            (edit.opposite or "").lstrip() + " " * bool(spec.frame),
        )
    texts = [
        _written(spec, order.listed(turned=turned)) for turned in (False, True)
    ]  # a named window is written out here: others that name it keep theirs
    return Edit(spec.start, spec.end, texts[0], ORDERED_WINDOW, texts[1])


def _written(spec: Spec, added: str) -> str:
    parts = [f"PARTITION BY {spec.partition}"] if spec.partition else []
    parts.append(f"ORDER BY {spec.order}, {added}" if spec.order else f"ORDER BY {added}")
    return "(" + " ".join([*parts, *([spec.frame] if spec.frame else [])]) + ")"


def _inside(window: _Window, own: list[Node]) -> Edit | None:
    """ORDER BY inside the call: its own, else the window's, continued.

    With DISTINCT the engine takes only the arguments there.
    """
    call = window.places.call(window.node)
    if call is None or call.ordered != bool(own):
        return None
    if window.node.get("distinct"):
        order = None if window.among_others() else _arguments(window, call, own)
    else:
        order = _ordering(window, own or window.expressions("orders"))
    if order is None or not order.texts:
        return None
    spec = _spec(window)
    if own or window.node.get("distinct") or spec is None or not spec.order:
        if spec is None and not own and window.expressions("orders"):
            return None
        return order.put(call.at, ORDERED_WINDOW, after=call.ordered)
    lead = f" ORDER BY {spec.order}, "
    texts = [lead + order.listed(turned=turned) for turned in (False, True)]
    return Edit(call.at, call.at, texts[0], ORDERED_WINDOW, texts[1])


def _arguments(window: _Window, call: Call, own: list[Node]) -> Ordering | None:
    given = arguments(window.node)
    if len(given) != len(call.arguments):
        return None
    pairs = zip(given, call.arguments, strict=True)
    return Ordering(
        tuple(
            text
            for argument, text in pairs
            if word(argument, "class") != "CONSTANT" and not any(same(argument, o) for o in own)
        )
    )


def _ordering(window: _Window, orders: list[Node]) -> Ordering | None:
    """What tells the rows of a partition apart beside some orders; None when it cannot be named."""
    given = [*orders, *nodes(window.node.get("partitions"))]
    if window.groups is not None:
        return _groups(window, given) if one_grouping(window.of) else None
    return telling(window.block, given)


def _groups(window: _Window, given: list[Node]) -> Ordering | None:
    """The groups of a block that are not in some orders yet, as texts."""
    groups = window.groups or []
    items = nodes(window.of.get("select_list"))
    listed = window.places.item_texts(items)
    by_item = dict(zip(map(id, items), listed, strict=False))
    written = window.places.group_texts(nodes(window.of.get("group_expressions")))
    forced = word(window.of, "aggregate_handling") == "FORCE_AGGREGATES"
    texts: list[str] = []
    for place, group in enumerate(groups):
        if any(same(group, e) for e in given):
            continue
        shown = by_item.get(id(group)) or (written[place] if written else "")
        text = _in_group_by_all(group, shown) if forced else _group(window, group, shown)
        if text is None:
            return None
        texts.append(text)
    return Ordering(tuple(texts))


def _is_least(expression: Node) -> bool:
    """Whether an expression is min(x): of a group's own expression, that is its one value."""
    plain = not expression.get("distinct") and not expression.get("filter")
    named = word(expression, "class") == "FUNCTION" and word(expression, "function_name") == "min"
    return named and plain and len(arguments(expression)) == 1


def _in_group_by_all(group: Node, written: str) -> str | None:
    """A group under GROUP BY ALL, where a plain column beside an aggregate would be a group."""
    if word(group, "class") == "COLUMN_REF":
        written = ".".join(quoted(part) for part in names(group))
    return f"min({written})" if written else None


def _group(window: _Window, group: Node, written: str) -> str | None:
    """A group as a column, by the name that the select list gives it, or as it was written."""
    if word(group, "class") == "COLUMN_REF":
        return ".".join(quoted(part) for part in names(group))
    alias = word(group, "alias")
    if alias and window.free(alias):
        return quoted(alias)
    return written if written and not written.isdigit() else None
