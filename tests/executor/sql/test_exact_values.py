"""Values of exact arithmetic are those of fractions, to the places that are said of them."""

from __future__ import annotations

import random
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tieout.executor.failures import code_of
from tieout.executor.sql import session
from tieout.executor.sql.exact_losses import ERROR_MAX, LITERAL_MAX
from tieout.executor.sql.exact_types import Exact, divided
from tieout.executor.sql.examine import examine
from tieout.executor.sql.refusal import SqlRefused
from tieout.executor.sql.validate import validate

WIDE = Context(prec=90, rounding=ROUND_HALF_EVEN)
INTEGER_DIGITS = {"SMALLINT": 4, "INTEGER": 9, "BIGINT": 18}
money = st.decimals(min_value=-(10**13), max_value=10**13, places=2)


@pytest.fixture(scope="module")
def engine():
    running = session.connect()
    session.lock(running, memory_bytes=1 << 30)
    yield running
    running.close()


@pytest.fixture(scope="module")
def gate(engine):
    def admitted(sql):
        return validate(sql, {}, examine=lambda q, t: examine(engine, q, t, chars_max=32_768))

    return admitted


def run(engine, sql):
    return engine.cursor().execute(sql).fetchall()


def rounded(value: Fraction, places: int) -> Decimal:
    return Decimal(round(value * 10**places)).scaleb(-places, WIDE)


def half(places: int) -> Fraction:
    return Fraction(1, 2 * 10**places)


@settings(max_examples=60, deadline=None)
@given(over=money, under=money.filter(bool))
def test_a_quotient_is_the_fraction_half_to_even(over, under, gate, engine):
    found = gate(f"SELECT {over}::DECIMAL(18,2) / {under}::DECIMAL(18,2) AS n")
    assert run(engine, found.executed) == [(rounded(Fraction(over) / Fraction(under), 20),)]


@settings(max_examples=40, deadline=None)
@given(values=st.lists(money, min_size=1, max_size=9))
def test_an_average_is_the_fraction_half_to_even(values, gate, engine):
    listed = ", ".join(f"({v}::DECIMAL(18,2))" for v in values)
    found = gate(f"SELECT avg(x) AS n FROM (VALUES {listed}) v(x)")
    expected = rounded(sum(map(Fraction, values), Fraction()) / len(values), 18)
    assert run(engine, found.executed) == [(expected,)]


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=9))
def test_an_average_of_integers_is_exact_too(values, gate, engine):
    listed = ", ".join(f"(CAST({v} AS INTEGER))" for v in values)
    found = gate(f"SELECT avg(x) AS n FROM (VALUES {listed}) v(x)")
    assert run(engine, found.executed) == [(rounded(Fraction(sum(values), len(values)), 18),)]


# Columns of random types: which rows there are, by quotients.


def _kind(chance: random.Random) -> tuple[str, int, int]:
    """A type, its digits and its places."""
    if chance.random() < 0.3:
        name = chance.choice(list(INTEGER_DIGITS))
        return name, INTEGER_DIGITS[name], 0
    digits = chance.randint(1, 18)
    places = chance.randint(0, digits)
    return f"DECIMAL({digits},{places})", digits, places


def _value(chance: random.Random, digits: int, places: int) -> Decimal:
    """Often the smallest or the largest of its type."""
    unscaled = chance.choice([0, 1, -1, 2, 3, 10**digits - 1, chance.randint(1, 10**digits - 1)])
    return Decimal(unscaled).scaleb(-places)


def _columns(chance: random.Random) -> tuple[str, list[tuple[Decimal, Decimal]]]:
    """A FROM with columns x and y of random types, and its rows; y is never 0."""
    (over, *of_over), (under, *of_under) = _kind(chance), _kind(chance)
    rows = [(_value(chance, *of_over), _value(chance, *of_under)) for _ in range(8)]
    rows = [(x, y or Decimal(1).scaleb(-of_under[1])) for x, y in rows]
    listed = ", ".join(f"({x:f}::{over}, {y:f}::{under})" for x, y in rows)
    return f"(VALUES {listed}) v(x, y)", rows


def _rows_agree(gate, engine, seed: int, count: int) -> int:
    """How many pairs of types have an exact quotient; each gives the rows of fractions."""
    chance, exact = random.Random(seed), 0
    for _ in range(count):
        table, rows = _columns(chance)
        found = gate(f"SELECT x / y AS n FROM {table}")
        if found.origins[0].inexact:  # fewer than 12 places were left
            continue
        exact += 1
        (places,) = {-v.as_tuple().exponent for (v,) in run(engine, found.executed)}
        quotients = [rounded(Fraction(x) / Fraction(y), places) for x, y in rows]
        assert [bool(q) for q in quotients] == [bool(x) for x, _y in rows], table
        counts = (
            "count(*) FILTER (WHERE x / y <> 0), count(*) FILTER (WHERE x / y > 0), "
            "count(*) FILTER (WHERE x / y IN (0)), count(DISTINCT x / y)"
        )
        told = gate(f"SELECT c1, c2, c3, c4 FROM (SELECT {counts} FROM {table}) c(c1, c2, c3, c4)")
        above, apart = sum(q > 0 for q in quotients), len(set(quotients))
        zeros = sum(not q for q in quotients)
        assert run(engine, told.executed) == [(len(rows) - zeros, above, zeros, apart)], table
        groups = gate(f"SELECT x / y AS q, count(*) AS n FROM {table} GROUP BY x / y")
        expected = sorted((q, quotients.count(q)) for q in set(quotients))
        assert sorted(run(engine, groups.executed)) == expected, table
    return exact


def test_rows_by_quotients_are_those_of_fractions(gate, engine):
    assert _rows_agree(gate, engine, 20261130, 16) > 12


@pytest.mark.soak
def test_rows_by_many_quotients_are_those_of_fractions(gate, engine):
    assert _rows_agree(gate, engine, 11, 1_500) > 1_200


PRODUCTS = [
    "(x / y) * z",
    "z * (x / y)",
    "(x / y) * z * z",
    "(x / y) * (y / z)",
    "x / y / z",
    "x / y / 3 * z",
    "x / (y / z)",
    "sum(x / y) * sum(z)",
    "avg(x) * avg(z)",
    "sum(x) / sum(y) * max(z)",
    "(x / y + z) * 7.5",
    "coalesce(abs(x / y), z) * z",
    "CASE WHEN z > 0 THEN x / y ELSE z END * z",
    "x / 100 * z",
]


def _product(text: str, x: Fraction, y: Fraction, z: Fraction) -> Fraction:
    for call in ("sum", "avg", "max", "coalesce"):
        text = text.replace(call, "first")
    if text.startswith("CASE"):
        text = "(x / y if z > 0 else z) * z"
    literal = text.replace("100", "Fraction(100)").replace("7.5", "Fraction(15, 2)")
    names = {"x": x, "y": y, "z": z, "first": lambda *v: v[0], "abs": abs, "Fraction": Fraction}
    return eval(literal, {"__builtins__": {}}, names)  # noqa: S307 - our own texts above


def _products_agree(gate, engine, seed: int, count: int) -> int:
    """How many looked exact; each of those is within the stated error of the fraction."""
    chance, exact = random.Random(seed), 0
    for _ in range(count):
        kinds = [_kind(chance) for _ in range(3)]
        values = [_value(chance, *of) or Decimal(1).scaleb(-of[1]) for _name, *of in kinds]
        text = chance.choice(PRODUCTS)
        row = ", ".join(f"{v:f}::{kind}" for v, (kind, *_of) in zip(values, kinds, strict=True))
        try:
            found = gate(f"SELECT {text} AS n FROM (VALUES ({row})) v(x, y, z)")
        except SqlRefused as refused:  # an average that stayed a float
            assert refused.code == "sql.float_sum"
            continue
        try:
            ((got,),) = run(engine, found.executed)
        except duckdb.Error as error:
            assert code_of(str(error)) in ("sql.overflow", "sql.division_by_zero"), (text, row)
            continue
        if found.origins[0].inexact:
            continue
        exact += 1
        off = abs(Fraction(got) - _product(text, *map(Fraction, values)))
        assert off <= ERROR_MAX, (text, row)
    return exact


def test_products_are_within_their_error_or_inexact(gate, engine):
    assert _products_agree(gate, engine, 3, 100) > 30


@pytest.mark.soak
def test_many_products_are_within_their_error_or_inexact(gate, engine):
    assert _products_agree(gate, engine, 5, 5_000) > 1_500


# Texts of random shape.


def _expression(chance: random.Random, depth: int) -> tuple[str, Fraction | None]:
    """A text with odd spacing and its value as a fraction; None: no value.

    Operators of one rank are read from left to right, so that each part that is lower gets
    brackets and half of the others too.
    """
    if depth == 0 or chance.random() < 0.25:
        value = Decimal(chance.randint(1, 400)).scaleb(-chance.choice([0, 1, 2]))
        return f"{value:f}", Fraction(value)
    kind = chance.choice(["/", "/", "/", "+", "-", "*", "case", "call", "minus"])
    left, one = _expression(chance, depth - 1)
    if kind == "case":
        return f"CASE WHEN 1 = 1 THEN {left} ELSE 0 END", one
    if kind == "call":
        return f"coalesce( {left},1 )", one
    if kind == "minus":
        return f"-({left})", None if one is None else -one
    right, two = _expression(chance, depth - 1)
    if chance.random() < 0.5 or kind in "/*":
        left = f"({left})" if chance.random() < 0.8 or set(left) & set("+-") else left
    gap = chance.choice(["", " ", "  ", "\n", " /* a / b */ ", " -- /\n"])
    text = f"{left}{gap}{kind}{gap or ' '}({right})"
    if one is None or two is None or (kind == "/" and two == 0):
        return text, None
    value = {"+": one + two, "-": one - two, "*": one * two}.get(kind)
    return text, one / two if value is None else value


def _many(gate, engine, seed: int, count: int) -> int:
    """How many texts gave the value of fractions; any other was left alone or raised."""
    chance, exact = random.Random(seed), 0
    for _ in range(count):
        text, value = _expression(chance, 3)
        try:
            found = gate(f"SELECT {text} AS n")
            ((got,),) = run(engine, found.executed)
        except (SqlRefused, duckdb.Error):
            continue
        if not isinstance(got, float) and value is not None:
            assert abs(Fraction(got) - value) <= 10**6 * half(12), text
            exact += 1
        else:
            assert not isinstance(got, float) or found.origins[0].inexact, text
    return exact


def test_random_expressions_are_fractions_or_left_alone(gate, engine):
    assert _many(gate, engine, 20261130, 120) > 60


@pytest.mark.soak
def test_many_random_expressions_are_fractions_or_left_alone(gate, engine):
    assert _many(gate, engine, 7, 10_000) > 5_000


# What does not fit.


def test_the_types_of_a_quotient():
    wide = divided(Exact(38, 2, decimal=True), Exact(18, 4, decimal=True))
    assert wide is not None
    assert (str(wide.over), str(wide.under), wide.places) == ("DECIMAL(20,2)", "DECIMAL(18,4)", 16)
    assert divided(Exact(38, 2, decimal=True), Exact(38, 20, decimal=True)) is None


TOO_LARGE = [
    f"SELECT {'9' * 30}::DECIMAL(38,0) / 1.5 AS n",
    f"SELECT sum(x) / 7 AS n FROM (VALUES ({'9' * 20}::DECIMAL(38,0))) v(x)",
    f"SELECT avg(x) AS n FROM (VALUES ({'9' * 21}::DECIMAL(38,0))) v(x)",
    f"SELECT avg(x) AS n FROM (SELECT {'9' * 18}::BIGINT AS x FROM range(200))",
    f"SELECT avg(x) OVER () AS n FROM (SELECT {'9' * 19}::DECIMAL(38,0) AS x FROM range(20))",
    "SELECT (x / 3) * y AS n FROM (VALUES (9999999999999.99, 99999999.99)) v(x, y)",
]


@pytest.mark.parametrize("sql", TOO_LARGE)
def test_what_is_too_large_raises_an_overflow(sql, gate, engine):
    """A sum within an average, a numerator and a product never wrap round."""
    found = gate(sql)
    assert "decimal_" in found.executed
    with pytest.raises(duckdb.Error) as caught:
        run(engine, found.executed)
    assert code_of(str(caught.value)) == "sql.overflow"


def test_a_total_of_ten_to_the_twenty_is_averaged(gate, engine):
    found = gate("SELECT avg(x) AS n FROM (SELECT 9999999999999999.99 AS x FROM range(10000))")
    assert run(engine, found.executed) == [(Decimal("9999999999999999.990000000000000000"),)]


def test_the_smallest_quotients_keep_digits(gate, engine):
    found = gate(f"SELECT x / 10000000000000 AS a, x / 3 / {LITERAL_MAX} AS b FROM (SELECT 1 AS x)")
    assert run(engine, found.executed) == [(Decimal("1E-13"), Decimal("3.3333333333E-10"))]
