"""`regard generate`."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from regard.cli.arguments import Device, Dtype, Json, ModelName, check_not_files
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json, print_table
from regard.cli.terminal import print_error
from regard.errors import InputError

if TYPE_CHECKING:
    from regard.predict import Model

HELP = """Generate text: continue a prompt, or answer it with an encoder-decoder.

Examples:
  regard generate runs/gpt "Once upon a time"                          greedy: the most likely token at each step
  regard generate runs/gpt "Once upon a time" --top-p 0.9 --seed 0     sampled, reproducibly
  regard generate runs/gpt "Once upon a time" --beams 4 --best 3       beam search; the three best of four beams
  regard generate runs/gpt --interactive --temperature 0.8             asks for prompts; Ctrl-D ends
  regard generate runs/gpt "a text" "another" --json                   one JSON object per continuation

Settings of the model's generation_config.json are the defaults. A terminal shows the text while it is generated."""


@dataclass(frozen=True)
class GenerateCommand:
    model: Annotated[
        ModelName, arg(help="Language model: a folder, a published name such as gpt2 or t5-small, or a hub id.")
    ]
    texts: Annotated[
        Positional[tuple[str, ...]], arg(help="Prompts to continue.", metavar="[PROMPT ...]", help_behavior_hint="")
    ] = ()
    interactive: Annotated[bool, arg(help="Read prompts from the terminal until Ctrl-D.")] = False
    literal: Annotated[bool, arg(help="Use every PROMPT as it is, even if a file has that name.")] = False
    max_tokens: Annotated[int | None, arg(help="Maximum number of new tokens; 50 if the model sets no other.")] = None
    min_tokens: Annotated[int | None, arg(help="Minimum number of new tokens.")] = None
    temperature: Annotated[
        float | None, arg(help="Sampling temperature: below 1 favors likely tokens, above 1 flattens the distribution.")
    ] = None
    top_k: Annotated[int | None, arg(help="Sample from the k most likely tokens.")] = None
    top_p: Annotated[
        float | None, arg(help="Sample from the most likely tokens with this total probability (nucleus).")
    ] = None
    min_p: Annotated[
        float | None, arg(help="Sample from tokens with at least this fraction of the highest probability.")
    ] = None
    seed: Annotated[int | None, arg(help="Random seed for sampling; without it every run differs.")] = None
    beams: Annotated[int | None, arg(help="Number of beams; 1 disables beam search.")] = None
    best: Annotated[int | None, arg(help="Number of continuations per prompt (num_return_sequences).")] = None
    length_penalty: Annotated[
        float | None, arg(help="Beam search: above 0 favors long sequences, below 0 short ones.")
    ] = None
    early_stop: Annotated[
        Literal["yes", "no", "never"] | None,
        arg(
            help="Beam search stops when as many sequences have ended as there are beams (yes), when no running beam "
            "is better at its current length (no, the default), or when none can become better (never)."
        ),
    ] = None
    repetition_penalty: Annotated[
        float | None, arg(help="Penalty for tokens that already occurred; 1 is none, higher is stronger.")
    ] = None
    no_repeat: Annotated[int | None, arg(help="Length of n-grams that may occur only once (no_repeat_ngram_size).")] = (
        None
    )
    stop: Annotated[tuple[str, ...], arg(help="Texts that end the generation.", metavar="TEXT...")] = ()
    banned: Annotated[tuple[str, ...], arg(help="Words that are never generated.", metavar="WORD...")] = ()
    forced: Annotated[tuple[str, ...], arg(help="Words that must be generated.", metavar="WORD...")] = ()
    slide: Annotated[bool, arg(help="Drop the oldest tokens when the context is full.")] = False
    device: Device = "auto"
    dtype: Dtype = "fp32"
    json: Json = False


EARLY: dict[str, bool | str] = {"yes": True, "no": False, "never": "never"}


def settings_of(command: GenerateCommand) -> dict[str, Any]:
    """The options of the command line as keyword arguments of `Model.generate`."""
    not_settings = ("model", "texts", "interactive", "literal", "device", "dtype", "json")
    values = {name: value for name, value in asdict(command).items() if name not in not_settings}
    options = {name: value for name, value in values.items() if not (value is None or value is False or value == ())}
    if command.early_stop is not None:
        options["early_stop"] = EARLY[command.early_stop]
    return options


def run(command: GenerateCommand) -> None:
    if command.texts and command.interactive:
        raise UsageError("prompts were given and --interactive too; give one of them.")
    if not command.texts and not command.interactive:
        raise UsageError('no prompt was given. Write it after the model ("Once upon a time"), or use --interactive.')

    check_not_files(command.texts, command.literal, 'To continue what it holds, use "$(cat {name})".', metavar="PROMPT")
    from regard.predict import load

    model, settings = load(command.model, device=command.device, dtype=command.dtype), settings_of(command)
    if command.interactive:
        converse(model, settings, as_json=command.json)
    elif len(command.texts) == 1 and not command.json and sys.stdout.isatty() and _streams(settings, model):
        flow(model, command.texts[0], settings)
    else:
        tell(model, list(command.texts), settings, as_json=command.json)


def _streams(settings: dict[str, Any], model: Model) -> bool:
    """Whether tokens are final when they are generated: not with beams or several continuations."""
    beams: int = {**model.writer.defaults, **settings}.get("beams", 1)
    return beams == 1 and settings.get("best", 1) == 1


def flow(model: Model, prompt: str, settings: dict[str, Any]) -> None:
    """Print the text while it is generated."""
    for piece in model.stream(prompt, **settings):
        print(piece, end="", flush=True)
    print()


def tell(model: Model, prompts: list[str], settings: dict[str, Any], *, as_json: bool) -> None:
    """Print all continuations of all prompts, in order."""
    for prompt, continuations in zip(prompts, model.continuations(prompts, **settings), strict=True):
        if as_json:
            for rank, one in enumerate(continuations, 1):
                print_json({"prompt": prompt, "rank": rank, **asdict(one)})
        elif len(continuations) == 1:
            print(continuations[0].text)
        else:
            print_table([(f"{one.score:.3f}", one.text.replace("\n", "\\n")) for one in continuations])


def converse(model: Model, settings: dict[str, Any], *, as_json: bool) -> None:
    """Read prompts, one per line, until the input ends."""
    if sys.stdin is None:
        raise InputError("standard input is closed, so no prompt can be read. Give prompts after the model.")
    model.writer  # noqa: B018  # says at once that a model cannot write
    while True:
        try:
            prompt = input("> " if sys.stdin.isatty() else "")
        except EOFError:
            return
        except UnicodeDecodeError as error:
            raise InputError(f"standard input is not {error.encoding}. Give UTF-8 text.") from error
        if not prompt.strip():
            continue
        try:
            if as_json or not _streams(settings, model):
                tell(model, [prompt], settings, as_json=as_json)
            else:
                flow(model, prompt, settings)
        except InputError as error:
            print_error(error.with_flags)


COMMAND = Command(name="generate", arguments=GenerateCommand, help=HELP, run=run)
