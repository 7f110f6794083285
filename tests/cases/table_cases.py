"""Cases over files of rows: a workspace of their own, the product's answer, the comparison."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from answers import Answers, NotAnswered, differences
from drilling import undrilled
from recipe import Recipe, find_recipe, typed_values
from verdict import Verdict, failed, passed, waiting

from tieout import init_workspace
from tieout.artifacts.errors import RoomError

ROWS_ENDING: Final = ".csv"
FORMATS: Final[Mapping[str, str]] = {
    ".xlsx": "workbooks",
    ".ofx": "OFX statements",
    ".sta": "MT940 statements",
    ".xml": "camt.053 statements",
    ".bai": "BAI2 statements",
    ".txt": "BAI2 statements",
}
DIFFERENCES_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Case:
    """A case.json: its id, its folder, its document, and the files that it is about."""

    id: str
    folder: Path
    document: Mapping[str, Any]
    files: Mapping[str, Path]


def load_case(folder: Path, shared: Path) -> Case:
    """A case in a folder. Raises ValueError, KeyError for a document of another shape."""
    document = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    if not isinstance(document, dict):
        raise ValueError("case.json is not an object")  # noqa: TRY004
    files = {path.name: path for path in _files(folder, document, shared)}
    return Case(str(document["id"]), folder, document, files)


def _files(folder: Path, document: Mapping[str, Any], shared: Path) -> Iterator[Path]:
    """The case's own inputs, else the files of the data that it names."""
    for entry in document.get("inputs", ()):
        yield folder / entry["file"]
    for name in document.get("data", ()):
        below = name.removeprefix("data/")
        for place in (shared / name, shared / "data" / "close" / below):
            if place.is_file():
                yield place
            elif place.is_dir():
                yield from (p for p in sorted(place.iterdir()) if not p.name.startswith("LICENSE"))


def run_case(case: Case, work: Path) -> Verdict:
    """Put a case to the product. work: an empty folder for its workspace."""
    recipe = find_recipe(case.id, case.folder)
    if recipe is None:
        endings = {path.suffix.lower() for path in case.files.values()}
        if endings and ROWS_ENDING not in endings and endings <= FORMATS.keys():
            kinds = ", ".join(sorted({FORMATS[ending] for ending in endings}))
            return waiting(case.id, f"{kinds} cannot be read yet")
        return waiting(case.id, "no plan written for this id")
    if recipe.waits:
        return waiting(case.id, recipe.waits)
    expected, question = case.document["expected"], case.document["question"]
    typed = typed_values(recipe, expected, question)
    if typed:
        return failed(case.id, f"the plan types {', '.join(typed)} instead of computing it")
    try:
        return _run(case, recipe, work)
    except NotAnswered as error:
        return failed(case.id, str(error))
    except RoomError as error:
        return failed(case.id, f"{error.code}: {error.message} [{error.place}]")


def _run(case: Case, recipe: Recipe, work: Path) -> Verdict:
    make_workspace(case, recipe, work)
    with init_workspace(work) as workspace:
        result = workspace.run(work / "questions.toml")
        answers = Answers(workspace, recipe, result)
        expected = case.document["expected"]
        missing = sorted(set(expected) - set(recipe.expected))
        if missing:
            return failed(case.id, f"the plan says nothing of {', '.join(missing)}")
        found = {key: answers.value(recipe.expected[key]) for key in expected}
        wrong = differences(dict(expected), found)
        wrong += undrilled(workspace, answers, recipe.drill, case.files)
    if wrong:
        more = len(wrong) - DIFFERENCES_SHOWN
        tail = f"; and {more} more" if more > 0 else ""
        return failed(case.id, "; ".join(wrong[:DIFFERENCES_SHOWN]) + tail)
    said = [key for key in expected if isinstance(recipe.expected[key], dict)
            and "said" in recipe.expected[key]]  # fmt: skip
    notes = [f"{', '.join(said)}: words of the plan"] if said else []
    notes += [f"{len(recipe.drill)} results followed to lines of files"] if recipe.drill else []
    return passed(case.id, "; ".join(notes))


def make_workspace(case: Case, recipe: Recipe, root: Path) -> None:
    """Write tieout.toml, the source files, the questions and the plan."""
    lines = ["[workspace]", 'name = "case"']
    for name, source in recipe.sources.items():
        table = dict(source)
        for file in table.pop("files", [table.get("file")]):
            origin = recipe.folder / file if file in recipe.reference else case.files.get(file)
            if origin is None:
                raise NotAnswered(f"the case has no file {file}")
            place = root / table.get("folder", ".") / file
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(origin, place)
        lines += ["", *toml_table(f"source.{name}", table)]
    (root / "tieout.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (root / "plan.json").write_bytes(recipe.plan())
    question = {
        "id": re.sub(r"[^a-z0-9_.-]", "-", case.id.lower())[:80],
        "text": case.document["question"],
        "sources": list(recipe.sources),
        "plan": "plan.json",
    }
    text = "\n".join(["[[question]]", *toml_table("", question)]) + "\n"
    (root / "questions.toml").write_text(text, encoding="utf-8")


def toml_table(name: str, table: Mapping[str, Any]) -> list[str]:
    """A table as lines of TOML: its values, then its tables below it."""
    lines = [f"[{name}]"] if name else []
    lines += [
        f"{_key(key)} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in table.items()
        if not isinstance(value, dict)
    ]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += toml_table(f"{name}.{_key(key)}", value)
    return lines


def _key(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
