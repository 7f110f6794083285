"""Choose the encoding of captured bytes once, with its reason, and decode them with a byte map.

Order (WHATWG, notes on TXT/1): byte order mark, declared charset, meta declaration within the
first 1,024 bytes, valid UTF-8, windows-1252.
"""

from __future__ import annotations

import codecs
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from tieout.artifacts.errors import ArtifactError

PRESCAN_BYTES: Final = 1024
REPLACEMENT: Final = "\ufffd"
# While decoding, a run of n undecodable bytes (n is 1 to 7) stands as this code point plus n.
# Decoders never yield lone surrogates, so the stand-in cannot collide with text.
_BAD_BASE: Final = 0xDC80
_BAD_BYTES_MAX: Final = 7
BAD_CLASS: Final = "\udc81-\udc87"

_UNICODE: Final = ("utf-8", "utf-16le", "utf-16be")
_SINGLE_BYTE: Final = {
    "windows-1252": (
        "cp1252",
        "l1 latin1 iso-8859-1 iso8859-1 iso88591 ascii us-ascii cp819 ibm819 cp1252 x-cp1252",
    ),
    "iso-8859-2": ("iso8859-2", "latin2 l2 iso8859-2 iso88592 iso_8859-2"),
    "iso-8859-5": ("iso8859-5", "cyrillic iso8859-5 iso88595"),
    "iso-8859-7": ("iso8859-7", "greek greek8 iso8859-7 iso88597"),
    "iso-8859-15": ("iso8859-15", "latin9 l9 iso8859-15 iso885915"),
    "koi8-r": ("koi8-r", "koi koi8 koi8_r"),
    "windows-1250": ("cp1250", "cp1250 x-cp1250"),
    "windows-1251": ("cp1251", "cp1251 x-cp1251"),
    "windows-1253": ("cp1253", "cp1253 x-cp1253"),
    "windows-1254": ("cp1254", "cp1254 x-cp1254 latin5 l5 iso-8859-9 iso8859-9"),
    "windows-1257": ("cp1257", "cp1257 x-cp1257"),
}
_MULTI_BYTE: Final = frozenset({
    "shift_jis", "shift-jis", "sjis", "ms_kanji", "windows-31j", "x-sjis", "euc-jp",
    "iso-2022-jp", "gbk", "gb2312", "gb18030", "x-gbk", "big5", "big5-hkscs", "x-x-big5", "euc-kr",
    "ks_c_5601-1987", "windows-949",
})  # fmt: skip
_LABELS: Final = {
    **{name: name for name in _SINGLE_BYTE},
    **{label: name for name, (_, labels) in _SINGLE_BYTE.items() for label in labels.split()},
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "unicode-1-1-utf-8": "utf-8",
    "utf-16": "utf-16le",
    "utf-16le": "utf-16le",
    "utf-16be": "utf-16be",
}
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))

_COMMENT: Final = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META: Final = re.compile(rb"<meta[\s/]([^>]*)", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(
    rb"""([^\s/>=]+)\s*(?:=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+)))?""",
)
_CONTENT_CHARSET: Final = re.compile(rb"""charset\s*=\s*["']?\s*([^\s;"']+)""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Characters of a body and where each stands in its bytes.

    text: one character per code point; a run of undecodable bytes is one stand-in of BAD_CLASS.
    skipped: bytes of the byte order mark before the first character.
    """

    text: str
    encoding: str
    reason: str
    skipped: int
    _offsets: Sequence[int] | None

    def byte(self, index: int) -> int:
        """Offset in the raw bytes at which character `index` begins (or the text ends)."""
        return self.skipped + (index if self._offsets is None else self._offsets[index])


def encoded_length(text: str, encoding: str) -> int:
    """Bytes that this decodable text takes in one of the encodings of `Decoded`."""
    if encoding == "utf-8":
        return len(text.encode("utf-8"))
    if encoding.startswith("utf-16"):
        return len(text.encode("utf-16-le"))
    return len(text)


def decode_body(raw: bytes, *, charset: str | None, html: bool) -> Decoded:
    """Decode captured bytes.

    charset: label declared by the server or the catalog, or None.
    Raises ArtifactError `text.charset_unknown`, `text.charset_unsupported`.
    """
    encoding, reason, skipped = _choose(raw, charset=charset, html=html)
    body = raw[skipped:]
    if encoding in _SINGLE_BYTE:
        return Decoded(_single_byte(body, encoding), encoding, reason, skipped, None)
    if encoding == "utf-8":
        text = body.decode("utf-8", errors=_HANDLER)
        widths = None if text.isascii() else [_utf8_width(char) for char in text]
    else:
        text = body.decode(encoding, errors=_HANDLER)
        widths = [_utf16_width(char) for char in text]
    offsets = None if widths is None else array("Q", accumulate(widths, initial=0))
    if offsets is not None and offsets[-1] != len(body):
        raise AssertionError(f"{encoding}: the map ends at {offsets[-1]} of {len(body)} bytes")
    return Decoded(text, encoding, reason, skipped, offsets)


def _choose(raw: bytes, *, charset: str | None, html: bool) -> tuple[str, str, int]:
    for mark, encoding in _BOMS:
        if raw.startswith(mark):
            return encoding, "byte order mark", len(mark)
    if charset is not None and charset.strip():
        declared = _known(charset)
        if declared is None:
            raise ArtifactError(
                "text.charset_unknown",
                f"the declared charset {charset[:40]!r} is not one we know",
                remedy="Declare utf-8, windows-1252 or another WHATWG label, or declare none.",
            )
        return declared, f"declared charset {charset.strip().lower()}", 0
    label = _meta_label(raw[:PRESCAN_BYTES]) if html else None
    if label is not None:
        named = _known(label)
        if named is not None:
            # A page whose meta could be read as ASCII is not UTF-16, whatever it says (WHATWG).
            named = "utf-8" if named.startswith("utf-16") else named
            return named, f"meta charset {label.lower()}", 0
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return "windows-1252", "not valid UTF-8 and nothing declared", 0
    return "utf-8", "valid UTF-8 and nothing declared", 0


def _known(label: str) -> str | None:
    wanted = label.strip().lower()
    if wanted in _MULTI_BYTE:
        raise ArtifactError(
            "text.charset_unsupported",
            f"the charset {wanted!r} is known but cannot be mapped to bytes yet",
            remedy="Capture the document as UTF-8, or convert it and keep both files.",
        )
    return _LABELS.get(wanted)


def _meta_label(head: bytes) -> str | None:
    for match in _META.finditer(_COMMENT.sub(b"", head)):
        attributes: dict[bytes, bytes] = {}
        for name, *values in _ATTRIBUTE.findall(match.group(1)):
            attributes.setdefault(name.lower(), b"".join(values))
        label = attributes.get(b"charset")
        if label is None and attributes.get(b"http-equiv", b"").lower() == b"content-type":
            content = _CONTENT_CHARSET.search(attributes.get(b"content", b""))
            label = content.group(1) if content else None
        if label is not None:
            return label.decode("ascii", errors="replace").strip()
    return None


def _undecodable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    length = error.end - error.start
    marks = [_BAD_BYTES_MAX] * (length // _BAD_BYTES_MAX)
    if length % _BAD_BYTES_MAX:
        marks.append(length % _BAD_BYTES_MAX)
    return "".join(chr(_BAD_BASE + count) for count in marks), error.end


_HANDLER: Final = "tieout.undecodable"
codecs.register_error(_HANDLER, _undecodable)


def _utf8_width(char: str) -> int:
    point = ord(char)
    if point < 0x80:
        return 1
    if point < 0x800:
        return 2
    if _BAD_BASE < point <= _BAD_BASE + _BAD_BYTES_MAX:
        return point - _BAD_BASE
    return 3 if point < 0x10000 else 4


def _utf16_width(char: str) -> int:
    point = ord(char)
    if _BAD_BASE < point <= _BAD_BASE + _BAD_BYTES_MAX:
        return point - _BAD_BASE
    return 2 if point < 0x10000 else 4


def _single_byte(body: bytes, encoding: str) -> str:
    codec = _SINGLE_BYTE[encoding][0]
    table = []
    for byte in range(256):
        char = bytes([byte]).decode(codec, errors=_HANDLER)
        # WHATWG: the holes of windows-1252 are the C1 controls, not undecodable.
        table.append(chr(byte) if encoding == "windows-1252" and char == "\udc81" else char)
    return body.decode("latin-1").translate(table)
