"""Turn the tokens of a simple HTML page into visible text, hidden text and their map (TXT/1).

Source: notes on TXT/1. Blocks are parted by one LF, cells by TAB; ASCII white space collapses
outside pre; nothing is normalised; hidden elements go to a stream of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal

from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.text_encoding import BAD_CLASS, REPLACEMENT
from tieout.artifacts.text_tokens import Token, Tokenizer

Kind = Literal["identity", "reference", "space", "separator", "undecodable", "mark"]

OPEN_ELEMENTS_MAX: Final = 1024
_DROPPED: Final = frozenset({"script", "style", "template", "iframe", "noembed", "noframes"})
_VOID: Final = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input",
    "link", "meta", "param", "source", "track", "wbr", "keygen",
})  # fmt: skip
_BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd",
    "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer",
    "form", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hgroup", "hr",
    "html", "legend", "li", "listing", "main", "menu", "nav", "ol", "optgroup", "option", "p",
    "plaintext", "pre", "search", "section", "summary", "table", "tbody", "tfoot", "thead",
    "title", "tr", "ul", "xmp",
})  # fmt: skip
_CELLS: Final = frozenset({"td", "th"})
_PREFORMATTED: Final = frozenset({"pre", "listing", "plaintext", "xmp", "textarea"})
_FOREIGN: Final = frozenset({"svg", "math"})
# Start tags that end an open p, and elements a new sibling ends (WHATWG, optional end tags).
_ENDS_P: Final = _BLOCKS - frozenset(
    {
        "body",
        "br",
        "head",
        "html",
        "title",
        "option",
        "optgroup",
        "caption",
        "tbody",
        "tfoot",
        "thead",
        "tr",
        "legend",
    }
)
_ENDS: Final = {
    "li": ("li",), "dt": ("dt", "dd"), "dd": ("dt", "dd"), "option": ("option",),
    "optgroup": ("option", "optgroup"), "td": ("td", "th"), "th": ("td", "th"),
    "tr": ("td", "th", "tr"), "tbody": ("td", "th", "tr", "tbody", "thead", "tfoot"),
    "tfoot": ("td", "th", "tr", "tbody", "thead", "tfoot"),
    "thead": ("td", "th", "tr", "tbody", "thead", "tfoot"), "body": ("head",),
}  # fmt: skip
_ROW_PARTS: Final = frozenset({"td", "th", "tr", "tbody", "tfoot", "thead"})
_BARRIERS: Final = frozenset({"table", "template", "html", "svg", "math"})
_END_BARRIERS: Final = frozenset({"td", "th", "table", "caption", "template"})
_LIST_BARRIERS: Final = _BARRIERS | {"td", "th", "caption", "ul", "ol", "dl", "select", "object"}
_P_BARRIERS: Final = _BARRIERS | {"td", "th", "caption", "button", "object", "marquee"}

_RUN: Final = re.compile(rf"[^\t\n\f\r \0{BAD_CLASS}]+(?: [^\t\n\f\r \0{BAD_CLASS}]+)*")
_PRE_PIECE: Final = re.compile(rf"\r\n?|\0+|[{BAD_CLASS}]|[^\r\0{BAD_CLASS}]+")
_GAP_PIECE: Final = re.compile(rf"[\t\n\f\r ]+|[{BAD_CLASS}]")
_CSS: Final = re.compile(r"(?:^|;)\s*(display|visibility)\s*:\s*([a-z-]+)")


@dataclass(slots=True)
class Piece:
    """Text characters [t0, t1) standing for page characters [u0, u1)."""

    t0: int
    t1: int
    u0: int
    u1: int
    kind: Kind


@dataclass(slots=True)
class Stream:
    """One growing text with its map; separators wait until something follows them."""

    parts: list[str] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    size: int = 0
    _row: bool = False
    _line: bool = False
    _tabs: int = 0
    _space: tuple[int, int] | None = None
    _plain: bool = False
    _mark: tuple[int, int] | None = None
    _cells: list[int] = field(default_factory=lambda: [0])

    def text(self) -> str:
        return "".join(self.parts)

    def block(self) -> None:
        """A block begins or ends here."""
        self._line = True
        self._mark = None

    def row(self) -> None:
        """A table row begins here."""
        self._row, self._tabs, self._mark = True, 0, None
        self._cells[-1] = 0

    def cell(self) -> None:
        """A cell begins here; an empty cell keeps its TAB."""
        self._cells[-1] += 1
        self._space = self._mark = None
        if self._cells[-1] > 1:
            self._tabs += 1
            self._line = False

    def table(self, *, opens: bool) -> None:
        if opens:
            self._cells.append(0)
        elif len(self._cells) > 1:
            self._cells.pop()
            self._row = False
        self.block()

    def white(self, u0: int, u1: int, *, plain: bool) -> None:
        """White space that collapses into one space if text stands on both sides of it.

        plain: it is one space in the page too.
        """
        if self._space is None:
            self._space = (u0, u1)
            self._plain = plain

    def superscript(self, u0: int, u1: int) -> None:
        """A sup tag; it becomes a mark when it follows a word or figure directly."""
        apart = self._row or self._line or self._tabs or self._space
        if self.size and not apart and not self.parts[-1][-1].isspace():
            self._mark = (u0, u1)

    def end_superscript(self) -> None:
        self._mark = None

    def put(self, kind: Kind, u0: int, u1: int, text: str) -> None:
        """Append characters that count, after the separators that were waiting for them."""
        self._flush(u0)
        self._append(kind, u0, u1, text)

    def _flush(self, u0: int) -> None:
        if self._row or self._line or self._tabs:
            breaks = "\n" if self._row or not self._tabs else ""
            separator = breaks + "\t" * self._tabs
            if self.size:  # no text begins with a separator
                self._append("separator", u0, u0, separator)
        elif self._mark is not None:
            self._append("mark", *self._mark, "^")
        elif self._space is not None and self.size:
            self._append("identity" if self._plain else "space", *self._space, " ")
        self._row = self._line = False
        self._tabs = 0
        self._space = self._mark = None

    def _append(self, kind: Kind, u0: int, u1: int, text: str) -> None:
        start, self.size = self.size, self.size + len(text)
        self.parts.append(text)
        last = self.pieces[-1] if self.pieces else None
        if last and kind == last.kind == "identity" and last.u1 == u0:
            last.t1, last.u1 = self.size, u1
        else:
            self.pieces.append(Piece(start, self.size, u0, u1, kind))


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says: its visible and its hidden stream, and its title."""

    visible: Stream
    hidden: Stream
    title: str


@dataclass(frozen=True, slots=True)
class _Open:
    name: str
    hidden: bool
    dropped: bool


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokenizer = Tokenizer(text)
        self._visible, self._hidden = Stream(), Stream()
        self._stack: list[_Open] = []
        self._counts: Counter[str] = Counter()
        self._hidden_depth = self._dropped_depth = self._foreign_depth = self._pre_depth = 0
        self._title: tuple[int, int] | None = None
        self._skip_newline_at = -1

    def read(self) -> Page:
        for token in self._tokenizer.tokens():
            if token.kind == "start":
                self._start(token)
            elif token.kind == "end":
                self._end(token)
            elif not self._dropped_depth:
                self._characters(token)
        title = "" if self._title is None else self._visible.text()[slice(*self._title)]
        return Page(self._visible, self._hidden, title.strip("\n\t "))

    def _stream(self) -> Stream:
        return self._hidden if self._hidden_depth else self._visible

    def _start(self, token: Token) -> None:
        name = token.name
        self._close_implied(name)
        stream = self._stream()
        if name in _CELLS:
            stream.cell()
        elif name == "tr":
            stream.row()
        elif name == "table":
            stream.table(opens=True)
        elif name in _BLOCKS:
            stream.block()
        elif name == "sup":
            stream.superscript(token.start, token.end)
        if name in _VOID or (self._foreign_depth and token.self_closing):
            return
        self._push(token)
        if name == "title" and self._title is None and not self._foreign_depth:
            self._title = (self._visible.size, self._visible.size)
        if name in {"pre", "listing", "textarea"}:
            self._skip_newline_at = token.end

    def _push(self, token: Token) -> None:
        if len(self._stack) >= OPEN_ELEMENTS_MAX:
            raise ArtifactError(
                "text.too_deep",
                f"more than {OPEN_ELEMENTS_MAX} elements are open at character {token.start}",
                remedy="Save the page as plain text, or repair its unclosed tags.",
            )
        name = token.name
        foreign_extra = bool(self._foreign_depth) and name in {"title", "desc", "metadata"}
        entry = _Open(name, _is_hidden(token) or foreign_extra, name in _DROPPED)
        self._stack.append(entry)
        self._counts[name] += 1
        if entry.hidden:
            self._hidden_depth += 1
            self._hidden.block()
        self._dropped_depth += entry.dropped
        self._pre_depth += name in _PREFORMATTED
        self._foreign_depth += name in _FOREIGN
        self._tokenizer.foreign = self._foreign_depth > 0

    def _pop(self) -> _Open:
        entry = self._stack.pop()
        name = entry.name
        self._counts[name] -= 1
        stream = self._stream()
        if name == "table":
            stream.table(opens=False)
        elif name in _BLOCKS:
            stream.block()
        elif name == "sup":
            stream.end_superscript()
        if name == "title" and self._title is not None and self._title[0] == self._title[1]:
            self._title = (self._title[0], self._visible.size)
        self._hidden_depth -= entry.hidden
        self._dropped_depth -= entry.dropped
        self._pre_depth -= name in _PREFORMATTED
        self._foreign_depth -= name in _FOREIGN
        self._tokenizer.foreign = self._foreign_depth > 0
        return entry

    def _close_implied(self, name: str) -> None:
        if self._foreign_depth:
            return
        if name in _ENDS_P and self._counts["p"]:
            self._close(("p",), _P_BARRIERS)
        if name in _ENDS:
            names = _ENDS[name]
            barriers = _BARRIERS if name in _ROW_PARTS else _LIST_BARRIERS
            self._close(names, barriers)

    def _close(self, names: tuple[str, ...], barriers: frozenset[str]) -> None:
        """End the outermost open element of these names that stands within the barriers."""
        if not any(self._counts[name] for name in names):
            return
        found = -1
        for at in range(len(self._stack) - 1, -1, -1):
            name = self._stack[at].name
            if name in names:
                found = at
            elif name in barriers:
                break
        while found >= 0 and len(self._stack) > found:
            self._pop()

    def _end(self, token: Token) -> None:
        name = token.name
        if name in {"body", "html"}:
            return  # what follows still belongs to the page
        if self._counts[name]:
            barriers = _end_barriers(name)
            for at in range(len(self._stack) - 1, -1, -1):
                if self._stack[at].name == name:
                    while len(self._stack) > at:
                        self._pop()
                    return
                if self._stack[at].name in barriers:
                    break
        if name in _BLOCKS:
            self._stream().block()

    def _characters(self, token: Token) -> None:
        stream = self._stream()
        text, at = token.text, token.start
        if token.kind == "reference":
            if self._pre_depth or text.strip("\t\n\f\r "):
                stream.put("reference", at, token.end, text)
            else:
                stream.white(at, token.end, plain=False)
            return
        if at == self._skip_newline_at:
            newline = re.match(r"\r\n?|\n", text)
            cut = newline.end() if newline else 0
            text, at = text[cut:], at + cut
        if self._pre_depth:
            _preformatted(stream, text, at)
        else:
            _collapsed(stream, text, at)


def _end_barriers(name: str) -> frozenset[str]:
    """What an end tag cannot reach past; one of an inline element ends no block (WHATWG)."""
    if name in _BARRIERS or name in _ROW_PARTS:
        return frozenset()
    return _END_BARRIERS if name in _BLOCKS else _END_BARRIERS | _BLOCKS


def _collapsed(stream: Stream, text: str, base: int) -> None:
    done = 0
    for match in _RUN.finditer(text):
        _gap(stream, text[done : match.start()], base + done)
        stream.put("identity", base + match.start(), base + match.end(), match.group())
        done = match.end()
    _gap(stream, text[done:], base + done)


def _gap(stream: Stream, text: str, base: int) -> None:
    """White space, dropped NULs and undecodable bytes between the runs."""
    for match in _GAP_PIECE.finditer(text):
        u0, u1 = base + match.start(), base + match.end()
        if match.group()[0] in "\t\n\f\r ":
            stream.white(u0, u1, plain=match.group() == " ")
        else:
            stream.put("undecodable", u0, u1, REPLACEMENT)


def _preformatted(stream: Stream, text: str, base: int) -> None:
    for match in _PRE_PIECE.finditer(text):
        u0, u1, piece = base + match.start(), base + match.end(), match.group()
        if piece[0] == "\r":
            stream.put("space", u0, u1, "\n")
        elif "\udc81" <= piece[0] <= "\udc87":
            stream.put("undecodable", u0, u1, REPLACEMENT)
        elif piece[0] != "\0":
            stream.put("identity", u0, u1, piece)


def _is_hidden(token: Token) -> bool:
    """Hidden by its own tag; what a style sheet hides cannot be seen from here."""
    if "hidden" in token.attributes:
        return True
    styles = dict(_CSS.findall(token.attributes.get("style", "").lower()))
    return styles.get("display") == "none" or styles.get("visibility") in {"hidden", "collapse"}


def read_page(text: str) -> Page:
    """Read the characters of a page; places in the result count these characters.

    Raises ArtifactError `text.too_deep`.
    """
    return _Reader(text).read()
