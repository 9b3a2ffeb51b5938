"""The commands of the command line, one file each. To add one: a file here and its name in `NAMES`."""

from __future__ import annotations

import importlib

from regard.cli.command import Command

# In the order in which `regard --help` lists them.
NAMES = (
    "info",
    "check",
    "train",
    "evaluate",
    "compare",
    "predict",
    "pretrain",
    "fill",
    "explain",
    "attention",
    "look",
    "embed",
    "search",
    "generate",
    "translate",
    "compress",
    "export",
    "serve",
    "bench",
    "tokenizer",
    "vectors",
    "sample",
    "lesson",
    "doctor",
)


def load_commands() -> dict[str, Command]:
    """Every command by its name."""
    commands = (importlib.import_module(f"{__name__}.{name}").COMMAND for name in NAMES)
    return {command.name: command for command in commands}
