"""`python -m tieout.ledger.audit`: the check for someone who has the files and little else.

It needs Python and blake3; with pyarrow it re-derives tables too.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Final

from tieout.ledger.audit.findings import Report
from tieout.ledger.audit.fsck import check
from tieout.ledger.audit.objects import LocalObjects

_EXPECTED: Final = re.compile(r"(\d{1,18}):([0-9a-fA-F]{64})", re.ASCII)


def main(arguments: list[str] | None = None) -> int:
    """Check and print; 0 when the record holds, 1 when it does not, 2 for wrong usage."""
    options = _parser().parse_args(arguments)
    report = check(options.ledger, LocalObjects(options.store), expect_root=options.expect)
    if options.json:
        print(json.dumps(report.document(), sort_keys=True, ensure_ascii=False))  # noqa: T201
    else:
        print(_text(report))  # noqa: T201
    return 0 if report.holds else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tieout.ledger.audit",
        description="Check a ledger and its store: every hash, every object, every table.",
    )
    parser.add_argument("--ledger", type=Path, required=True, help="the ledger's SQLite file")
    parser.add_argument("--store", type=Path, required=True, help="the folder of the store")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--expect",
        type=_expected,
        metavar="SIZE:HEX",
        help="a size and the root that the ledger had then, as you noted them",
    )
    return parser


def _expected(text: str) -> tuple[int, str]:
    found = _EXPECTED.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError("wanted: SIZE:ROOT, the root in 64 hexadecimal digits")
    return int(found[1]), found[2].lower()


def _text(report: Report) -> str:
    counted = f"{report.entries} entries, {report.objects} objects, root {report.root}"
    return "\n".join([*report.lines(), f"{report.verdict()}. {counted}"])


if __name__ == "__main__":
    sys.exit(main())
