"""The corpus's tables: seeded, with many ties, NULLs and numbers whose sum depends on the order."""

from __future__ import annotations

import functools
import json
import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa

SEED: Final = 20_260_630
ROWS: Final = {"t": 10_000, "u": 300, "n": 4_000}
FIRST_DAY: Final = date(2026, 1, 1)
MEMOS: Final = (
    *("rent", "Rent", "RENT", "salary", "fee", "refund", "", "tax", "Ü-card", "über", "uber"),
    *("interest", "transfer", "invoice 17", "42", "-3", "naïve", "e\u0301", "é", "payroll", "x y"),
)
KEYS: Final = {"t": ("id",), "u": ("k",), "n": ()}
COLUMNS: Final[dict[str, dict[str, tuple[str, pa.DataType]]]] = {
    "t": {
        "id": ("INTEGER", pa.int32()),
        "grp": ("INTEGER", pa.int32()),
        "acct": ("VARCHAR", pa.string()),
        "memo": ("VARCHAR", pa.string()),
        "amt": ("DECIMAL(18,2)", pa.decimal128(18, 2)),
        "qty": ("INTEGER", pa.int32()),
        "x": ("DOUBLE", pa.float64()),
        "w": ("DOUBLE", pa.float64()),
        "dt": ("DATE", pa.date32()),
        "ts": ("TIMESTAMP", pa.timestamp("us")),
        "flag": ("BOOLEAN", pa.bool_()),
        "doc": ("VARCHAR", pa.string()),
    },
    "u": {
        "k": ("INTEGER", pa.int32()),
        "acct": ("VARCHAR", pa.string()),
        "rate": ("DECIMAL(9,4)", pa.decimal128(9, 4)),
        "y": ("DOUBLE", pa.float64()),
        "dt": ("DATE", pa.date32()),
    },
    "n": {
        "a": ("INTEGER", pa.int32()),
        "b": ("VARCHAR", pa.string()),
        "c": ("DECIMAL(18,2)", pa.decimal128(18, 2)),
        "z": ("DOUBLE", pa.float64()),
    },
}

RANGES: Final = {("t", "qty"): ("-5", "19")}
"""What the catalog declares of a column; the data keep to it."""

Arrow: TypeAlias = Any
Cells: TypeAlias = list[object]


class Source:
    """Seeded cells. Only random() is used: Python promises its sequence over versions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, count: int) -> int:
        return int(self._random.random() * count)

    def null(self, value: object, share: float) -> object:
        return None if self._random.random() < share else value

    def cents(self, whole: int, places: int) -> Decimal:
        return Decimal(self.below(2 * whole) - whole).scaleb(-places)

    def number(self) -> float:
        """Of magnitudes from 1e-6 to 1e12, so that a sum in another order differs."""
        return (self._random.random() - 0.5) * 10.0 ** (self.below(19) - 6)

    def odd_number(self) -> object:
        """A number, or one that is none: NaN, an infinity, -0.0."""
        rare = {0: float("nan"), 1: float("inf"), 2: -0.0, 3: 0.0}
        return rare.get(self.below(2_000), self._random.random() * 100)

    def day(self) -> date:
        return FIRST_DAY + timedelta(days=self.below(90))

    def order(self, count: int) -> list[int]:
        return sorted(range(count), key=[self._random.random() for _ in range(count)].__getitem__)


@functools.cache
def tables() -> dict[str, Arrow]:
    """Name to pyarrow.Table, rows in the order of their keys."""
    source = Source(SEED)
    rows: dict[str, list[Cells]] = {
        "t": [_transaction(source, number) for number in range(ROWS["t"])],
        "u": [_rate(source, number) for number in range(ROWS["u"])],
        "n": [_loose(source) for _ in range(ROWS["n"])],
    }
    return {name: _table(name, cells) for name, cells in rows.items()}


def shuffled(table: Arrow, seed: int) -> Arrow:
    """The rows of a table in another order."""
    return table.take(pa.array(Source(seed).order(table.num_rows), pa.int64()))


def _transaction(source: Source, number: int) -> Cells:
    day, quantity = source.day(), source.below(25) - 5
    moment = datetime(day.year, day.month, day.day) + timedelta(minutes=source.below(48) * 30)
    return [
        number,
        source.null(source.below(20), 0.02),
        source.null(f"A{source.below(40):03}", 0.03),
        source.null(MEMOS[source.below(len(MEMOS))], 0.05),
        source.null(source.cents(500_000, 2), 0.02),
        source.null(quantity, 0.04),
        source.null(source.number(), 0.01),
        source.null(source.odd_number(), 0.01),
        source.null(day, 0.01),
        source.null(moment, 0.01),
        source.null(source.below(3) > 0, 0.02),
        json.dumps({"v": quantity, "tag": MEMOS[source.below(5)]}),
    ]


def _rate(source: Source, number: int) -> Cells:
    return [
        number,
        source.null(f"A{source.below(45):03}", 0.02),
        source.null(source.cents(20_000, 4), 0.02),
        source.null(source.number(), 0.02),
        source.day(),
    ]


def _loose(source: Source) -> Cells:
    """From few values, so that whole rows repeat."""
    return [
        source.null(source.below(12), 0.05),
        source.null(MEMOS[source.below(6)], 0.05),
        source.null(Decimal(source.below(4)).scaleb(-2), 0.05),
        source.null(source.number(), 0.02),
    ]


def _table(name: str, rows: list[Cells]) -> Arrow:
    columns = zip(*rows, strict=True)
    kinds = COLUMNS[name].items()
    return pa.table(
        {
            column: pa.array(list(cells), kind)
            for (column, (_text, kind)), cells in zip(kinds, columns, strict=True)
        }
    )
