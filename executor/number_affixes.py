"""Read what stands directly before and after a numeral: sign, currency, scale, per cent, unit.

Source: notes on number extraction. English. What could mean two things is flagged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from tieout.executor.number_marks import CODES
from tieout.executor.numerals import EXACT, EXPONENT_MAX

SIGN: Final = "its sign is not certain"
PARENTHESES: Final = "the parentheses may mean minus or nothing"
CURRENCY: Final = "two currencies stand beside it"
UNIT: Final = "the letter after it may be a scale or a unit"
SUPERSCRIPT: Final = "a superscript follows it"
POWER: Final = "a power of ten or a fraction follows it"
CREDIT: Final = "a credit or debit mark follows it"
NAME: Final = "it may be part of a name"
SECOND_SCALE: Final = "more words that may scale it follow"

LOOK_BACK: Final = 24
LINE_CHARACTERS: Final = 400
_ONE: Final = Decimal(1)
_MINUS: Final = "-\u2212\u2013"
_SIGNS: Final = _MINUS + "+\u00b1"
_SYMBOLS: Final = {
    "US$": "USD", "A$": "AUD", "AU$": "AUD", "C$": "CAD", "CA$": "CAD", "NZ$": "NZD",
    "HK$": "HKD", "S$": "SGD", "R$": "BRL", "$": "USD", "\u20ac": "EUR", "\u00a3": "GBP",
    "\u00a5": "\u00a5", "\u20b9": "INR", "Rs": "INR", "Rs.": "INR", "\u20a9": "KRW",
    "\u20bd": "RUB",
}  # fmt: skip
_WORDS: Final = {
    "euro": "EUR", "euros": "EUR", "dollar": "USD", "dollars": "USD", "yen": "JPY",
    "rupee": "INR", "rupees": "INR", "pounds sterling": "GBP",
}  # fmt: skip
_SYMBOL: Final = "|".join(sorted(map(re.escape, _SYMBOLS), key=len, reverse=True))
_LEAD_CURRENCY: Final = re.compile(
    rf"((?<![A-Za-z])(?:{CODES}|(?:US|AU|CA|NZ|HK|[ACSR])\$|Rs\.?)|[$\u20ac\u00a3\u00a5\u20b9"
    rf"\u20a9\u20bd])[ \u00a0\u202f]?$"
)
_SIGN_WORD: Final = re.compile(r"(?<!\w)(?:minus|negative)\s$", re.IGNORECASE)
_GAP: Final = r"(?:[ \u00a0\u2009\u202f]{0,2}\n?[ ]{0,2})"
_POWERS: Final = {
    "hundred": 2, "thousand": 3, "million": 6, "millions": 6, "billion": 9, "billions": 9,
    "trillion": 12, "lakh": 5, "lakhs": 5, "crore": 7, "crores": 7, "bn": 9, "bln": 9, "mn": 6,
    "mln": 6, "tn": 12, "trn": 12, "k": 3, "m": 6, "mm": 6, "b": 9, "t": 12, "cr": 7,
}  # fmt: skip
_SCALE: Final = re.compile(
    rf"(?:{_GAP}|-)((?i:hundred|thousand|millions?|billions?|trillion|lakhs?|crores?|bn|bln|mn|mln"
    rf"|tn|trn))(?![A-Za-z0-9])"
)
_GLUED_K: Final = re.compile(r"(k)(?![A-Za-z0-9])")
_MONEY_SCALE: Final = re.compile(rf"{_GAP}(MM|mm|[mMBbTK]|[Cc]r)(?![A-Za-z0-9])")
_PERCENT: Final = re.compile(
    rf"(?:{_GAP}|-)(?:(?P<pp>percentage[ ]points?|ppts?\b|pp\b)|(?P<bp>basis[ ]points?|bps?\b)"
    rf"|(?P<percent>%|(?:per[ ]?cent|percent|pct)\b))",
    re.IGNORECASE,
)
_TAIL_CURRENCY: Final = re.compile(
    rf"(?:{_GAP}|-)(?:(?P<code>{CODES})(?![A-Za-z0-9])|(?P<word>(?:pounds sterling|euros?|dollars?"
    rf"|yen|rupees?))\b|(?P<symbol>[\u20ac\u00a3\u00a5\u20b9$]))(?![ ]?\d)"
)
_UNITS: Final = (
    "km\u00b2|km2|km3|km|m\u00b2|m2|m3|cm|mm|kg|mg|lbs|lb|oz|tonnes|tons|Mt|kt"
    "|GWh|MWh|kWh|TWh|GW|MW|kW"
    "|megawatts|ms|sq mi|ha|hrs|\u00b0C|\u00b0F|GB|MB|TB|ft|in|x|\u00d7|g|m|t|s|h|days|points|times"
)
_GLUED_UNIT: Final = re.compile(rf"({_UNITS})(?![A-Za-z0-9])")
_SPACED_UNIT: Final = re.compile(rf"[ \u00a0\u202f](?!(?:in|x|s|h)\b)({_UNITS})(?![A-Za-z0-9])")
_METRES: Final = re.compile(
    r"[ -](?:tall|long|high|wide|deep|away|above|below|of\s(?:cable|pipe))\b"
)
_FRACTIONS: Final = {
    "\u00bc": "0.25", "\u00bd": "0.5", "\u00be": "0.75", "\u215b": "0.125", "\u215c": "0.375",
    "\u215d": "0.625", "\u215e": "0.875", "\u2155": "0.2", "\u2156": "0.4", "\u2157": "0.6",
    "\u2158": "0.8",
}  # fmt: skip
_FRACTION: Final = re.compile(r"[ \u00a0]?([\u00bc-\u00be\u2150-\u215e])")
_SUPERSCRIPTS: Final = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
_POWER_OF_TEN: Final = re.compile(rf"([{_SUPERSCRIPTS}]{{1,2}})(?!\w)|\^(\d{{1,2}})(?!\d)")
_MORE: Final = (
    (POWER, re.compile(r"\s?[x\u00d7*]\s?10(?:\^|[\u2070-\u2079\u00b2\u00b3\u00b9\u207b]|\d)")),
    (
        POWER,
        re.compile(r"[ -]\d+/\d+|\s(?:halves|thirds|fifths)\b|\s(?:and\s)?an?\s(?:half|third)\b"),
    ),
    (
        # What scales it in other languages is not read yet, and must not be passed over.
        SECOND_SCALE,
        re.compile(
            r"[\s\u202f-]?(?i:millionen|millionens|mio|mrd|tsd|tausend|milliarden?"
            r"|milliards?|billionen"
            r"|millones|millón|millon|miles(?=\sde\b)|mil|mille|milhões|milhão|bilhões|bilhão"
            r"|milioni|milione"
            r"|miliardi|miliardo|mila|miljoen|miljard|duizend|milj|mld|тыс|млн|млрд)(?![a-zà-ÿа-я])"
        ),
    ),
    (SECOND_SCALE, re.compile(r"\s(?:and\sa\s(?:half|quarter)|dozens?|gross|score)\b")),
    (SECOND_SCALE, re.compile(r"\s(?i:hundreds?|thousands?|millions?|billions?|trillions?)\b")),
    (CREDIT, re.compile(r"\s?(?:CR|DR|Cr|Dr|cr|dr)\.?(?!\w)")),
    (SIGN, re.compile(rf"[{_MINUS}](?=\s|$)")),
)
_LOSS: Final = re.compile(
    r"\b(?:loss|losses|deficit|negative|decrease|decline|outflow|shortfall)\b[^.!?\n]*$",
    re.IGNORECASE,
)
_JOIN: Final = re.compile(r"\s?(-|\u2013|\u2014)\s?|\s(to|and|or)\s")
_NAME: Final = re.compile(
    r"(?:^|(?P<start>[.!?:]\s+|\n\s*)|\s|[(\"'\u201c])(?P<name>[A-Z][\w&]*)[ \u00a0]$"
)
_NOT_A_NAME: Final = frozenset({
    "About", "Over", "Nearly", "Some", "Only", "Around", "Roughly", "Approximately", "At", "In",
    "By", "To", "Of", "The", "Total", "Another", "All", "More", "Under", "Up", "From", "Between",
    "Almost", "Exactly", "Just", "And", "Or", "With", "For", "A", "An", "Pay", "Net", "Gross",
    "Sum", "Value", "Revenue", "Sales", "Cost", "Costs", "Profit", "Income", "Count", "Headcount",
    "Balance", "Amount", "Population",
})  # fmt: skip
_FUNCTION_WORDS: Final = re.compile(
    r"\s(?:and|or|to|the|was|is|are|were|with|by|in|of|for|at|on|as|than|from|which|but"
    r"|while|versus"
    r"|compared|during|per|had|has|have|more|fewer|less|a|an)\b"
)
_LOWER_WORD: Final = re.compile(r"\s[a-z]")


@dataclass(slots=True)
class Affixes:
    """What stands around the numeral text[first:last]; filled by `affixes_of`.

    start, end: of the whole token. core_start, core_end: what a quotation must not cut.
    power: of ten, from scale words. bare: nothing but parentheses stands beside the digits.
    """

    start: int
    end: int
    core_start: int
    core_end: int
    sign: str = ""
    currency: str | None = None
    paren: int | None = None
    enclosed: bool = False
    negative: bool = False
    percent: str | None = None
    unit: str | None = None
    power: int = 0
    scale_span: tuple[int, int] | None = None
    fraction: str | None = None
    glued: bool = False
    ambiguous: str | None = None

    @property
    def bare(self) -> bool:
        beside = self.sign or self.currency or self.percent or self.unit or self.fraction
        return not beside and self.power == 0 and self.scale_span is None

    def apply(self, value: Decimal) -> Decimal:
        """The value with fraction, scale and sign, exact."""
        if self.fraction is not None:
            value = EXACT.add(value, Decimal(self.fraction))
        if self.power:
            value = EXACT.scaleb(value, self.power)
            # Whole numbers stay whole: 1.2 million is 1200000, neither 1.2E+6 nor 1200000.0.
            value = value.quantize(_ONE, context=EXACT) if value == value.to_integral() else value
        return EXACT.minus(value) if self.negative and value else value

    def doubt(self, why: str) -> None:
        self.ambiguous = self.ambiguous or why


def affixes_of(text: str, first: int, last: int, *, grouped: bool) -> Affixes:
    """Read both sides of the numeral text[first:last]; grouped: it has a mark inside."""
    found = Affixes(first, last, first, last)
    before_paren = _read_before(text, found)
    _read_after(text, found, first)
    if found.paren is not None and not found.enclosed:
        found.start, found.core_start, found.sign, found.currency = before_paren
        found.paren = None
    found.negative = found.sign in set(_MINUS) if found.sign else False
    if found.enclosed:
        _judge_parentheses(text, found, small=not grouped and last - first <= 2)
    if found.sign == "\u00b1":
        found.doubt(SIGN)
    before = text[first - 1] if first else ""
    if found.start == first and (before.isalnum() or before in set("_/@\\^")):
        found.glued = True
    elif not found.sign and _after_spaced_dash(text, found.start):
        found.doubt(SIGN)
    return found


def _read_before(text: str, found: Affixes) -> tuple[int, int, str, str | None]:
    """Sign, parenthesis and currency in any order; returns the state before the parenthesis."""
    at = found.start
    state: tuple[int, int, str, str | None] = (at, at, "", None)
    while at:
        before = text[at - 1]
        if before in _SIGNS and not found.sign and _sign_stands(text, at - 1):
            at -= 1
            found.sign, found.core_start = before, at
            continue
        if before == "(" and found.paren is None:
            state = (at, min(found.core_start, found.start), found.sign, found.currency)
            at -= 1
            found.paren = found.core_start = at
            continue
        money = _LEAD_CURRENCY.search(text[max(0, at - LOOK_BACK) : at])
        if money is None or found.currency is not None:
            break
        found.currency = _SYMBOLS.get(money[1], money[1])
        at -= len(money.group())
        found.start = at
    word = _SIGN_WORD.search(text[max(0, at - LOOK_BACK) : at])
    if word is not None and not found.sign:
        at -= len(word.group())
        found.sign, found.core_start = "-", at
    found.start = at
    return state


def _sign_stands(text: str, at: int) -> bool:
    """A sign, not a hyphen: nothing, white space, an opening mark or a currency before it."""
    before = text[at - 1] if at else ""
    if before == "" or before.isspace() or before in "([{:=;,~\u2248|\"'\u201c\u2018":
        return True
    return _LEAD_CURRENCY.search(text[max(0, at - LOOK_BACK) : at]) is not None


def _after_spaced_dash(text: str, at: int) -> bool:
    """A dash and a space before the figure that is neither a bullet nor part of a range."""
    if at < 2 or text[at - 1] not in " \u00a0" or text[at - 2] not in _MINUS:
        return False
    lead = text[max(0, at - LOOK_BACK) : at - 2].rstrip(" \u00a0")
    return lead != "" and lead[-1] not in "\n%)" and not lead[-1].isdigit()


def _read_after(text: str, found: Affixes, first: int) -> None:
    printed = text[first : found.end]
    fraction = _FRACTION.match(text, found.end)
    if fraction:
        found.end = found.core_end = fraction.end()
        found.fraction = _FRACTIONS.get(fraction[1], "0")
        if fraction[1] not in _FRACTIONS or not printed.isdigit():
            found.doubt(POWER)
    power = _POWER_OF_TEN.match(text, found.end)
    if power and printed == "10":
        digits = power[2] or "".join(str(_SUPERSCRIPTS.index(char)) for char in power[1])
        # The 10 itself is the first of the powers: 10 to the 6 is 10 times 10 to the 5.
        found.power = int(digits) - 1
        found.end = found.core_end = power.end()
        if found.power < 0:
            found.doubt(SUPERSCRIPT)
            found.power = 0
    elif power and (found.currency is not None or len(power[2] or "") == 2):
        found.doubt(SUPERSCRIPT)
    _read_words(text, found)
    if found.paren is not None and text[found.end : found.end + 1] == ")":
        found.enclosed = True
        found.end = found.core_end = found.end + 1
        _read_words(text, found)
    _read_unit(text, found)
    following = text[found.end : found.end + 1]
    note = following.isdigit() and not following.isdecimal()
    if following == "_" or (following.isalnum() and not note and not fraction):
        found.glued = True
    for why, pattern in _MORE:
        if pattern.match(text, found.end):
            found.doubt(why)


def _read_words(text: str, found: Affixes) -> None:
    """Scale words, per cent and currency after the digits."""
    while scale := _SCALE.match(text, found.end) or _GLUED_K.match(text, found.end):
        _take_scale(found, scale)
    short = _MONEY_SCALE.match(text, found.end)
    if short and found.scale_span is None:
        if short[1].lower() == "cr":
            is_scale = found.currency == "INR"
        else:
            is_scale = found.currency is not None or bool(_TAIL_CURRENCY.match(text, short.end()))
        if is_scale:
            _take_scale(found, short)
        elif short[1] not in {"m", "mm", "cr", "Cr"} and found.percent is None:
            found.doubt(UNIT)
            if short.start() == short.start(1):
                found.end = found.core_end = short.end()
    percent = _PERCENT.match(text, found.end)
    if percent and found.percent is None:
        found.percent = {"percent": "%"}.get(percent.lastgroup or "", percent.lastgroup)
        found.end = found.core_end = percent.end()
    money = None if found.percent else _TAIL_CURRENCY.match(text, found.end)
    if money:
        printed = money["code"] or money["symbol"] or money["word"]
        code = _WORDS.get(printed) or _SYMBOLS.get(printed) or printed
        if found.currency not in {None, code, "USD", "\u00a5"}:
            found.doubt(CURRENCY)
        if found.currency == "USD" and code not in {"USD", "CAD", "AUD", "NZD", "HKD", "SGD"}:
            found.doubt(CURRENCY)
        found.currency = code
        found.end = money.end()


def _take_scale(found: Affixes, scale: re.Match[str]) -> None:
    start = scale.start(1) if found.scale_span is None else found.scale_span[0]
    power = found.power + _POWERS[scale[1].lower()]
    if power > EXPONENT_MAX:
        found.doubt(SECOND_SCALE)
    else:
        found.power = power
    found.scale_span = (start, scale.end(1))
    found.end = found.core_end = scale.end()


def _read_unit(text: str, found: Affixes) -> None:
    if found.percent or found.currency or found.enclosed:
        return
    unit = _GLUED_UNIT.match(text, found.end) or _SPACED_UNIT.match(text, found.end)
    if unit:
        if unit[0] == "m" and not _METRES.match(text, unit.end()):
            found.doubt(UNIT)
        found.unit = unit[1]
        found.end = unit.end()


def _judge_parentheses(text: str, found: Affixes, *, small: bool) -> None:
    """Accounting minus in a table, beside a currency or after a loss; else it is not certain."""
    paren = found.core_start if found.paren is None else found.paren
    if found.sign:
        found.doubt(SIGN)
        return
    if found.start < paren and found.currency is not None:
        found.negative = True
        return
    before = text[max(0, found.start - LINE_CHARACTERS) : found.start].rpartition("\n")[2]
    after = text[found.end : found.end + LINE_CHARACTERS].partition("\n")[0]
    alone = text[max(0, found.start - 1) : found.start] in {"", "\t", "\n"}
    alone = alone and text[found.end : found.end + 1] in {"", "\t", "\n"}
    certain = not small or found.currency is not None or found.percent is not None
    lost = _LOSS.search(before) is not None and not found.percent
    if certain and (lost or ("\t" in before + after and alone)):
        found.negative = True
    else:
        found.doubt(PARENTHESES)


def name_doubt(text: str, first: int, last: int, *, counted: bool) -> str | None:
    """Why a plain whole number after a capitalised word may be part of a name (Boeing 737)."""
    name = _NAME.search(text[max(0, first - LOOK_BACK * 2) : first])
    if name is None or name["name"] in _NOT_A_NAME:
        return None
    word = name["name"]
    if len(word) > 1 and word.isupper():
        return NAME
    opens = name["start"] is not None or name.start("name") + len(word) + 1 == first
    if not opens:
        return None if counted else NAME
    follows = _LOWER_WORD.match(text, last) and not _FUNCTION_WORDS.match(text, last)
    return NAME if follows and not counted else None


def join_of(between: str) -> str | None:
    """How two figures are joined into a range: "dash", "word", or not at all (None)."""
    match = _JOIN.fullmatch(between)
    if match is None:
        return None
    return "dash" if match[1] else "word"
