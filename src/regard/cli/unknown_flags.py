"""Report a flag that a command does not have. The parser would report missing arguments first."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from tyro.conf import Positional

from regard.cli.command import Command
from regard.cli.output import UsageError
from regard.cli.trainer_names import OWN
from regard.errors import suggest
from regard.training.settings import NOT_NEEDED, OLD_NAMES

FLAG = re.compile(r"--[A-Za-z][\w.-]*(?==|$)")
COLUMN = re.compile(r"[a-z_]+=.")  # such as text=review
POSITIONAL = get_args(Positional[str])[1]  # the marker that the type adds


def check_flags(command: Command, words: Sequence[str]) -> None:
    """Raise UsageError for the first unknown flag, or for columns in several words. Words after `--` are arguments."""
    if not is_dataclass(command.arguments) or "-h" in words or "--help" in words:
        return
    known = {_flag(name) for name in (*_names(command.arguments), "help")}
    trainer_flags: set[str] = set()
    if command.parse is not None:
        trainer_flags = {_flag(name) for name in (*OWN, *OLD_NAMES, *NOT_NEEDED)}
    words = list(itertools.takewhile(lambda word: word != "--", words))
    _check_columns(command, words)
    for word in words:
        match = FLAG.match(word)
        if match is None or match[0].startswith("--tyro-"):
            continue
        flag = _flag(match[0])
        if flag not in known | trainer_flags:
            advice = f"See regard {command.name} --help."
            raise UsageError(
                f"{match[0]} is not a flag of regard {command.name}.{suggest(flag, sorted(known))} {advice}"
            )


def _check_columns(command: Command, words: Sequence[str]) -> None:
    """Columns are one value, with commas: further words would be reported as unrecognized options."""
    if "--columns" not in words:
        return
    values = words[words.index("--columns") + 1 :]
    columns = [word.strip(",") for word in itertools.takewhile(COLUMN.match, values)]
    if len(columns) > 1:
        raise UsageError(
            f"--columns takes one value, but was given {len(columns)}. Separate them with commas: "
            f"--columns {','.join(columns)}. See regard {command.name} --help."
        )


def _names(arguments: Any, prefix: str = "") -> set[str]:
    """The names of all flags, without dashes before them."""
    names: set[str] = set()
    for field, annotation in get_type_hints(arguments, include_extras=True).items():
        annotated = get_origin(annotation) is Annotated
        kind, *metadata = get_args(annotation) if annotated else (annotation,)
        if POSITIONAL in metadata:
            continue
        name = next((one.name for one in reversed(metadata) if getattr(one, "name", None) is not None), field)
        if is_dataclass(kind):
            names |= _names(kind, f"{prefix}{name}." if name else prefix)
        else:
            names.add(f"{prefix}{name}")
        for one in metadata:
            names |= set(getattr(one, "aliases", None) or ())
    return names


def _flag(name: str) -> str:
    return f"--{name.lstrip('-').replace('_', '-')}"
