"""Text snapshots: what T holds, and that every code point leads back to its bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.text import Segment, TextSnapshot, snapshot_text


def html(page: str, charset: str | None = None) -> TextSnapshot:
    return snapshot_text(page.encode("utf-8"), media="text/html", charset=charset)


def plain(raw: bytes, charset: str | None = None) -> TextSnapshot:
    return snapshot_text(raw, media="text/plain", charset=charset)


def decoded(raw: bytes, encoding: str) -> str:
    """Strictly, but windows-1252 has the C1 controls in its holes."""
    if encoding != "windows-1252":
        return raw.decode(encoding)
    holes = {0x81, 0x8D, 0x8F, 0x90, 0x9D}
    return "".join(chr(b) if b in holes else bytes([b]).decode("cp1252") for b in raw)


def faults(raw: bytes, text: str, segments: tuple[Segment, ...], encoding: str) -> Iterator[str]:
    """Everything the map promises, checked against the raw bytes."""
    text_at = byte_at = 0
    for segment in segments:
        part, cut = text[segment.t0 : segment.t1], raw[segment.b0 : segment.b1]
        if segment.t0 != text_at or segment.t1 <= segment.t0:
            yield f"not contiguous in T: {segment}"
        if segment.b0 < byte_at or segment.b1 > len(raw):
            yield f"goes back in the bytes: {segment}"
        text_at, byte_at = segment.t1, segment.b1
        if segment.kind == "identity" and decoded(cut, encoding) != part:
            yield f"identity differs: {segment} {part[:40]!r} {cut[:40]!r}"
        if segment.kind == "reference" and not cut.startswith(b"&"):
            yield f"not a reference: {segment} {cut!r}"
        if segment.kind == "space" and part not in (" ", "\n"):
            yield f"a space reads {part!r}"
        if segment.kind == "separator" and (cut or part.strip("\n\t")):
            yield f"a separator has bytes or text: {segment}"
        if segment.kind == "undecodable" and (part != "\ufffd" or not cut):
            yield f"undecodable reads {part!r}"
        if segment.kind == "mark" and (part != "^" or not cut.lower().startswith(b"<sup")):
            yield f"a mark reads {part!r} for {cut!r}"
    if text_at != len(text):
        yield f"the map ends at {text_at} of {len(text)}"


def assert_exact(raw: bytes, snapshot: TextSnapshot) -> None:
    assert list(faults(raw, snapshot.text, snapshot.segments, snapshot.encoding)) == []
    assert list(faults(raw, snapshot.hidden, snapshot.hidden_segments, snapshot.encoding)) == []
    assert TextSnapshot.load(snapshot.text_bytes(), snapshot.map_bytes()) == snapshot


PAGES = {
    "blocks": ("<h1>Net  sales</h1>\n<p>were <b>12</b>\n million.</p>", "Net sales\nwere 12 million."),
    "title first": ("<title> A  page </title><body>text", "A page\ntext"),
    "break": ("one<br>two<br/><br>three", "one\ntwo\nthree"),
    "cells": ("<table><tr><td>a</td></tr><tr><th>c</th></tr></table>", "a\nc"),
    "empty cells keep their tab": (
        "<table><tr><td>a</td><td></td><td>b</td><td></td></tr><tr><td></td><td>c</td></tr></table>",
        "a\t\tb\n\tc",
    ),
    "list in a cell": (
        "<table><tr><td>Mon</td><td><ul><li>10:00</li></ul></td></tr><tr><td>Tue</td></tr></table>",
        "Mon\t10:00\nTue",
    ),
    "table in a cell": (
        "<table><tr><td><table><tr><td>x</td><td>y</td></tr></table></td><td>z</td></tr></table>",
        "x\ty\tz",
    ),
    "unclosed cells": ("<table><tr><td>a<td>b<tr><td>c</table>d", "a\tb\nc\nd"),
    "pre": ("<pre>\nx  1\r\n y\r2</pre>z", "x  1\n y\n2\nz"),
    "script and style": ("a<script>b<!-- </script>c<style>d</style>e<template>f</template>g", "aceg"),
    "script in script": ("a<script><!--<script></script>x--></script>b", "ab"),
    "comments": ("a<!-- x > -->b<!-->c<!--->d<!doctype x>e<?php f ?>g", "abcdeg"),
    "references": ("5 &lt; 6 &amp;&nbsp;7&#x20AC;&#128;&notit;&bogus;", "5 < 6 &\u00a07€€¬it;&bogus;"),
    "superscript": ("<p>4,530<sup>1</sup> t in 2024<sup> 2</sup></p>", "4,530^1 t in 2024^2"),
    "superscript alone": ("<p><sup>1</sup> note</p><p>a <sup>2</sup></p>", "1 note\na 2"),
    "cents": ("<span>$</span>11<sup>99</sup>", "$11^99"),
    "empty superscript": ("a<sup> </sup>b<sup></sup>c", "a bc"),
    "nothing normalised": ("e\u0301 \u00ad\u200b\u00a0x", "e\u0301 \u00ad\u200b\u00a0x"),
    "not a tag": ("1 < 2 </ x>3 <4", "1 < 2 3 <4"),
    "tag cut off": ("a<p class='", "a"),
    "nul": ("a\0b", "ab"),
    "inline": ("3<i>r</i>/2 <b>not</b> 2<i>r</i>.", "3r/2 not 2r."),
    "paragraph in paragraph": ("<p>a<p>b</p>c", "a\nb\nc"),
    "foreign": ("<svg><title>t</title><text>x</text><![CDATA[y<z]]></svg>w", "xy<zw"),
    "cdata outside": ("a<![CDATA[b]]>c", "ac"),
    "textarea": ("<textarea>\n<b>x</b> </textarea>y", "<b>x</b> y"),
    "plaintext": ("a<plaintext>b<c>", "a\nb<c>"),
    "empty": ("", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", list(PAGES))
def test_visible_text(name: str) -> None:
    page, expected = PAGES[name]
    snapshot = html(page)
    assert snapshot.text == expected
    assert_exact(page.encode(), snapshot)


HIDDEN = {
    "attribute": ("<p hidden>x</p>y", "y", "x"),
    "display": ('<td><span style="color:red; DISPLAY : None">700</span>85%</td>', "85%", "700"),
    "visibility": ("<p style='visibility:hidden'>x<b>z</b></p>y", "y", "xz"),
    "last say": ("<p style='display:none;display:block'>x</p>y", "x\ny", ""),
    "not display": ("<p style='x-display:none'>x</p>", "x", ""),
    "implied end": ("<p hidden>x<p>y", "y", "x"),
    "nested": ("<div hidden>a<div>b</div>c</div>d", "d", "a\nb\nc"),
    "void": ("<input hidden>x<br hidden>y", "x\ny", ""),
    "row": ("<table><tr hidden><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "c", "a\tb"),
    "stray end": ("<div hidden>a</span>b</div>c", "c", "ab"),
    "inline end outside": ("<b><div hidden>a</b>b</div>c", "c", "ab"),
}


@pytest.mark.parametrize("name", list(HIDDEN))
def test_hidden_text_is_kept_apart(name: str) -> None:
    page, visible, hidden = HIDDEN[name]
    snapshot = html(page)
    assert (snapshot.text, snapshot.hidden) == (visible, hidden)
    assert_exact(page.encode(), snapshot)


def test_the_title_is_its_own_field_and_the_first_block() -> None:
    snapshot = html("<head><title>Q&amp;A </title></head><body><svg><title>i</title></svg>x")
    assert snapshot.title == "Q&A"
    assert snapshot.text.startswith("Q&A\n")


@given(
    st.lists(
        st.sampled_from(
            [
                "<p>",
                "</p>",
                "<td>",
                "<tr>",
                "<table>",
                "</table>",
                "<b>",
                "</b>",
                "<pre>",
                "</pre>",
                "<sup>",
                "</sup>",
                "<br>",
                "<!--x-->",
                "<script>y</script>",
                "<p/hidden>",
                "<i/style=display:none>",
                "</i>",
                "<title>",
                "</title>",
                "<svg>",
                "</svg>",
                "&amp;",
                "&nbsp;",
                "&#65;",
                "&",
                "<",
                ">",
                "'",
                '"',
                "€",
                "é",
                "é",
                "🚚",
                "12",
                "word",
                "\xa0",
                "\x00",
                "\r\n",
                "\r",
                "\n",
                "\t",
            ]
            + [" ", "  "]
        ),
        max_size=40,
    )
)
def test_any_page_maps_back_exactly(pieces: list[str]) -> None:
    raw = "".join(pieces).encode()
    snapshot = snapshot_text(raw, media="text/html", charset="utf-8")
    assert_exact(raw, snapshot)
    assert snapshot.text == snapshot.text.strip("\n") or "<pre>" in pieces or "&" in "".join(pieces)


@given(st.binary(max_size=80), st.sampled_from([None, "utf-8", "utf-16", "latin1", "koi8-r"]))
def test_any_bytes_map_back(raw: bytes, charset: str | None) -> None:
    for media in ("text/plain", "text/html"):
        snapshot = snapshot_text(raw, media=media, charset=charset)
        assert_exact(raw, snapshot)
        if media == "text/plain":
            covered = sum(high - low for low, high in snapshot.byte_ranges(0, len(snapshot.text)))
            marks = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
            skipped = next((len(mark) for mark in marks if raw.startswith(mark)), 0)
            assert covered == len(raw) - skipped


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), st.data())
def test_byte_ranges_of_any_part_of_plain_text(text: str, data: st.DataObject) -> None:
    raw = text.encode("utf-8")
    snapshot = plain(raw, "utf-8")
    start = data.draw(st.integers(0, len(snapshot.text)))
    end = data.draw(st.integers(start, len(snapshot.text)))
    cut = b"".join(raw[low:high] for low, high in snapshot.byte_ranges(start, end))
    assert cut.decode().replace("\r\n", "\n").replace("\r", "\n") == snapshot.text[start:end]


def test_byte_ranges_of_a_page_are_merged_and_leave_the_tags_out() -> None:
    page = "<p>\r\nNet: 5\r\nGross: <b>7</b>&nbsp;%</p>"
    snapshot = html(page)
    start = snapshot.text.index("Gross")
    ranges = snapshot.byte_ranges(start, len(snapshot.text))
    assert [page.encode()[low:high] for low, high in ranges] == [b"Gross: ", b"7", b"&nbsp;%"]
    assert snapshot.byte_ranges(3, 3) == ()


def test_a_separator_has_no_bytes() -> None:
    snapshot = html("<p>a</p><p>b</p>")
    assert snapshot.byte_ranges(1, 2) == ()
    assert snapshot.byte_ranges(0, 3) == ((3, 4), (11, 12))


@pytest.mark.parametrize("span", [(-1, 1), (2, 1), (0, 5)])
def test_a_range_outside_the_text_is_refused(span: tuple[int, int]) -> None:
    with pytest.raises(ArtifactError) as caught:
        plain(b"abcd\r").byte_ranges(*span) if span != (0, 5) else plain(b"abcd").byte_ranges(*span)
    assert caught.value.code == "text.out_of_range"


def test_lines_of_the_text_and_of_the_file() -> None:
    raw = b"<p>one\r\ntwo</p>\r<p>three</p>\nfour"
    snapshot = snapshot_text(raw, media="text/html", charset=None)
    assert snapshot.text == "one two\nthree\nfour"
    assert [snapshot.line(snapshot.text.index(w)) for w in ("one", "two", "three")] == [1, 1, 2]
    lines = [snapshot.raw_line(snapshot.text.index(w), raw=raw) for w in ("one", "two", "three")]
    assert lines == [1, 2, 3]
    assert snapshot.raw_line(len(snapshot.text), raw=raw) == 4
    wide = "a\r\nb\nc".encode("utf-16")
    assert plain(wide).raw_line(4, raw=wide) == 3


def test_the_artifacts_are_fixed_bytes() -> None:
    snapshot = html("<title>T</title><p>a &amp; <b>b</b><sup>1</sup><p hidden>h")
    assert snapshot.text_bytes() == b"T\na & b^1"
    assert snapshot.map_bytes() == (
        b'{"algorithm":"TXT/1","encoding":"utf-8",'
        b'"encoding_reason":"valid UTF-8 and nothing declared","hidden":"h",'
        b'"hidden_segments":[0,1,57,1],"media":"text/html",'
        b'"segments":[0,1,7,1,3,1,11,0,0,2,0,2,1,1,0,5,0,1,0,1,0,1,3,1,5,1,4,5,0,1,0,1],"title":"T"}'
    )


DAMAGE = {
    "not json": lambda m: b"{",
    "not canonical": lambda m: m + b"\n",
    "extra field": lambda m: json.dumps({**json.loads(m), "x": 1}).encode(),
    "unknown kind": lambda m: m.replace(b'"segments":[0', b'"segments":[9'),
    "short": lambda m: m.replace(b'"segments":[0,1', b'"segments":[0,2'),
    "negative": lambda m: m.replace(b'"segments":[0,1', b'"segments":[0,-1'),
    "three numbers": lambda m: m.replace(b'"segments":[0,', b'"segments":['),
}


@pytest.mark.parametrize("name", list(DAMAGE))
def test_a_damaged_map_is_found(name: str) -> None:
    snapshot = html("<p>a<p>b")
    damaged = DAMAGE[name](snapshot.map_bytes())
    assert damaged != snapshot.map_bytes()
    with pytest.raises(ArtifactError) as caught:
        TextSnapshot.load(snapshot.text_bytes(), damaged)
    assert caught.value.code == "textmap.malformed"


def test_a_map_of_another_text_is_found() -> None:
    with pytest.raises(ArtifactError, match="does not belong"):
        TextSnapshot.load(b"abc", html("<p>a<p>b").map_bytes()[:-1])
    with pytest.raises(ArtifactError, match="cover"):
        TextSnapshot.load(b"ab", html("<p>a<p>b").map_bytes())


def test_other_media_are_refused() -> None:
    with pytest.raises(ArtifactError) as caught:
        snapshot_text(b"%PDF", media="application/pdf", charset=None)
    assert caught.value.code == "text.media_unsupported"


def test_endless_nesting_is_refused() -> None:
    with pytest.raises(ArtifactError) as caught:
        html("<div>" * 5000)
    assert caught.value.code == "text.too_deep"


def test_long_hostile_pages_stay_linear() -> None:
    for page in ("<!--" * 50_000, "<a b='" * 50_000, "&#" + "9" * 100_000 + ";", "</p>" * 50_000):
        assert_exact(page.encode(), html(page))
