"""Quotes: found once and whole, or refused; forged ones are never found."""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieout.artifacts.text import snapshot_text
from tieout.executor.errors import ExecutorError
from tieout.executor.quotes import fold, locate

SHARED = os.environ.get("TIEOUT_SHARED")


def code_of(text: str, quote: str, **how: object) -> str:
    try:
        span = locate(text, quote, **how)  # type: ignore[arg-type]
    except ExecutorError as error:
        return error.code.removeprefix("quote.")
    assert 0 <= span.start < span.end <= len(text)
    if span.status == "exact":
        assert text[span.start : span.end] == quote
    return span.status


FOLDED = {
    "spaces": ("a\u00a0b\u2009c\n\td", "a b c d"),
    "quotation marks": ("“it’s”", '"it\'s"'),
    "hyphens": ("well\u2010known \u2011 way", "well-known - way"),
    "minus": ("fell \u221212.5 points", "fell -12.5 points"),
    "soft hyphen": ("inter\u00adnational", "international"),
    "zero width": ("zero\u200bwidth", "zerowidth"),
    "ellipsis": ("and so on\u2026", "and so on..."),
    "ligature": ("the \ufb01nal o\ufb03ce", "the final office"),
    "composed": ("Cafe\u0301", "Caf\u00e9"),
    "decomposed": ("Caf\u00e9", "Cafe\u0301"),
    "full width letters": ("\uff21\uff22\uff23 corp", "ABC corp"),
    "en dash between words": ("cost\u2013benefit", "cost-benefit"),
    "surrounding space": ("one two", "  one two "),
}


@pytest.mark.parametrize("name", list(FOLDED))
def test_only_typography_is_folded(name: str) -> None:
    text, quote = FOLDED[name]
    span = locate(f"<< {text} >>", quote)
    assert (span.start, span.end, span.status) == (3, 3 + len(text), "folded")


FORGED = {
    "digit": ("revenue of 1,234 million", "revenue of 1,243 million"),
    "sign": ("a change of -3.2% there", "a change of +3.2% there"),
    "separator": ("paid 1,234 in", "paid 1.234 in"),
    "separator dropped": ("paid 1,234 in", "paid 1234 in"),
    "currency": ("paid $5 in", "paid €5 in"),
    "case": ("The Bank", "the bank"),
    "not": ("it was approved", "it was not approved"),
    "word dropped": ("it may be lower", "it be lower"),
    "parentheses": ("was (12.4) then", "was 12.4 then"),
    "stitched": ("Alpha grew. Beta shrank by 5.", "Alpha shrank by 5."),
    "range": ("in 2–5 days", "in 2-5 days"),
    "full width digits": ("paid ５００ in", "paid 500 in"),
    "homoglyph": ("a sоlid year", "a solid year"),
    "lookalike": ("Team Beta cut costs.", "Team Alpha cut costs."),
}


@pytest.mark.parametrize("name", list(FORGED))
def test_forged_quotes_are_not_found(name: str) -> None:
    text, quote = FORGED[name]
    assert code_of(text, quote) == "not_found"


CUT = {
    "sign": ("by -3.2% to", "3.2% to"),
    "inside a number": ("12.5 million", "2.5 million"),
    "decimals": ("12.5 million", "5 million"),
    "ends before decimals": ("was 12.5 then", "was 12"),
    "ends before the rest of a group": ("was 1,234 then", "was 1"),
    "starts in a group": ("was 1,234 then", "234 then"),
    "space group": ("was 1 234 567 then", "234 567 then"),
    "per cent": ("was 12.5% then", "was 12.5"),
    "per cent in words": ("was 12 per cent then", "was 12"),
    "scale": ("was 12.5 million then", "was 12.5"),
    "parenthesis": ("loss of (12.4) then", "12.4) then"),
    "closing parenthesis": ("loss of $(12.4) then", "loss of $(12.4"),
    "word": ("the misstatement", "statement"),
    "word end": ("material statements", "material statement"),
    "combining mark": ("Cafe\u0301 open", "Cafe"),
    "year": ("in 2024 then", "in 20"),
    "day of a date": ("on 2026-01-15 then", "15 then"),
    "year of a date": ("on 2026-01-15 then", "on 2026"),
    "day before a month": ("on 15 March 2026 then", "on 15"),
    "year of a range": ("in 2019–2023 then", "2023 then"),
    "hour": ("at 12:30 then", "at 12"),
    "minute": ("at 12:30 then", "30 then"),
    "identifier": ("see AB-1234 now", "1234 now"),
    "version": ("in 7.1.2 now", "in 7.1"),
    "ratio": ("odds of 3:4 now", "4 now"),
    "fraction": ("the 3/4 of it", "the 3"),
    "ordinal": ("the 21st case", "the 21"),
    "label": ("see Table 3.1 now", "see Table 3"),
    "Roman numeral": ("part ⅧⅨ now", "part Ⅷ"),
}


@pytest.mark.parametrize("name", list(CUT))
def test_a_quote_never_cuts_a_word_or_figure(name: str) -> None:
    text, quote = CUT[name]
    assert code_of(text, quote) == "boundary"


def test_whole_figures_and_other_scripts_pass() -> None:
    assert code_of("by -3.2% to", "-3.2% to") == "exact"
    assert code_of("cost $12.5 million", "12.5 million") == "exact"
    assert code_of("患者口服阿莫西林500毫克", "口服") == "exact"
    assert code_of("on 3 March 2023 then", "March 2023") == "exact"
    assert code_of("2.5 million of 12.5 million", "2.5 million") == "exact"
    assert code_of("on 15 March 2026 then", "2026 then") == "exact"
    assert code_of("on 15 March 2026 then", "15 March") == "exact"
    assert code_of("see Table 3 now", "3 now") == "exact"
    assert code_of("see www.example.com/1.", "www.example.com/1") == "exact"
    assert code_of("第3章です", "3章") == "exact"


def test_empty_and_endless_quotes() -> None:
    for quote in ("", "  \n", "\u200b"):
        assert code_of("text", quote) == "empty"
    assert code_of("text", "x" * 5000) == "too_long"
    assert code_of("a " * 30_000, "a") == "ambiguous"


def test_several_places_are_refused_until_one_is_named() -> None:
    text = "Not audited.\nRevenue 10.\nNot audited.\nRevenue 12."
    with pytest.raises(ExecutorError, match="stands 2 times") as caught:
        locate(text, "Not audited.")
    assert caught.value.code == "quote.ambiguous"
    assert "occurrence from 1 to 2" in caught.value.remedy
    assert locate(text, "Not audited.", occurrence=2).start == 25
    assert locate(text, "Not audited.", suffix="Revenue 12").start == 25
    assert locate(text, "Not audited.", prefix="10.").start == 25
    assert code_of(text, "Not audited.", occurrence=3) == "occurrence"
    assert code_of(text, "Not audited.", occurrence=0) == "occurrence"
    assert code_of(text, "Not audited.", prefix="never") == "not_found"
    assert code_of(text, "Not audited.", suffix="Revenue") == "ambiguous"


@given(st.text(max_size=60), st.data())
def test_any_passage_is_found_or_refused(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    quote = text[start:end]
    outcome = code_of(text, quote)
    assert outcome in {"exact", "empty", "ambiguous", "boundary"}


@given(st.text(max_size=60))
def test_folding_keeps_a_map_of_the_text(text: str) -> None:
    folded = fold(text)
    assert len(folded.text) == len(folded.starts) == len(folded.ends)
    assert list(folded.starts) == sorted(folded.starts)
    assert all(a < b for a, b in zip(folded.starts, folded.ends, strict=True))
    digits = [c for c in text if c.isdigit()]
    assert [c for c in folded.text if c.isdigit()] == digits


@pytest.mark.skipif(SHARED is None, reason="TIEOUT_SHARED is not set")
def test_real_abstracts_honest_and_forged() -> None:
    path = Path(SHARED or "") / "data" / "text" / "quotes" / "verbatim_gate_corpus.json"
    corpus = json.loads(path.read_text(encoding="utf-8"))
    honest = forged = 0
    for entry in list(corpus.values())[:80]:
        text = entry if isinstance(entry, str) else entry.get("abstract") or entry["text"]
        sentences = re.findall(r"(?<=\. )[A-Z][^.!?]{40,200}[.](?=\s)", text)[:2]
        for sentence in sentences:
            assert code_of(text, sentence) == "exact"
            curly = sentence.replace(" ", "\u00a0", 3).replace("-", "\u2010").replace("'", "’")
            assert code_of(text, curly) == "folded"
            honest += 1
            changed = re.sub(r"\d", lambda m: str((int(m[0]) + 1) % 10), sentence, count=1)
            if changed != sentence:
                assert code_of(text, changed) == "not_found"
                forged += 1
            if " is " in sentence:
                assert code_of(text, sentence.replace(" is ", " is not ", 1)) == "not_found"
                forged += 1
    assert honest > 100
    assert forged > 30


TEXT_CASES = Path(SHARED or ".") / "cases" / "text"
QUOTE_CASES = [
    "02-emoji-before-quote",
    "03-cjk-quote-must-be-located",
    "04-lookalike-must-not-reanchor",
    "06-code-points-not-code-units",
    "07-character-position-undefined",
    "09-zero-width-space-context",
    "10-prefix-must-be-adjacent",
    "11-ambiguous-is-not-first",
    "12-repeated-paragraph-indexof",
    "13-fabricated-quote-real-anchor",
    "14-sign-and-boundary-kept",
    "43-carriage-return-at-text-start",
]


@pytest.mark.skipif(SHARED is None, reason="TIEOUT_SHARED is not set")
@pytest.mark.parametrize("name", QUOTE_CASES)
def test_cases_from_the_wild(name: str) -> None:
    case = json.loads((TEXT_CASES / name / "case.json").read_text(encoding="utf-8"))
    given_, expect = case["input"], case["expect"]
    snapshot = None
    if "raw_b64" in given_:
        raw = base64.b64decode(given_["raw_b64"])
        snapshot = snapshot_text(raw, media=given_["media"], charset=None)
    text = snapshot.text if snapshot else given_["text"]
    how = {key: given_[key] for key in ("prefix", "occurrence") if key in given_}
    if "quotes" in given_:
        assert [code_of(text, quote) for quote in given_["quotes"]] == expect["statuses"]
        return
    assert code_of(text, given_["quote"], **how) == expect["status"]
    if "without_prefix" in expect:
        assert code_of(text, given_["quote"]) == expect["without_prefix"]
        second = locate(text, given_["quote"], occurrence=expect["occurrence"])
        assert locate(text, given_["quote"], **how) == second
    if "start" in expect:
        span = locate(text, given_["quote"], **how)
        assert (span.start, span.end) == (expect["start"], expect["end"])
        if "raw" in expect and snapshot is not None:
            assert snapshot.byte_ranges(span.start, span.end) == (tuple(expect["raw"]),)
