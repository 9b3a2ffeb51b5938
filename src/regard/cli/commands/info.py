"""`regard info`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from regard.cli.arguments import Json, ModelName
from regard.cli.command import Command
from regard.cli.output import format_bytes, print_json, print_table

HELP = """Show the family, task, size, shape and tokenizer of a model.

Examples:
  regard info bert-base-uncased
  regard info runs/reviews --json"""


@dataclass(frozen=True)
class InfoCommand:
    model: ModelName
    json: Json = False


def run(command: InfoCommand) -> None:
    from regard.predict import info as model_info

    values = dataclasses.asdict(model_info(command.model))
    if command.json:
        print_json(values)
    else:
        print_table(
            [(name.replace("_", " "), _shown(name, value)) for name, value in values.items() if value is not None]
        )


def _shown(name: str, value: object) -> str:
    if name == "bytes" and isinstance(value, int):
        return format_bytes(value)
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


COMMAND = Command(name="info", arguments=InfoCommand, help=HELP, run=run)
