"""`regard fill`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from regard.cli.arguments import Device, Json, ModelName
from regard.cli.output import UsageError, print_json, untrained_field

ABOUT = """Words in the place of [MASK], or whether one text follows another (--next), by a pretrained model.

Examples:
  regard fill runs/pretrained "The man went to the [MASK]."
  regard fill runs/pretrained "The [MASK] sat on the [MASK]." --top 3 --json
  regard fill runs/pretrained --next "He went out." "It was cold."     does the second text follow the first?"""


@dataclass(frozen=True)
class Fill:
    model: ModelName
    text: Annotated[
        Positional[str],
        arg(help="A text with one [MASK] or more in it.", metavar="[TEXT]", help_behavior_hint=""),
    ] = ""
    next: Annotated[
        tuple[str, ...],
        arg(help="Two texts instead: how likely the second comes right after the first.", metavar="FIRST SECOND"),
    ] = ()
    top: Annotated[int, arg(help="How many words for each mask.")] = 5
    device: Device = "auto"
    json: Json = False


def run(verb: Fill) -> None:
    if bool(verb.text) == bool(verb.next):
        given = "TEXT and --next were both given" if verb.text else "no text was given"
        raise UsageError(f'{given}. Give a TEXT with [MASK] in it, or --next "first text" "second text".')
    if verb.next and len(verb.next) != 2:
        raise UsageError(f"--next takes two texts, the first and the second; {len(verb.next)} were given.")
    if verb.next:
        _next(verb)
    else:
        _fill(verb)


def _next(verb: Fill) -> None:
    from regard.predict import load

    first, second = verb.next
    model = load(verb.model, device=verb.device)
    chance = model.next_sentence(first, second)
    if verb.json:
        print_json({"first": first, "second": second, "next_sentence": chance} | untrained_field(model))
    else:
        print(f"{chance:.3f}  probability that the second text comes right after the first")


def _fill(verb: Fill) -> None:
    from regard.predict import load
    from regard.predict.masked_words import fill

    model = load(verb.model, device=verb.device)
    found = fill(model, verb.text, top=verb.top)
    if verb.json:
        masks = [[dataclasses.asdict(one) for one in words] for words in found]
        print_json({"text": verb.text, "masks": masks} | untrained_field(model))
        return
    for number, words in enumerate(found, 1):
        if len(found) > 1:
            print(f"mask {number}")
        for one in words:
            print(f"{one.score:6.3f}  {one.word:<16}  {one.text}")
