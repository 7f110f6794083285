"""What a condition leaves behind in the rows that it chooses.

A literal compared with a column of a source chooses rows, and says so beside the figure. Compared
with a numbering of rows (row_number, rank, a running count, a range) it picks itself out of all
numbers there are, so it counts as if it had been typed. A 1 alone is the first of each, which is
how duplicates are taken out, and a 0 is none: they count for the numbering, and where rows are
counted.
"""

from __future__ import annotations

from tieout.executor.sql.effects import COUNTS_OF_TRUTH
from tieout.executor.sql.flow import NONE, Choice, Flow
from tieout.executor.sql.literals import all_literals
from tieout.executor.sql.shape import Node, as_node, column_refs, word

NOTHING_CHOSEN = Choice()
_FIRST = frozenset(
    {
        *("COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_GREATERTHAN", "COMPARE_LESSTHANOREQUALTO"),
        *("COMPARE_NOT_DISTINCT_FROM", "COMPARE_DISTINCT_FROM"),
    }
)
_ONE_EACH = frozenset({"COMPARE_EQUAL", "COMPARE_LESSTHANOREQUALTO", "COMPARE_NOT_DISTINCT_FROM"})


def chosen(node: Node, flow: Flow) -> Choice:
    """The choice of a condition on columns. flow: of the condition as if it were a value."""
    found = frozenset(all_literals(node))
    if not flow.roots and next(column_refs(node), None) is None:
        return Choice(found | flow.literals, flow.conditions)
    if not flow.generated:
        return Choice(conditions=found | flow.literals | flow.conditions)
    if _with_one(node):
        counts = found if word(node, "type") in _ONE_EACH else NONE
        rest = flow.literals - found
        return Choice(rest, flow.conditions | found, found, counts)
    return Choice(found | flow.literals, flow.conditions)


def _with_one(node: Node) -> bool:
    """N = 1, n > 1, n <> 1, n <= 1: the first, and the others."""
    if word(node, "type") not in _FIRST or word(node, "class") != "COMPARISON":
        return False
    left, right = as_node(node["left"]), as_node(node["right"])
    literal = as_node(right.get("literal") or {})
    if right.get("class") != "CONSTANT" or literal.get("kind") != "INTEGER":
        return False
    plain = left.get("class") != "FUNCTION" or word(left, "function_name") in COUNTS_OF_TRUTH
    return literal.get("text") in ("0", "1") and plain and not list(all_literals(left))
