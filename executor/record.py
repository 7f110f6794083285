"""Storing and recording: the only way to a receipt, and the receipt the only way to be shown.

A `Receipt` exists only for a row that is durably in the ledger and whose artifacts are durably
in the store; a `Shown` text exists only for a receipt, and is read back from the store. The
prompt is made of nothing else, so that what was not recorded cannot reach a model
(DESIGN §6: types enforce it, not discipline).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from tieout.artifacts.address import Address
from tieout.artifacts.pieces import Payload, address_of
from tieout.artifacts.rows import row_root
from tieout.artifacts.store import RetentionClass, Store, Stored
from tieout.artifacts.table import TABLE_MEDIA, TableArtifact
from tieout.artifacts.version import VERSION
from tieout.executor.clock import Clock
from tieout.executor.errors import ExecutorError, Exit
from tieout.ledger.log import Log
from tieout.ledger.row import (
    Attachment,
    ControlTotal,
    ExecutorInfo,
    Input,
    Kind,
    LedgerRow,
    ModelUse,
    Outcome,
    OutputRef,
    Status,
    instruction_fits,
)

JSON_MEDIA: Final = "application/json"
TEXT_MEDIA: Final = "text/plain; charset=utf-8"
BYTES_MEDIA: Final = "application/octet-stream"
SQL_MEDIA: Final = "application/sql"
OUTPUT: Final = "output"
DONE: Final = Outcome(Status.DONE)
HOUSE: Final = ExecutorInfo("tieout", VERSION)
ROOTED_ROWS_MAX: Final = 10_000
"""Results of up to so many rows are recorded with their row root, which takes 20 CPU ms at most (8
columns of 100 bytes together); of a larger table it is made when it is asked for."""
_MINT: Final = object()


@dataclass(frozen=True, slots=True)
class Made:
    """Bytes that a step made, not stored yet. role: what they are to the step."""

    role: str
    payload: Payload
    media_type: str
    retention: RetentionClass = RetentionClass.RETAIN
    digest: str | None = None
    rows: int | None = None
    totals: tuple[tuple[str, str], ...] = ()
    stored: Stored | None = None
    """Set when the bytes are in the store already (`Recorder.keep`)."""


def made_table(table: TableArtifact, role: str = OUTPUT) -> Made:
    """A table as something to be stored, with its digest, rows and control totals."""
    return Made(
        role=role,
        payload=table.pieces,
        media_type=TABLE_MEDIA,
        digest=table.digest,
        rows=table.rows,
        totals=table.totals,
    )


@dataclass(frozen=True, slots=True)
class RowDraft:
    """A ledger row before its artifacts are stored. Fields as in `LedgerRow`.

    loose: artifacts that the output names and the row does not; stored before the row.
    req: None for one made of run, subject, kind and attempt.
    """

    kind: Kind
    subject: str
    sequence: int = 0
    attempt: int = 0
    tool: str = ""
    asked: str | None = None
    executed: bytes | None = None
    inputs: tuple[Input, ...] = ()
    output: Made | None = None
    parts: tuple[Made, ...] = ()
    loose: tuple[Made, ...] = ()
    req: str | None = None
    executor: ExecutorInfo = HOUSE
    model: ModelUse | None = None
    outcome: Outcome = DONE


class Receipt:
    """Proof that a row and its artifacts are durable. Only `Recorder.record` makes one.

    index: of the ledger row. parts: address by role; the output has the role "output".
    """

    __slots__ = ("attempt", "index", "kind", "outcome", "parts", "row", "subject")

    def __init__(self, mint: object, index: int, row: LedgerRow) -> None:
        if mint is not _MINT:
            raise AssertionError("a receipt is made by recording a row, not by hand")
        self.index: Final = index
        self.row: Final = row
        self.kind: Final = row.kind
        self.subject: Final = row.subject
        self.attempt: Final = row.attempt
        self.outcome: Final = row.outcome
        parts = {part.role: part.address for part in row.attachments}
        if row.deterministic_output is not None:
            parts[OUTPUT] = row.deterministic_output.address
        self.parts: Final[Mapping[str, Address]] = MappingProxyType(parts)

    @property
    def output(self) -> OutputRef | None:
        """The row's output, if it has one."""
        return self.row.deterministic_output


class Shown:
    """A text that may stand in a prompt: read back from the store, under a recorded row.

    role: what it is to the model (instructions, catalog, question, observation, refusal).
    """

    __slots__ = ("address", "index", "role", "text")

    def __init__(self, mint: object, *, role: str, address: Address, text: str, index: int) -> None:
        if mint is not _MINT:
            raise AssertionError("what is shown comes out of a receipt, not from hand")
        self.role: Final = role
        self.address: Final = address
        self.text: Final = text
        self.index: Final = index


@dataclass(frozen=True, slots=True)
class Recorder:
    """Puts artifacts and rows of one run. trace: the run's id."""

    store: Store
    log: Log
    clock: Clock
    trace: str
    _seen: dict[str, int] = field(default_factory=dict, repr=False)

    def record(self, *drafts: RowDraft) -> tuple[Receipt, ...]:
        """Store the artifacts of these rows, then append the rows in one durable commit.

        Raises ArtifactError and LedgerError as the store and the log do; then nothing was
        recorded, and at most unnamed objects lie in the store.
        """
        rows = [self._row(draft) for draft in drafts]
        recorded = self.log.append(rows)
        return tuple(
            Receipt(_MINT, entry.index, row) for entry, row in zip(recorded, rows, strict=True)
        )

    def show(self, receipt: Receipt, part: str, *, role: str) -> Shown:
        """The text of a recorded artifact, read back from the store."""
        address = receipt.parts[part]
        payload = self.store.get(address)
        return Shown(
            _MINT, role=role, address=address, text=payload.decode("utf-8"), index=receipt.index
        )

    def keep(self, made: Made) -> Made:
        """Store the bytes now, so that what is shown of them can be read back from the store."""
        return replace(made, stored=self._put(made))

    def _row(self, draft: RowDraft) -> LedgerRow:
        for made in draft.loose:
            self._put(made)
        parts = [self._attachment(part) for part in draft.parts]
        executed = None
        if draft.executed is not None:
            part = self._attachment(Made("executed", draft.executed, SQL_MEDIA))
            parts.append(part)
            executed = part.address
        asked: str | Address | None = draft.asked
        if draft.asked is not None and not instruction_fits(draft.asked):
            part = self._attachment(Made("asked", _utf8(draft.asked), TEXT_MEDIA))
            parts.append(part)
            asked = part.address
        return LedgerRow(
            kind=draft.kind,
            req=self._req(draft),
            trace_id=self.trace,
            subject=draft.subject,
            step_sequence=draft.sequence,
            attempt=draft.attempt,
            tool_name=draft.tool,
            raw_llm_instruction=asked,
            executed=executed,
            inputs=draft.inputs,
            deterministic_output=None if draft.output is None else self._output(draft.output),
            attachments=tuple(parts),
            execution_timestamp=self.clock.now(),
            executor=draft.executor,
            model=draft.model,
            outcome=draft.outcome,
        )

    def _req(self, draft: RowDraft) -> str:
        """Unique within the run, and the same when the run is replayed."""
        if draft.req is not None:
            return draft.req
        base = f"{self.trace}/{draft.subject}/{draft.kind}/{draft.attempt}"
        count = self._seen.get(base, 0)
        self._seen[base] = count + 1
        return f"{base}/{count}"

    def _attachment(self, made: Made) -> Attachment:
        stored = self._put(made)
        return Attachment(
            role=made.role,
            address=stored.address,
            sha256=stored.sha256,
            size=stored.size,
            media_type=made.media_type,
            retention=made.retention,
        )

    def _output(self, made: Made) -> OutputRef:
        stored = self._put(made)
        return OutputRef(
            address=stored.address,
            sha256=stored.sha256,
            size=stored.size,
            media_type=made.media_type,
            retention=made.retention,
            content_digest=made.digest,
            row_count=made.rows,
            control_totals=tuple(ControlTotal(name, value) for name, value in made.totals),
            version=stored.version,
            row_root=self._row_root(made, stored),
        )

    def _row_root(self, made: Made, stored: Stored) -> str | None:
        """Of a result of ordinary size, from the bytes that the store gives back."""
        if made.media_type != TABLE_MEDIA or made.rows is None or made.rows > ROOTED_ROWS_MAX:
            return None
        return row_root(self.store.get(stored.address)).root

    def _put(self, made: Made) -> Stored:
        if made.stored is not None:
            return made.stored
        stored = self.store.put(made.payload, retention=made.retention)
        if stored.size != len(made.payload) or stored.address != address_of(made.payload):
            raise ExecutorError(
                "store.other_bytes",
                f"the store answered {stored.address} for other bytes",
                place=self.store.location,
                remedy="Run `tieout verify`; do not use this store until it is explained.",
                exit_code=Exit.DOES_NOT_HOLD,
            )
        return stored


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def addresses_of(receipts: Sequence[Receipt]) -> frozenset[Address]:
    """Every artifact that these receipts name."""
    return frozenset(address for receipt in receipts for address in receipt.parts.values())
