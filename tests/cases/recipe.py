"""How a case is put to the product: a TOML file with sources, steps and where each answer stands.

    [source.bank]            # as in tieout.toml; file and files are names in the case's data
    file = "bank.csv"
    [[step]]                 # as in the plan grammar, one turn for all steps
    do = "sql"
    id = "totals"
    sql = '''SELECT ...'''
    [expected]               # one entry per key of the case's `expected`
    total = "totals.total"   # a figure: the one row of a step, a column
    open = { rows = "open_bank", column = "ref" }

`answers.py` lists the forms of an entry. A file `CASE.toml` stands in a folder beside the runner,
or a `plan.toml` beside the case itself.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
FOLDERS: Final = ("close", "recon")
KEYS: Final = frozenset({"source", "step", "expected", "waits", "drill", "note", "reference"})
_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|(?<![\w.])(\d[\d.]*)")
_DIGITS_MIN: Final = 2


@dataclass(frozen=True, slots=True)
class Recipe:
    """A case's plan. sources: tables for tieout.toml; steps: of the plan; expected: where each
    expected value stands; drill: cited rows to follow to lines; waits: why it cannot run yet;
    reference: files beside the recipe that are no part of the case, such as a code list."""

    name: str
    folder: Path
    sources: Mapping[str, Mapping[str, Any]]
    steps: Sequence[Mapping[str, Any]]
    expected: Mapping[str, Any]
    drill: Sequence[Mapping[str, Any]] = ()
    reference: Sequence[str] = ()
    waits: str = ""
    figures: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def plan(self) -> bytes:
        """The plan file: the steps, then an answer that cites every single value."""
        figures = {
            name: {"step": step, "row": {}, "column": column, "display": {"style": "text"}}
            for name, (step, column) in self.figures.items()
        }
        prose = "; ".join(f"{name} {{{name}}}" for name in figures) or "See the results."
        turns = [{"steps": list(self.steps)}, {"answer": {"prose": prose, "figures": figures}}]
        return json.dumps({"turns": turns}, ensure_ascii=False, indent=1).encode()


def find_recipe(case: str, folder: Path) -> Recipe | None:
    """The recipe of a case by its id, or None. folder: of the case."""
    places = [folder / "plan.toml", *(HERE / name / f"{case}.toml" for name in FOLDERS)]
    for place in places:
        if place.is_file():
            return load_recipe(case, place)
    return None


def load_recipe(case: str, path: Path) -> Recipe:
    """Read a recipe. Raises ValueError for a key that is not known."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    unknown = set(document) - KEYS
    if unknown:
        raise ValueError(f"{path.name}: the key {sorted(unknown)[0]!r} is not known")
    expected = document.get("expected", {})
    figures = {}
    for number, entry in enumerate(_cited(expected)):
        step, _, column = entry.partition(".")
        figures[f"f{number}"] = (step, column)
    return Recipe(
        name=case,
        folder=path.parent,
        sources=document.get("source", {}),
        steps=[{"do": "sql", **step} for step in document.get("step", [])],
        expected=expected,
        drill=document.get("drill", ()),
        reference=document.get("reference", ()),
        waits=document.get("waits", ""),
        figures=figures,
    )


def _cited(expected: Mapping[str, Any]) -> list[str]:
    """The `step.column` texts in order, each once."""
    found: dict[str, None] = {}
    for entry in expected.values():
        if isinstance(entry, str):
            found[entry] = None
        elif isinstance(entry, dict) and "text" in entry:
            found |= dict.fromkeys(re.findall(r"\{([^}]+)\}", entry["text"]))
    return list(found)


def typed_values(recipe: Recipe, expected: object, question: str) -> list[str]:
    """Expected values with digits that the plan's SQL types instead of computing them.

    A number of the question may be typed, and so may words (the names of classes).
    """
    wanted = {
        leaf
        for leaf in _leaves(expected)
        if sum(c.isdigit() for c in leaf) >= _DIGITS_MIN and leaf.lstrip("-") not in question
    }
    found = set()
    for step in recipe.steps:
        for text, number in _TOKEN.findall(step.get("sql", "")):
            for leaf in wanted:
                if (text or number) in (leaf, leaf.lstrip("-")):
                    found.add(leaf)
    return sorted(found)


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item)
            yield key
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
