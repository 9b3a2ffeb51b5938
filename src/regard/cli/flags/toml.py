"""Settings of a command from a TOML file: tables may be nested, names are those of the flags."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from regard.cli.output import UsageError
from regard.errors import FolderError, InputError, did_you_mean, shorten
from regard.foreign import file_errors, read_bytes
from regard.training.settings import TRAINER_NAMES, Settings

LARGEST = 1 << 20  # bytes of a settings file
PATHS = ("out", "skip_bad")
FLAGS = ("resume", "overwrite", "json")


def without_config(words_given: Sequence[str]) -> tuple[list[str], Path | None]:
    """The arguments without --config, and the file it names."""
    rest: list[str] = []
    path: Path | None = None
    words = iter(words_given)
    for word in words:
        if word == "--config":
            name = next(words, None)
            if name is None:
                raise UsageError("--config was given without a file. Write --config run.toml.")
            path = Path(name)
        elif word.startswith("--config="):
            path = Path(word.partition("=")[2])
        else:
            rest.append(word)
    return rest, path


def read_config(path: Path, command: type) -> dict[str, Any]:
    """What a file says, as fields of a command; settings of the training under `settings`."""
    command_fields = {field.name for field in fields(command)} - {"settings", "config"}
    values: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    try:
        for name, value in _read(path).items():
            plain = name.replace("-", "_")
            if plain in command_fields:
                values[plain] = _value(plain, value)
            else:
                rest[name] = value
        _check_names(rest, command_fields)
        values["settings"] = Settings.of(rest)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return values


def format_config(values: Mapping[str, Any]) -> str:
    """Settings as TOML, which `read_config` reads. What is None is left out; a dict becomes a table at the end."""
    return "\n".join(_lines(values, ""))


def _lines(values: Mapping[str, Any], prefix: str) -> list[str]:
    tables = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    lines = [f"{name} = {_toml(value)}" for name, value in values.items() if value is not None and name not in tables]
    for name, table in tables.items():
        inside = _lines(table, f"{prefix}{name}.")
        if inside:
            lines += ["", f"[{prefix}{name}]", *inside]
    return lines


def _toml(value: Any) -> str:
    """A value as TOML writes it; texts as JSON does, which is the same."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str | Path):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _read(path: Path) -> dict[str, Any]:
    try:
        with file_errors(path):
            return tomllib.loads(read_bytes(path.expanduser(), limit=LARGEST).decode("utf-8-sig"))
    except FolderError as error:
        cause = error.__cause__
        if isinstance(cause, tomllib.TOMLDecodeError):
            raise InputError(f"this is not TOML: {shorten(str(cause))}.") from error
        if isinstance(cause, UnicodeDecodeError):
            raise InputError("this is not UTF-8, which TOML is written in.") from error
        raise InputError(str(error).removeprefix(f"{path} ")) from error


def _value(name: str, value: Any) -> Any:
    if name == "columns" and isinstance(value, Mapping):
        return ",".join(f"{role}={column}" for role, column in value.items())
    if not isinstance(value, bool if name in FLAGS else str):
        expected = "true or false" if name in FLAGS else "a text in quotes"
        raise InputError(f"{name} is {shorten(repr(value), 60)}, expected {expected}.")
    return Path(str(value)) if name in PATHS else value


def _check_names(words_given: Mapping[str, Any], command_fields: set[str]) -> None:
    """Raise InputError for a name that is a misspelled argument of the command."""
    from difflib import get_close_matches

    settings = {field.name for field in fields(Settings)}
    for name in words_given:
        plain = name.replace("-", "_")
        if plain in settings or plain.startswith(("lora.", "model.")) or plain in TRAINER_NAMES:
            continue
        near = get_close_matches(plain, [*command_fields, *settings, *TRAINER_NAMES], n=1)
        if near and near[0] in command_fields:
            raise InputError(f'there is no setting "{name}".{did_you_mean(plain, command_fields)}')
