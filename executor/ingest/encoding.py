"""Bytes as received to UTF-8 text, and lengths in that text back to lengths in the bytes."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from tieout.executor.errors import ExecutorError, Exit
from tieout.executor.ingest.declaration import source_table, under

UTF16 = frozenset({"utf-16-le", "utf-16-be"})
# Each maps every byte to one character and ASCII to itself, so that a length in characters is
# a length in bytes.
SINGLE_BYTE = frozenset(
    {"ascii", "mac-roman", "koi8-r", "koi8-u", "cp437", "cp850", "cp852", "cp858", "cp866"}
    | {f"cp{page}" for page in range(1250, 1259)}
    | {f"iso8859-{part}" for part in (1, 2, 3, 4, 5, 7, 9, 10, 13, 14, 15, 16)}
)
FALLBACK = "cp1252"
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of a file.

    work: the whole text as UTF-8, without byte order mark. encoding: of the file.
    mark_bytes: length of the byte order mark, 0 without one. reason: why this encoding.
    """

    work: bytes
    encoding: str
    mark_bytes: int
    reason: str

    def raw_length(self, piece: bytes) -> int:
        """How many bytes of the file a piece of `work` takes."""
        if self.encoding == "utf-8":
            return len(piece)
        width = 2 if self.encoding in UTF16 else 1
        if piece.isascii():
            return len(piece) * width
        text = piece.decode("utf-8")
        return len(text) if width == 1 else len(text.encode(self.encoding))


def decode(raw: bytes, *, declared: str | None, name: str) -> SourceText:
    """The text of `raw`: declared encoding, else byte order mark, else UTF-8, else Windows-1252.

    Raises ExecutorError csv.encoding, csv.declaration (an encoding that is not admitted) and
    csv.nul_byte.
    """
    mark, marked = next(((m, e) for m, e in _MARKS if raw.startswith(m)), (b"", ""))
    if marked == "utf-32":
        raise _refusal(
            "the file is UTF-32",
            place=name,
            remedy="Ask the sender for UTF-8, or convert it and keep both files.",
        )
    if declared is not None:
        text = _declared(raw, declared, mark=mark, marked=marked, name=name)
    elif mark:
        work = _strict(raw[len(mark) :], marked, skipped=len(mark), name=name)
        text = SourceText(work, marked, len(mark), "byte order mark")
    else:
        text = _guessed(raw, name=name)
    _refuse_nul(text, name=name)
    return text


def line_at(text: bytes, offset: int) -> int:
    """The physical line, from 1, of the byte at `offset`."""
    return len((text[:offset] + b".").splitlines())


def _declared(raw: bytes, declared: str, *, mark: bytes, marked: str, name: str) -> SourceText:
    encoding = _admitted(declared, marked=marked, name=name)
    if marked and marked != encoding:
        raise _refusal(
            f"{declared} is declared, but the file begins with the byte order mark of {marked}",
            place=f"{name}, byte 0",
            remedy="Take the line encoding = … out of the declaration of the source.",
        )
    work = _strict(raw[len(mark) :], encoding, skipped=len(mark), name=name)
    return SourceText(work, encoding, len(mark), "declared")


def _admitted(declared: str, *, marked: str, name: str) -> str:
    try:
        encoding = codecs.lookup(declared).name
    except LookupError as error:
        raise _not_admitted(declared, name=name) from error
    if encoding == "utf-16" and marked in UTF16:
        return marked
    if encoding == "utf-8-sig":
        return "utf-8"
    if encoding != "utf-8" and encoding not in UTF16 | SINGLE_BYTE:
        raise _not_admitted(declared, name=name)
    return encoding


def _not_admitted(declared: str, *, name: str) -> ExecutorError:
    return ExecutorError(
        "csv.declaration",
        f'encoding = "{declared}" is not one that is read',
        place=name,
        remedy="Choose utf-8, utf-16-le, utf-16-be or a one-byte encoding such as cp1252.",
        exit_code=Exit.USAGE,
    )


def _guessed(raw: bytes, *, name: str) -> SourceText:
    if raw.isascii():
        return SourceText(raw, "utf-8", 0, "only ASCII characters")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        place = f"line {line_at(raw, error.start)}, byte {error.start}"
        reason = f"{place}: 0x{raw[error.start]:02x} is not UTF-8, so Windows-1252"
    else:
        return SourceText(raw, "utf-8", 0, "the whole file is valid UTF-8")
    try:
        text = raw.decode(FALLBACK)
    except UnicodeDecodeError as error:
        raise _refusal(
            f"the file is neither UTF-8 nor {FALLBACK}: byte 0x{raw[error.start]:02x}",
            place=f"{name}, line {line_at(raw, error.start)}, byte {error.start}",
            remedy="Ask the sender for the encoding and declare it, such as "
            + under(source_table(name), 'encoding = "cp850"'),
        ) from error
    return SourceText(text.encode("utf-8"), FALLBACK, 0, reason)


def _strict(body: bytes, encoding: str, *, skipped: int, name: str) -> bytes:
    try:
        text = body.decode(encoding)
        return body if encoding == "utf-8" else text.encode("utf-8")
    except UnicodeDecodeError as error:
        before = body[: error.start].decode(encoding).encode("utf-8")
        shown = body[error.start : error.start + 1].hex()
        raise _refusal(
            f"byte 0x{shown} is not {encoding}",
            place=f"{name}, line {line_at(before, len(before))}, byte {skipped + error.start}",
            remedy="Declare the encoding of the file, such as "
            + under(source_table(name), 'encoding = "cp1252"', verb="set"),
        ) from error


def _refuse_nul(text: SourceText, *, name: str) -> None:
    found = text.work.find(b"\0")
    if found < 0:
        return
    offset = text.mark_bytes + text.raw_length(text.work[:found])
    raise ExecutorError(
        "csv.nul_byte",
        "the file contains a NUL character, so it is no text",
        place=f"{name}, line {line_at(text.work, found)}, byte {offset}",
        remedy="Ask the sender for a text file, or, if it is UTF-16 without a byte order mark, "
        + under(source_table(name), 'encoding = "utf-16-le"', verb="set"),
    )


def _refusal(message: str, *, place: str, remedy: str) -> ExecutorError:
    return ExecutorError("csv.encoding", message, place=place, remedy=remedy)
