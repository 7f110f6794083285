"""What a model is shown: the instructions, the catalog, the question, and what was recorded since.

A prompt is made of `Shown` texts alone; there is no other way in. One request holds the whole
of it, in order, so that it can be rebuilt from artifacts and compared byte for byte.
Source: DESIGN §6, §12.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tieout.executor.record import Shown

INSTRUCTIONS_ROLE: Final = "instructions"

INSTRUCTIONS: Final = """\
You plan; you hold no tools. Reply with exactly one JSON document and nothing else: either
steps to be run for you, or an answer. Nothing you write acts on the world.

STEPS: {"steps": [STEP, ...]}
  {"do": "sql", "id": "totals", "sql": "SELECT ...", "key": ["account"], "why": "..."}
     One SELECT in DuckDB's dialect over the catalog's tables and earlier steps by id. Name every
     output column. `key` names the columns that identify a row of the result. Money is DECIMAL:
     divide with decimal_division(x, y, scale), average with decimal_average(x), never / or avg;
     cast sums to DECIMAL(18,2) before dividing. Compare dates with DATE '2026-06-30'.
     No clock, no random, no file. LIMIT and windows need an ORDER BY that ends in the key columns.
     Calculation is SQL over earlier steps; numbers are written plainly, not glued from texts.
  {"do": "search", "id": "hits", "source": "news", "query": "...", "limit": 5}
     Ranked passages of a text source: rank, document, text, raw, score, start, end, excerpt.
  {"do": "extract", "id": "pop", "from": "hits", "quote": "exact words", "near": "keyword",
   "as": "number"}
     The quote must stand exactly once in the documents found and hold one number. The result has
     one row: document, raw, text, start, end, quote, value, printed, number_start, number_end,
     unit, scale, status. Use {"as": "text"} for words.
ANSWER: {"answer": {"prose": "Cash is {cash}.", "figures": {"cash": {"step": "totals",
  "row": {"account": "1010"}, "column": "total",
  "display": {"style": "currency", "currency": "GBP", "places": 2}}},
  "quotes": {"q": {"source": "news", "document": "a.txt", "quote": "exact words"}}}}
  Put {name} where a figure belongs, with a space or plain punctuation around it: no sign, unit,
  scale word, markup or parentheses touching it. Code fills it from the cited cell. `row` gives the
  values of columns that select exactly one row, {} when the result has one row. Styles: number,
  currency, percent (the cell already is per cent), date, text. A number you type yourself is
  delivered and marked unsourced. If the evidence is not there, say so in the prose.
Each result comes back as an observation, each refusal with its reason and a way out.
"""


def segments_text(segments: Sequence[Shown]) -> tuple[str, str]:
    """(system, user) of a request: the instructions, and every other segment with its address.

    Each segment says its length, so that text inside one cannot pass for the next.
    """
    system = "".join(s.text for s in segments if s.role == INSTRUCTIONS_ROLE)
    parts = [
        f"=== {s.role} {s.address} ({len(s.text)} characters)\n{s.text}\n"
        for s in segments
        if s.role != INSTRUCTIONS_ROLE
    ]
    return system, "".join(parts)
