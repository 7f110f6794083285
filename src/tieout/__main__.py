"""`python -m tieout` and the `tieout` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Start the command line; say what to install when only the verifier is there."""
    try:
        from tieout.cli import start
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("tieout"):
            raise
        sys.stderr.write(
            f"tieout: {error.name} is not installed: pip install 'tieout[run]'. "
            "The stand-alone verifier is python -m tieout.ledger.audit.\n"
        )
        sys.exit(5)
    sys.exit(start())


if __name__ == "__main__":
    main()
