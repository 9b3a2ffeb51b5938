"""`regard fill`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from regard.cli.arguments import Device, Json, ModelName
from regard.cli.shared import print_json, untrained_field

ABOUT = """Words in the place of [MASK], as a pretrained model guesses them.

Examples:
  regard fill runs/pretrained "The man went to the [MASK]."
  regard fill runs/pretrained "The [MASK] sat on the [MASK]." --top 3 --json"""


@dataclass(frozen=True)
class Fill:
    model: ModelName
    text: Annotated[Positional[str], arg(help="A text with one [MASK] or more in it.", metavar="TEXT")]
    top: Annotated[int, arg(help="How many words for each mask.")] = 5
    device: Device = "auto"
    json: Json = False


def run(verb: Fill) -> None:
    from regard.predict import load
    from regard.predict.words import fill

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
