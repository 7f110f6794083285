"""Words beside a figure that make it read as another number: signs, scales, units, multiples.

A closed list, English first, and no judge of language: words that are not in it alter nothing.
Both the list and the prose are folded, so that capitals, accents, full width, mathematical and
lookalike letters are the same word.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

WINDOW: Final = 72
"""Characters looked at on each side of a figure."""
_LOOKALIKES: Final = str.maketrans(
    "авеёзіїјкмнорстухѕһԁԛԝӏαβεηικμνορτυχωօոսıɩɑɡ",
    "abee3iijkmhopctyxshdqwlabenikmvoptuxwonuiiag",
)


def folded(text: str) -> str:
    """The text in small Latin letters without accents, as far as it looks like them."""
    plain = unicodedata.normalize("NFKD", text)
    bare = "".join(char for char in plain if not unicodedata.category(char).startswith("M"))
    return bare.casefold().translate(_LOOKALIKES)


def _any_of(words: str) -> str:
    parts = sorted({folded(word.replace("_", " ")) for word in words.split()}, key=len)
    return "|".join(re.escape(part).replace(r"\ ", r"[\W_]+") for part in reversed(parts))


_BIG: Final = (
    "hundred hundreds thousand thousands million millions billion billions trillion trillions "
    "quadrillion quadrillions milliard milliards lakh lakhs lac lacs crore crores dozen dozens "
)
_SCALES: Final = _any_of(
    _BIG
    + "gross thou mil mill mm mn mln mio mrd mld bn bln tn trn tsd tenth tenths hundredth "
    + "hundredths thousandth thousandths millionth millionths "
    + "percent per_cent percentage pct pc permille permil per_mille per_mil per_hundred "
    + "per_thousand bp bps basis_point basis_points pp ppt ppts squared cubed point fold "
    + "to_the_power to_the_second to_the_third and_a_half and_a_quarter and_a_third "
    + "tausend millionen milliarden prozent mille millones millón pour_cent por_ciento milhão "
    + "milhões bilhões milioni milione miliardi miliardo mila miljoen miljard duizend procent "
    + "тыс тысяч тысяча тысячи млн миллион миллиона миллионов млрд миллиард миллиардов"
)
_CURRENCIES: Final = _any_of(
    "euro euros dollar dollars pound pounds sterling quid pence penny pennies cent cents yen yuan "
    "renminbi rupee rupees franc francs krona kronor krone kroner won rouble roubles ruble rubles "
    "peso pesos zloty lira rand dirham dirhams real reais shekel shekels baht rupiah ringgit"
)
_CODE_LIST: Final = (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN "
    "BZD CAD CDF CHF CLP CNH CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP "
    "GBX GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS "
    "KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR "
    "MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF "
    "SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD "
    "TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XAG XAU XBT BTC ETH XCD XDR XOF XPF YER ZAR ZMW "
    "ZWL"
)
_CODES: Final = frozenset(_CODE_LIST.split())
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety "
_ONES: Final = "one two three four five six seven eight nine ten eleven twelve "
_COUNT: Final = _any_of(_ONES + _TENS + _BIG)
_ENDING: Final = r"(?=[\W_]*(?:[.,;:!?)\]]|$))"
_END: Final = r"(?![a-z0-9])"

_AFTER: Final = re.compile(
    rf"[\W_]{{0,8}}(?:{_SCALES}|minus|negative|neg){_END}"
    rf"|[\W_]{{0,4}}(?:times[\W_]+(?:an?[\W_]+)?(?:\d|(?:{_COUNT}){_END})|x(?![a-z])"
    rf"|e[+-]?\d|o{{2,}}{_END})"
    rf"|(?:[ \n]{{0,2}}|-|[ ]?\()(?:k|m|b|t|cr|dr){_END}"
    rf"|[ \n(]{{1,3}}(?:credit|debit|loss|deficit|overdrawn){_END}{_ENDING}"
)
_CURRENCY_AFTER: Final = re.compile(rf"[\W_]{{0,4}}(?:{_CURRENCIES}){_END}")
_CODE_AFTER: Final = re.compile(r"[ \n(]{0,3}([A-Z]{3})(?![A-Za-z0-9])")
_CODE_BEFORE: Final = re.compile(r"(?<![A-Za-z0-9])([A-Z]{3})[ \n(]{0,3}$")
_SENTENCE_END: Final = re.compile(r"[.!?][^\w.!?]*\s|\n\s*\n")

_SIGNS: Final = frozenset({"minus", "negative", "neg", "less"})
_MULTIPLES: Final = frozenset(
    f"double triple treble quadruple half times x point {_TENS}{_BIG}".split()
)
_ROOTS: Final = frozenset({"root", "power", "log", "logarithm", "square", "cube"})
_JOINING_LIST: Final = (
    "and or but nor than in on for at if as with by to from when while where because so"
)
_JOINING: Final = frozenset(_JOINING_LIST.split())
_LAST_WORDS: Final = re.compile(r"(?:([a-z]+)([\W_]+))?([a-z]+)([\W_]*)$")

_HEADER: Final = re.compile(
    rf"(?<![a-z0-9])(?:in|as|by)\s+(?:[a-z$£€¥₹]{{1,8}}\s+)?(?:hundreds|thousands|millions|billions"
    rf"|trillions|lakhs|crores|cents|pence|basis points|percent|per cent){_END}"
    rf"|\((?:[a-z$£€¥₹]{{1,8}}\s+)?(?:hundreds|thousands|millions|billions|trillions"
    r"|lakhs|crores)\)"
    r"|(?<![\d.,])(?<!\d )'?000s?(?![\d.,]*\d)"
    rf"|(?:[$£€¥₹]|(?<![a-z])(?:{'|'.join(sorted(code.lower() for code in _CODES))}))[ ']?"
    rf"(?:k|m|mn|mm|bn|thousands?|millions?|billions?){_END}"
)


def scales_all(prose: str) -> bool:
    """Whether it says once for all figures in which scale or unit they are ("in thousands")."""
    return _HEADER.search(folded(prose)) is not None


def alters_before(prose: str, start: int) -> bool:
    """Whether the last words before prose[start] give what follows a sign or multiply it.

    One plain word may stand between a sign and the figure; the end of a sentence may not.
    """
    raw = prose[max(0, start - WINDOW) : start]
    match = _LAST_WORDS.search(folded(raw))
    if match is None:
        return False
    second, between, last, gap = match.groups()
    if _SENTENCE_END.search(gap) and last != "neg":
        return False
    if last in _SIGNS or last in _MULTIPLES:
        return True
    if second is None or _SENTENCE_END.search(between):
        return False
    if second in _SIGNS:
        return last not in _JOINING
    if last == "of":
        return second in _ROOTS
    return last == "and" and second in _BIG.split()


def alters_after(prose: str, end: int) -> bool:
    """Whether the first words after prose[:end] scale it, raise it or give it a sign."""
    raw = prose[end : end + WINDOW]
    if _AFTER.match(folded(raw)) is None:
        return False
    first = next((at for at, char in enumerate(raw) if char.isalnum()), 0)
    new_sentence = _SENTENCE_END.search(raw[:first]) is not None and raw[first].isupper()
    return not new_sentence


def names_currency_after(prose: str, end: int) -> bool:
    """Whether a currency in words or as a code follows prose[:end] directly."""
    raw = prose[end : end + WINDOW]
    code = _CODE_AFTER.match(raw)
    if code is not None and code[1] in _CODES:
        return True
    return _CURRENCY_AFTER.match(folded(raw)) is not None


def names_currency_before(prose: str, start: int) -> bool:
    """Whether the code of a currency stands directly before prose[start]."""
    code = _CODE_BEFORE.search(prose[max(0, start - WINDOW) : start])
    return code is not None and code[1] in _CODES
