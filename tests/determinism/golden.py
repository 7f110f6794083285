"""Content digests of the admitted corpus under two engine builds, and where the two must differ."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from builds.environment import run_second
from determinism.judging import Judged, judged
from determinism.observing import PROGRAM
from determinism.queries import corpus
from determinism.variations import BASE

from tieout.executor.sql.settings import ENGINE_VERSION

GOLDEN: Final = Path(__file__).with_name("golden.json")
OTHER: Final = "1.5.6"


def read_golden() -> dict[str, Any]:
    """The committed file."""
    document: dict[str, Any] = json.loads(GOLDEN.read_text("utf-8"))
    return document


def digests(found: list[Judged]) -> dict[str, str]:
    """Of the pinned engine in the product, by query id; a typed failure stands as its code."""
    return {
        j.query.id: j.product.digest or j.product.failed for j in found if j.product is not None
    }


def other_digests(found: list[Judged]) -> dict[str, str]:
    """Of the second environment: the executed texts, once; an error stands as its class."""
    texts = [asdict(j.executed) for j in found if j.executed is not None]
    with tempfile.TemporaryDirectory(prefix="tieout-golden-") as folder:
        request = Path(folder, "request.json")
        request.write_text(json.dumps({"texts": texts, "variations": [asdict(BASE)]}), "utf-8")
        answer = json.loads(run_second(PROGRAM, str(request)))
    assert answer["engine"]["duckdb"] == OTHER
    (outcomes,) = answer["outcomes"]
    return {
        name.split(" ", 1)[1]: each[0]["digest"] or each[0]["failed"]
        for name, each in outcomes.items()
    }


def write_golden() -> list[str]:
    """Write the file anew, keeping the reasons for what differs; says what still needs one."""
    before = read_golden() if GOLDEN.exists() else {"differs": {}}
    found = [j for j in judged(corpus()) if j.executed is not None]
    ours, others = digests(found), other_digests(found)
    differs = {
        name: {
            OTHER: others[name],
            "why": before["differs"].get(name, {}).get("why", ""),
        }
        for name in ours
        if others[name] != ours[name]
    }
    document = {
        "engines": [ENGINE_VERSION, OTHER],
        "digests": ours,
        "differs": differs,
    }
    GOLDEN.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return [
        f"{len(ours)} digests, {len(differs)} differ in {OTHER}",
        *(f"{name}: say why in golden.json" for name, told in differs.items() if not told["why"]),
    ]
