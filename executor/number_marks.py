"""Find the digits that are not figures: dates, years, times, labels, identifiers, ratios.

Source: notes on number extraction: what is skipped is claimed before numbers are read. English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_MONTH: Final = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\b\.?)"
)
YEAR: Final = r"(?:1[5-9]|20|21)\d\d"
CODES: Final = (
    "USD|EUR|GBP|JPY|CNY|CHF|CAD|AUD|NZD|HKD|SGD|INR|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|KRW|TRY"
    "|ILS|RUB|THB|TWD|IDR|AED|SAR"
)
_CUES: Final = (
    "sections?|sec|tables?|notes?|figures?|fig|item|rules?|articles?|art|chapters?|ch|part|pages?"
    "|pp|paragraphs?|para|clauses?|schedules?|appendix|exhibits?|annex|versions?|rooms?|flights?"
    "|routes?|lines?|zip|phase|tiers?|levels?|stages?|volume|vol|issue|invoices?|accounts?|ref"
    "|id|code|steps?|forms?|no|nos|nr|number|python|question|footnotes?"
)
_LIKE_SCALE: Final = r"(?:thousand|million|billion|trillion|hundred|lakh|crore|bn|mn|per\s?cent|%)"
_END: Final = r"(?![\w%]|[.,:]\d)"

# In order; an earlier pattern keeps what it has claimed.
_PATTERNS: Final = (
    # Bounded parts: an address of mail is never long, and every start of it is tried once.
    ("identifier", r"(?:https?://|www\.)\S+|[^\s@]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"),
    (
        "date",
        (
            r"(?<![\w.-])\d{4}-\d{2}-\d{2}"
            r"(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?(?![\w-])"
        ),
    ),
    ("date", r"(?<![\w/.,-])\d{1,2}([/.-])\d{1,2}\1(?:\d{4}|\d{2})(?![\w/-]|[.,]\d)"),
    (
        "date",
        (
            rf"(?<![\w.,])(?:\d{{1,2}}(?:\s?[-\u2013]\s?|\sand\s|\sto\s))?\d{{1,2}}(?:st|nd|rd|th)?"
            rf"(?:\sof)?\s{_MONTH}(?:,?\s\d{{4}})?{_END}"
        ),
    ),
    (
        "date",
        (
            rf"\b{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?"
            r"(?:(?:\s?[-\u2013]\s?|\sand\s|\sto\s)\d{1,2}(?!\d))?"
            rf"(?:,?\s{YEAR})?{_END}(?!\s{_LIKE_SCALE})"
        ),
    ),
    ("date", rf"\b{_MONTH},?\s{YEAR}{_END}"),
    (
        "date",
        (
            rf"(?<![\w.,$€£¥₹])(?:FY\s?)?{YEAR}\s?[-\u2013\u2014/]\s?(?:{YEAR}|\d\d)"
            rf"(?![\w%-]|[.,/]\d|\s{_LIKE_SCALE})"
        ),
    ),
    (
        "year",
        rf"\b(?:FY|CY|[Ff]iscal(?:\syear)?)\s?'?(?:{YEAR}|\d\d)(?:[-/\u2013]\d{{2,4}})?{_END}",
    ),
    ("year", rf"\b(?:[Mm]id|[Ee]arly|[Ll]ate|[Pp]re|[Pp]ost)-{YEAR}s?{_END}"),
    ("date", rf"\b(?:[QH][1-4]|[1-4][QH])(?:\s?'?\d\d|\s{YEAR})?{_END}"),
    ("year", r"(?<![\w.,])'?\d{2}(?:\d0|0)?s\b(?!\w)"),
    ("time", r"(?<![\w.,:])[0-2]?\d:[0-5]\d(?::[0-5]\d)?(?:\s?[AaPp]\.?[Mm]\b\.?)?(?![\w:])"),
    ("time", r"(?<![\w.,])\d{1,2}\s?[ap]\.?m\b\.?(?!\w)"),
    (
        "identifier",
        (
            r"(?<!\w)\+\d[\d().\- ]{6,}\d(?!\w)|\(\d{3}\)\s?\d{3}[- ]\d{4}(?!\d)"
            r"|(?<![\w-])\d{3}-\d{3}-\d{4}(?![\w-])"
        ),
    ),
    ("label", r"(?<![\w.,])\d+(?:\.\d+){2,}(?<!\.\d{3})(?!\w|,\d)"),
    ("label", r"(?<![\w.,])\d+\.(?:\d{1,2}|\d{4,})(?:\.\d+)+(?!\w|,\d)"),
    ("identifier", r"(?<![\w.,])\d+(?:-\d+){2,}(?!\w)|(?<![\w.,-])\d{4,}-\d{3,}(?![\w-]|[.,]\d)"),
    ("identifier", r"(?<![\w.,-])(?:0\d*-\d+|\d+-0\d+)(?![\w-]|[.,]\d)"),
    ("identifier", r"(?<![\w.,-])\d+[A-Za-z]+-\d\w*|(?<![\w.,$€£¥₹-])\d+-[A-Z](?!\w)"),
    (
        "label",
        (
            rf"(?i:\b(?:{_CUES})\b\.?[ \u00a0]+(?:no\.?[ ]*)?#?)\d+(?:[.\-]\d+)*"
            rf"(?:\([0-9a-z]{{1,4}}\))*[a-z]?(?!\w|,\d|\s?{_LIKE_SCALE}|\.\d)"
        ),
    ),
    ("label", r"#\s?\d+(?!\w|[.,]\d)"),
    ("label", r"(?m)^[ ]*(?:\(\d{1,3}\)|\d{1,3}[.)])(?=[ ]+[A-Za-z])"),
    (
        "identifier",
        (
            rf"(?<!\w)(?!(?:km|cm|m)[23](?!\w))(?!(?:{CODES}|US|Rs)[.\-\u2212]?\d)"
            r"[A-Za-z][A-Za-z_]*-?\d\w*(?:-\w+)*(?![.,]\d)"
        ),
    ),
    ("ratio", r"(?<![\w.,:/])\d+:\d+(?![\w:])"),
    ("ratio", r"(?<![\w.,/])(?:\d+[ -])?\d+[/\u2044]\d+(?:/\d+)*(?![\w/])"),
    ("ordinal", r"(?<![\w.,])\d{1,3}(?:,\d{3})*(?:st|nd|rd|th)\b"),
)
_COMPILED: Final = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)


def find_marks(text: str) -> Iterator[tuple[int, int, str]]:
    """Non-overlapping (start, end, kind) of digits that are not figures, by pattern order."""
    owned = bytearray(len(text))
    for kind, pattern in _COMPILED:
        for match in pattern.finditer(text):
            start, end = match.span()
            while start < end and text[start].isspace():
                start += 1
            if not any(owned[start:end]) and any(char.isdigit() for char in text[start:end]):
                owned[start:end] = b"\x01" * (end - start)
                yield start, end, kind
