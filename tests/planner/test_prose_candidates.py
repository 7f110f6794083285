"""Candidates: where a typed number also stands, in order, bounded, and no label's matter."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from support.worlds import failed, money, recorder, step, world

from tieout.planner.labels import QuestionNumbers
from tieout.planner.prose import audit_prose
from tieout.planner.prose_candidates import CANDIDATES_MAX, TYPED_MAX, candidates

SMALL = pa.decimal128(5, 1)


def columns(found: tuple[str, ...]) -> list[str]:
    return [cell.partition("#")[2] for cell in found]


def mixed():
    keeper = recorder()
    first = {
        "money": money("3.00", "8.00", None),
        "whole": pa.array([8, None, 3], pa.int8()),
        "text": ["8", "3", "x"],
        "float": pa.array([0.5, float("nan"), float("inf")], pa.float64()),
        "short": pa.array([0.1, 8.0, 0.5], pa.float32()),
        "small": pa.array([Decimal("0.5"), None, None], SMALL),
    }
    return world(
        keeper,
        step(keeper, "first", first),
        failed(keeper, "lost", "sql.clock"),
        step(keeper, "second", {"k": ["a", "b"], "v": money("8.00", "9.99")}, key=("k",)),
    )


def test_cells_of_every_numeric_type_in_order_of_steps_columns_and_rows():
    typed = [Decimal("8"), Decimal("0.5"), Decimal("0.1"), Decimal("1E+90"), Decimal("9.990")]
    found = candidates(mixed(), typed)
    assert columns(found[Decimal(8)]) == ["2:money", "1:whole", "2:short", "k=a:v"]
    assert columns(found[Decimal("0.5")]) == ["1:float", "3:short", "1:small"]
    assert found[Decimal("0.1")] == ()
    assert found[Decimal("1E+90")] == ()
    assert columns(found[Decimal("9.99")]) == ["k=b:v"]


def test_few_are_told_of_many():
    keeper = recorder()
    many = world(keeper, step(keeper, "s", {"n": pa.array([7] * 4_000 + [8], pa.int64())}))
    found = candidates(many, [Decimal(7), Decimal(8)])
    assert columns(found[Decimal(7)]) == [f"{at}:n" for at in range(1, CANDIDATES_MAX + 1)]
    assert columns(found[Decimal(8)]) == ["4001:n"]
    wanted = [Decimal(n) for n in range(1_000, 1_000 + TYPED_MAX)]
    assert Decimal(8) not in candidates(many, [*wanted, Decimal(8)])
    assert Decimal(8) in candidates(many, [*wanted[1:], *wanted[1:], Decimal(8)])
    assert candidates(many, []) == {}


def test_they_change_no_label():
    (number,) = audit_prose("So 9.99 it is", [], {}, mixed(), QuestionNumbers.of(""))
    assert (str(number.label), str(number.reason)) == ("unsourced", "uncited")
    assert columns(number.candidates) == ["k=b:v"]
    (several,) = audit_prose("So 8.00 it is", [], {}, mixed(), QuestionNumbers.of(""))
    assert (str(several.label), str(several.reason)) == ("unsourced", "ambiguous")


@given(
    st.lists(st.one_of(st.none(), st.integers(-4, 4)), min_size=1, max_size=30),
    st.lists(st.integers(-5, 5), max_size=4, unique=True),
)
def test_the_same_cells_as_one_by_one(cells, typed):
    keeper = recorder()
    where = world(keeper, step(keeper, "s", {"n": pa.array(cells, pa.int64())}))
    rows = where.reader(where.steps["s"].receipt.parts["output"]).arrow.column("n").to_pylist()
    found = candidates(where, [Decimal(value) for value in typed])
    for value in typed:
        wanted = [f"{at + 1}:n" for at, cell in enumerate(rows) if cell == value]
        assert columns(found[Decimal(value)]) == wanted[:CANDIDATES_MAX]
