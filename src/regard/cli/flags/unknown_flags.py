"""Report a flag that a command does not have, one that takes the arguments after it, and several files for one.

The parser would report missing arguments first, or only those.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from tyro.conf import Positional

from regard.cli.command import Command
from regard.cli.output import UsageError
from regard.errors import shorten, suggest
from regard.training.settings import TRAINER_NAMES

FLAG = re.compile(r"--[A-Za-z][\w.-]*(?==|$)")
COLUMN = re.compile(r"[a-z_]+=.")  # such as text=review
POSITIONAL = get_args(Positional[str])[1]  # the marker that the type adds


def check_flags(command: Command, words: Sequence[str]) -> None:
    """Raise UsageError for the first unknown flag, columns in several words, or a flag that takes all arguments.

    Words after `--` are arguments.
    """
    if not is_dataclass(command.arguments) or "-h" in words or "--help" in words:
        return
    known = {_flag(name) for name in (*_kinds(command.arguments), "help")}
    before = list(itertools.takewhile(lambda word: word != "--", words))
    has_dashes, words = len(before) < len(words), before
    _check_columns(command, words)
    _check_files(command, words)
    for word in words:
        match = FLAG.match(word)
        if match is None or match[0].startswith("--tyro-"):
            continue
        flag = _flag(match[0])
        if flag not in known:
            problem = f"{match[0]} is not a flag of regard {command.name}"
            raise UsageError(f"{problem}{_advice(flag, known)} See regard {command.name} --help.")
    if not has_dashes:
        _check_order(command, words)


def _advice(flag: str, known: set[str]) -> str:
    """What an unknown flag may be called here."""
    ours = _flag(TRAINER_NAMES.get(flag.removeprefix("--").replace("-", "_"), ""))
    if ours in known:
        return f"; regard calls it {ours}."
    return f".{suggest(flag, sorted(known))}"


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


def _check_files(command: Command, words: Sequence[str]) -> None:
    """Several files where one is expected, as a shell makes them of `*.csv` without quotes."""
    kinds = get_type_hints(command.arguments, include_extras=True)
    names = [field.name for field in fields(command.arguments) if POSITIONAL in get_args(kinds[field.name])]
    leading = list(itertools.takewhile(lambda word: FLAG.match(word) is None, words))
    if any("tuple" in str(kinds[name]) for name in names) or len(leading) <= len(names) or not names:
        return
    files = leading[len(names) - 1 :]
    if all(Path(word).is_file() for word in files):
        named = shorten(", ".join(files), 100)
        raise UsageError(
            f"{names[-1].upper()} is one file, but {len(files)} were given: {named}. For several files, write "
            f"a pattern in quotes, such as '*{Path(files[0]).suffix}'. See regard {command.name} --help."
        )


def _check_order(command: Command, words: Sequence[str]) -> None:
    """A flag that takes several values takes all words up to the next flag, arguments of the command too."""
    required = _required(command.arguments)
    starts = [number for number, word in enumerate(words) if FLAG.match(word)]
    if required is None or not starts or starts[0] > 0:
        return
    kinds = {_flag(name): kind for name, kind in _kinds(command.arguments).items()}
    taking = ""
    for start, end in itertools.pairwise([*starts, len(words)]):
        flag, equals, _ = words[start].partition("=")
        kind, values = kinds.get(_flag(flag)), words[start + 1 : end]
        several = "tuple" in str(kind)
        expected = 0 if equals or kind is bool else 1
        if kind is None or (not several and len(values) > expected):
            return  # an argument of the command
        if several and values:
            taking = f"{flag} takes all words after it ({', '.join(values)})"
    if taking:
        raise UsageError(
            f"{required.upper()} is missing: {taking}. Write {required.upper()} before the flags. "
            f"See regard {command.name} --help."
        )


def _required(arguments: Any) -> str | None:
    """The name of the first argument without a flag, if it must be given."""
    kinds = get_type_hints(arguments, include_extras=True)
    positional = (field for field in fields(arguments) if POSITIONAL in get_args(kinds[field.name]))
    first = next(positional, None)
    return None if first is None or first.default is not MISSING else first.name


def _kinds(arguments: Any, prefix: str = "") -> dict[str, Any]:
    """The types of all flags by name, without dashes before it."""
    kinds: dict[str, Any] = {}
    for field, annotation in get_type_hints(arguments, include_extras=True).items():
        annotated = get_origin(annotation) is Annotated
        kind, *metadata = get_args(annotation) if annotated else (annotation,)
        if POSITIONAL in metadata:
            continue
        name = next((one.name for one in reversed(metadata) if getattr(one, "name", None) is not None), field)
        if is_dataclass(kind):
            kinds |= _kinds(kind, f"{prefix}{name}." if name else prefix)
        else:
            kinds[f"{prefix}{name}"] = kind
        for one in metadata:
            kinds |= dict.fromkeys(getattr(one, "aliases", None) or (), kind)
    return kinds


def _flag(name: str) -> str:
    return f"--{name.lstrip('-').replace('_', '-')}"
