"""The one refusal of the SQL gate: a code, a place in the model's text, and a way out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.sql.edits import Edit, apply, before
from tieout.executor.sql.verdict import Reason

NO_LOCATION = 2**64 - 1
"""What the engine's tree says where a node has no place in the text."""

WAYS_OUT = {
    "sql.asof_ties": (
        "Join a query that has one row for each key and time, such as SELECT ... GROUP BY key, "
        "time, and name all of these columns in the ASOF condition."
    ),
    "sql.bind": "Correct the names and types in the query.",
    "sql.catalog": "Use only the columns of the granted tables; the engine's catalog is closed.",
    "sql.clock": (
        "Write the date as a literal, such as DATE '2026-06-30'; a question's as_of (--as-of) sets "
        "the clock."
    ),
    "sql.collation": "Compare lower(x) or the text as it is, without COLLATE.",
    "sql.construct": "Write it as a plain SELECT with joins, WHERE, GROUP BY and ORDER BY.",
    "sql.control_character": "Send the query as plain text with spaces and line breaks only.",
    "sql.conversion": (
        "Write dates as DATE 'YYYY-MM-DD' and numbers without quotes and separators, such as "
        "1000.00."
    ),
    "sql.empty": "Send one SELECT.",
    "sql.equal_values": (
        "Cast to DECIMAL before it is grouped, compared or taken, such as max(x::DECIMAL(38,9)); "
        "instead of a span of time take date_diff('second', a, b)."
    ),
    "sql.file_access": "Read only the tables that were granted, by their plain names.",
    "sql.float_sum": (
        "Cast to DECIMAL before summing, such as sum(x::DECIMAL(38,9)); for shares use "
        "decimal_division(x, y, 9), for averages decimal_average(x)."
    ),
    "sql.function": "Use another function; arithmetic, text, date and aggregate functions work.",
    "sql.libm": "Put it directly inside a cast, such as CAST(ln(x) AS DECIMAL(38,12)).",
    "sql.non_ascii": "Keep characters outside ASCII inside quotes.",
    "sql.not_a_query": "Send one SELECT; its columns are shown with the result.",
    "sql.order_form": "Write the ORDER BY at the end of the query, outside any parentheses.",
    "sql.outside_range": "Compare with a value inside the column's declared range.",
    "sql.parameter": "Write the value itself in the query.",
    "sql.parse": "Correct the syntax at the place named.",
    "sql.parsers_disagree": "Write this part in a plainer, more usual form of SQL.",
    "sql.qualified_table": "Name the table alone, without schema or catalog.",
    "sql.random": "Leave it out: a result must be the same each time.",
    "sql.range": "Use range(a, b) with literal whole numbers and at most 1000000 rows.",
    "sql.reserved_name": "Choose a name that does not begin with two underscores.",
    "sql.rowid": "Use the key columns of the table.",
    "sql.sample": "Take all rows, or name the ones you want in WHERE.",
    "sql.setting": "Send one SELECT; settings are fixed.",
    "sql.shadowed_table": "Give the WITH query a name that no granted table has.",
    "sql.too_complex": "Split the query into several smaller steps.",
    "sql.too_long": "Shorten the query, or split it into several steps.",
    "sql.two_statements": "Send exactly one SELECT in each step.",
    "sql.type": "Cast the column to a usual type: DECIMAL, BIGINT, VARCHAR, DATE, TIMESTAMP.",
    "sql.unknown_column": "Use one of the columns named in the catalog.",
    "sql.unknown_table": "Use one of the granted tables, or an earlier step by its id.",
    "sql.unknown_value": "Use one of the values that the column is declared to have.",
    "sql.unordered_aggregate": (
        "Put ORDER BY inside the call, over the argument itself or the table's key, such as "
        "string_agg(x, ',' ORDER BY x); for any one value use min(x)."
    ),
    "sql.unordered_limit": (
        "At the level of the LIMIT, OFFSET or DISTINCT ON, order by columns that name one row."
    ),
    "sql.unordered_window": "Put ORDER BY inside OVER (...).",
    "sql.window_ties": (
        "Add the key columns to the window's ORDER BY, or use rank(), which gives ties one number."
    ),
    "sql.write": "Send one SELECT that only reads.",
}


WHY = {
    "sql.asof_ties": "Which of several nearest rows is joined depends on the order of rows.",
    "sql.bind": "A name, type or argument does not fit what it is used with.",
    "sql.catalog": "It reads the engine or the session, not the data.",
    "sql.clock": "It reads the clock, so that the result would differ from day to day.",
    "sql.collation": "What a collation puts first changes with the version of a library.",
    "sql.construct": "A part of the query is of a kind that is not admitted.",
    "sql.control_character": "The text holds a character that cannot be seen.",
    "sql.conversion": "A constant cannot become the type that it is compared with or cast to.",
    "sql.empty": "There is no query.",
    "sql.equal_values": (
        "One of several values is kept that compare equal and are not alike, such as 0.0 and -0.0."
    ),
    "sql.file_access": "It reads or writes outside the granted tables.",
    "sql.float_sum": "Binary floating point numbers added in another order give another sum.",
    "sql.function": "The function, or this use of it, is not on the list of those admitted.",
    "sql.libm": "Its last digits depend on the processor.",
    "sql.non_ascii": "A character outside ASCII can look like white space or another letter.",
    "sql.not_a_query": "It is not a SELECT.",
    "sql.order_form": "The order of the rows cannot be made total there.",
    "sql.outside_range": "No row could equal it: the column's declared range ends before.",
    "sql.parameter": "There is nobody who would fill in a parameter.",
    "sql.parse": "It is not SQL as the engine reads it.",
    "sql.parsers_disagree": "Two parsers read the text differently, so that one of them is wrong.",
    "sql.qualified_table": "Granted tables have plain names; nothing else exists.",
    "sql.random": "It draws random numbers.",
    "sql.range": "It could make any number of rows.",
    "sql.reserved_name": "Names with two underscores in front are kept for the record.",
    "sql.rowid": "It names where the engine keeps a row, not what the row holds.",
    "sql.sample": "A sample, or an earlier state of a table, is not the data.",
    "sql.setting": "It changes how the engine works.",
    "sql.shadowed_table": "A reader could not tell which of the two tables is meant.",
    "sql.too_complex": "The query is larger or nested deeper than it may be.",
    "sql.too_long": "The text has more characters or words than it may have.",
    "sql.two_statements": "There is more than one statement.",
    "sql.type": "Values of this type cannot be kept in a result.",
    "sql.unknown_column": "No table in the query has a column of that name.",
    "sql.unknown_table": "There is no table or earlier step of that name.",
    "sql.unknown_value": "The column is declared to have other values only.",
    "sql.unordered_aggregate": "The value depends on the order in which the rows arrive.",
    "sql.unordered_limit": "Which rows are kept depends on the order in which they arrive.",
    "sql.unordered_window": "The value of a row depends on the order in which rows arrive.",
    "sql.window_ties": "Rows that tie in the window's order could be numbered either way.",
    "sql.write": "It would change data; a query only reads.",
}
"""Why each code is refused, in one line; the message beside it says what it was in this text."""


class SqlRefused(ExecutorError):
    """The text was not admitted; nothing of it ran.

    line and column are 1-based positions in the model's own text, None where it has no one place.
    reasons: why it is no function of the data, where that is why.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        remedy: str,
        line: int | None = None,
        column: int | None = None,
        exit_code: Exit = Exit.REFUSED,
        reasons: tuple[Reason, ...] = (),
    ) -> None:
        place = f"line {line}, column {column}" if line is not None else ""
        super().__init__(code, message, remedy=remedy, place=place, exit_code=exit_code)
        self.line = line
        self.column = column
        self.reasons = reasons


@dataclass(frozen=True, slots=True)
class Text:
    """The model's SQL with its places; the engine counts bytes of UTF-8, people characters.

    sql: the text at hand. earlier: each text before it, the model's own first, with the edits that
    led to the next; places are always told in the model's own.
    """

    sql: str
    earlier: tuple[tuple[str, tuple[Edit, ...]], ...] = field(default=())

    @property
    def asked(self) -> str:
        """The model's own text."""
        return self.earlier[0][0] if self.earlier else self.sql

    def edited(self, edits: Sequence[Edit]) -> Text:
        """The text after some edits."""
        changed = apply(self.sql, edits)
        return Text(changed, (*self.earlier, (self.sql, tuple(edits))))

    def asked_offset(self, offset: int) -> int:
        """Where a character of the text at hand stands, or was put in, in the model's own."""
        for _sql, edits in reversed(self.earlier):
            offset = before(offset, edits)
        return offset

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, in the model's own text, of a character offset."""
        offset = self.asked_offset(offset)
        head = self.asked[:offset]
        line = head.count("\n") + 1
        return line, offset - (head.rfind("\n") + 1) + 1

    def from_bytes(self, location: int) -> int:
        """The character offset of a byte offset."""
        if self.sql.isascii():
            return min(location, len(self.sql))
        return len(self.sql.encode()[:location].decode(errors="ignore"))

    def find(self, word: str) -> int | None:
        """The first place where a word stands, for nodes whose place the engine does not give."""
        if not word:
            return None
        found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.sql, re.IGNORECASE)
        return found.start() if found else None

    def refuse(
        self,
        code: str,
        message: str,
        *,
        location: int | None = None,
        offset: int | None = None,
        word: str = "",
        remedy: str = "",
        reason: str = "",
    ) -> SqlRefused:
        """A refusal at a byte location, else at a character offset, else where the word stands.

        reason: a name from verdict.REASONS, where the text is no function of the data for it.
        """
        if location is not None and location != NO_LOCATION:
            offset = self.from_bytes(location)
        if offset is None:
            offset = self.find(word)
        line, column = self.position(offset) if offset is not None else (None, None)
        return SqlRefused(
            code,
            message,
            remedy=remedy or WAYS_OUT[code],
            line=line,
            column=column,
            reasons=(Reason(reason, message, line, column),) if reason else (),
        )
