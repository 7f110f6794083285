"""The audit's own command line, in a process of its own."""

from __future__ import annotations

import subprocess
import sys


def audit(*arguments: object, before: str = "pass") -> subprocess.CompletedProcess[str]:
    program = (
        f"import sys; {before}; from tieout.ledger.audit.__main__ import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)
