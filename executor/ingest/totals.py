"""Data records that look like totals: found by their names, by what they leave empty, by sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from tieout.executor.ingest.cells import Texts, Typed
from tieout.executor.ingest.columns import ColumnReading, control_total
from tieout.executor.ingest.declaration import ColumnDeclaration
from tieout.executor.ingest.refusals import RecordView, total_error
from tieout.executor.ingest.total_words import TOTAL_PATTERN, is_bare, is_opening

# Below this many records above it, a sum proves nothing.
SUMMED_RECORDS_MIN = 2
# Fewer columns than this left empty may be a group without a name, and that it is the sum of
# fewer records than this may be chance.
UNNAMED_COLUMNS_MIN = 2
UNNAMED_RECORDS_MIN = 3


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A data row that may be a total: row from 0, its name ("" for none) and where it stands."""

    row: int
    name: str
    place: int


@dataclass(frozen=True, slots=True)
class _Sum:
    """An amount of a suspect beside the sum of the rows above it."""

    column: str
    amount: Decimal
    above: Decimal
    rows: int

    @property
    def foots(self) -> bool:
        return self.amount == self.above

    @property
    def proves(self) -> bool:
        return self.foots and bool(self.amount) and self.rows >= SUMMED_RECORDS_MIN


def rows_of_totals(texts: Sequence[Texts], place: int) -> list[int]:
    """Rows whose first field that is not empty stands in this column and names a total."""
    leading = None
    for before in texts[:place]:
        empty = _is_empty(before)
        leading = empty if leading is None else pc.and_(leading, empty)
        if not pc.any(leading).as_py():
            return []
    hits = pc.match_substring_regex(texts[place], f"^(?:{TOTAL_PATTERN})", ignore_case=True)
    hits = hits if leading is None else pc.and_(hits, leading)
    return [
        int(row) for row in pc.indices_nonzero(pc.fill_null(hits, fill_value=False)).to_pylist()
    ]


def refuse_totals(
    view: RecordView,
    data: Sequence[int],
    texts: Sequence[Texts],
    readings: Sequence[ColumnReading],
    columns: Sequence[Typed],
    *,
    declared: Mapping[str, ColumnDeclaration],
) -> None:
    """Ask about rows that look like totals and would be counted as data.

    data: record of each row. texts, readings, columns: per column. declared: what is declared
    of columns; a total named in one of declared type is data.
    Raises ExecutorError csv.total_line.
    """
    names = [reading.name for reading in readings]
    rows = _Rows(texts, readings, columns)
    settled = {
        place for place, name in enumerate(names) if name in declared and declared[name].type
    }
    asked = [one for one in rows.suspects if one.place not in settled and rows.asks(one)]
    if not asked or (len(asked) == len(data) > 1):
        return
    last = asked[-1]
    gone = {suspect.row for suspect in asked}
    raise total_error(
        view,
        [data[suspect.row] for suspect in asked],
        _sums_text(rows.sums(last)),
        column=(names[last.place], readings[last.place].type),
        others=[index for row, index in enumerate(data) if row not in gone],
    )


class _Rows:
    """The rows of a table beside those that may be totals."""

    def __init__(
        self, texts: Sequence[Texts], readings: Sequence[ColumnReading], columns: Sequence[Typed]
    ) -> None:
        self._count = len(texts[0])
        self._texts = texts
        self._words = [p for p, reading in enumerate(readings) if reading.control_total is None]
        self._prose = [p for p, reading in enumerate(readings) if reading.type == "VARCHAR"]
        self._numbers = [
            (reading.name, values)
            for reading, values in zip(readings, columns, strict=True)
            if reading.control_total is not None
        ]
        self.suspects = self._found()
        self._at = {suspect.row: number for number, suspect in enumerate(self.suspects)}
        self._filled = self._filled_elsewhere() if self.suspects else [0] * len(texts)
        self._sums = {name: self._running(values) for name, values in self._numbers}

    def asks(self, suspect: _Suspect) -> bool:
        """Whether a row is to be asked about."""
        proofs = [one for one in self.sums(suspect) if one.proves]
        others = self._count - len(self.suspects)
        left = [place for place in self._left_empty(suspect) if self._filled[place] == others]
        last = suspect.row == self._count - 1
        if not suspect.name:
            if len(left) >= UNNAMED_COLUMNS_MIN:
                return bool(proofs) or (last and others >= SUMMED_RECORDS_MIN)
            return any(one.rows >= UNNAMED_RECORDS_MIN for one in proofs)
        if proofs:
            return True
        if is_bare(suspect.name):
            alone = set(self._words) <= {suspect.place}
            return last or alone or self._leaves_usual(suspect, others)
        return others >= SUMMED_RECORDS_MIN and bool(set(left) & set(self._words))

    def sums(self, suspect: _Suspect) -> list[_Sum]:
        """Per column of numbers in which a row has one: it beside a sum above, best first.

        The sum is that of all rows above but the suspects, where none of the others foots: that
        of the rows since the last suspect, and that of all rows above.
        """
        at = self._at[suspect.row]
        found = []
        for name, values in self._numbers:
            amount = values[suspect.row].as_py()
            if amount is not None:
                tried = [
                    _Sum(name, Decimal(amount), above, rows) for above, rows in self._sums[name][at]
                ]
                found.append(next((one for one in tried if one.proves), tried[0]))
        return sorted(found, key=lambda one: not one.proves)

    def _found(self) -> list[_Suspect]:
        found = []
        for place in self._prose:
            for row in rows_of_totals(self._texts, place):
                name = str(self._texts[place][row].as_py())
                if not is_opening(name):
                    found.append(_Suspect(row, name, place))
        nameless = sorted({0, *self._words})
        empty = _all_empty([self._texts[place] for place in nameless])
        place = self._prose[0] if self._prose else 0
        found.extend(_Suspect(row, "", place) for row in empty)
        return sorted(found, key=lambda one: one.row)

    def _filled_elsewhere(self) -> list[int]:
        """Per column the number of rows that are no suspects and have a value in it."""
        rows = pa.array([one.row for one in self.suspects], pa.int64())
        filled = []
        for column in self._texts:
            empty = _is_empty(column)
            of_suspects = len(rows) - _count(empty.take(rows))
            filled.append(self._count - _count(empty) - of_suspects)
        return filled

    def _left_empty(self, suspect: _Suspect) -> list[int]:
        values = ((p, column[suspect.row].as_py()) for p, column in enumerate(self._texts))
        return [place for place, text in values if not (text or "").strip()]

    def _leaves_usual(self, suspect: _Suspect, others: int) -> bool:
        """Whether a row leaves a column empty which most rows fill and is not of numbers."""
        left = set(self._left_empty(suspect)) & set(self._words)
        return any(2 * self._filled[place] > others for place in left)

    def _running(self, values: Typed) -> list[tuple[tuple[Decimal, int], ...]]:
        """Per suspect the sums above it, see `sums`, each with its number of rows."""
        running: list[tuple[tuple[Decimal, int], ...]] = []
        plain, every, start = Decimal(0), Decimal(0), 0
        for number, suspect in enumerate(self.suspects):
            near = Decimal(control_total(values.slice(start, suspect.row - start)))
            plain, every = plain + near, every + near
            rows = suspect.row - number
            running.append(((plain, rows), (near, suspect.row - start), (every, suspect.row)))
            every += Decimal(values[suspect.row].as_py() or 0)
            start = suspect.row + 1
        return running


def _is_empty(column: Texts) -> Typed:
    blank = pc.equal(pc.binary_length(pc.utf8_trim_whitespace(column)), 0)
    return pc.fill_null(blank, fill_value=True)


def _all_empty(columns: Sequence[Texts]) -> list[int]:
    """Rows in which every one of the columns is empty."""
    every = None
    for column in columns:
        empty = _is_empty(column)
        every = empty if every is None else pc.and_(every, empty)
        if not pc.any(every).as_py():
            return []
    return [int(row) for row in pc.indices_nonzero(every).to_pylist()]


def _count(mask: Typed) -> int:
    return int(pc.sum(mask).as_py() or 0)


def _sums_text(sums: Sequence[_Sum]) -> str:
    """Whether the amounts of a suspect are the sums of the rows above it."""
    if not sums:
        return "no column of numbers has a value in it"
    one = sums[0]
    if one.foots:
        return f"it is the sum of column {one.column} above it"
    return (
        f"it does not foot: column {one.column} above it sums to {one.above}, so it is off by"
        f" {one.amount - one.above}"
    )
