"""One text as the gates read it: what every rule after them works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from tieout.executor.sql.plan import PlanFacts
from tieout.executor.sql.refusal import Text
from tieout.executor.sql.shape import Node
from tieout.executor.sql.text import Token
from tieout.executor.sql.tree import Granted, Seen
from tieout.executor.sql.validate import GrantedTable


@dataclass(frozen=True, slots=True)
class Reading:
    """A text that every gate admitted.

    text: with its way back to what was asked. tokens: of the bare text. root: the engine's parse
    tree. plan: its bound plan, in which types are known. second: sqlglot's tree. columns: (name,
    DuckDB type) of the result. tables: what was granted, by name. given_up: optional needs that
    did not bind, by reason and place in the text as asked.
    """

    text: Text
    tokens: tuple[Token, ...]
    root: Node
    plan: Node
    seen: Seen
    second: exp.Expr
    facts: PlanFacts
    columns: tuple[tuple[str, str], ...]
    granted: Granted
    tables: Mapping[str, GrantedTable]
    given_up: frozenset[tuple[str, int]] = frozenset()
