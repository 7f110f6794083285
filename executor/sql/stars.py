"""Names of result columns: what * stands for, and what the engine calls an expression."""

from __future__ import annotations

from tieout.executor.sql.flow import Flow, NotUnderstoodError, Scope
from tieout.executor.sql.shape import Json, Node, word


def starred(node: Node, scope: Scope, hidden: set[tuple[int, str]]) -> list[tuple[str, Flow]]:
    """The columns of * or t.*, with EXCLUDE; REPLACE, RENAME and COLUMNS() are not known.

    hidden: (place of the relation, column) that USING leaves out. Raises NotUnderstoodError.
    """
    if any(node.get(k) for k in ("columns", "expr", "replace_list", "rename_list")):
        raise NotUnderstoodError("star")
    if node.get("qualified_exclude_list") and word(node, "relation_name"):
        raise NotUnderstoodError("star")
    only = word(node, "relation_name").lower()
    excluded = {x.lower() for x in name_list(node.get("exclude_list"))}
    excluded |= {x.lower() for x in name_list(node.get("qualified_exclude_list"))}
    found: list[tuple[str, Flow]] = []
    for place, relation in enumerate(scope.relations):
        if only and relation.alias.lower() != only:
            continue
        for name, flow in relation.columns:
            low = name.lower()
            if low in excluded or (not only and (place, low) in hidden):
                continue
            merged = any(p != place and n == low for p, n in hidden) and not only
            found.append((name, scope.find([name]) if merged else flow))
    return found


def own_name(item: Node) -> str:
    """The name the engine gives a plain column; "" stands for any other."""
    parts = item.get("column_names")
    return str(parts[-1]) if isinstance(parts, list) and len(parts) <= 2 else ""


def name_list(value: Json) -> list[str]:
    """Names in a list; any shape but a list of texts is not known."""
    if not value:
        return []
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return [str(v) for v in value]
    raise NotUnderstoodError("names")
