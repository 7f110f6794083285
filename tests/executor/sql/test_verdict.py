"""The proof behind the verdict: a changed text passes only when orders alone were put in."""

from __future__ import annotations

import json

import duckdb
import pytest

from tieout.executor.sql.determinism import _apart
from tieout.executor.sql.edits import Edit, apply
from tieout.executor.sql.needs import Need
from tieout.executor.sql.proof import same_but_for

ASKED = "SELECT row_number() OVER (ORDER BY memo) AS n FROM bank"


@pytest.fixture(scope="module")
def tree():
    """A text as the engine's own parse tree."""
    engine = duckdb.connect(":memory:")

    def read(sql: str):
        row = engine.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone()
        return json.loads(row[0])["statements"][0]["node"]

    yield read
    engine.close()


def put(sql: str, after: str, text: str, removed: str = "") -> Edit:
    """An edit behind the first place where a part of a text stands."""
    at = sql.index(after) + len(after)
    assert sql[at : at + len(removed)] == removed
    return Edit(at, at + len(removed), text, "ordered_window", text)


def proved(tree, sql: str, edits: list[Edit]) -> bool:
    return same_but_for(tree(sql), tree(apply(sql, edits)), sql, edits)


GOOD = [
    (ASKED, "ORDER BY memo", ", id"),
    ("SELECT id FROM bank LIMIT 3", "bank", " ORDER BY ALL"),
    ("SELECT 'é' AS a, first(memo) AS n FROM bank", "memo", " ORDER BY memo"),
    ("SELECT id FROM bank ORDER BY memo LIMIT 3", "BY memo", ", 1"),
    ("SELECT max(x) OVER (PARTITION BY y ROWS 1 PRECEDING) AS n FROM t", "BY y", " ORDER BY z"),
]
BAD = [
    (ASKED, "ORDER BY memo", " DESC, id"),
    (ASKED, "ORDER BY memo", ", id ROWS 1 PRECEDING"),
    (ASKED, "ORDER BY ", "id, "),
    (ASKED, "OVER (", "PARTITION BY id "),
    (ASKED, "FROM bank", " WHERE id > 1"),
    (ASKED, "AS n", ", id"),
    (ASKED, "FROM bank", " LIMIT 5"),
    (ASKED, "FROM bank", " "),
    ("SELECT id FROM bank", "bank", " ORDER BY ALL LIMIT 2"),
    ("SELECT sum(x) AS n FROM t", "sum(", "DISTINCT "),
    ("SELECT first(memo) AS n FROM bank", "memo)", " FILTER (WHERE id > 1)"),
    ("SELECT max(x) OVER (PARTITION BY y) AS n FROM t", "BY y", " ORDER BY z ROWS 1 PRECEDING"),
]


@pytest.mark.parametrize(("sql", "after", "text"), GOOD)
def test_an_order_alone_passes(sql, after, text, tree):
    assert proved(tree, sql, [put(sql, after, text)])


@pytest.mark.parametrize(("sql", "after", "text"), BAD)
def test_anything_else_does_not(sql, after, text, tree):
    assert not proved(tree, sql, [put(sql, after, text)])


def test_a_named_window_written_out_passes_only_as_it_was_defined(tree):
    asked = "SELECT lag(x) OVER w AS n FROM t WINDOW w AS (PARTITION BY y ORDER BY z DESC)"
    good = put(asked, "OVER ", "(PARTITION BY y ORDER BY z DESC, id)", "w")
    assert proved(tree, asked, [good])
    for other in ("(PARTITION BY y ORDER BY z, id)", "(ORDER BY z DESC, id)", "(w)"):
        assert not proved(tree, asked, [put(asked, "OVER ", other, "w")])


def test_what_was_put_in_must_stand_where_the_edits_say(tree):
    """The same text after, but told as if it were put in elsewhere."""
    after = ASKED.replace("BY memo", "BY memo, id")
    told = [put(ASKED, "FROM bank", ", id")]
    assert not same_but_for(tree(ASKED), tree(after), ASKED, told)


def test_edits_that_overlap_are_given_up_for_a_refusal():
    inner = Need("window_ties", "sql.window_ties", "", edits=(Edit(3, 3, "x", "ordered_window"),))
    outer = Need("window_ties", "sql.window_ties", "", edits=(Edit(1, 5, "y", "ordered_window"),))
    apart = Need("window_ties", "sql.window_ties", "", edits=(Edit(5, 5, "z", "ordered_window"),))
    assert [bool(n.edits) for n in _apart([inner, outer, apart])] == [True, False, True]
    assert [bool(n.edits) for n in _apart([outer, inner, apart])] == [True, False, True]
