"""`python -m regard` is the command `regard`."""

from __future__ import annotations

from regard.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
