"""`python -m tieout` and the `tieout` command."""

from __future__ import annotations

import json
import sys

from tieout.artifacts.errors import RoomError


def main() -> None:
    """Start the command line; say what to install when only the verifier is there."""
    try:
        from tieout.cli import start
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("tieout"):
            raise
        missing = RoomError(
            "exit.environment",
            f"{error.name} is not installed",
            remedy="Run pip install 'tieout[run]'; the stand-alone verifier is "
            "python -m tieout.ledger.audit.",
        )
        said = json.dumps(missing.document()) if "--json" in sys.argv else f"tieout: {missing}"
        sys.stderr.write(said + "\n")
        sys.exit(5)
    sys.exit(start())


if __name__ == "__main__":
    main()
