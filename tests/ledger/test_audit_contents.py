"""The audit inside documents: tables, manifests and reports, decoded a second time."""

from __future__ import annotations

import copy
import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledger_rows import row

from tieout.artifacts.memory import MemoryStore
from tieout.artifacts.table import TABLE_MEDIA, canonical
from tieout.artifacts.values import cell_text, row_key, type_name
from tieout.ledger.audit.cells import NoSuchCell, find_cell
from tieout.ledger.audit.contents import MANIFEST_MEDIA, REPORT_MEDIA
from tieout.ledger.audit.findings import Level, Report
from tieout.ledger.audit.fsck import check_rows
from tieout.ledger.audit.objects import StoreObjects
from tieout.ledger.audit.tables import MalformedTable, derive
from tieout.ledger.canon import encode
from tieout.ledger.log import MemoryLog
from tieout.ledger.row import Attachment, Input, Kind, LedgerRow, OutputRef

VECTORS = json.loads(
    (Path(__file__).parents[2] / "docs" / "vectors" / "table.json").read_text("utf-8")
)


# --- tables: the second decoder against the vectors and against the first -------------------


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_the_vectors_of_the_format(vector) -> None:
    derived = derive(bytes.fromhex(vector["payload_hex"]))
    assert derived.digest == vector["content_digest"]
    assert [list(total) for total in derived.totals] == vector["control_totals"]
    assert derived.rows == len(vector["rows"])


INTEGERS = {
    kind: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for kind, bits in ((pa.int8(), 8), (pa.int16(), 16), (pa.int32(), 32), (pa.int64(), 64))
} | {
    kind: st.integers(0, 2**bits - 1)
    for kind, bits in ((pa.uint8(), 8), (pa.uint16(), 16), (pa.uint32(), 32), (pa.uint64(), 64))
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))
TYPES = INTEGERS | {
    pa.bool_(): st.booleans(),
    pa.decimal128(18, 2): st.integers(-(10**17), 10**17).map(lambda n: Decimal(n).scaleb(-2)),
    pa.decimal128(38, 0): st.integers(-(10**27), 10**27).map(Decimal),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.date32(): st.dates(),
    pa.time64("us"): st.times(),
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("us", tz="UTC"): MOMENTS.map(lambda at: at.replace(tzinfo=dt.UTC)),
    pa.string(): TEXTS,
    pa.binary(): st.binary(max_size=5),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=5))
    rows = draw(st.integers(0, 20))
    arrays = [
        pa.array(draw(st.lists(st.none() | TYPES[kind], min_size=rows, max_size=rows)), kind)
        for kind in kinds
    ]
    names = [f"{'__' if number == 2 else 'ü'}{number}" for number in range(len(kinds))]
    return pa.table(arrays, names=names)


@settings(max_examples=60, deadline=None)
@given(tables())
def test_both_decoders_agree_on_any_table(table: pa.Table) -> None:
    made = canonical(table)
    derived = derive(made.payload)
    assert (derived.digest, derived.rows, derived.totals) == (made.digest, made.rows, made.totals)


@pytest.mark.parametrize("rows", [65_535, 65_536, 65_537, 131_073])
def test_both_decoders_agree_across_runs(rows: int) -> None:
    table = pa.table(
        {
            "n": pa.array(range(rows), pa.int64()),
            "s": pa.array([None if n % 9 == 0 else str(n % 77) for n in range(rows)]),
            "b": pa.array([None if n % 5 == 0 else n % 3 == 0 for n in range(rows)]),
            "d": pa.array([None if n % 7 == 0 else n for n in range(rows)]).cast(
                pa.decimal128(20, 0)
            ),
        }
    )
    made = canonical(table)
    derived = derive(made.payload)
    assert (derived.digest, derived.totals) == (made.digest, made.totals)


def stream(table: pa.Table, rows_max: int | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, rows_max)
    return sink.getvalue().to_pybytes()


def described(table: pa.Table, **words: object) -> pa.Table:
    stated = json.dumps({"format": "tieout.table/1", "key": []} | words)
    return table.replace_schema_metadata({"tieout.table": stated})


PLAIN = pa.table({"a": pa.array([1, 2, 3], pa.int64())})
NO_TABLES = {
    "nothing": b"",
    "noise": b"\xff\xff\xff\xff" + bytes(60),
    "no metadata": stream(PLAIN),
    "more metadata": stream(
        PLAIN.replace_schema_metadata(
            {"tieout.table": '{"format":"tieout.table/1","key":[]}', "x": "y"}
        )
    ),
    "metadata that is not JSON": stream(PLAIN.replace_schema_metadata({"tieout.table": "{"})),
    "another format": stream(described(PLAIN, format="tieout.table/2")),
    "a key that is not there": stream(described(PLAIN, key=["b"])),
    "a key that is no list": stream(described(PLAIN, key=7)),
    "another run length": stream(described(PLAIN), 2),
    "a type outside the set": stream(described(pa.table({"a": pa.array([[1]])}))),
    "a dictionary": stream(described(pa.table({"a": pa.array(["x"]).dictionary_encode()}))),
}


@pytest.mark.parametrize("payload", list(NO_TABLES.values()), ids=list(NO_TABLES))
def test_bytes_that_are_no_table(payload: bytes) -> None:
    with pytest.raises(MalformedTable):
        derive(payload)


def test_a_flipped_bit_changes_the_digest_or_is_no_table() -> None:
    made = canonical(pa.table({"a": pa.array([1, None, 3], pa.int64()), "s": ["x", "", None]}))
    found = 0
    for position in range(len(made.payload)):
        changed = bytearray(made.payload)
        changed[position] ^= 1 << position % 8
        try:
            found += derive(bytes(changed)).digest != made.digest
        except MalformedTable:
            found += 1
    assert found > 100  # padding and lengths that mean nothing remain; the address covers them


# --- cells ----------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(tables())
def test_every_cell_has_the_text_that_the_writer_gives_it(table: pa.Table) -> None:
    made = canonical(table, ordered=True)
    for name in table.column_names:
        kind = type_name(table.schema.field(name).type)
        for position, value in enumerate(pa.ipc.open_stream(made.payload).read_all()[name]):
            wanted = cell_text(value.as_py(), kind)
            assert find_cell(made.payload, str(position + 1), name) == wanted


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.none() | TEXTS, st.none() | st.integers(0, 9)), unique=True, max_size=9)
)
def test_every_row_is_found_by_its_key(keys) -> None:
    table = pa.table(
        {
            "näme": pa.array([name for name, _ in keys], pa.string()),
            "no": pa.array([number for _, number in keys], pa.int64()),
            "place": pa.array(range(len(keys)), pa.int64()),
        }
    )
    made = canonical(table, key=["näme", "no"])
    for place, (name, number) in enumerate(keys):
        texts = {"näme": name, "no": None if number is None else str(number)}
        key = row_key(["näme", "no"], texts, 0)
        assert find_cell(made.payload, key, "place") == str(place)


@pytest.mark.parametrize(
    ("key", "column"),
    [("id=9", "x"), ("id=1", "y"), ("1", "x"), ("", "x"), ("!id", "x"), ("id=1&id=2", "x"),
     ("id=1&x=1", "x"), ("other=1", "x")],
)  # fmt: skip
def test_cells_that_are_not_there(key: str, column: str) -> None:
    made = canonical(pa.table({"id": [1, 2], "x": [1, 2]}), key=["id"])
    assert find_cell(made.payload, "id=2", "x") == "2"
    with pytest.raises(NoSuchCell):
        find_cell(made.payload, key, column)


@pytest.mark.parametrize("key", ["0", "3", "-1", "01", "１", "1e0", "9" * 40, "id=1"])
def test_positions_that_are_not_there(key: str) -> None:
    made = canonical(pa.table({"x": [1, 2]}))
    assert find_cell(made.payload, "2", "x") == "2"
    with pytest.raises(NoSuchCell):
        find_cell(made.payload, key, "x")


def test_a_date_that_no_calendar_has_is_no_leak() -> None:
    made = canonical(pa.table({"d": pa.array([10**8], pa.int32()).cast(pa.date32())}))
    assert derive(made.payload).digest == made.digest
    with pytest.raises(MalformedTable):
        find_cell(made.payload, "1", "d")


def test_not_a_number_has_a_text() -> None:
    made = canonical(pa.table({"x": [math.nan, math.inf, -math.inf]}), ordered=True)
    assert [find_cell(made.payload, str(n), "x") for n in (1, 2, 3)] == [
        "NaN", "Infinity", "-Infinity",
    ]  # fmt: skip


# --- manifests and reports ------------------------------------------------------------------


class Close:
    """A snapshot of a file, one of a text, a result, and the report that cites them."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        bank = canonical(
            pa.table({"__row": pa.array([1, 2], pa.int64()), "amount": pa.array([5, -7])}),
            key=["__row"],
        )
        records = canonical(pa.table({"record": [1, 2, 3]}), key=["record"])
        result = canonical(
            pa.table({"total": pa.array([-2], pa.int64()), "none": pa.nulls(1, pa.int64())})
        )
        text = self.keep(b"Japan has 124 million people.", "text", "text/plain")
        raw = self.keep(b"amount\n5\n-7\n", "raw", "text/csv")
        self.parts = [self.keep(t.payload, "table", TABLE_MEDIA) for t in (bank, records, result)]
        self.raw, self.text, self.result = raw, text, result
        self.manifest = {
            "file": {"name": "bank.csv", "address": str(raw.address)},
            "table": {
                "address": str(bank.address),
                "content_digest": bank.digest,
                "rows": 2,
                "control_totals": [list(total) for total in bank.totals],
            },
            "records": {
                "address": str(records.address),
                "content_digest": records.digest,
                "rows": 3,
            },
            "note": "blake3:" + "0" * 64,  # a stranger's words, no address of ours
        }
        self.texts = {
            "documents": [{"name": "a", "raw": str(text.address), "text": str(text.address)}]
        }
        quote = {
            "kind": "span",
            "snapshot": str(text.address),
            "text": str(text.address),
            "document": "a",
            "start": 10,
            "end": 21,
            "quote": "124 million",
        }
        cell = {"address": str(result.address), "row": "1", "column": "total"}
        self.report = {
            "prose": "blake3:" + "0" * 64,
            "figures": [
                {"name": "total", "value": "-2", "span": None, **cell},
                {"name": "none", "value": None, "span": None, **cell, "column": "none"},
                {
                    "name": "pop", "value": "5", "span": quote,
                    "address": str(bank.address), "row": "__row=1", "column": "amount",
                },
                {"name": "typed", "value": None, "address": None, "row": None, "column": None},
            ],
            "quotes": [{"name": "q", **quote}],
            "steps": [{"address": str(result.address), "inputs": [{"address": str(bank.address)}]}],
        }  # fmt: skip

    def keep(self, payload: bytes, role: str, media: str) -> Attachment:
        stored = self.store.put(payload)
        return Attachment(role, stored.address, stored.sha256, stored.size, media)

    def output(self, payload: bytes, media: str) -> OutputRef:
        stored = self.store.put(payload)
        return OutputRef(stored.address, stored.sha256, stored.size, media)

    def rows(self) -> list[LedgerRow]:
        result = OutputRef(
            self.result.address,
            self.parts[2].sha256,
            self.parts[2].size,
            TABLE_MEDIA,
            content_digest=self.result.digest,
        )
        return [
            row(0, kind=Kind.SNAPSHOT,
                deterministic_output=self.output(encode(self.manifest), MANIFEST_MEDIA),
                attachments=(self.raw, *self.parts[:2])),
            row(1, kind=Kind.SNAPSHOT,
                deterministic_output=self.output(encode(self.texts), MANIFEST_MEDIA)),
            row(2, inputs=(Input("table:bank", self.parts[0].address),
                           Input("text", self.text.address)),
                attachments=(self.parts[2],)),
            row(3, kind=Kind.REPORT,
                inputs=(Input("result", result.address),),
                deterministic_output=self.output(encode(self.report), REPORT_MEDIA)),
        ]  # fmt: skip

    def check(self, rows: list[LedgerRow] | None = None) -> Report:
        log = MemoryLog()
        log.append(self.rows() if rows is None else rows)
        raw = [(e.index, e.entry, e.previous, e.sha256_hash) for e in log.entries()]
        return check_rows(raw, StoreObjects(self.store))


@pytest.fixture
def close() -> Close:
    return Close()


def found(report: Report) -> list[tuple[str, int | None]]:
    return [(item.code, item.index) for item in report.findings if item.level is Level.BROKEN]


def test_documents_that_hold(close: Close) -> None:
    report = close.check()
    assert report.findings == ()
    assert report.objects == 8


def test_a_manifest_is_compared_with_its_tables(close: Close) -> None:
    for part, name, value, code in (
        ("table", "content_digest", "tieout.content/1:" + "0" * 64, "table.digest"),
        ("table", "rows", 3, "table.rows"),
        ("table", "control_totals", [["amount", "-3"]], "table.totals"),
        ("records", "rows", 2, "table.rows"),
        ("records", "content_digest", "x", "table.digest"),
    ):
        manifest = copy.deepcopy(close.manifest)
        close.manifest[part][name] = value
        assert found(close.check()) == [(code, 0)]
        close.manifest = manifest


def test_what_a_manifest_names_must_be_there_though_no_row_names_it(close: Close) -> None:
    rows = close.rows()[:2]
    bare = MemoryStore()
    for address in close.store.addresses():
        if address != close.text.address:
            bare.put(close.store.get(address))
    close.store = bare
    report = close.check(rows)
    assert [
        (item.code, item.address) for item in report.findings if item.level is Level.BROKEN
    ] == [("object.missing", str(close.text.address))]


CHANGES = {
    "another value": (0, {"value": "-3"}, "report.value"),
    "a value for null": (1, {"value": "0"}, "report.value"),
    "null for a value": (0, {"value": None}, "report.value"),
    "another column": (0, {"column": "sum"}, "report.cell"),
    "another row": (0, {"row": "2"}, "report.cell"),
    "no row": (0, {"row": None}, "report.malformed"),
    "a quote's words": (2, {"span": {"quote": "125 million"}}, "report.quote"),
    "a quote's start": (2, {"span": {"start": 9}}, "report.quote"),
    "a quote beyond the end": (2, {"span": {"end": 999}}, "report.quote"),
    "a quote of nothing": (2, {"span": {"end": 10, "quote": ""}}, "report.quote"),
    "a quote without place": (2, {"span": {"start": None}}, "report.malformed"),
}


@pytest.mark.parametrize(("figure", "change", "code"), list(CHANGES.values()), ids=list(CHANGES))
def test_a_report_is_compared_with_what_it_cites(close: Close, figure, change, code) -> None:
    part = close.report["figures"][figure]
    if "span" in change:
        part["span"] = part["span"] | change["span"]
    else:
        part |= change
    report = close.check()
    assert found(report) == [(code, 3)]


def test_a_quote_of_the_answer_is_compared_too(close: Close) -> None:
    close.report["quotes"][0]["quote"] = "124 billion"
    assert found(close.check()) == [("report.quote", 3)]


def test_a_report_may_not_rest_on_what_was_recorded_after_it(close: Close) -> None:
    rows = close.rows()
    late = [
        rows[0],
        rows[1],
        row(3, kind=Kind.REPORT, deterministic_output=rows[3].deterministic_output),
        rows[2],
    ]
    assert found(close.check(late)) == [("report.unrecorded", 2)]


def test_a_report_citing_what_is_no_table_or_not_there(close: Close) -> None:
    close.report["figures"][0]["address"] = str(close.text.address)
    assert found(close.check()) == [("report.cell", 3)]
    close.report["figures"][0]["address"] = "blake3:" + "1" * 64
    assert found(close.check()) == [("report.unrecorded", 3), ("report.cell", 3)]


@pytest.mark.parametrize("payload", [b"", b"[]", b"\xff", b"[" * 100_000, b"{}"])
def test_documents_that_are_none_never_make_it_raise(close: Close, payload: bytes) -> None:
    for media in (MANIFEST_MEDIA, REPORT_MEDIA):
        report = close.check([row(0, deterministic_output=close.output(payload, media))])
        expected = [] if payload == b"{}" else [("document.malformed", 0)]
        assert found(report) == expected


CLOSE = Close()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["1", "blake3:" + "2" * 64]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["figures", "quotes", "steps", "inputs", "span", "address", "row", "column", "value",
             "text", "start", "end", "quote", "table", "records", "file", "documents",
             "control_totals", "content_digest", "rows"]
        ),
        inner,
        max_size=6,
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["figures", "quotes", "steps", "table", "records", "file", "documents"]),
        JSON,
    )
)
def test_any_document_gives_findings_never_an_error(document) -> None:
    for media in (MANIFEST_MEDIA, REPORT_MEDIA):
        CLOSE.check([row(0, deterministic_output=CLOSE.output(encode(document), media))])
