"""`python -m regard.cli`."""

import sys

from regard.cli import main

sys.exit(main())
