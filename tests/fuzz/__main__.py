"""`python -m tests.fuzz`: see README.md."""

import sys

from tests.fuzz.run import main  # a module of its own: a new process can import it

if __name__ == "__main__":
    sys.exit(main())
