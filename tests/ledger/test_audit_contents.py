"""The audit inside documents: their shape, and reports compared with what they cite."""

from __future__ import annotations

import copy
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledger_rows import row
from support.recorded_close import ANYWHERE, TEXT, Close, found, number

from tieout.artifacts.table import TABLE_MEDIA
from tieout.executor.countercheck import Ties
from tieout.executor.sql.verdict import Standing
from tieout.ledger.audit.contents import BATCH_MEDIA, MANIFEST_MEDIA, REPORT_MEDIA
from tieout.ledger.audit.document_shapes import LABELS, STANDINGS, STATUSES, TIES
from tieout.ledger.audit.findings import Level
from tieout.ledger.audit.forms import DEPTH_MAX, NotOfTheProfile, read_json
from tieout.ledger.canon import encode
from tieout.ledger.citation import AnswerStatus, Label
from tieout.ledger.row import Kind

MEDIA = (MANIFEST_MEDIA, REPORT_MEDIA, BATCH_MEDIA)


@pytest.fixture
def close() -> Close:
    return Close()


def test_documents_that_hold(close: Close) -> None:
    report = close.check()
    assert report.findings == ()
    assert report.objects == 10


# --- shapes ---------------------------------------------------------------------------------


def members(value: object, path: tuple[str | int, ...] = ()):
    """The path of every member and item, outermost first."""
    if isinstance(value, dict):
        inner = list(value.items())
    else:
        inner = list(enumerate(value)) if isinstance(value, list) else []
    for key, item in inner:
        yield (*path, key)
        yield from members(item, (*path, key))


def at(value, path: tuple[str | int, ...]):
    for key in path:
        value = value[key]
    return value


OPEN = re.compile(r"reading\.(bom|newline|rejects|reasons\.|columns\.\d\.rule\.)")
DOCUMENTS = {"manifest": 0, "texts": 1, "report": 3, "batch": 4}


def bent_documents(name: str, change):
    """The document with each of its members changed in turn."""
    whole = getattr(Close(), name)
    for path in list(members(whole)):
        if OPEN.match(".".join(map(str, path))):
            continue
        bent = copy.deepcopy(whole)
        if change(at(bent, path[:-1]), path[-1]):
            yield path, bent


def malformed(close: Close, name: str, bent: dict[str, object]) -> None:
    original = getattr(close, name)
    setattr(close, name, bent)
    rows = close.rows()
    setattr(close, name, original)
    report = close.check(rows[: DOCUMENTS[name] + 1])
    codes = {code for code, _ in found(report)}
    assert codes == {"document.malformed"}, report.findings


@pytest.mark.parametrize("name", list(DOCUMENTS))
def test_a_document_that_lacks_a_member_is_found(close: Close, name: str) -> None:
    def cut(holder, key) -> bool:
        if isinstance(holder, dict):
            del holder[key]
        return isinstance(holder, dict)

    tried = 0
    for path, bent in bent_documents(name, cut):
        if name == "report" and path[0] in {"steps", "expectations"} and len(path) == 3:
            continue  # the inside of these is open, see the next test
        malformed(close, name, bent)
        tried += 1
    assert tried >= 4


@pytest.mark.parametrize("name", list(DOCUMENTS))
def test_a_member_of_another_type_is_found(close: Close, name: str) -> None:
    """7 stands where no number may, and a list where one may."""

    def spoil(holder, key) -> bool:
        holder[key] = [[]] if type(holder[key]) is int else 7
        return True

    tried = 0
    for path, bent in bent_documents(name, spoil):
        if path[-2:] != ("key", 0):
            malformed(close, name, bent)
            tried += 1
    assert tried >= 6


def test_a_member_that_is_unknown_is_found(close: Close) -> None:
    for name in DOCUMENTS:
        malformed(close, name, getattr(close, name) | {"more": 1})


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("manifest", ("kind",), "picture"),
        ("manifest", ("kind",), "text"),
        ("manifest", ("format",), "tieout.snapshot/2"),
        ("manifest", ("declaration",), "[]"),
        ("manifest", ("declaration",), "{"),
        ("manifest", ("declaration",), ""),
        ("manifest", ("declaration",), "[" * 60_000),
        ("manifest", ("declaration",), '{"a":1,"a":2}'),
        ("manifest", ("file", "address"), "blake3:0"),
        ("manifest", ("table", "control_totals"), [["amount"]]),
        ("texts", ("documents", 0, "published"), "soon"),
        ("report", ("status",), "fine"),
        ("report", ("figures", 0, "label"), "certain"),
        ("report", ("numbers", 0, "label"), "certain"),
        ("report", ("numbers", 0, "start"), -1),
        ("report", ("figures", 0), "total"),
        ("report", ("figures", 0, "address"), None),
        ("report", ("figures", 0, "row"), None),
        ("report", ("figures", 3, "column"), "total"),
        ("report", ("quotes", 0, "kind"), "cell"),
        ("report", ("question",), {"id": "q", "text": "?"}),
        ("report", ("steps", 0, "executed"), "SELECT 1"),
        ("report", ("steps", 0, "standing"), "fine"),
        ("report", ("steps", 0, "ties"), "maybe"),
        ("report", ("steps", 0, "rewrites", 0, "line"), -1),
        ("batch", ("questions", 0, "status"), "fine"),
        ("batch", ("questions", 0, "ties"), 1),
    ],
)
def test_a_value_that_the_format_does_not_know_is_found(close: Close, name, path, value) -> None:
    bent = copy.deepcopy(getattr(close, name))
    at(bent, path[:-1])[path[-1]] = value
    malformed(close, name, bent)


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b"7", b"\xff", b"[" * 100_000, b'{"a":' * 5_000, b"[" * 900 + b"]" * 900,
     b"{}", b'{"a":1,"a":1}', b'{"a":1.5}', b'{"a":"\\ud800"}'],
)  # fmt: skip
def test_documents_that_are_none_are_found_and_never_make_it_raise(close, payload) -> None:
    for media in MEDIA:
        report = close.check([row(0, deterministic_output=close.output(payload, media))])
        assert set(found(report)) == {("document.malformed", 0)}


def test_a_document_that_is_not_canonical_is_found(close: Close) -> None:
    for name, media in (("manifest", MANIFEST_MEDIA), ("report", REPORT_MEDIA)):
        payload = encode(getattr(close, name)).replace(b'"', b' "', 1)
        output = close.output(payload, media, row_count=None)
        report = close.check([*close.rows()[:3], row(9, deterministic_output=output)])
        assert found(report) == [("document.malformed", 3)]


def test_nesting_is_bounded_as_it_is_said() -> None:
    within = b"[" * DEPTH_MAX + b"]" * DEPTH_MAX
    assert read_json(within)[1]
    with pytest.raises(NotOfTheProfile):
        read_json(b"[" + within + b"]")


def test_the_words_of_the_format_are_those_of_the_writer() -> None:
    assert tuple(Label) == LABELS
    assert tuple(AnswerStatus) == STATUSES
    assert tuple(Ties) == TIES
    assert tuple(s for s in Standing if s is not Standing.REFUSED) == STANDINGS


# --- reports --------------------------------------------------------------------------------

CHANGES = {
    "another value": (("figures", 0, "value"), "-3", "report.value"),
    "a value for null": (("figures", 1, "value"), "0", "report.value"),
    "null for a value": (("figures", 0, "value"), None, "report.value"),
    "another column": (("figures", 0, "column"), "sum", "report.cell"),
    "another row": (("figures", 0, "row"), "2", "report.cell"),
    "a span's words": (("figures", 2, "span", "quote"), "125 million", "report.quote"),
    "a span's start": (("figures", 2, "span", "start"), 9, "report.quote"),
    "a span beyond the end": (("figures", 2, "span", "end"), 999, "report.quote"),
    "an empty span": (("figures", 2, "span", "end"), 10, "report.quote"),
    "a quote's start": (("quotes", 0, "start"), 9, "report.quote"),
    "shown otherwise": (("figures", 0, "shown"), "(3)", "report.prose"),
    "another prose": (("prose",), "The total is (2) of 5, not 9; so “124 million”.",
                      "report.prose"),
    "another template": (("template",), "{total}", "report.prose"),
    "a figure that is none": (("figures", 0, "name"), "sum", "report.prose"),
    "a number elsewhere": (("numbers", 2, "start"), 28, "report.number"),
    "a number beyond the end": (("numbers", 2, "end"), 999, "report.number"),
    "a number's text": (("numbers", 2, "text"), "8", "report.number"),
    "a number's figure": (("numbers", 0, "figure"), "nobody", "report.number"),
    "a number's label": (("numbers", 0, "label"), "question", "report.label"),
    "a quoted number's label": (("numbers", 3, "label"), "question", "report.label"),
    "a better status": (("status",), "answered", "report.status"),
    "a better label": (("numbers", 2, "label"), "question", "report.status"),
}  # fmt: skip


@pytest.mark.parametrize(("path", "value", "code"), list(CHANGES.values()), ids=list(CHANGES))
def test_a_report_is_compared_with_what_it_cites(close: Close, path, value, code) -> None:
    at(close.report, path[:-1])[path[-1]] = value
    broken = found(close.check(close.rows()[:4]))
    assert (code, 3) in broken
    # A figure of another name leaves the number of its old name behind.
    assert {name for name, _ in broken} <= {code, "report.number"}


def test_a_report_that_failed_may_have_any_prose_but_not_other_numbers(close: Close) -> None:
    close.report |= {"status": "failed", "prose": "No answer: 9 turns.", "figures": [],
                     "quotes": [], "numbers": [number(11, "9", label="unsourced")]}  # fmt: skip
    close.batch["questions"][0]["status"] = "failed"
    assert close.check().findings == ()
    close.report["numbers"][0]["text"] = "8"
    assert found(close.check(close.rows()[:4])) == [("report.number", 3)]


def test_a_figure_of_a_failed_report_still_stands_in_its_prose(close: Close) -> None:
    close.report["status"] = close.batch["questions"][0]["status"] = "failed"
    assert close.check().findings == ()
    close.report["figures"][0]["shown"] = "(3)"
    assert found(close.check(close.rows()[:4])) == [("report.prose", 3)]


def test_what_a_reader_would_not_see_may_stand_in_the_prose_as_its_escape(close: Close) -> None:
    text = close.keep(b"124\xc2\xadm", "text", "text/plain")
    quote = close.report["quotes"][0]
    quote |= {"text": str(text.address), "start": 0, "end": 5, "quote": "124\u00adm"}
    whole = close.report["prose"]
    for shown, holds in (("124\u00adm", True), (r"124\u{AD}m", True), (r"124\u{AE}m", False),
                         (r"124\u{110000}m", False), ("124m", False)):  # fmt: skip
        close.report["prose"] = whole.replace("124 million", shown)
        close.report["numbers"] = [number(27, "9", label="unsourced")]
        rows = [row(9, attachments=(text,)), *close.rows()[:4]]
        assert found(close.check(rows)) == ([] if holds else [("report.prose", 4)])


def test_a_quote_of_what_is_no_text_is_found(close: Close) -> None:
    image = close.keep(b"\xff\xfe\xfd", "image", "image/png")
    close.report["quotes"][0]["text"] = str(image.address)
    rows = close.rows()
    rows[2:2] = [row(9, attachments=(image,))]
    assert found(close.check(rows)) == [("report.quote", 4)]


def test_a_report_may_not_rest_on_what_was_recorded_after_it(close: Close) -> None:
    rows = close.rows()
    late = [*rows[:2], row(3, kind=Kind.REPORT, deterministic_output=rows[3].deterministic_output)]
    assert found(close.check([*late, rows[2]])) == [("report.unrecorded", 2)]


def test_a_report_citing_what_is_no_table_or_not_there(close: Close) -> None:
    close.report["figures"][0]["address"] = str(close.text.address)
    assert found(close.check()) == [("report.cell", 3)]
    close = Close()
    close.report["figures"][0]["address"] = "blake3:" + "1" * 64
    report = close.check()
    assert found(report) == [("report.unrecorded", 3), ("object.missing", 3)]
    assert [f.code for f in report.findings if f.level is Level.UNCHECKED] == ["report.unchecked"]


# --- the list of a run ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "change", [{"id": "p"}, {"status": "answered"}, {"ties": False}], ids=lambda c: next(iter(c))
)
def test_a_batch_is_compared_with_its_reports(close: Close, change) -> None:
    close.batch["questions"][0] |= change
    assert found(close.check()) == [("batch.differs", 4)]


def test_an_expectation_that_does_not_hold_is_told_by_the_batch_too(close: Close) -> None:
    close.report["expectations"].append({"name": "pop", "holds": False})
    assert found(close.check()) == [("batch.differs", 4)]


def test_a_batch_names_reports_that_were_recorded_before(close: Close) -> None:
    close.batch["questions"][0]["report"] = str(close.text.address)
    assert found(close.check()) == [("batch.report", 4)]
    close.batch["questions"][0]["report"] = ANYWHERE
    assert found(close.check()) == [("report.unrecorded", 4), ("object.missing", 4)]
    close = Close()
    rows = close.rows()
    late = row(5, kind=Kind.REPORT, deterministic_output=rows[4].deterministic_output)
    assert found(close.check([*rows[:3], late, rows[3]])) == [("report.unrecorded", 3)]


# --- anything at all ------------------------------------------------------------------------

CLOSE = Close()
WORDS = ["figures", "quotes", "steps", "inputs", "span", "address", "row", "column", "value",
         "text", "start", "end", "quote", "table", "records", "file", "documents", "reading",
         "lines", "control_totals", "content_digest", "rows", "questions", "report", "kind",
         "numbers", "prose", "template", "label", "status"]  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(
    ["1", "table", "text", "sourced", "blake3:" + "2" * 64, str(CLOSE.bank.address)]
)  # fmt: skip
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=6)
    ),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(WORDS), JSON))
def test_any_document_gives_findings_never_an_error(document) -> None:
    for media in MEDIA:
        report = CLOSE.check([row(0, deterministic_output=CLOSE.output(encode(document), media))])
        assert ("document.malformed", 0) in found(report)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(DOCUMENTS)), st.data())
def test_a_document_bent_anywhere_gives_findings_never_an_error(name: str, data) -> None:
    close = Close()
    whole = getattr(close, name)
    path = data.draw(st.sampled_from(list(members(whole))))
    at(whole, path[:-1])[path[-1]] = data.draw(JSON)
    close.check()


def test_the_audit_of_a_table_artifact_named_as_a_document(close: Close) -> None:
    """Media types are the writer's word: one address may be called two things."""
    output = close.output(TEXT, REPORT_MEDIA)
    table = close.output(TEXT, TABLE_MEDIA)
    report = close.check([row(0, deterministic_output=output), row(1, deterministic_output=table)])
    assert found(report) == [("document.malformed", 0), ("table.malformed", 1)]
