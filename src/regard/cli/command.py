"""What a command of the command line is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Command(NamedTuple):
    """One command, such as `regard train`: a file in `cli/commands/` defines it as `COMMAND`.

    The first line of `help` is shown by `regard --help`; all of it, with examples, by `regard NAME --help`.
    """

    name: str
    arguments: type  # a dataclass whose fields are the positional arguments and flags
    help: str
    run: Callable[[Any], None]  # receives an instance of `arguments`; prints the result
    parse: Callable[..., Any] | None = None  # replaces tyro's parser, for commands that also read a file of settings
