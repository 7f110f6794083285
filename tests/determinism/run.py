"""The determinism corpus at full counts, its golden digests, and the figures of both.

    python tests/determinism/run.py                  every query under every variation
    python tests/determinism/run.py --golden         write golden.json anew, from both engine builds
    python tests/determinism/run.py --save           the figures into bench/results too
    python tests/determinism/run.py --quick          every query under few variations
    python tests/determinism/run.py --only lim-      queries whose id begins so

Exit 1 when a result differs that must not, or a difference was not predicted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from determinism.golden import write_golden
from determinism.judging import Judged, judged
from determinism.observing import FULL, SAMPLE, Report, observe, report
from determinism.queries import corpus

from tieout.executor.sql.settings import ENGINE_VERSION

FIGURES: Final = Path(__file__).resolve().parents[2] / "bench" / "results" / "determinism.json"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Run the determinism corpus.")
    parser.add_argument("--golden", action="store_true", help="write golden.json anew")
    parser.add_argument("--save", action="store_true", help="keep the figures")
    parser.add_argument("--quick", action="store_true", help="few variations")
    parser.add_argument("--only", default="", help="queries whose id begins so")
    asked = parser.parse_args()
    if asked.golden:
        print("\n".join(write_golden()))
        return 0
    found = list(judged([query for query in corpus() if query.id.startswith(asked.only)]))
    variations = SAMPLE if asked.quick else FULL
    with tempfile.TemporaryDirectory(prefix="tieout-determinism-") as folder:
        told = report(found, observe(texts_of(found), variations, Path(folder)))
    document = figures(found, told)
    print(json.dumps(document, indent=1))
    print("\n".join(f"{j.query.id}: {j.standing} {j.reasons}" for j in found if not j.as_expected))
    if asked.save:
        FIGURES.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    return 1 if told.faults else 0


def texts_of(found: Sequence[Judged]) -> list:
    """All texts to run: each query as asked, and as the gate would have it run."""
    executed = [j.executed for j in found if j.executed is not None]
    return [*(j.asked for j in found), *executed]


def figures(found: Sequence[Judged], told: Report) -> dict:
    """Counts, by standing and by reason."""
    named = Counter(name for j in found for name in j.reasons)
    seen = Counter(name for j in found if j.query.id in told.differing for name in j.reasons)
    unasked = [j for j in found if j.standing != "function"]
    return {
        "engine": ENGINE_VERSION,
        "queries": len(found),
        "classes": len({j.query.kind for j in found}),
        "standing": dict(sorted(Counter(j.standing for j in found).items())),
        "runs": told.runs,
        "faults": told.faults,
        "not_as_the_corpus_says": [j.query.id for j in found if not j.as_expected],
        "asked_texts_that_differed": len(told.differing),
        "refused_or_rewritten_that_never_differed": sorted(
            j.query.id for j in unasked if j.query.id not in told.differing
        ),
        "reasons": {
            name: {"queries": named[name], "differed": seen[name]} for name in sorted(named)
        },
        "differed_by": dict(
            sorted(Counter(kind for kinds in told.differing.values() for kind in kinds).items())
        ),
    }


if __name__ == "__main__":
    sys.exit(main())
