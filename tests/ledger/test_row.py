"""Rows: what may stand in one, its bytes, and the strict way back."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledger_rows import NOON, ROWS, row

from tieout.artifacts.address import Address
from tieout.artifacts.errors import RoomError
from tieout.artifacts.store import RetentionClass
from tieout.ledger.audit.shapes import read_entry
from tieout.ledger.errors import LedgerError
from tieout.ledger.row import (
    ENTRY_BYTES_MAX,
    INSTRUCTION_BYTES_MAX,
    MESSAGE_CHARS_MAX,
    Attachment,
    ControlTotal,
    ExecutorInfo,
    Input,
    Kind,
    LedgerRow,
    ModelUse,
    Outcome,
    OutputRef,
    Position,
    Status,
    instruction_fits,
)

ADDRESS = Address.of(b"x")
SHA = "0" * 64
FULL = row(
    inputs=(Input("table:bank", ADDRESS),),
    executed=ADDRESS,
    deterministic_output=OutputRef(
        ADDRESS,
        SHA,
        3,
        "text/plain",
        content_digest="tieout.content/1:" + SHA,
        row_count=1,
        control_totals=(ControlTotal("total", "1.00"),),
        version="v1",
    ),
    attachments=(Attachment("observation", ADDRESS, SHA, 3, "text/plain"),),
    executor=ExecutorInfo("duckdb", "2.0.1", "abc", {"threads": "1"}),
    model=ModelUse(provider="anthropic", input_tokens=1),
    outcome=Outcome(Status.REFUSED, "sql.write", "it writes", Position(1, 2)),
)


@settings(max_examples=200)
@given(ROWS)
def test_every_row_comes_back_byte_for_byte(made: LedgerRow) -> None:
    payload = made.entry()
    again = LedgerRow.parse(payload)
    assert again == made
    assert again.entry() == payload


def test_the_bytes_of_a_row_are_these() -> None:
    """Dear to change: whoever changes this line makes every older ledger another format."""
    address = str(Address.of(b""))
    assert row(executed=Address.of(b"")).entry().decode() == (
        '{"attachments":[],"attempt":1,"deterministic_output":null,"executed":"' + address + '",'
        '"execution_timestamp":"2026-06-30T12:00:00.000000Z","executor":{"build":"","name":"duckdb",'
        '"settings":{},"version":"2.0.1"},"inputs":[],"kind":"sql","model":null,"outcome":{"code":"",'
        '"message":"","position":null,"status":"done"},"raw_llm_instruction":"SELECT 1 AS one",'
        '"req":"req-0","step_sequence":0,"subject":"bank-1010/t1/totals","tool_name":"sql",'
        '"trace_id":"trace-1","v":"tieout.entry/1"}'
    )


def test_the_bytes_do_not_depend_on_hash_order_or_locale() -> None:
    program = (
        "from support.ledger_rows import row; from tieout.ledger.row import ExecutorInfo;"
        "import sys; sys.stdout.buffer.write(row(executor=ExecutorInfo('d', '1', '',"
        " {key: key for key in {'threads', 'seed', 'order', 'nulls'}})).entry())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONPATH": "tests", "PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": zone},
            cwd=os.path.dirname(os.path.dirname(os.path.dirname(__file__))),
            capture_output=True,
            check=True,
        ).stdout
        for seed, locale, zone in (("1", "C", "UTC"), ("2", "C.UTF-8", "Asia/Tokyo"))
    }
    assert len(outputs) == 1


def test_settings_are_kept_as_they_were_given() -> None:
    given_settings = {"threads": "1"}
    info = ExecutorInfo("duckdb", "2", settings=given_settings)
    given_settings["threads"] = "8"
    assert info.settings == {"threads": "1"}
    with pytest.raises(TypeError):
        info.settings["threads"] = "8"  # type: ignore[index]
    assert hash(info) == hash(ExecutorInfo("duckdb", "2", settings={"threads": "1"}))


REFUSED = {
    "an empty req": {"req": ""},
    "a req with a NUL": {"req": "a\0b"},
    "a req too long": {"req": "x" * 401},
    "a surrogate": {"subject": "\ud800"},
    "a kind as plain text": {"kind": "sql"},
    "an unknown kind": {"kind": "thought"},
    "a negative step": {"step_sequence": -1},
    "a step of 2^53": {"step_sequence": 2**53},
    "true for a number": {"attempt": True},
    "a float": {"attempt": 1.0},
    "a list for a tuple": {"inputs": [Input("a", ADDRESS)]},
    "a text for an input": {"inputs": ("blake3:x",)},
    "a text for an address": {"executed": str(ADDRESS)},
    "bytes for an instruction": {"raw_llm_instruction": b"SELECT"},
    "no executor": {"executor": None},
    "no outcome": {"outcome": None},
    "a dict for a model": {"model": {}},
    "a local time": {"execution_timestamp": "2026-06-30T12:00:00.000000+02:00"},
    "a time without fraction": {"execution_timestamp": "2026-06-30T12:00:00Z"},
    "a day that is not": {"execution_timestamp": "2026-06-31T12:00:00.000000Z"},
    "a leap second": {"execution_timestamp": "2026-06-30T23:59:60.000000Z"},
    "a line end after it": {"execution_timestamp": NOON + "\n"},
    "other digits": {"execution_timestamp": NOON.replace("2026", "２０２６")},
}


@pytest.mark.parametrize("changes", list(REFUSED.values()), ids=list(REFUSED))
def test_rows_that_cannot_be_are_refused(changes) -> None:
    with pytest.raises(LedgerError) as caught:
        row(**changes)
    assert caught.value.code == "entry.malformed"
    assert caught.value.place.startswith(next(iter(changes)))


PARTS = {
    "a role": lambda: Input("", ADDRESS),
    "a sha256": lambda: Attachment("a", ADDRESS, "0" * 63, 1, "a/b"),
    "upper case": lambda: Attachment("a", ADDRESS, "A" * 64, 1, "a/b"),
    "a size": lambda: Attachment("a", ADDRESS, SHA, -1, "a/b"),
    "a media type": lambda: Attachment("a", ADDRESS, SHA, 1, ""),
    "a class": lambda: Attachment("a", ADDRESS, SHA, 1, "a/b", "retain"),
    "a digest": lambda: OutputRef(ADDRESS, SHA, 1, "a/b", content_digest=SHA),
    "a row count": lambda: OutputRef(ADDRESS, SHA, 1, "a/b", row_count=-1),
    "totals in a list": lambda: OutputRef(ADDRESS, SHA, 1, "a/b", control_totals=[]),
    "a total": lambda: ControlTotal("a", 1),
    "a line": lambda: Position(0, 1),
    "a status": lambda: Outcome("done"),
    "a setting": lambda: ExecutorInfo("a", "1", settings={"threads": 1}),
    "a setting's key": lambda: ExecutorInfo("a", "1", settings={"é": "1"}),
    "tokens": lambda: ModelUse(input_tokens=-1),
    "a model's name": lambda: ModelUse(id=7),
}


@pytest.mark.parametrize("make", list(PARTS.values()), ids=list(PARTS))
def test_parts_that_cannot_be_are_refused(make) -> None:
    with pytest.raises(LedgerError) as caught:
        make()
    assert caught.value.code == "entry.malformed"


def test_a_long_instruction_must_be_an_address() -> None:
    longest = "x" * (INSTRUCTION_BYTES_MAX - 2)  # two bytes are its quotes
    assert instruction_fits(longest)
    row(raw_llm_instruction=longest)
    for text in (longest + "x", "\x00" * 3_000, "\ud800"):
        assert not instruction_fits(text)
        with pytest.raises(LedgerError) as caught:
            row(raw_llm_instruction=text)
        assert caught.value.code in {"entry.instruction", "entry.malformed"}
    row(raw_llm_instruction=ADDRESS)


def test_beside_an_artifact_to_be_redacted_the_instruction_is_an_address() -> None:
    output = OutputRef(ADDRESS, SHA, 1, "a/b", retention=RetentionClass.REDACT)
    attachment = Attachment("a", ADDRESS, SHA, 1, "a/b", RetentionClass.REDACT)
    for changes in ({"deterministic_output": output}, {"attachments": (attachment,)}):
        with pytest.raises(LedgerError) as caught:
            row(**changes)
        assert caught.value.code == "entry.instruction"
        row(**changes, raw_llm_instruction=ADDRESS)
        row(**changes, raw_llm_instruction=None)


def test_an_entry_has_room_for_64_kib_less_one() -> None:
    room = ENTRY_BYTES_MAX - len(row(executor=ExecutorInfo("e", "")).entry())
    fits = row(executor=ExecutorInfo("e", "x" * room))
    assert LedgerRow.parse(fits.entry()) == fits
    with pytest.raises(LedgerError) as caught:
        row(executor=ExecutorInfo("e", "x" * (room + 1))).entry()
    assert caught.value.code == "entry.too_long"


def test_a_message_of_any_length_can_be_recorded() -> None:
    whole = Outcome(Status.FAILED, message="é" * MESSAGE_CHARS_MAX)
    assert whole.message == "é" * MESSAGE_CHARS_MAX
    cut = Outcome(Status.FAILED, message="é" * 100_000)
    assert cut.message == "é" * (MESSAGE_CHARS_MAX - 1) + "…"
    made = row(outcome=cut)
    assert LedgerRow.parse(made.entry()) == made
    longer = made.entry().replace("…".encode(), "……".encode())
    with pytest.raises(LedgerError) as caught:
        LedgerRow.parse(longer)
    assert caught.value.code == "entry.malformed"
    assert read_entry(longer)[1] == [
        f"outcome.message is longer than {MESSAGE_CHARS_MAX} characters"
    ]
    assert read_entry(made.entry())[1] == []


def members(value, path=()):
    """Every (path of an object, member)."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield path, key
            yield from members(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from members(inner, (*path, number))


def changed(path, change) -> bytes:
    document = json.loads(FULL.entry())
    part = document
    for step in path:
        part = part[step]
    change(part)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


MEMBERS = [
    (path, key)
    for path, key in members(json.loads(FULL.entry()))
    if path not in {("executor", "settings")}
]


def test_the_sample_has_every_field() -> None:
    assert len(MEMBERS) == 55
    assert not [
        key for path, key in MEMBERS if path == () and json.loads(FULL.entry())[key] is None
    ]


@pytest.mark.parametrize(("path", "key"), MEMBERS, ids=str)
def test_a_missing_an_unknown_and_a_wrong_member_are_refused_with_their_place(path, key) -> None:
    def spell(part, value):
        part[key] = value

    changes = [
        lambda part: part.pop(key),
        lambda part: spell(part, 1.5),
        lambda part: spell(part, {"what": 1}),
        lambda part: spell(part, [[]]),
        lambda part: spell(part, True),
        lambda part: part.update({key + "_": None}),
    ]
    for change in changes:
        with pytest.raises(LedgerError) as caught:
            LedgerRow.parse(changed(path, change))
        assert caught.value.code == "entry.malformed"


def test_the_place_is_told() -> None:
    payload = changed(("attachments", 0), lambda part: part.update(sha256="7"))
    with pytest.raises(LedgerError) as caught:
        LedgerRow.parse(payload)
    assert caught.value.place == "attachments[0].sha256"


def test_another_format_is_refused() -> None:
    payload = changed((), lambda part: part.update(v="tieout.entry/2"))
    with pytest.raises(LedgerError) as caught:
        LedgerRow.parse(payload)
    assert caught.value.place == "v"


def test_bytes_that_are_not_canonical_are_no_entry() -> None:
    payload = FULL.entry()
    for other in (payload + b"\n", payload.replace(b":", b": ", 1), b"", b"{}", b"[" * 60_000):
        with pytest.raises(LedgerError) as caught:
            LedgerRow.parse(other)
        assert caught.value.code == "entry.malformed"


def test_every_changed_byte_is_refused_or_says_something_else() -> None:
    payload = FULL.entry()
    for position in range(len(payload)):
        for bit in range(8):
            other = bytearray(payload)
            other[position] ^= 1 << bit
            try:
                assert LedgerRow.parse(bytes(other)) != FULL
            except LedgerError as error:
                assert error.code == "entry.malformed"


@given(st.binary(max_size=60))
def test_no_other_error_leaks(payload: bytes) -> None:
    with pytest.raises(RoomError):
        LedgerRow.parse(payload)


def test_kinds_and_statuses_are_those_of_the_format() -> None:
    assert [kind.value for kind in Kind] == [
        "workspace",
        "snapshot",
        "run",
        "question",
        "model_request",
        "model_reply",
        "plan",
        "sql",
        "search",
        "extract",
        "match",
        "answer",
        "report",
        "sign_off",
        "redaction",
        "refusal",
        "failure",
        "replay",
    ]
    assert [status.value for status in Status] == [
        "done",
        "refused",
        "failed",
        "partial",
        "no_results",
    ]
    assert {item.name for item in dataclasses.fields(LedgerRow)} | {"v"} == set(
        json.loads(FULL.entry())
    )
