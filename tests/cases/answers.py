"""What the product answered: figures, rows of results, manifests; and the comparison.

The forms of an entry of a recipe's `expected`:

    "STEP.COLUMN"                                    a figure of the answer
    { rows, where = {column = value}, ... }          rows of a step's result, with one of
        column = C      a list              columns = [...]  a list of lists
        records = [...] a list of objects   fields = [...]   the one row as an object
        cell = C        the one row's cell  count = true     how many rows
        key = K, value = V        an object K to V
        key = K, values = [...]   an object K to an object
        key = K, list = C         an object K to a list
    { source, column, at }                           a snapshot's rows in file order, or one
    { manifest, path, find }                         a place in a snapshot's manifest
    { text = "… {STEP.COLUMN} …" }                   a sentence with figures filled in
    { said = "…" }                                   words of the plan, no value
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from recipe import Recipe

from tieout import Workspace
from tieout.artifacts.address import Address
from tieout.artifacts.table import ORDINAL
from tieout.artifacts.table_reader import TableReader
from tieout.executor.pinning import newest
from tieout.planner.batch import BatchResult

Rows = list[dict[str, Any]]


class NotAnswered(Exception):
    """The product gave no value where the recipe looks for one."""


@dataclass(frozen=True, slots=True)
class Answers:
    """One question's delivery in its workspace."""

    workspace: Workspace
    recipe: Recipe
    result: BatchResult

    @property
    def question(self) -> str:
        """The question's id in the run."""
        return self.result.delivered[0].report.question.id

    def step(self, name: str) -> Address:
        """The address of a step's result. Raises NotAnswered with why the step has none."""
        report = self.result.delivered[0].report
        roots = [r for r in report.refusals if r["code"] != "step.dependency_failed"]
        for step in report.steps:
            if str(step["subject"]).endswith(f"/{name}") and step["address"]:
                return Address.parse(str(step["address"]))
        why = "; ".join(
            f"{r['subject']} {r['code']}: {r['message']}" for r in roots or report.refusals
        )
        raise NotAnswered(f"step {name} has no result: {why or report.message}")

    def reader(self, name: str) -> TableReader:
        """A step's result."""
        return TableReader(self.workspace.store.get(self.step(name)))

    def figure(self, place: str) -> object:
        """The value of a figure of the answer, typed. place: STEP.COLUMN."""
        step, _, column = place.partition(".")
        name = next(n for n, cited in self.recipe.figures.items() if cited == (step, column))
        report = self.result.delivered[0].report
        for figure in report.answer.figures:
            if figure.name == name:
                return _typed(figure.value, figure.type)
        self.step(step)
        raise NotAnswered(f"no figure {place}: {'; '.join(report.answer.problems)}")

    def manifest(self, source: str) -> tuple[Mapping[str, Any], Address]:
        """The newest manifest of a source, and its table."""
        entry = newest(self.workspace.log(), source)
        output = None if entry is None else entry.row.deterministic_output
        if output is None:
            raise NotAnswered(f"source {source} was not pinned")
        document = json.loads(self.workspace.store.get(output.address))
        return document, Address.parse(document["table"]["address"])

    def value(self, entry: Any) -> object:
        """The value that an entry of `expected` names."""
        if isinstance(entry, str):
            return self.figure(entry)
        if "rows" in entry:
            reader = self.reader(entry["rows"])
            return _shaped(_where(reader.page(0, reader.rows), entry.get("where", {})), entry)
        if "source" in entry:
            _, table = self.manifest(entry["source"])
            rows = TableReader(self.workspace.store.get(table)).arrow.to_pylist()
            rows.sort(key=lambda row: row[ORDINAL])
            found = [row[entry["column"]] for row in rows]
            return found[entry["at"]] if "at" in entry else found
        if "manifest" in entry:
            return self._in_manifest(entry)
        if "text" in entry:
            return re.sub(
                r"\{([^}]+)\}", lambda match: _plain(self.figure(match[1])), entry["text"]
            )
        return entry["said"]

    def _in_manifest(self, entry: Mapping[str, Any]) -> object:
        value: Any = self.manifest(entry["manifest"])[0]
        for part in entry["path"].split("."):
            value = value[int(part)] if isinstance(value, list) else value[part]
        if "each" in entry:
            value = [item[entry["each"]] for item in value]
        if entry.get("count"):
            return len(value)
        return re.findall(entry["find"], value) if "find" in entry else value


def _typed(value: str | None, kind: str) -> object:
    if value is None or kind in {"VARCHAR", "DATE"}:
        return value
    if kind == "BOOLEAN":
        return value == "true"
    try:
        return Decimal(value)
    except InvalidOperation:
        return value


def _plain(value: object) -> str:
    """A value inside a sentence: whole numbers without a fraction of zeros."""
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return f"{value:.0f}"
    return str(value)


def _where(rows: Rows, wanted: Mapping[str, Any]) -> Rows:
    return [row for row in rows if all(_text(row[n]) == str(v) for n, v in wanted.items())]


def _text(value: object) -> str:
    return "null" if value is None else str(value)


def _one(rows: Rows) -> dict[str, Any]:
    if len(rows) != 1:
        raise NotAnswered(f"{len(rows)} rows where one was looked for")
    return rows[0]


def _pick(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _lists(rows: Rows, key: str, column: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(_text(row[key]), []).append(row[column])
    return found


_SHAPES: Mapping[str, Callable[[Rows, Mapping[str, Any]], object]] = {
    "column": lambda rows, e: [row[e["column"]] for row in rows],
    "columns": lambda rows, e: [[row[name] for name in e["columns"]] for row in rows],
    "records": lambda rows, e: [_pick(row, e["records"]) for row in rows],
    "fields": lambda rows, e: _pick(_one(rows), e["fields"]),
    "cell": lambda rows, e: _one(rows)[e["cell"]],
    "count": lambda rows, _: len(rows),
    "value": lambda rows, e: {_text(row[e["key"]]): row[e["value"]] for row in rows},
    "values": lambda rows, e: {_text(row[e["key"]]): _pick(row, e["values"]) for row in rows},
    "list": lambda rows, e: _lists(rows, e["key"], e["list"]),
}


def _shaped(rows: Rows, entry: Mapping[str, Any]) -> object:
    for name, shape in _SHAPES.items():
        if name in entry:
            return shape(rows, entry)
    raise ValueError(f"the entry {dict(entry)} has no form that is known")


def differences(expected: object, found: object, place: str = "") -> list[str]:
    """Where the two differ, in words; numbers are compared as numbers, texts letter by letter."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if set(expected) != set(found):
            return [f"{place}: expected the keys {sorted(expected)}, found {sorted(found)}"]
        pairs = [(f"{place}.{key}", expected[key], found[key]) for key in expected]
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return [f"{place}: expected {expected}, found {_shown(found)}"]
        pairs = [
            (f"{place}[{i}]", e, f) for i, (e, f) in enumerate(zip(expected, found, strict=True))
        ]
    else:
        same = _same(expected, found)
        return [] if same else [f"{place}: expected {expected!r}, found {_shown(found)}"]
    return [line for at, e, f in pairs for line in differences(e, f, at)]


def _shown(found: object) -> str:
    return str(found) if isinstance(found, Decimal) else repr(found)


def _same(expected: object, found: object) -> bool:
    if isinstance(expected, bool) or isinstance(found, bool) or expected is None:
        return expected is found
    if isinstance(found, dt.date):
        return str(expected) == found.isoformat()
    if isinstance(found, int | Decimal):
        try:
            return Decimal(str(expected)) == found
        except InvalidOperation:
            return False
    return isinstance(found, str) and expected == found
