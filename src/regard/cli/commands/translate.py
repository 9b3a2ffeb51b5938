"""`regard translate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from regard.cli.arguments import (
    Device,
    Dtype,
    Encoding,
    FileFormat,
    Input,
    Json,
    LiteralTexts,
    ModelName,
    TextColumn,
    Texts,
    check_not_files,
    check_output,
    check_texts,
    read_texts,
)
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json, print_table

if TYPE_CHECKING:
    from regard.predict.translation import Translated

HELP = """Translate texts with an encoder-decoder: a Transformer, T5, BART, Marian, Pegasus, or a recurrent network.

Examples:
  regard translate runs/en-es "Good morning." "Where are you going?"
  regard translate runs/en-es "Good morning." --beams 4 --best 3       the three best of four beams
  regard translate runs/en-es "Good morning." --alignment              attention of each target word
  regard translate runs/en-es "Good morning." --alignment-plot seen.png   the same as a plot
  regard translate runs/en-es --input texts.txt --json > answers.jsonl"""


@dataclass(frozen=True)
class TranslateCommand:
    model: Annotated[
        ModelName,
        arg(help="Model: a folder with a trained translator, a published name such as t5-small, or a hub id."),
    ]
    texts: Annotated[Texts, arg(help="Texts to translate.")] = ()
    input: Input = None
    columns: TextColumn = None
    format: FileFormat = None
    encoding: Encoding = None
    literal: LiteralTexts = False
    beams: Annotated[
        int | None,
        arg(help="Number of beams; that of the model's generation_config.json if not given, else 1 (greedy)."),
    ] = None
    length_penalty: Annotated[
        float | None,
        arg(help="Beam search: above 1 favors long translations; that of generation_config.json if not given, else 1."),
    ] = None
    best: Annotated[int, arg(help="Number of translations per text, best first.")] = 1
    alignment: Annotated[bool, arg(help="Show the source words that each target word attends to.")] = False
    alignment_plot: Annotated[
        Path | None,
        arg(help="Draw the alignment of the best translation of each text to this file.", metavar="FILE.png"),
    ] = None
    prefix: Annotated[
        str | None,
        arg(help="Prefix of every text (T5); that of the model's folder if not given.", metavar="TEXT"),
    ] = None
    batch_tokens: Annotated[int, arg(help="Source tokens per batch.")] = 2048
    device: Device = "auto"
    dtype: Dtype = "fp32"
    json: Json = False


def run(command: TranslateCommand) -> None:
    check_texts(command.texts, command.input, command.columns, command.encoding, command.format)
    check_not_files(command.texts, command.literal, "To translate its texts, use --input {name}.")
    if command.best > max(command.beams or 1, 1):
        raise UsageError(f"--best {command.best} needs as many beams: add --beams {command.best}.")
    from regard.predict import load
    from regard.predict.plots.alignment import MAX_ALIGNMENTS, draw_alignments

    plot = command.alignment_plot
    if plot is not None:
        if plot.suffix not in (".png", ".svg", ".pdf"):
            raise UsageError(f"--alignment-plot {plot}: expected a name that ends in .png, .svg or .pdf.")
        check_output(plot, "--alignment-plot", inputs=(command.input,), model=command.model)

    texts = list(command.texts)
    if command.input is not None:
        texts = read_texts(command.input, command.columns, command.encoding, command.format)
    model = load(command.model, device=command.device, dtype=command.dtype)
    if plot is not None and len(texts) > MAX_ALIGNMENTS:
        raise UsageError(f"--alignment-plot draws up to {MAX_ALIGNMENTS} texts, but {len(texts)} were given.")
    translated = model.translations(
        texts,
        best=command.best,
        alignment=command.alignment or plot is not None,
        batch_tokens=command.batch_tokens,
        prefix=command.prefix,
        beams=command.beams,
        length_penalty=command.length_penalty,
    )
    if plot is not None:
        draw_alignments([one for best in translated for one in best[0].alignments], plot)
    for text, translations in zip(texts, translated, strict=True):
        for rank, one in enumerate(translations, 1):
            if command.json:
                print_json({"text": text, "rank": rank, **one.json()})
            else:
                _print_translation(one, scored=command.best > 1, aligned=command.alignment)


def _print_translation(one: Translated, *, scored: bool, aligned: bool) -> None:
    print(f"{one.score:.3f}  {one.text}" if scored else one.text)
    for alignment in one.alignments if aligned else ():
        rows = []
        for word, weights in zip(alignment.target, alignment.weights, strict=True):
            ranked = sorted(zip(weights, alignment.source, strict=True), reverse=True)[:3]
            rows.append((f"  {word}", "  ".join(f"{source} {weight:.2f}" for weight, source in ranked)))
        print_table(rows)


COMMAND = Command(name="translate", arguments=TranslateCommand, help=HELP, run=run)
