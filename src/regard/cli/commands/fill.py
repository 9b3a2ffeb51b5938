"""`regard fill`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from regard.cli.arguments import Device, Json, ModelName
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json, untrained_field

HELP = """Predict the words for [MASK] with a pretrained model, or whether one text follows another (--next).

Examples:
  regard fill runs/pretrained "The man went to the [MASK]."
  regard fill runs/pretrained "The [MASK] sat on the [MASK]." --top 3 --json
  regard fill runs/pretrained --next "He went out." "It was cold."     probability that the second follows the first"""


@dataclass(frozen=True)
class FillCommand:
    model: Annotated[
        ModelName,
        arg(help="Masked language model: a folder, a published name such as bert-base-uncased, or a hub id."),
    ]
    text: Annotated[
        Positional[str],
        arg(help="Text with at least one [MASK].", metavar="[TEXT]", help_behavior_hint=""),
    ] = ""
    next: Annotated[
        tuple[str, ...],
        arg(
            help="Two texts, instead of TEXT: predict whether the second comes right after the first.",
            metavar="FIRST SECOND",
        ),
    ] = ()
    top: Annotated[int, arg(help="Number of words per mask.")] = 5
    device: Device = "auto"
    json: Json = False


def run(command: FillCommand) -> None:
    if bool(command.text) == bool(command.next):
        problem = "TEXT and --next were both given" if command.text else "no text was given"
        raise UsageError(f'{problem}. Give a TEXT with [MASK] in it, or --next "first text" "second text".')
    if command.next and len(command.next) != 2:
        raise UsageError(f"--next takes two texts, the first and the second; {len(command.next)} were given.")
    if command.next:
        _next(command)
    else:
        _fill(command)


def _next(command: FillCommand) -> None:
    from regard.predict import load

    first, second = command.next
    model = load(command.model, device=command.device)
    probability = model.next_sentence(first, second)
    if command.json:
        print_json({"first": first, "second": second, "next_sentence": probability} | untrained_field(model))
    else:
        print(f"{probability:.3f}  probability that the second text comes right after the first")


def _fill(command: FillCommand) -> None:
    from regard.predict import load

    model = load(command.model, device=command.device)
    masks = model.fill(command.text, top=command.top)
    if command.json:
        values = [[dataclasses.asdict(candidate) for candidate in candidates] for candidates in masks]
        print_json({"text": command.text, "masks": values} | untrained_field(model))
        return
    for number, candidates in enumerate(masks, 1):
        if len(masks) > 1:
            print(f"mask {number}")
        for candidate in candidates:
            print(f"{candidate.score:6.3f}  {candidate.word:<16}  {candidate.text}")


COMMAND = Command(name="fill", arguments=FillCommand, help=HELP, run=run)
