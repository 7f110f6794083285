"""A text split into records and fields, every byte accounted for."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import sub

from tieout.executor.errors import ExecutorError
from tieout.executor.ingest.declaration import source_table, under

# Stands for a quoted field without content; a NUL cannot be in a text (encoding.py).
QUOTED_EMPTY = b"\0"
# No field separator: the whole record is one field. A NUL cannot be in a text.
ONE_COLUMN = b"\0"
MALFORMED = -1


class Dialect:
    """A delimiter and a quote, with the patterns that follow from them.

    A quote opens a field only as its first character; inside, a doubled quote is one quote.
    """

    __slots__ = ("_field", "_record", "delimiter", "quote")

    def __init__(self, delimiter: bytes, quote: bytes) -> None:
        """delimiter: one byte, or ONE_COLUMN. quote: one byte, or none."""
        self.delimiter = delimiter
        self.quote = quote
        d, q = re.escape(delimiter), re.escape(quote or b"\0")
        # A quote that another follows never closes: so there is one way to read a field, and
        # a field that cannot be read is given up in time linear in its length.
        inside = b"[^%b]*(?:%b%b[^%b]*)*" % (q, q, q, q)
        shut = b"%b(?!%b)" % (q, q)
        self._field = re.compile(b"(?:(%b)(%b)%b([^%b]*)|([^%b]*))%b" % (q, inside, shut, d, d, d))
        one = b"(?:%b%b%b[^%b\r\n]*|(?!%b)[^%b\r\n]*)" % (q, inside, shut, d, q, d)
        self._record = re.compile(b"(?:%b%b)*%b(?=[\r\n]|\\Z)" % (one, d, one))

    def record_end(self, work: bytes, start: int) -> int:
        """Where the record that begins at `start` ends; -1 when a quote is never closed."""
        found = self._record.match(work, start)
        return -1 if found is None else found.end()

    def fields(self, record: bytes) -> list[bytes] | None:
        """The fields of a record; None when text follows a closing quote.

        A field without quotes and content is b"", one with quotes and without content is
        QUOTED_EMPTY.
        """
        quote = self.quote
        if not quote or quote not in record:
            return record.split(self.delimiter)
        if record[:1] == quote and record[-1:] == quote:
            plain = record[1:-1].split(quote + self.delimiter + quote)
            if record.count(quote) == 2 * len(plain):
                return [text or QUOTED_EMPTY for text in plain]
        return self._quoted_fields(record)

    def _quoted_fields(self, record: bytes) -> list[bytes] | None:
        quote, doubled = self.quote, self.quote * 2
        fields = []
        for opened, inside, after, plain in self._field.findall(record + self.delimiter):
            if after:
                return None
            if not opened:
                fields.append(plain)
            else:
                fields.append(inside.replace(doubled, quote) or QUOTED_EMPTY)
        return fields

    def width(self, record: bytes) -> int:
        """How many fields a record has, MALFORMED when text follows a closing quote."""
        if not self.quote or self.quote not in record:
            return record.count(self.delimiter) + 1
        fields = self.fields(record)
        return MALFORMED if fields is None else len(fields)


@dataclass(frozen=True, slots=True)
class Lines:
    """Physical lines: their texts, and the length of each one's line end (0, 1 or 2)."""

    texts: Sequence[bytes]
    ends: bytes


@dataclass(frozen=True, slots=True)
class Records:
    """Records in file order: texts without line end, length of the line end, lines taken."""

    texts: Sequence[bytes]
    ends: bytes
    line_counts: Sequence[int]

    def first_lines(self) -> array[int]:
        """The physical line, from 1, on which each record begins."""
        return array("q", accumulate(self.line_counts[:-1], initial=1))


def split_lines(work: bytes) -> Lines:
    r"""Physical lines of a text; \n, \r\n and \r end a line."""
    kept = work.splitlines(keepends=True)
    texts = work.splitlines()
    return Lines(texts, bytes(map(sub, map(len, kept), map(len, texts))))


def newline_style(records: Records, work: bytes) -> tuple[str, str]:
    r"""How records end, "\n", "\r\n", "\r", "mixed" or "" for none, and the reason."""
    seen: dict[str, int] = {}
    offset = 0
    for text, end in zip(records.texts, records.ends, strict=True):
        offset += len(text)
        if end:
            ending = "\r\n" if end == 2 else chr(work[offset])
            seen[ending] = seen.get(ending, 0) + 1
        offset += end
    names = {"\n": "LF", "\r\n": "CRLF", "\r": "CR"}
    counts = ", ".join(f"{seen[e]} {names[e]}" for e in ("\n", "\r\n", "\r") if e in seen)
    if not seen:
        return "", "the file has one line without an end"
    return (next(iter(seen)) if len(seen) == 1 else "mixed"), f"line ends of records: {counts}"


def split_records(work: bytes, lines: Lines, dialect: Dialect, *, name: str) -> Records:
    """Records of a text: a line end inside quotes does not end a record.

    Raises ExecutorError csv.unclosed_quote with the line on which the quote's record begins.
    """
    if not dialect.quote or dialect.quote not in work:
        return Records(lines.texts, lines.ends, array("q", [1]) * len(lines.texts))
    texts: list[bytes] = []
    ends = bytearray()
    counts = array("q")
    for text, end, count in _joined(work, lines, dialect, name=name):
        texts.append(text)
        ends.append(end)
        counts.append(count)
    return Records(texts, bytes(ends), counts)


def _joined(
    work: bytes, lines: Lines, dialect: Dialect, *, name: str
) -> Iterator[tuple[bytes, int, int]]:
    quote, index, start, total = dialect.quote, 0, 0, len(lines.texts)
    while index < total:
        text, end, first = lines.texts[index], lines.ends[index], index
        if quote in text:
            stop = dialect.record_end(work, start)
            if stop < 0:
                raise _unclosed(name, first + 1)
            reach = start + len(text)
            while reach < stop:
                reach += lines.ends[index] + len(lines.texts[index + 1])
                index += 1
            text, end = work[start:reach], lines.ends[index]
        yield text, end, index - first + 1
        start += len(text) + end
        index += 1


def _unclosed(name: str, line: int) -> ExecutorError:
    return ExecutorError(
        "csv.unclosed_quote",
        "a quote opens a field in this record and is never closed",
        place=f"{name}, line {line}",
        remedy="Look at that line; if the file does not use quotes, "
        + under(source_table(name), 'quote = ""', verb="set"),
    )
