"""`python -m regard` is the command `regard`."""

from __future__ import annotations

import sys

from regard.cli.__main__ import run

if __name__ == "__main__":
    sys.exit(run())
