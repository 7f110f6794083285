"""Texts under all variations, and whether each difference was predicted by a named reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from determinism.judging import Judged
from determinism.variations import BASE, Outcome, Text, Variation

PROGRAM: Final = Path(__file__).with_name("variations.py")
ROOT: Final = PROGRAM.parent.parent.parent
SECONDS_MAX: Final = 1_800
MASKED: Final = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F"}
ELSEWHERE: Final = {"PYTHONHASHSEED": "4711", "TZ": "Asia/Kolkata", "LC_ALL": "C"}

REPEATS: Final = 20
FULL: Final = (
    BASE,
    Variation(1, "keyed", times=REPEATS),
    *(
        Variation(threads, layout, seed)
        for layout in ("grouped", "parquet")
        for seed in (0, 1, 2)
        for threads in (1, 2, 8)
    ),
    Variation(2, "keyed", 3),
    Variation(8, "grouped", 4, times=REPEATS),
    Variation(8, "parquet", 4, times=REPEATS),
)
SAMPLE: Final = (
    BASE,
    Variation(1, "keyed", times=3),
    Variation(1, "grouped", 1),
    Variation(2, "parquet", 2),
    Variation(8, "grouped", 3, times=3),
)
OTHER_PROCESS: Final = (BASE, Variation(8, "grouped", 1))

MIXED: Final = "mixed"
ALL: Final = frozenset({"rows", "sequence", "processor", "process"})
ORDERS: Final = frozenset({"rows", "sequence"})
PREDICTS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(["clock", "random", "session", "sample"], ALL),
    "processor": frozenset({"processor"}),
    "sequence": frozenset({"sequence"}),
    **dict.fromkeys(["inexact_average", "inexact_division", "outside_range"], frozenset()),
}
"""Which differences a reason explains; every other reason explains those of the order of rows."""


@dataclass(frozen=True, slots=True)
class Run:
    """One outcome. cause: rows, processor or process: what was varied against the first run."""

    cause: str
    label: str
    outcome: Outcome


@dataclass(slots=True)
class Report:
    """faults: what must not be. differing: kinds of differences by query id, of asked texts."""

    faults: list[str] = field(default_factory=list)
    differing: dict[str, list[str]] = field(default_factory=dict)
    runs: int = 0


def observe(
    texts: Sequence[Text], variations: Sequence[Variation], folder: Path
) -> dict[str, list[Run]]:
    """Every outcome of each text: in one process, in one masked, and in one elsewhere."""
    found: dict[str, list[Run]] = {text.id: [] for text in texts}
    for cause, told, changed in (
        ("rows", variations, {}),
        ("processor", OTHER_PROCESS, MASKED),
        ("process", OTHER_PROCESS, ELSEWHERE),
    ):
        answers = _child(texts, told, folder / cause, changed)
        for variation, answer in zip(told, answers, strict=True):
            kind = _cause(cause, variation)
            for name, outcomes in answer.items():
                label = f"{cause}: {variation.label}"
                found[name] += [Run(kind, label, outcome) for outcome in outcomes]
    return found


def _cause(process: str, variation: Variation) -> str:
    """What differs from the first run: as a rule one thing, and else it is no cause of its own."""
    alike = (variation.threads, variation.layout, variation.seed) == (BASE.threads, BASE.layout, 0)
    if process == "rows":
        return "process" if alike else "rows"
    return process if alike else MIXED


def _child(
    texts: Sequence[Text],
    variations: Sequence[Variation],
    folder: Path,
    changed: Mapping[str, str],
) -> list[dict[str, list[Outcome]]]:
    folder.mkdir()
    request = folder / "request.json"
    document = {
        "texts": [asdict(text) for text in texts],
        "variations": [asdict(variation) for variation in variations],
    }
    request.write_text(json.dumps(document), "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAM), str(request)],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **changed},
        cwd=folder,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [
        {name: [Outcome(**o) for o in each] for name, each in answer.items()}
        for answer in json.loads(done.stdout)["outcomes"]
    ]


def report(found: Sequence[Judged], seen: Mapping[str, Sequence[Run]]) -> Report:
    """Admitted texts always give what the product gave; what differs as asked was predicted."""
    told = Report(runs=sum(map(len, seen.values())))
    for judged in found:
        if judged.executed is not None and judged.product is not None:
            told.faults += _unequal(judged, seen[judged.executed.id])
        differences = _differences(seen[judged.asked.id])
        if differences:
            told.differing[judged.query.id] = sorted(differences)
        explained = {k for name in judged.reasons for k in PREDICTS.get(name, ORDERS)}
        told.faults += [
            f"{judged.query.id}: {kind} differs and no reason of {judged.reasons} says so"
            for kind in sorted(differences - explained)
        ]
    return told


def _unequal(judged: Judged, runs: Sequence[Run]) -> list[str]:
    product = judged.product
    assert product is not None
    wanted = (product.address, product.digest, bool(product.failed))
    return [
        f"{judged.query.id}: another result ({run.label}): {run.outcome}"
        for run in runs
        if (run.outcome.address, run.outcome.digest, bool(run.outcome.failed)) != wanted
    ]


def _differences(runs: Sequence[Run]) -> frozenset[str]:
    """What made the text as asked give something else than in its first run."""
    first = runs[0].outcome
    found: set[str] = set()
    for run in runs[1:]:
        if run.cause == MIXED:
            continue
        if (run.outcome.bag, run.outcome.failed) != (first.bag, first.failed):
            found.add(run.cause)
        elif run.outcome.digest != first.digest:
            found.add("sequence")
    return frozenset(found)
