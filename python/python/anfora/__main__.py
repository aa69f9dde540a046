"""The command line: ``python -m anfora``."""

from __future__ import annotations

import sys

from . import _anfora


def main() -> None:
    """Runs the command line with the arguments of the process, and exits with its status."""
    sys.exit(_anfora._main(["anfora", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
