"""The ledger row: one step that happened, and the one sequence of bytes that says so.

Source: DESIGN §5 and docs/FORMAT.md §6. What stands inside the entry is hashed and can never
change; index, `previous` and `sha256_hash` are columns beside it (log.py), so that a database
can sequence entries that it did not build. Payloads are never inside: only their addresses.
Every value checks itself when it is made, so a row that exists can be written and read back,
byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from tieout.artifacts.address import Address
from tieout.artifacts.errors import Exit
from tieout.artifacts.store import RetentionClass
from tieout.ledger import canon, fields
from tieout.ledger.canon import Json
from tieout.ledger.errors import LedgerError
from tieout.ledger.refs import Attachment, ControlTotal, Input, OutputRef

__all__ = [
    "Attachment",
    "ControlTotal",
    "ExecutorInfo",
    "Input",
    "Kind",
    "LedgerRow",
    "ModelUse",
    "Outcome",
    "OutputRef",
    "Position",
    "Status",
    "instruction_fits",
]

ENTRY_FORMAT: Final = "tieout.entry/1"
# One less than 64 KiB: tlog-tiles states the length of an entry in 16 bits.
ENTRY_BYTES_MAX: Final = 65_535
# Measured as canonical JSON, so that text made of control characters cannot burst the entry.
INSTRUCTION_BYTES_MAX: Final = 16_384
# Of an outcome's message, which may quote an engine or a server at any length.
MESSAGE_CHARS_MAX: Final = 4_000


class Kind(StrEnum):
    """What happened."""

    WORKSPACE = "workspace"
    SNAPSHOT = "snapshot"
    RUN = "run"
    QUESTION = "question"
    MODEL_REQUEST = "model_request"
    MODEL_REPLY = "model_reply"
    PLAN = "plan"
    SQL = "sql"
    SEARCH = "search"
    EXTRACT = "extract"
    MATCH = "match"
    ANSWER = "answer"
    REPORT = "report"
    SIGN_OFF = "sign_off"
    REDACTION = "redaction"
    REFUSAL = "refusal"
    FAILURE = "failure"
    REPLAY = "replay"


class Status(StrEnum):
    """How it ended."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    PARTIAL = "partial"
    NO_RESULTS = "no_results"


@dataclass(frozen=True, slots=True)
class ExecutorInfo:
    """What ran the step. settings: those that matter to the result, as text."""

    name: str
    version: str
    build: str = ""
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        fields.name(self.name, "executor.name")
        fields.text(self.version, "executor.version")
        fields.text(self.build, "executor.build")
        for key, value in self.settings.items():
            fields.key(key, "executor.settings")
            fields.text(value, f"executor.settings.{key}")
        frozen = MappingProxyType(dict(sorted(self.settings.items())))
        object.__setattr__(self, "settings", frozen)

    def document(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "version": self.version,
            "build": self.build,
            "settings": dict(self.settings),
        }


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What answered a model request, as it says itself; None where it said nothing."""

    provider: str | None = None
    id: str | None = None
    request_id: str | None = None
    stop_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    sdk: str | None = None
    api_version: str | None = None
    base_url: str | None = None

    def __post_init__(self) -> None:
        for name in MODEL_TEXTS:
            value = getattr(self, name)
            if value is not None:
                fields.text(value, f"model.{name}")
        for name in MODEL_COUNTS:
            value = getattr(self, name)
            if value is not None:
                fields.count(value, f"model.{name}")

    def document(self) -> dict[str, Json]:
        return {name: getattr(self, name) for name in MODEL_TEXTS + MODEL_COUNTS}


MODEL_TEXTS: Final = (
    "provider",
    "id",
    "request_id",
    "stop_reason",
    "sdk",
    "api_version",
    "base_url",
)
MODEL_COUNTS: Final = ("input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the instruction; both count from 1."""

    line: int
    column: int

    def __post_init__(self) -> None:
        fields.count(self.line, "outcome.position.line", least=1)
        fields.count(self.column, "outcome.position.column", least=1)

    def document(self) -> dict[str, Json]:
        return {"line": self.line, "column": self.column}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the step ended. code: stable and dotted, "" when done. message: for people; over
    MESSAGE_CHARS_MAX characters it is cut there and ends in "…", so that no error is too long to
    be recorded."""

    status: Status
    code: str = ""
    message: str = ""
    position: Position | None = None

    def __post_init__(self) -> None:
        fields.instance(Status, self.status, "outcome.status")
        fields.label(self.code, "outcome.code")
        fields.text(self.message, "outcome.message")
        if len(self.message) > MESSAGE_CHARS_MAX:
            object.__setattr__(self, "message", self.message[: MESSAGE_CHARS_MAX - 1] + "…")
        if self.position is not None:
            fields.instance(Position, self.position, "outcome.position")

    def document(self) -> dict[str, Json]:
        position = None if self.position is None else self.position.document()
        return {
            "status": str(self.status),
            "code": self.code,
            "message": self.message,
            "position": position,
        }


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One step, as it will be recorded for ever.

    req: unique, made before the step ran; it makes an append idempotent. subject: what in the
    run the row is about, such as "bank-1010/t1/totals". step_sequence: the order of the plan,
    not of completion. raw_llm_instruction: exactly what was asked; over INSTRUCTION_BYTES_MAX,
    or beside an artifact of class redact, its address. executed: the address of the exact bytes
    given to the engine. execution_timestamp: `YYYY-MM-DDTHH:MM:SS.ffffffZ`.
    Raises LedgerError `entry.malformed`, `entry.instruction`, `entry.too_long`.
    """

    kind: Kind
    req: str
    trace_id: str
    subject: str
    step_sequence: int
    attempt: int
    tool_name: str
    raw_llm_instruction: str | Address | None
    executed: Address | None
    inputs: tuple[Input, ...]
    deterministic_output: OutputRef | None
    attachments: tuple[Attachment, ...]
    execution_timestamp: str
    executor: ExecutorInfo
    model: ModelUse | None
    outcome: Outcome

    def __post_init__(self) -> None:
        fields.instance(Kind, self.kind, "kind")
        fields.name(self.req, "req")
        fields.name(self.trace_id, "trace_id")
        fields.label(self.subject, "subject")
        fields.count(self.step_sequence, "step_sequence")
        fields.count(self.attempt, "attempt")
        fields.label(self.tool_name, "tool_name")
        fields.timestamp(self.execution_timestamp, "execution_timestamp")
        self._check_parts()
        self._check_instruction()

    def entry(self) -> bytes:
        """The canonical bytes. Raises LedgerError `entry.too_long` over ENTRY_BYTES_MAX."""
        payload = canon.encode(self.document())
        if len(payload) > ENTRY_BYTES_MAX:
            raise LedgerError(
                "entry.too_long",
                f"the entry has {len(payload)} bytes, at most {ENTRY_BYTES_MAX} are allowed",
                place=self.subject,
                remedy="Store the long text or list as an artifact and give its address.",
                exit_code=Exit.REFUSED,
            )
        return payload

    def document(self) -> dict[str, Json]:
        """The entry as JSON values."""
        asked = self.raw_llm_instruction
        output = self.deterministic_output
        return {
            "v": ENTRY_FORMAT,
            "kind": str(self.kind),
            "req": self.req,
            "trace_id": self.trace_id,
            "subject": self.subject,
            "step_sequence": self.step_sequence,
            "attempt": self.attempt,
            "tool_name": self.tool_name,
            "raw_llm_instruction": {"address": str(asked)} if isinstance(asked, Address) else asked,
            "executed": None if self.executed is None else str(self.executed),
            "inputs": [item.document() for item in self.inputs],
            "deterministic_output": None if output is None else output.document(),
            "attachments": [item.document() for item in self.attachments],
            "execution_timestamp": self.execution_timestamp,
            "executor": self.executor.document(),
            "model": None if self.model is None else self.model.document(),
            "outcome": self.outcome.document(),
        }

    @classmethod
    def parse(cls, payload: bytes) -> LedgerRow:
        """The row of exactly these bytes; its `entry()` gives them back.

        Raises LedgerError `entry.malformed` with the place: bytes that are not canonical, an
        unknown or missing field, a value of another type.
        """
        from tieout.ledger.reading import parse_row

        return parse_row(payload)

    def _check_parts(self) -> None:
        fields.instance(ExecutorInfo, self.executor, "executor")
        fields.instance(Outcome, self.outcome, "outcome")
        _check_each(Input, self.inputs, "inputs")
        _check_each(Attachment, self.attachments, "attachments")
        if self.executed is not None:
            fields.instance(Address, self.executed, "executed")
        if self.deterministic_output is not None:
            fields.instance(OutputRef, self.deterministic_output, "deterministic_output")
        if self.model is not None:
            fields.instance(ModelUse, self.model, "model")

    def _check_instruction(self) -> None:
        asked = self.raw_llm_instruction
        if asked is None or isinstance(asked, Address):
            return
        fields.text(asked, "raw_llm_instruction")
        output = self.deterministic_output
        refs: list[OutputRef | Attachment] = [*self.attachments]
        if output is not None:
            refs.append(output)
        if any(ref.retention is RetentionClass.REDACT for ref in refs):
            _refuse_instruction("beside an artifact of class redact the instruction is an address")
        if not instruction_fits(asked):
            _refuse_instruction(f"the instruction is longer than {INSTRUCTION_BYTES_MAX} bytes")


def instruction_fits(asked: str) -> bool:
    """Whether the text may stand in the row itself; else it is stored and its address stands.

    False over INSTRUCTION_BYTES_MAX bytes of JSON, and for text that UTF-8 cannot say.
    """
    try:
        return len(json.dumps(asked, ensure_ascii=False).encode("utf-8")) <= INSTRUCTION_BYTES_MAX
    except UnicodeEncodeError:
        return False


def _refuse_instruction(message: str) -> None:
    raise LedgerError(
        "entry.instruction",
        message,
        place="raw_llm_instruction",
        remedy="Store the text as an artifact and give its address.",
        exit_code=Exit.REFUSED,
    )


def _check_each(kind: type[object], values: Sequence[object], place: str) -> None:
    fields.instance(tuple, values, place)
    for number, value in enumerate(values):
        fields.instance(kind, value, f"{place}[{number}]")
