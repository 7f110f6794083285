"""Run every case of a folder against the product: passed, failed or waiting, with the reason.

    .venv/bin/python tests/cases/run.py --shared DIR [--only ID] [--json]

DIR/cases holds close, recon and text, one folder with a case.json per case, and numbers.jsonl;
DIR/data the files that cases name, DIR/sql attacks on the gate. Exit 1 when a case failed, 2 when DIR holds no case.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from number_cases import NUMBERS, run_numbers
from sql_cases import run_sql
from table_cases import load_case, run_case
from text_cases import run_text_case
from verdict import State, Verdict, failed, waiting

TABLE_KINDS: Final = ("close", "recon")
TEXT_KIND: Final = "text"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Run the shared cases against the product.")
    parser.add_argument("--shared", type=Path, required=True, help="folder with cases and data")
    parser.add_argument("--only", default="", help="run the cases whose id begins so")
    parser.add_argument("--json", action="store_true", help="one document instead of lines")
    asked = parser.parse_args()
    verdicts = []
    for verdict in verdicts_of(asked.shared.resolve(), asked.only):
        verdicts.append(verdict)
        if not asked.json:
            print(verdict.line, flush=True)
    counts = Counter(verdict.state for verdict in verdicts)
    if asked.json:
        cases = [{"id": v.case, "state": v.state, "reason": v.reason} for v in verdicts]
        totals = {state: counts[state] for state in State}
        print(json.dumps({"cases": cases, "totals": totals}, ensure_ascii=False, indent=1))
    else:
        print(", ".join(f"{counts[state]} {state}" for state in State))
    if not verdicts:
        print(f"no case in {asked.shared / 'cases'} begins with {asked.only!r}", file=sys.stderr)
        return 2
    return 1 if counts[State.FAILED] else 0


def verdicts_of(shared: Path, only: str) -> Iterator[Verdict]:
    """Every case whose id begins with `only`, in order."""
    cases = shared / "cases"
    for kind in (*TABLE_KINDS, TEXT_KIND):
        for path in sorted((cases / kind).glob("*/case.json")):
            name = path.parent.name
            if name.startswith(only) or f"{kind}/{name}".startswith(only):
                yield _verdict(kind, path.parent, shared)
    numbers = cases / NUMBERS
    if numbers.is_file() and NUMBERS.startswith(only):
        try:
            yield from run_numbers(numbers)
        except (ValueError, KeyError, TypeError) as error:
            yield waiting(NUMBERS, f"a line has another shape: {error!r}")
    yield from run_sql(shared, only)


def _verdict(kind: str, folder: Path, shared: Path) -> Verdict:
    try:
        if kind == TEXT_KIND:
            document = json.loads((folder / "case.json").read_text(encoding="utf-8"))
            return run_text_case(folder.name, document)
        case = load_case(folder, shared)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return waiting(folder.name, f"case.json has another shape: {error!r}")
    with tempfile.TemporaryDirectory(prefix="tieout-case-") as work:
        try:
            return run_case(case, Path(work))
        except (ValueError, KeyError, TypeError, OSError, StopIteration) as error:
            return failed(case.id, f"the recipe or the case cannot be followed: {error!r}")


if __name__ == "__main__":
    sys.exit(main())
