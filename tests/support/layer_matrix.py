"""Attacks against each layer alone: the matrix, and docs/layers.md from it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from support.layers import CLASSES, Answer, Layer, Layers

Attack = Mapping[str, str]
Matrix = dict[str, dict[Layer, Answer]]

START = "<!-- {name}: made by make slow, see tests/executor/sql/test_layers.py -->"
END = "<!-- end of {name} -->"


def own(folder: Path) -> list[Attack]:
    """The attacks of the repository."""
    return [json.loads(line) for line in (folder / "attacks.jsonl").read_text().splitlines()]


def shared(folder: Path) -> list[Attack]:
    """Those of the shared list that must be refused."""
    lines = (folder / "sql" / "attacks.jsonl").read_text().splitlines()
    return [a for a in map(json.loads, lines) if a["expected"] == "reject"]


def matrix(layers: Layers, attacks: Iterable[Attack], folder: Path) -> Matrix:
    """What each layer alone says to each attack. folder: stands for {DIR} in the texts."""
    found = {
        attack["id"]: layers.each(attack["sql"].replace("{DIR}", str(folder))) for attack in attacks
    }
    fallen = {(i, layer) for i, answers in found.items() for layer, a in answers.items() if a.fell}
    assert fallen == set(), "a layer that fell over refused nothing"
    return found


def classes(answers: Mapping[Layer, Answer]) -> set[str]:
    """The classes of the layers that refused."""
    return {CLASSES[layer] for layer, answer in answers.items() if answer.refused}


def table(attacks: Iterable[Attack], found: Matrix) -> str:
    """Counts per category: how many attacks each layer alone refuses.

    Without those that are only no function of the data: the verdict settles them, not authority.
    """
    listed = [a for a in attacks if a["category"] != "determinism"]
    head = ["category", "attacks", *Layer, "at least two classes"]
    lines = [" | ".join(head), " | ".join(["---"] + ["---:"] * (len(head) - 1))]
    for category in [*sorted({a["category"] for a in listed}), "all"]:
        ids = [a["id"] for a in listed if category in (a["category"], "all")]
        counts = [sum(found[i][layer].refused for i in ids) for layer in Layer]
        several = sum(len(classes(found[i])) > 1 for i in ids)
        lines.append(" | ".join([category, *map(str, [len(ids), *counts, several])]))
    return "".join(f"| {line} |\n" for line in lines)


def section(document: str, name: str) -> str:
    """The part of the document between its two marks."""
    start, end = START.format(name=name), END.format(name=name)
    return document.split(start, 1)[1].split(end, 1)[0].strip() + "\n"


def replaced(document: str, name: str, text: str) -> str:
    """The document with another part between the marks."""
    start, end = START.format(name=name), END.format(name=name)
    head, rest = document.split(start, 1)
    return f"{head}{start}\n\n{text}\n{end}{rest.split(end, 1)[1]}"
