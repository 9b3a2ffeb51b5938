"""`regard explain`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from regard.cli.arguments import Columns, Device, Encoding, FileFormat, Json, LiteralTexts, ModelName
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json, progress_bar, untrained_field

if TYPE_CHECKING:
    from regard.predict.model import Model

HELP = """Explain an answer: how much each word contributed; over a file, the words that a model relies on.

Examples:
  regard explain runs/reviews "A warm and funny film."
  regard explain runs/reviews "A warm and funny film." --method integrated_gradients --faithfulness
  regard explain runs/reviews "A warm and funny film." --target negative --json
  regard explain runs/tagger "Ada was born in London." --target London
  regard explain runs/reader "Who was born?" --pair "Ada was born in London."
  regard explain runs/translator "The soup was warm." --target soupe
  regard explain gpt2 "The capital of France is"
  regard explain minilm "A film about cooking." --pair "Movies on food."   the similarity of two texts
  regard explain runs/reviews test.csv                                  the most important words of each class
  regard explain runs/reviews test.csv --faithfulness                   every method against random order"""

WORD_ROWS, FAITHFUL_ROWS = 200, 50  # that are read of a file
DATA_FLAGS = ("split", "format", "columns", "encoding", "max_rows")
TEXT_FLAGS = ("pair", "target", "steps")
FILE_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".conll", ".txt", ".gz", ".xz")


@dataclass(frozen=True)
class ExplainCommand:
    model: ModelName
    text: Annotated[
        Positional[str],
        arg(help="Text to explain; or data: a file, or a folder with test or valid.", metavar="TEXT|DATA"),
    ]
    pair: Annotated[
        str | None,
        arg(help="Second text of a pair, context of a question, or text to be similar to.", metavar="TEXT"),
    ] = None
    method: Annotated[
        str | None,
        arg(
            help="Method: decomposition, occlusion, integrated_gradients, attention_rollout, attention or random; the "
            "most faithful one that fits the model if not given.",
            metavar="NAME",
        ),
    ] = None
    target: Annotated[
        str | None,
        arg(
            help="What is explained: a class, words of the text (or WORDS=TAG), a part of the context, a word of the "
            "translation, the next word, the word for a mask; the model's own answer if not given.",
            metavar="TARGET",
        ),
    ] = None
    steps: Annotated[
        int | None,
        arg(help="Points on the path of integrated gradients; as many as are needed if not given.", metavar="N"),
    ] = None
    faithfulness: Annotated[
        bool,
        arg(help="Also measure how faithful the explanation is; over a file, every method or those of --method."),
    ] = False
    top: Annotated[int, arg(help="Number of words to list, for each class over a file.", metavar="N")] = 10
    max_rows: Annotated[
        int | None,
        arg(
            help="Over a file: maximum number of rows, a random sample; 200 if not given, with --faithfulness 50.",
            metavar="N",
        ),
    ] = None
    split: Annotated[str | None, arg(help="Split of a folder with several; test if not given.", metavar="NAME")] = None
    format: FileFormat = None
    columns: Columns = None
    encoding: Encoding = None
    literal: LiteralTexts = False
    device: Device = "auto"
    json: Json = False


def run(command: ExplainCommand) -> None:
    if command.top < 1:
        raise UsageError(f"--top is {command.top}, expected at least 1.")
    if not command.text.strip():
        raise UsageError("TEXT is empty. Give a text, or a file of texts.")
    is_data = not command.literal and _is_path(command.text)
    if not is_data and not command.literal and command.text.endswith(FILE_ENDINGS) and " " not in command.text:
        raise UsageError(f'"{command.text}" does not exist. If this is the text, add --literal.')
    _check(command, is_data)
    from regard.predict import load

    model = load(command.model, device=command.device)
    if is_data:
        _explain_data(model, command)
    else:
        _explain_text(model, command)


def _is_path(text: str) -> bool:
    """Whether an argument names an existing file or folder."""
    try:
        return Path(text).expanduser().exists()
    except (OSError, ValueError):  # too long for a name
        return False


def _check(command: ExplainCommand, is_data: bool) -> None:
    """Refuse flags that would have no effect."""
    unused = TEXT_FLAGS if is_data else DATA_FLAGS
    names = [name for name in unused if getattr(command, name) is not None]
    if names:
        kind = "one text" if is_data else "a file of texts"
        what = "data" if is_data else "a text"
        raise UsageError(f"--{names[0].replace('_', '-')} is for {kind}, and {what} was given. Leave it out.")


def _explain_text(model: Model, command: ExplainCommand) -> None:
    with progress_bar() as progress:
        explanation = model.explain(
            command.text,
            command.pair,
            method=command.method,
            target=command.target,
            steps=command.steps,
            faithfulness=command.faithfulness,
            progress=progress,
        )
    if command.json:
        print_json(explanation.json() | untrained_field(model))
        return
    from regard.cli.explanations import print_explanation

    print_explanation(explanation, top=command.top)


def _explain_data(model: Model, command: ExplainCommand) -> None:
    from regard.cli.explanations import print_faithfulness, print_important_words
    from regard.look.dataset.faithfulness import faithfulness
    from regard.look.dataset.word_importance import word_importance

    reading: dict[str, Any] = {name: getattr(command, name) for name in ("split", "format", "columns", "encoding")}
    reading["max_rows"] = command.max_rows or (FAITHFUL_ROWS if command.faithfulness else WORD_ROWS)
    with progress_bar() as progress:
        if command.faithfulness:
            methods = None if command.method is None else [command.method]
            measured = faithfulness(model, command.text, methods, progress=progress, **reading)
        else:
            words = word_importance(
                model, command.text, method=command.method, top=command.top, progress=progress, **reading
            )
    if command.faithfulness:
        print_json(measured.json() | untrained_field(model)) if command.json else print_faithfulness(measured)
    else:
        print_json(words.json() | untrained_field(model)) if command.json else print_important_words(words)


COMMAND = Command(name="explain", arguments=ExplainCommand, help=HELP, run=run)
