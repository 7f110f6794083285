"""The clock of a question: each word and call that reads the clock becomes the as_of date."""

from __future__ import annotations

from tieout.executor.sql.needs import Need
from tieout.executor.sql.refusal import Text
from tieout.executor.sql.shape import Node
from tieout.executor.sql.tree import Granted


def clock_needs(text: Text, root: Node, granted: Granted, as_of: str | None) -> tuple[Need, ...]:
    """Edits for all that reads the clock; none without as_of (the gates refuse it then)."""
    del text, root, granted, as_of
    return ()
