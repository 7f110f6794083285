"""Numbers in sentences: each is read right, or refused, never read wrong; counts per language."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from verdict import Verdict, failed, passed, waiting

from tieout.executor.numbers import FIGURES, NumberToken, find_numbers

NUMBERS: Final = "numbers.jsonl"
STRICT: Final = frozenset({"en", "in"})
"""English, and the English of India: in these a wrong reading is a failure."""


def certain(text: str) -> list[NumberToken]:
    """The numbers that the product reads without a doubt."""
    return [
        token
        for token in find_numbers(text)
        if token.kind in FIGURES and token.ambiguous is None and token.value is not None
    ]


def run_numbers(path: Path) -> Iterator[Verdict]:
    """One verdict per language of a file of sentences."""
    counts: dict[str, Counter[str]] = {}
    wrong: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        language = case["lang"]
        count = counts.setdefault(language, Counter())
        for what, why in judged(case):
            count[what] += 1
            if what == "wrong":
                wrong.setdefault(language, []).append(f"{case['id']} {why}")
    for language in sorted(counts):
        count, faults = counts[language], wrong.get(language, [])
        said = ", ".join(f"{count[what]} {what}" for what in ("right", "refused", "wrong"))
        reason = said + (f": {'; '.join(faults)}" if faults else "")
        name = f"numbers-{language}"
        if faults and language not in STRICT:
            yield waiting(name, f"only English is promised so far: {reason}")
        else:
            yield (failed if faults else passed)(name, reason)


def judged(case: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(right, refused or wrong; why) for each expected number and each one too many."""
    found = certain(case["text"])
    used: set[int] = set()
    for expected in case["expect"]:
        start, end = expected["start"], expected["end"]
        hits = [t for t in found if t.core[0] < end and t.core[1] > start]
        used |= {t.start for t in hits}
        yield _judge(expected, hits)
    for token in found:
        if token.start not in used:
            yield "wrong", f"{token.text!r} is no figure here"


def _judge(expected: Mapping[str, Any], hits: list[NumberToken]) -> tuple[str, str]:
    """A range is right when its ends are read, refused when one of them is."""
    wanted = _values(expected["value"])
    read = [token.value for token in hits]
    if wanted and sorted(v for v in read if v is not None) == sorted(wanted):
        return "right", ""
    if read == _parts(expected["value"]):
        return "refused", ""
    others = [t for t in hits if t.value not in wanted]
    if others and not _only_scaled(expected, others):
        texts = ", ".join(f"{t.text!r} as {t.value}" for t in others)
        return "wrong", f"{expected['text']!r} is {expected['value']}, read {texts}"
    return "refused", ""


def _values(text: str) -> list[Decimal]:
    """The number of an expectation, the two ends of a range, none for a fraction."""
    try:
        return [Decimal(part) for part in text.split("..")]
    except InvalidOperation:
        return []


def _parts(text: str) -> list[Decimal | None]:
    """The two numbers of a fraction: read as such each is as printed, and no ratio is claimed."""
    over, slash, under = text.partition("/")
    return [Decimal(over), Decimal(under)] if slash else []


def _only_scaled(expected: Mapping[str, Any], hits: list[NumberToken]) -> bool:
    """A scale that stands elsewhere, in a header, is not applied; the printed figure is right."""
    wanted = _values(expected["value"])
    if "scale_from" not in expected or len(wanted) != len(hits):
        return False
    return all(
        token.value is not None and token.value * 10**k == value
        for token, value in zip(hits, wanted, strict=True)
        for k in [_power(value, token.value)]
    )


def _power(value: Decimal, printed: Decimal | None) -> int:
    """The power of ten between two values of the same digits, else 0."""
    if not printed:
        return 0
    return max(0, value.adjusted() - printed.adjusted())
