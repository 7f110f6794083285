"""The encoding is chosen once, by the stated order, and its reason is kept."""

from __future__ import annotations

import pytest

from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.text import snapshot_text

META = b'<meta charset="iso-8859-1">'
EQUIV = b"<meta http-equiv=Content-Type content='text/html; charset=windows-1251'>"
CHOICES = {
    "mark beats all": (b"\xef\xbb\xbf" + META + b"\xc3\xa9", "latin1", "utf-8", "é"),
    "utf-16 mark": (b"\xff\xfe" + "é€🚚".encode("utf-16-le"), None, "utf-16le", "é€🚚"),
    "utf-16 big": (b"\xfe\xff" + "é".encode("utf-16-be"), None, "utf-16be", "é"),
    "declared beats meta": (META + b"\xc3\xa9", "UTF-8", "utf-8", "é"),
    "meta": (META + b"5 \xd6re", None, "windows-1252", "5 Öre"),
    "http-equiv": (EQUIV + b"\xc4\xe0", None, "windows-1251", "Да"),
    "meta in a comment": (b"<!--" + META + b"-->\xc3\xa9", None, "utf-8", "é"),
    "meta beyond the prescan": (b" " * 1100 + META + b"\xc3\xa9", None, "utf-8", "é"),
    "meta unknown": (b"<meta charset=klingon>\xc3\xa9", None, "utf-8", "é"),
    "meta says utf-16": (b"<meta charset=utf-16>\xc3\xa9", None, "utf-8", "é"),
    "valid utf-8": (b"\xc3\xa9", None, "utf-8", "é"),
    "neither": (b"\xe9\x80\x81\xe9", None, "windows-1252", "é€\x81é"),
}


@pytest.mark.parametrize("name", list(CHOICES))
def test_order_of_choice(name: str) -> None:
    raw, charset, encoding, text = CHOICES[name]
    snapshot = snapshot_text(raw, media="text/html", charset=charset)
    assert (snapshot.encoding, snapshot.text) == (encoding, text)
    assert snapshot.encoding_reason


def test_a_charset_parameter_counts_as_declared() -> None:
    snapshot = snapshot_text(b"\xe9", media='text/plain; charset="latin1"', charset=None)
    assert (snapshot.text, snapshot.encoding_reason) == ("é", "declared charset latin1")


def test_plain_text_has_no_meta() -> None:
    snapshot = snapshot_text(META + b"\xc3\xa9", media="text/plain", charset=None)
    assert snapshot.encoding == "utf-8"


@pytest.mark.parametrize(
    ("label", "code"),
    [("klingon", "text.charset_unknown"), ("Shift_JIS", "text.charset_unsupported")],
)
def test_charsets_that_cannot_be_used_are_refused(label: str, code: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        snapshot_text(b"x", media="text/plain", charset=label)
    assert caught.value.code == code


def test_undecodable_bytes_become_one_mark_each_run_and_keep_their_place() -> None:
    raw = b"a\xffb\xe2\x82c\xf0\x9f"
    snapshot = snapshot_text(raw, media="text/plain", charset="utf-8")
    assert snapshot.text == raw.decode("utf-8", errors="replace") == "a\ufffdb\ufffdc\ufffd"
    bad = [s for s in snapshot.segments if s.kind == "undecodable"]
    assert [raw[s.b0 : s.b1] for s in bad] == [b"\xff", b"\xe2\x82", b"\xf0\x9f"]


@pytest.mark.parametrize(
    "label", ["iso-8859-2", "koi8-r", "windows-1250", "windows-1253", "latin9"]
)
def test_single_byte_encodings_agree_with_the_codec(label: str) -> None:
    raw = bytes(byte for byte in range(0x20, 0x100) if byte != 0x0D)
    snapshot = snapshot_text(raw, media="text/plain", charset=label)
    codec = {"latin9": "iso8859-15"}.get(label, label)
    assert snapshot.text == raw.decode(codec, errors="replace")
    assert snapshot.byte_ranges(5, 9) == ((5, 9),)
