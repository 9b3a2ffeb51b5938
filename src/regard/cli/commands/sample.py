"""`regard sample`."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from regard import samples
from regard.cli.arguments import Json
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json, print_status, print_table
from regard.errors import InputError

HELP = """Write a small data set that comes with regard, to try the commands on.

Examples:
  regard sample                             list all samples
  regard sample messages                    writes messages.csv
  regard sample places --out data/ner.conll"""


@dataclass(frozen=True)
class SampleCommand:
    name: Annotated[
        Positional[str | None],
        arg(help="Name of the sample; lists all samples if not given.", metavar="[NAME]", help_behavior_hint=""),
    ] = None
    out: Annotated[
        Path | None, arg(help="File to write; the sample's own name in this folder if not given.", metavar="FILE")
    ] = None
    overwrite: Annotated[bool, arg(help="Replace a file with other content.")] = False
    json: Json = False


def run(command: SampleCommand) -> None:
    if command.name is None:
        _list(command)
        return
    source = samples.path(command.name)
    target = Path(source.name) if command.out is None else command.out.expanduser()
    target = target / source.name if target.is_dir() else target
    known = _same(source, target)
    if not known:
        _write(source, target, overwrite=command.overwrite)
    if command.json:
        print_json({"name": command.name, "file": str(target), "about": samples.ABOUT[command.name]})
        return
    print(f"{target}{' is already there' if known else ''}: {samples.ABOUT[command.name]}")
    print_status(f"try: {samples.TRY[command.name].format(file=target)}")


def _list(command: SampleCommand) -> None:
    if command.out is not None:
        raise UsageError("--out was given without a name. Write regard sample NAME --out FILE.")
    if command.json:
        print_json({"samples": [{"name": name, "about": samples.ABOUT[name]} for name in samples.NAMES]})
        return
    print_table([(name, samples.ABOUT[name]) for name in samples.NAMES])
    print_status("write one with: regard sample NAME")


def _same(source: Path, target: Path) -> bool:
    """Whether the sample was written there before."""
    return target.is_file() and target.stat().st_size == source.stat().st_size and _bytes(target) == _bytes(source)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


def _write(source: Path, target: Path, *, overwrite: bool) -> None:
    from regard.data.atomic import atomic_path, check_output_path

    if target.exists() and not overwrite:
        raise InputError(f"{target} exists and holds something else. Use --out FILE, or --overwrite to replace it.")
    check_output_path(target, "--out")
    with atomic_path(target) as new_file:
        shutil.copyfile(source, new_file)


COMMAND = Command(name="sample", arguments=SampleCommand, help=HELP, run=run)
