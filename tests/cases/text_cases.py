"""Cases over text: quotes, offsets, character sets, numbers, search; through the functions."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from number_cases import STRICT, certain
from verdict import Verdict, failed, passed, waiting

from tieout.artifacts.address import Address
from tieout.artifacts.errors import RoomError
from tieout.artifacts.memory import MemoryStore
from tieout.artifacts.text import TextSnapshot, snapshot_text
from tieout.executor.errors import ExecutorError
from tieout.executor.numbers import FIGURES, find_numbers
from tieout.executor.quotes import locate
from tieout.executor.search import Document, build_index, search
from tieout.executor.world import World
from tieout.ledger.citation import Label
from tieout.planner.labels import QuestionNumbers
from tieout.planner.prose import audit_prose

Json = Mapping[str, Any]
HITS_MAX: Final = 50
MARKER: Final = re.compile(r"\s*\[c[a-z]\]")


class Unknown(Exception):
    """The case has a form that the runner does not know."""


def run_text_case(name: str, document: Json) -> Verdict:
    """Run a case by its kind. name: of its folder."""
    case = f"text/{name}"
    kind = str(document.get("kind"))
    handler = _HANDLERS.get(kind)
    if handler is None:
        return waiting(case, f"nothing runs the kind {kind!r} yet")
    try:
        wrong, note = handler(document["input"], document["expect"])
    except Refused as error:
        return waiting(case, f"refused, not wrong: {error}; not read yet")
    except (Unknown, KeyError, TypeError, ValueError, ArithmeticError) as error:
        return waiting(case, f"another form than the runner knows: {error!r}")
    except RoomError as error:
        later = error.code == "text.media_unsupported"
        return (waiting if later else failed)(case, f"{error.code}: {error.message}")
    if wrong and document["input"].get("lang", "en") not in STRICT:
        return waiting(case, f"only English is promised so far: {'; '.join(wrong)}")
    return failed(case, "; ".join(wrong)) if wrong else passed(case, note)


Judged = tuple[list[str], str]


class Refused(Exception):
    """The product reads nothing where the case expects a value: no wrong answer, none yet."""


def _snapshot(given: Json) -> TextSnapshot:
    """The case's text as the product keeps it."""
    if "raw_b64" in given:
        raw = base64.b64decode(given["raw_b64"])
        return snapshot_text(
            raw, media=given.get("media", "text/html"), charset=given.get("http_charset")
        )
    if "html" in given:
        return snapshot_text(given["html"].encode(), media="text/html", charset="utf-8")
    return snapshot_text(given["text"].encode(), media="text/plain", charset="utf-8")


def _quote(given: Json, expect: Json) -> Judged:
    """Quotes and offsets: the place is found by code; offsets from elsewhere are only compared."""
    text = _snapshot(given)
    if "quotes" in given:
        statuses = [_status(text.text, quote)[0] for quote in given["quotes"]]
        return _unequal("statuses", expect["statuses"], statuses), ""
    narrow = {key: given[key] for key in ("prefix", "suffix", "occurrence") if key in given}
    status, start, end, several = _status(text.text, given["quote"], **narrow)
    claimed = (given.get("start", start), given.get("end", end))
    if status == "exact" and claimed != (start, end):
        status = "offset_mismatch"
    found: dict[str, object] = {
        "status": status,
        "start": start,
        "end": end,
        "correct": [start, end],
        "n": several,
        "occurrence": text.text.count(given["quote"], 0, max(start, 0)) + 1,
        "without_prefix": _status(text.text, given["quote"])[0],
        "unit": "code point",
    }
    if start >= 0:
        found["raw"] = [n for span in text.byte_ranges(start, end) for n in span]
    wrong = []
    for key, value in expect.items():
        if key == "note":
            continue
        if key not in found:
            raise Unknown(key)
        wrong += _unequal(key, value, found[key])
    return wrong, ""


def _status(text: str, quote: str, **narrow: Any) -> tuple[str, int, int, int]:
    """How a quote stands in a text: status, start and end (-1 if nowhere), number of places."""
    try:
        span = locate(text, quote, **narrow)
    except ExecutorError as error:
        places = error.place.removeprefix("offsets ").split(", ")
        several = len(places) if error.code == "quote.ambiguous" else 0
        return error.code.removeprefix("quote."), -1, -1, several
    if text[span.start : span.end] != quote and span.status == "exact":
        return "offset_mismatch", span.start, span.end, 1
    return span.status, span.start, span.end, 1


def _extract(given: Json, expect: Json) -> Judged:
    """What must stand in the text of a page, in order if the case says so."""
    text = _snapshot(given).text
    wrong = [f"the text does not hold {part!r}" for part in expect["contains"] if part not in text]
    places = [text.find(part) for part in expect["contains"]]
    if expect.get("order") and places != sorted(places):
        wrong.append("the parts stand in another order")
    return wrong, ""


def _charset(given: Json, expect: Json) -> Judged:
    """The character set of a page."""
    page = _snapshot(given)
    wrong, _ = _extract(given, expect)
    if "encoding" in expect:
        wrong += _unequal("encoding", expect["encoding"], page.encoding)
    if "replacement_chars" in expect:
        count = page.text.count("\N{REPLACEMENT CHARACTER}")
        wrong += _unequal("replacement_chars", expect["replacement_chars"], count)
    return wrong, ""


def _number(given: Json, expect: Json) -> Judged:
    """Numbers: what is read for certain is right; what is not read is refused."""
    page = _snapshot(given)
    found = certain(page.text)
    values = [token.value for token in found if token.value is not None]
    wanted = [Decimal(value) for value in expect.get("values", ())]
    allowed = wanted + [_decimal(v) for v in (*expect.get("optional", ()),
                                              *expect.get("acceptable", ()))]  # fmt: skip
    never = {Decimal(value) for value in expect.get("not_values", ())}
    wrong = [f"reads {v}, which stands nowhere" for v in values if v not in allowed or v in never]
    for skip in expect.get("skip", ()):
        at = page.text.find(skip)
        wrong += [f"takes {skip!r} for a figure" for t in found if at <= t.start < at + len(skip)]
    if "dates" in expect and any(t.kind == "date" for t in find_numbers(page.text)):
        wrong.append("takes a figure for a date")
    if expect.get("hidden_text_kept_apart") and not page.hidden:
        wrong.append("the hidden text is lost or mixed in")
    missing = [str(value) for value in wanted if value not in values]
    if wrong or not missing:
        return wrong, "" if values or not never else "refused as ambiguous"
    if expect.get("acceptable"):
        return [], "refused, as is acceptable"
    tokens = [t.text for t in find_numbers(page.text) if t.kind in FIGURES]
    raise Refused(f"{', '.join(missing)} is not read" + (f" from {tokens}" if tokens else ""))


def _decimal(text: str) -> Decimal | None:
    """A number, or None for words such as `flagged ambiguous`."""
    return Decimal(text) if text.replace(".", "", 1).lstrip("-").isdigit() else None


def _search(given: Json, expect: Json) -> Judged:
    """Ranking: current index, positive scores, pages that are beginnings of the whole list."""
    documents = _documents(given["docs"])
    manifest, index = build_index(list(documents.values()))
    wrong = []
    if "add_after_index" in given:
        documents |= _documents(given["add_after_index"])
        newer, current = build_index(list(documents.values()))
        try:
            search(index, newer, documents, given["query"], limit=HITS_MAX, as_of=None)
            wrong.append("an index over an older manifest was searched")
        except ExecutorError as error:
            wrong += _unequal("code", "search.stale_index", error.code)
        manifest, index = newer, current

    def ranked(limit: int) -> tuple[list[str], list[int]]:
        hits = search(index, manifest, documents, given["query"], limit=limit, as_of=None)
        return hits["document"].to_pylist(), hits["score"].to_pylist()

    names, scores = ranked(HITS_MAX)
    if "result" in expect:
        wrong += _unequal("result", expect["result"], names)
    if "first_two" in expect:
        wrong += _unequal("first two", expect["first_two"], names[:2])
    if expect.get("scores_positive") and min(scores, default=0) <= 0:
        wrong.append(f"scores are not positive: {scores}")
    if expect.get("prefix_property"):
        pages = [ranked(limit)[0] for limit in given["limits"]]
        wrong += [f"page {page} is no beginning" for page in pages if page != names[: len(page)]]
    return wrong, ""


def _prose(given: Json, expect: Json) -> Judged:
    """Labels of numbers that a model types itself. Markers beside them are not read yet: what is
    typed is unsourced whatever stands beside it, so only cases that expect just that are run."""
    labels = expect["labels"]
    if any(label != Label.UNSOURCED for _, label in labels) or set(expect) != {"labels"}:
        raise Refused("a label for a typed number beside a marker")
    prose = MARKER.sub("", given["answer"])
    no_results = World(store=MemoryStore(), sources={})
    found = [
        [number.text, str(number.label)]
        for number in audit_prose(prose, (), {}, no_results, QuestionNumbers.of(""))
    ]
    return _unequal("labels", labels, found), ""


def _documents(texts: Mapping[str, str]) -> dict[str, Document]:
    return {
        name: Document(
            name=name,
            address=str(Address.of(text.encode())),
            raw=str(Address.of(text.encode())),
            text=text,
            published=None,
        )
        for name, text in texts.items()
    }


def _unequal(what: str, expected: object, found: object) -> list[str]:
    return [] if expected == found else [f"{what}: expected {expected}, found {found}"]


_HANDLERS: Final[Mapping[str, Callable[[Json, Json], Judged]]] = {
    "quote": _quote,
    "offset": _quote,
    "extract": _extract,
    "charset": _charset,
    "number": _number,
    "search": _search,
    "prose": _prose,
    "conflict": _prose,
}
