"""What an entry must look like, said a second time, for the audit alone.

This is written from docs/FORMAT.md §2 and §6 and shares no code with the writer (row.py,
canon.py, reading.py): a mistake there must not be able to hide itself here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from tieout.ledger.audit.forms import (
    ADDRESS,
    COUNT,
    DIGEST,
    LABEL,
    NAME,
    SHA256,
    TEXT,
    NotOfTheProfile,
    each,
    maybe,
    number_from,
    object_of,
    one_of,
    pattern,
    read_json,
    words,
)
from tieout.ledger.audit.tables import TABLE_MEDIA

ENTRY_BYTES_MAX: Final = 65_535
INSTRUCTION_BYTES_MAX: Final = 16_384
MESSAGE_CHARS_MAX: Final = 4_000

KINDS: Final = (
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
)
CLASSES: Final = ("retain", "redact", "discard")
STATUSES: Final = ("done", "refused", "failed", "partial", "no_results")


def read_entry(payload: bytes) -> tuple[dict[str, object] | None, list[str]]:
    """The entry as values, and everything that is wrong with it. The values are None when it
    cannot be relied on to name artifacts."""
    if len(payload) > ENTRY_BYTES_MAX:
        return None, [f"it has {len(payload)} bytes, more than {ENTRY_BYTES_MAX}"]
    try:
        value, canonical = read_json(payload)
    except NotOfTheProfile as error:
        return None, [f"it is not JSON of the profile: {error}"]
    problems = list(ENTRY(value, ""))
    if problems or not isinstance(value, dict):
        return None, problems
    if not canonical:
        problems.append("it is not in canonical form")
    problems.extend(_instruction_rules(value))
    problems.extend(_row_root_rules(value["deterministic_output"]))
    return value, problems


def _instruction_rules(entry: dict[str, object]) -> Iterator[str]:
    asked = entry["raw_llm_instruction"]
    if not isinstance(asked, str):
        return
    if len(json.dumps(asked, ensure_ascii=False).encode("utf-8")) > INSTRUCTION_BYTES_MAX:
        yield f"raw_llm_instruction is longer than {INSTRUCTION_BYTES_MAX} bytes"
    artifacts = [entry["deterministic_output"], *_list(entry["attachments"])]
    if any(isinstance(item, dict) and item.get("class") == "redact" for item in artifacts):
        yield "raw_llm_instruction stands in clear beside an artifact of class redact"


def _row_root_rules(output: object) -> Iterator[str]:
    if not isinstance(output, dict) or "row_root" not in output:
        return
    if output["media_type"] != TABLE_MEDIA or output["content_digest"] is None:
        yield "deterministic_output.row_root stands beside no table with a content digest"


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _settings(value: object, place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place} is not an object"
        return
    for key, item in value.items():
        yield from NAME(key, place)
        yield from TEXT(item, f"{place}.{key}")


def _time(value: object, place: str) -> Iterator[str]:
    form = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
    if not isinstance(value, str) or not re.fullmatch(form, value, re.ASCII):
        yield f"{place} is not YYYY-MM-DDTHH:MM:SS.ffffffZ"
        return
    try:
        datetime.fromisoformat(value)
    except ValueError:
        yield f"{place} is no time of the calendar"


def _instruction(value: object, place: str) -> Iterator[str]:
    if value is not None and not isinstance(value, str):
        yield from object_of({"address": ADDRESS})(value, place)


_CLASS: Final = one_of(*CLASSES)

OUTPUT: Final = object_of(
    {
        "address": ADDRESS,
        "sha256": SHA256,
        "content_digest": maybe(DIGEST),
        "size": COUNT,
        "media_type": NAME,
        "class": _CLASS,
        "row_count": maybe(COUNT),
        "control_totals": each(object_of({"column": TEXT, "value": TEXT})),
        "version": TEXT,
    },
    optional={"row_root": pattern(r"tieout\.rows/1:[0-9a-f]{64}", "a row root")},
)
ATTACHMENT: Final = object_of(
    {
        "role": NAME,
        "address": ADDRESS,
        "sha256": SHA256,
        "size": COUNT,
        "media_type": NAME,
        "class": _CLASS,
    }
)
MODEL: Final = object_of(
    dict.fromkeys(
        ("provider", "id", "request_id", "stop_reason", "sdk", "api_version", "base_url"),
        maybe(TEXT),
    )
    | {"input_tokens": maybe(COUNT), "output_tokens": maybe(COUNT)}
)
OUTCOME: Final = object_of(
    {
        "status": one_of(*STATUSES),
        "code": LABEL,
        "message": words(empty=True, plain=False, chars_max=MESSAGE_CHARS_MAX),
        "position": maybe(object_of({"line": number_from(1), "column": number_from(1)})),
    }
)
ENTRY: Final = object_of(
    {
        "v": one_of("tieout.entry/1"),
        "kind": one_of(*KINDS),
        "req": NAME,
        "trace_id": NAME,
        "subject": LABEL,
        "step_sequence": COUNT,
        "attempt": COUNT,
        "tool_name": LABEL,
        "raw_llm_instruction": _instruction,
        "executed": maybe(ADDRESS),
        "inputs": each(object_of({"role": NAME, "address": ADDRESS})),
        "deterministic_output": maybe(OUTPUT),
        "attachments": each(ATTACHMENT),
        "execution_timestamp": _time,
        "executor": object_of(
            {"name": NAME, "version": TEXT, "build": TEXT, "settings": _settings}
        ),
        "model": maybe(MODEL),
        "outcome": OUTCOME,
    }
)
