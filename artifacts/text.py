"""Text snapshot: visible text T of captured bytes and the exact way back to them (TXT/1).

T counts Unicode code points from 0; ranges are half open. T as UTF-8 is the text artifact, all
else is the map artifact. Nothing in T is normalised: what is read is what was captured.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tieout.artifacts.errors import ArtifactError, Exit
from tieout.artifacts.text_encoding import (
    BAD_CLASS,
    REPLACEMENT,
    Decoded,
    decode_body,
    encoded_length,
)
from tieout.artifacts.text_html import Kind, Piece, read_page

ALGORITHM: Final = "TXT/1"
TEXT_MEDIA: Final = "text/plain; charset=utf-8"
MAP_MEDIA: Final = "application/vnd.tieout.textmap+json"
PLAIN: Final = "text/plain"
HTML: Final = "text/html"
_HTML_NAMES: Final = frozenset({HTML, "application/xhtml+xml"})
_KINDS: Final[tuple[Kind, ...]] = (
    "identity", "reference", "space", "separator", "undecodable", "mark",
)  # fmt: skip
_PLAIN_PIECE: Final = re.compile(rf"\r\n?|[{BAD_CLASS}]|[^\r{BAD_CLASS}]+")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_CHARSET_PARAMETER: Final = re.compile(r""";\s*charset\s*=\s*"?([^\s;"]+)""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Segment:
    """Code points [t0, t1) of a text stand for bytes [b0, b1) of the raw artifact.

    Only an identity segment can be cut inside; the others stand for their bytes as a whole, a
    separator for none (b0 = b1).
    """

    t0: int
    t1: int
    b0: int
    b1: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class TextSnapshot:
    """The text of one captured document.

    encoding_reason: why this encoding was chosen. hidden: text of hidden elements with its own
    map. title: of the page, "" when it has none; it is also the first block of T.
    """

    algorithm: str
    media: str
    encoding: str
    encoding_reason: str
    text: str
    segments: tuple[Segment, ...]
    hidden: str
    title: str
    hidden_segments: tuple[Segment, ...] = ()

    def text_bytes(self) -> bytes:
        """The text artifact: T as UTF-8. Citations name its address."""
        return self.text.encode("utf-8")

    def map_bytes(self) -> bytes:
        """The map artifact: everything else, as canonical JSON (sorted keys, no white space)."""
        document = {
            "algorithm": self.algorithm,
            "encoding": self.encoding,
            "encoding_reason": self.encoding_reason,
            "hidden": self.hidden,
            "hidden_segments": list(_deltas(self.hidden_segments)),
            "media": self.media,
            "segments": list(_deltas(self.segments)),
            "title": self.title,
        }
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        return text.encode("utf-8")

    @classmethod
    def load(cls, text_bytes: bytes, map_bytes: bytes) -> TextSnapshot:
        """The snapshot of its two artifacts; ArtifactError `textmap.malformed` when they differ."""
        try:
            text = text_bytes.decode("utf-8")
            document = _MapDocument.model_validate_json(map_bytes)
        except (UnicodeDecodeError, ValidationError) as error:
            raise _malformed(
                "it is not the JSON of a text map, or the text is not UTF-8"
            ) from error
        snapshot = cls(
            algorithm=document.algorithm,
            media=document.media,
            encoding=document.encoding,
            encoding_reason=document.encoding_reason,
            text=text,
            segments=_from_deltas(document.segments, len(text)),
            hidden=document.hidden,
            title=document.title,
            hidden_segments=_from_deltas(document.hidden_segments, len(document.hidden)),
        )
        if snapshot.map_bytes() != map_bytes:
            raise _malformed("it is not in canonical form")
        return snapshot

    def byte_ranges(self, start: int, end: int) -> tuple[tuple[int, int], ...]:
        """Bytes of the raw artifact that T[start:end] stands for, merged, in order.

        Raises ArtifactError `text.out_of_range`.
        """
        self._check(start, end)
        ranges: list[tuple[int, int]] = []
        first = bisect_right(self.segments, start, key=lambda segment: segment.t1)
        for segment in self.segments[first:]:
            if segment.t0 >= end:
                break
            low, high = self._bytes_within(segment, start, end)
            if low == high:
                continue
            if ranges and ranges[-1][1] == low:
                ranges[-1] = (ranges[-1][0], high)
            else:
                ranges.append((low, high))
        return tuple(ranges)

    def line(self, offset: int) -> int:
        """Line of T (from 1) on which code point `offset` stands."""
        self._check(offset, offset)
        return self.text.count("\n", 0, offset) + 1

    def raw_line(self, offset: int, *, raw: bytes) -> int:
        """Line of the captured file (from 1) on which code point `offset` of T stands."""
        self._check(offset, offset)
        at = bisect_right(self.segments, offset, key=lambda segment: segment.t1)
        if at < len(self.segments):
            byte = self._bytes_within(self.segments[at], offset, len(self.text))[0]
        else:
            byte = self.segments[-1].b1 if self.segments else 0
        codec = self.encoding if self.encoding.startswith("utf-16") else "latin-1"
        return len(_LINE_END.findall(raw[:byte].decode(codec, errors="replace"))) + 1

    def _bytes_within(self, segment: Segment, start: int, end: int) -> tuple[int, int]:
        if segment.kind != "identity":
            return segment.b0, segment.b1
        low, high = max(start, segment.t0), min(end, segment.t1)
        begin = segment.b0 + encoded_length(self.text[segment.t0 : low], self.encoding)
        return begin, begin + encoded_length(self.text[low:high], self.encoding)

    def _check(self, start: int, end: int) -> None:
        if not 0 <= start <= end <= len(self.text):
            raise ArtifactError(
                "text.out_of_range",
                f"{start} to {end} is not a range of a text of {len(self.text)} code points",
                remedy="Offsets are code points of T, from 0, the end not included.",
            )


def snapshot_text(raw: bytes, *, media: str, charset: str | None) -> TextSnapshot:
    """The text snapshot of captured bytes.

    media: "text/plain" or "text/html", parameters allowed. charset: the declared label; without
    one, a charset parameter of `media` counts as declared. Raises ArtifactError
    `text.media_unsupported`, `text.charset_unknown`, `text.charset_unsupported`, `text.too_deep`.
    Source: notes on TXT/1.
    """
    parameter = _CHARSET_PARAMETER.search(media)
    name = media.split(";", maxsplit=1)[0].strip().lower()
    if name != PLAIN and name not in _HTML_NAMES:
        raise ArtifactError(
            "text.media_unsupported",
            f"text of the media type {name[:80]!r} cannot be read",
            remedy="Give plain text or HTML: text/plain, text/html.",
        )
    declared = charset if charset is not None else (parameter[1] if parameter else None)
    decoded = decode_body(raw, charset=declared, html=name != PLAIN)
    if name == PLAIN:
        visible = _plain(decoded.text)
        hidden: tuple[str, list[Piece]] = ("", [])
        title = ""
    else:
        page = read_page(decoded.text)
        visible = (page.visible.text(), page.visible.pieces)
        hidden, title = (page.hidden.text(), page.hidden.pieces), page.title
    return TextSnapshot(
        algorithm=ALGORITHM,
        media=PLAIN if name == PLAIN else HTML,
        encoding=decoded.encoding,
        encoding_reason=decoded.reason,
        text=visible[0],
        segments=_segments(decoded, visible[1]),
        hidden=hidden[0],
        title=title,
        hidden_segments=_segments(decoded, hidden[1]),
    )


def _plain(text: str) -> tuple[str, list[Piece]]:
    """Plain text: only line ends change, CRLF and CR to LF."""
    parts: list[str] = []
    pieces: list[Piece] = []
    size = 0
    for match in _PLAIN_PIECE.finditer(text):
        shown = match.group()
        kind: Kind = "identity"
        if shown[0] == "\r":
            shown, kind = "\n", "space"
        elif "\udc81" <= shown[0] <= "\udc87":
            shown, kind = REPLACEMENT, "undecodable"
        parts.append(shown)
        pieces.append(Piece(size, size + len(shown), match.start(), match.end(), kind))
        size += len(shown)
    return "".join(parts), pieces


def _segments(decoded: Decoded, pieces: Iterable[Piece]) -> tuple[Segment, ...]:
    segments = tuple(
        Segment(p.t0, p.t1, decoded.byte(p.u0), decoded.byte(p.u1), p.kind) for p in pieces
    )
    for before, after in pairwise(segments):
        if before.t1 != after.t0 or before.b1 > after.b0:
            raise AssertionError(f"the map goes back at {after}")
    return segments


class _MapDocument(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    algorithm: Literal["TXT/1"]
    encoding: str
    encoding_reason: str
    hidden: str
    hidden_segments: list[Annotated[int, Field(ge=0)]]
    media: Literal["text/plain", "text/html"]
    segments: list[Annotated[int, Field(ge=0)]]
    title: str


def _deltas(segments: Iterable[Segment]) -> Iterator[int]:
    """Four whole numbers per segment: kind, code points, bytes skipped before it, bytes."""
    byte = 0
    for segment in segments:
        yield _KINDS.index(segment.kind)
        yield segment.t1 - segment.t0
        yield segment.b0 - byte
        yield segment.b1 - segment.b0
        byte = segment.b1


def _from_deltas(numbers: list[int], size: int) -> tuple[Segment, ...]:
    if len(numbers) % 4 or any(kind >= len(_KINDS) for kind in numbers[::4]):
        raise _malformed("a segment is not four whole numbers with a known kind")
    text = byte = 0
    segments = []
    for at in range(0, len(numbers), 4):
        kind, length, skipped, width = numbers[at : at + 4]
        start, first = text, byte + skipped
        text, byte = start + length, first + width
        segments.append(Segment(start, text, first, byte, _KINDS[kind]))
    if text != size:
        raise _malformed(f"its segments cover {text} of {size} code points")
    return tuple(segments)


def _malformed(why: str) -> ArtifactError:
    return ArtifactError(
        "textmap.malformed",
        f"the map does not belong to the text: {why}",
        remedy="Snapshot the raw document again; the store may have been altered.",
        exit_code=Exit.DOES_NOT_HOLD,
    )
