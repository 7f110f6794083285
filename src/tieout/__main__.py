"""`python -m tieout` and the `tieout` command."""

from __future__ import annotations


def main() -> None:
    """Start the command line."""


if __name__ == "__main__":
    main()
