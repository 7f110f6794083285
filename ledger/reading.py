"""An entry's bytes back to the row they say: strict, field by field, with the place.

The values check themselves as they are made (row.py); here stands which fields there are and of
which shape. Nothing is forgiven: an auditor who reads leniently can be shown two rows in one.
"""

from __future__ import annotations

from dataclasses import fields as dataclass_fields
from typing import Final

from tieout.artifacts.address import Address
from tieout.artifacts.store import RetentionClass
from tieout.ledger import canon, fields
from tieout.ledger.canon import Json
from tieout.ledger.errors import LedgerError
from tieout.ledger.refs import Attachment, ControlTotal, Input, OutputRef
from tieout.ledger.row import (
    ENTRY_BYTES_MAX,
    ENTRY_FORMAT,
    MODEL_COUNTS,
    MODEL_TEXTS,
    ExecutorInfo,
    Kind,
    LedgerRow,
    ModelUse,
    Outcome,
    Position,
    Status,
)

_ROW: Final = frozenset({"v", *(item.name for item in dataclass_fields(LedgerRow))})
_INPUT: Final = frozenset({"role", "address"})
_TOTAL: Final = frozenset({"column", "value"})
_ARTIFACT: Final = frozenset({"address", "sha256", "size", "media_type", "class"})
_ATTACHMENT: Final = _ARTIFACT | {"role"}
_OUTPUT: Final = _ARTIFACT | {"content_digest", "row_count", "control_totals", "version"}
_ROOTED: Final = _OUTPUT | {"row_root"}
_EXECUTOR: Final = frozenset({"name", "version", "build", "settings"})
_MODEL: Final = frozenset(MODEL_TEXTS + MODEL_COUNTS)
_OUTCOME: Final = frozenset({"status", "code", "message", "position"})
_POSITION: Final = frozenset({"line", "column"})


def parse_row(payload: bytes) -> LedgerRow:
    """See LedgerRow.parse."""
    if len(payload) > ENTRY_BYTES_MAX:
        fields.malformed(f"{len(payload)} bytes are more than {ENTRY_BYTES_MAX}", "")
    try:
        document = canon.decode(payload)
    except LedgerError as error:
        raise LedgerError(
            "entry.malformed",
            f"not an entry of the ledger: {error.message}",
            place=error.place,
            remedy=error.remedy,
            exit_code=error.exit_code,
        ) from error
    row = _row(document)
    # Pair assertion: what is read says exactly the bytes it was read from.
    if row.entry() != payload:
        fields.malformed("the row does not give its bytes back", "")
    return row


def _row(document: Json) -> LedgerRow:
    found = fields.members(document, _ROW, "")
    if found["v"] != ENTRY_FORMAT:
        fields.malformed(f"the format is {found['v']!r:.60}, not {ENTRY_FORMAT}", "v")
    executed = found["executed"]
    output = found["deterministic_output"]
    model = found["model"]
    return LedgerRow(
        kind=fields.member_of(Kind, found["kind"], "kind"),
        req=fields.name(found["req"], "req"),
        trace_id=fields.name(found["trace_id"], "trace_id"),
        subject=fields.label(found["subject"], "subject"),
        step_sequence=fields.count(found["step_sequence"], "step_sequence"),
        attempt=fields.count(found["attempt"], "attempt"),
        tool_name=fields.label(found["tool_name"], "tool_name"),
        raw_llm_instruction=_instruction(found["raw_llm_instruction"]),
        executed=None if executed is None else fields.address(executed, "executed"),
        inputs=_inputs(found["inputs"]),
        deterministic_output=None if output is None else _output(output),
        attachments=_attachments(found["attachments"]),
        execution_timestamp=fields.timestamp(found["execution_timestamp"], "execution_timestamp"),
        executor=_executor(found["executor"]),
        model=None if model is None else _model(model),
        outcome=_outcome(found["outcome"]),
    )


def _instruction(value: Json) -> str | Address | None:
    if value is None or isinstance(value, str):
        return value
    found = fields.members(value, frozenset({"address"}), "raw_llm_instruction")
    return fields.address(found["address"], "raw_llm_instruction.address")


def _inputs(value: Json) -> tuple[Input, ...]:
    inputs: list[Input] = []
    for number, item in enumerate(fields.items(value, "inputs")):
        place = f"inputs[{number}]"
        found = fields.members(item, _INPUT, place)
        role = fields.name(found["role"], place + ".role")
        inputs.append(Input(role, fields.address(found["address"], place + ".address")))
    return tuple(inputs)


def _output(value: Json) -> OutputRef:
    place = "deterministic_output"
    is_rooted = isinstance(value, dict) and "row_root" in value
    found = fields.members(value, _ROOTED if is_rooted else _OUTPUT, place)
    digest = found["content_digest"]
    rows = found["row_count"]
    return OutputRef(
        address=fields.address(found["address"], place + ".address"),
        sha256=fields.sha256_hex(found["sha256"], place + ".sha256"),
        size=fields.count(found["size"], place + ".size"),
        media_type=fields.name(found["media_type"], place + ".media_type"),
        retention=fields.member_of(RetentionClass, found["class"], place + ".class"),
        content_digest=(
            None if digest is None else fields.content_digest(digest, place + ".content_digest")
        ),
        row_count=None if rows is None else fields.count(rows, place + ".row_count"),
        control_totals=_totals(found["control_totals"], place + ".control_totals"),
        version=fields.text(found["version"], place + ".version"),
        # Null is none: a row without a root has one form only.
        row_root=fields.text(found["row_root"], place + ".row_root") if is_rooted else None,
    )


def _totals(value: Json, place: str) -> tuple[ControlTotal, ...]:
    totals: list[ControlTotal] = []
    for number, item in enumerate(fields.items(value, place)):
        where = f"{place}[{number}]"
        found = fields.members(item, _TOTAL, where)
        column = fields.text(found["column"], where + ".column")
        totals.append(ControlTotal(column, fields.text(found["value"], where + ".value")))
    return tuple(totals)


def _attachments(value: Json) -> tuple[Attachment, ...]:
    attachments: list[Attachment] = []
    for number, item in enumerate(fields.items(value, "attachments")):
        place = f"attachments[{number}]"
        found = fields.members(item, _ATTACHMENT, place)
        attachments.append(
            Attachment(
                role=fields.name(found["role"], place + ".role"),
                address=fields.address(found["address"], place + ".address"),
                sha256=fields.sha256_hex(found["sha256"], place + ".sha256"),
                size=fields.count(found["size"], place + ".size"),
                media_type=fields.name(found["media_type"], place + ".media_type"),
                retention=fields.member_of(RetentionClass, found["class"], place + ".class"),
            )
        )
    return tuple(attachments)


def _executor(value: Json) -> ExecutorInfo:
    found = fields.members(value, _EXECUTOR, "executor")
    settings = found["settings"]
    if not isinstance(settings, dict):
        fields.malformed("an object is wanted", "executor.settings")
    return ExecutorInfo(
        name=fields.name(found["name"], "executor.name"),
        version=fields.text(found["version"], "executor.version"),
        build=fields.text(found["build"], "executor.build"),
        settings={
            key: fields.text(item, f"executor.settings.{key}") for key, item in settings.items()
        },
    )


def _model(value: Json) -> ModelUse:
    found = fields.members(value, _MODEL, "model")

    def maybe_text(name: str) -> str | None:
        item = found[name]
        return None if item is None else fields.text(item, f"model.{name}")

    def maybe_count(name: str) -> int | None:
        item = found[name]
        return None if item is None else fields.count(item, f"model.{name}")

    return ModelUse(
        provider=maybe_text("provider"),
        id=maybe_text("id"),
        request_id=maybe_text("request_id"),
        stop_reason=maybe_text("stop_reason"),
        input_tokens=maybe_count("input_tokens"),
        output_tokens=maybe_count("output_tokens"),
        sdk=maybe_text("sdk"),
        api_version=maybe_text("api_version"),
        base_url=maybe_text("base_url"),
    )


def _outcome(value: Json) -> Outcome:
    found = fields.members(value, _OUTCOME, "outcome")
    position = found["position"]
    place: Position | None = None
    if position is not None:
        numbers = fields.members(position, _POSITION, "outcome.position")
        place = Position(
            line=fields.count(numbers["line"], "outcome.position.line", least=1),
            column=fields.count(numbers["column"], "outcome.position.column", least=1),
        )
    return Outcome(
        status=fields.member_of(Status, found["status"], "outcome.status"),
        code=fields.label(found["code"], "outcome.code"),
        message=fields.text(found["message"], "outcome.message"),
        position=place,
    )
