"""Real pages and the HTML standard's own tokenizer cases, when the shared material is there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tieout.artifacts.text import TextSnapshot, snapshot_text
from tieout.artifacts.text_tokens import Tokenizer

SHARED = os.environ.get("TIEOUT_SHARED")
pytestmark = pytest.mark.skipif(SHARED is None, reason="TIEOUT_SHARED is not set")
ROOT = Path(SHARED or ".") / "data" / "text"
PAGES = sorted([*(ROOT / "html").glob("*"), *(ROOT / "sec").glob("*")])


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_real_pages_map_back_exactly(page: Path) -> None:
    raw = page.read_bytes()
    snapshot = snapshot_text(raw, media="text/html", charset=None)
    assert snapshot.text
    for text, segments in (
        (snapshot.text, snapshot.segments),
        (snapshot.hidden, snapshot.hidden_segments),
    ):
        assert "".join(text[s.t0 : s.t1] for s in segments) == text
        for s in segments:
            if s.kind == "identity":
                assert raw[s.b0 : s.b1].decode(snapshot.encoding) == text[s.t0 : s.t1]
    assert TextSnapshot.load(snapshot.text_bytes(), snapshot.map_bytes()) == snapshot


def test_every_gold_fact_of_a_real_report_stands_in_the_text() -> None:
    """Inline XBRL facts: the bytes of the fact lead to the same characters of T or of H."""
    raw = (ROOT / "sec" / "apple_10k_2025.htm").read_bytes()
    snapshot = snapshot_text(raw, media="text/html", charset=None)
    found = 0
    at = raw.find(b"<ix:nonFraction")
    while at >= 0:
        start = raw.index(b">", at) + 1
        end = raw.index(b"<", start)
        hits = [s for s in snapshot.segments if s.b0 <= start < s.b1 and s.kind == "identity"]
        if hits:
            segment = hits[0]
            t0 = segment.t0 + len(raw[segment.b0 : start].decode())
            length = len(raw[start:end].decode())
            assert snapshot.text[t0 : t0 + length] == raw[start:end].decode()
            assert snapshot.byte_ranges(t0, t0 + length) == ((start, end),)
            found += 1
        at = raw.find(b"<ix:nonFraction", end)
    assert found > 850


def _expected(test: dict[str, object]) -> list[object]:
    merged: list[object] = []
    for output in test["output"]:  # type: ignore[attr-defined]
        if output[0] == "Character" and merged and merged[-1][0] == "Character":  # type: ignore[index]
            merged[-1] = ["Character", merged[-1][1] + output[1]]  # type: ignore[index]
        elif output[0] in {"Character", "StartTag", "EndTag"}:
            merged.append(output[: 3 if output[0] == "StartTag" else 2])
    return merged


def _found(page: str) -> list[object]:
    merged: list[object] = []
    for token in Tokenizer(page).tokens():
        if token.kind == "start":
            merged.append(["StartTag", token.name, token.attributes])
        elif token.kind == "end":
            merged.append(["EndTag", token.name])
        elif merged and merged[-1][0] == "Character":  # type: ignore[index]
            merged[-1] = ["Character", merged[-1][1] + token.text]  # type: ignore[index]
        else:
            merged.append(["Character", token.text])
    return merged


@pytest.mark.parametrize("file", sorted((ROOT / "html5lib-tests").glob("*")), ids=lambda f: f.stem)
def test_the_standards_tokenizer_cases(file: Path) -> None:
    ran = 0
    for test in json.loads(file.read_text(encoding="utf-8"))["tests"]:
        states = test.get("initialStates", ["Data state"])
        if "Data state" not in states or test.get("doubleEscaped"):
            continue
        page = test["input"].replace("\r\n", "\n").replace("\r", "\n")
        # NUL in names and values becomes U+FFFD in the standard; names decide nothing here.
        expected = json.dumps(_expected(test)).replace("\\ufffd", "\\u0000")
        assert json.dumps(_found(page)).replace("\\ufffd", "\\u0000") == expected, test["input"]
        ran += 1
    assert ran or file.stem in {"contentModelFlags", "escapeFlag"}
