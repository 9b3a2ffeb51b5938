"""`regard pretrain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tyro.conf import Positional, Suppress, arg

from regard.cli.arguments import Encoding, Json, Overwrite, Resume
from regard.cli.command import Command
from regard.cli.flags.help_groups import exit_with_help
from regard.cli.output import UsageError, print_json, print_table
from regard.cli.training_progress import TrainingProgress
from regard.errors import pluralize
from regard.training.settings import HeadInit, Settings

if TYPE_CHECKING:
    from regard.training.result import PretrainResult

HELP = """Pretrain a language model on plain text, from scratch or from a model.

Examples:
  regard pretrain corpus.txt --preset bert-tiny --out runs/tiny              masked language model, new tokenizer
  regard pretrain corpus.txt --objective mlm+nsp --preset bert-mini --tokenizer vocabulary --out runs/mini
  regard pretrain novels.txt.xz --objective causal --preset gpt2 --steps 20000 --out runs/gpt
  regard pretrain reports.txt --start minilm --epochs 3 --out runs/reports   adapt a model to your texts
  regard pretrain corpus.txt --preset bert-tiny --out runs/tiny --resume     continue after Ctrl-C or a kill

Objectives:
  mlm            predict masked tokens (BERT, RoBERTa)
  mlm+nsp        predict masked tokens, and whether one passage follows another (BERT)
  causal         predict the next token (GPT)
  bidirectional  predict the next token in both directions (ELMo)

No labels are needed. Blank lines separate documents. 10 % of the documents are for validation.

The scores are printed with those of a unigram baseline.

Fine-tune the result with: regard train DATA --start DIR --out DIR"""


@dataclass(frozen=True)
class PretrainCommand:
    files: Annotated[
        Positional[tuple[str, ...]], arg(help="Text files, plain or compressed as .gz or .xz.", metavar="FILE...")
    ]
    out: Annotated[Path, arg(help="Folder to write; transformers opens it too.", metavar="DIR")]
    objective: Annotated[
        Literal["mlm", "mlm+nsp", "causal", "bidirectional"],
        arg(help="Objective: masked tokens, also next sentences (BERT), next tokens (GPT), or both directions (ELMo)."),
    ] = "mlm"
    preset: Annotated[
        str | None, arg(help="Network to train from scratch; docs/families.md lists the names.", metavar="NAME")
    ] = None
    tokenizer: Annotated[
        str | None, arg(help="Tokenizer for --preset; trained on the files if not given.", metavar="DIR")
    ] = None
    start: Annotated[
        str | None,
        arg(
            help="Model to continue from, instead of --preset: a folder, a published name or a hub id.", metavar="MODEL"
        ),
    ] = None
    dev: Annotated[
        tuple[str, ...], arg(help="Validation text; 10 % of the documents if not given.", metavar="FILE...")
    ] = ()
    store: Annotated[
        Path | None, arg(help="Folder for the tokenized text, to reuse it in other runs.", metavar="DIR")
    ] = None
    mask_rate: Annotated[float, arg(help="Fraction of the tokens that are masked.")] = 0.15
    mask_unit: Annotated[
        Literal["token", "word", "span"], arg(help="Mask single tokens, whole words, or spans of tokens.")
    ] = "token"
    average: Annotated[
        float, arg(help="Fraction of the steps at the end whose weights are averaged; 0 disables averaging.")
    ] = 0.0
    encoding: Encoding = None
    resume: Resume = False
    overwrite: Overwrite = False
    json: Json = False
    settings: Annotated[Settings, arg(name="")] = field(default_factory=Settings)


@dataclass(frozen=True)
class SettingsInHelp(Settings):
    """Training settings without those that pretraining does not use. tyro removes the flags of suppressed fields."""

    label_smoothing: Annotated[float | None, Suppress] = None
    rdrop: Annotated[float | None, Suppress] = None
    rdrop_start: Annotated[float | None, Suppress] = None
    repeats: Annotated[int | None, Suppress] = None
    explainable: Annotated[bool, Suppress] = False
    class_balance: Annotated[Literal["none", "weights"], Suppress] = "none"
    head_init: Annotated[HeadInit, Suppress] = "auto"
    pooling: Annotated[Literal["auto", "mean", "first"], Suppress] = "auto"
    refit: Annotated[Literal["auto", "yes", "no"], Suppress] = "auto"
    vocabularies: Annotated[Literal["joint", "separate"], Suppress] = "joint"
    prefix: Annotated[str | None, Suppress] = None
    beams: Annotated[int, Suppress] = 1
    context: Annotated[int | None, Suppress] = None
    overlap: Annotated[float, Suppress] = 0.25


@dataclass(frozen=True)
class PretrainHelp(PretrainCommand):
    """The command as its help shows it. The flags left out here are still parsed, so that an error can name them."""

    settings: Annotated[SettingsInHelp, arg(name="")] = field(default_factory=SettingsInHelp)


def parse(arguments: Sequence[str], **options: Any) -> PretrainCommand:
    """Parse the flags."""
    if "-h" in arguments or "--help" in arguments:
        exit_with_help(PretrainHelp, **options)
    result: PretrainCommand = tyro.cli(PretrainCommand, args=arguments, **options)
    return result


def run(command: PretrainCommand) -> None:
    if not command.files:
        raise UsageError("no file was given. Name at least one text file to train on.")
    if (command.start is None) == (command.preset is None):
        both = (
            "--start and --preset were given" if command.start is not None else "neither --start nor --preset was given"
        )
        raise UsageError(f"{both}; give one of them: a model to start from, or a preset to train from scratch.")
    if command.tokenizer is not None and command.preset is None:
        raise UsageError("--tokenizer was given without --preset; a model given by --start has its own.")
    from regard.training.engine.distributed.world import is_main_process
    from regard.training.pretrain import pretrain

    with TrainingProgress() as progress:
        result = pretrain(
            command.files,
            out=command.out,
            objective=command.objective,
            preset=command.preset,
            tokenizer=command.tokenizer,
            start=command.start,
            dev=command.dev or None,
            store=command.store,
            mask_rate=command.mask_rate,
            mask_unit=command.mask_unit,
            average=command.average,
            encoding=command.encoding,
            resume=command.resume,
            overwrite=command.overwrite,
            progress=progress,
            **asdict(command.settings),
        )
    if not is_main_process():
        return
    if command.json:
        every = result.json()
        print_json(
            {name: every[name] for name in ("task", "rows", "scores", "baseline", "new_heads", "seconds", "folder")}
        )
    else:
        _print_result(result)


def _print_result(result: PretrainResult) -> None:
    rows = []
    for name, score in result.scores.items():
        baseline = f", unigram baseline {result.baseline[name]:.4g}" if name in result.baseline else ""
        rows.append((name.replace("_", " "), f"{score.value:.4g} ({score.low:.4g} to {score.high:.4g}){baseline}"))
    if not rows:
        rows.append(("scores", "none: no validation text"))
    if result.new_heads:
        rows.append(("new", f"{', '.join(result.new_heads)} (randomly initialized at the start)"))
    rows.append(("steps", f"{result.steps:,} ({pluralize(result.tokens, 'token')}, {result.seconds:.0f} s)"))
    print_table([*rows, ("folder", result.folder)])


COMMAND = Command(name="pretrain", arguments=PretrainCommand, help=HELP, run=run, parse=parse)
