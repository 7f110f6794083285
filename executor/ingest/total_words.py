"""Words that name a total, a balance or a print line in the first field of a record."""

from __future__ import annotations

import re

# Also read by RE2, so without what that does not have.
TOTAL_PATTERN = (
    r"\W*(?:(?:report|page|batch|overall|running|final|sub|grand|zwischen|gesamt|end|schluss)?[- ]?"
    r"(?:totals?|totaal|totale|summen?|saldo)|sum|gesamt|insgesamt|somme|suma"
    r"|printed|end of report|record count"
    r"|(?:opening|closing|ending) balance|balance (?:carried|brought|[cb]/[fd])"
    r"|(?:carried|brought) forward)\b"
)
_TOTAL = re.compile(TOTAL_PATTERN, re.IGNORECASE)
# They begin an account and are no total of what stands above them.
_OPENING = re.compile(r"\W*(?:opening|(?:balance )?(?:brought|b/[fd]))", re.IGNORECASE)
# What may follow when the field names nothing but the total: no vendor, no group.
_TAIL = re.compile(
    r"(?:amounts?|net|gross|generale?|due|balances?|sum|debits?|credits?|records?|rows?|items?"
    r"|lines?|entries|transactions?|count|of|for|the|at|as|on|per|by|date|period|to|from|month|year"
    r"|page|and|am|zum|bis|vom|und|forward|carried|down"
    r"|eur|usd|gbp|chf|jpy|cad|aud|nzd|sek|nok|dkk|pln|czk"
    r"|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:tember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_WORD = re.compile(r"[^\W\d_]+")


def total_word(name: str) -> str:
    """The word with which the name of a total begins, "" when it is none."""
    found = _TOTAL.match(name)
    return found[0] if found else ""


def is_opening(name: str) -> bool:
    """Whether a total word is that of an opening balance."""
    return _OPENING.match(name) is not None


def is_bare(name: str) -> bool:
    """Whether a name says that it is a total and nothing else, as "Total EUR 2026" does."""
    tail = name[len(total_word(name)) :]
    return bool(total_word(name)) and all(map(_TAIL.fullmatch, _WORD.findall(tail.casefold())))
