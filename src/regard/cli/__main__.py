"""The command line as a program: `regard`, or `python -m regard.cli`, which profilers can run."""

from __future__ import annotations

import sys

from regard.cli import main
from regard.process import prepare_process


def run() -> int:
    """Run the command that `sys.argv` names and return its exit status, in a process of its own."""
    prepare_process()
    return main()


if __name__ == "__main__":
    sys.exit(run())
