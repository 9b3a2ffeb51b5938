"""`regard train`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional, arg

from regard.cli.arguments import (
    TRAIN_TASKS,
    Columns,
    Encoding,
    FileFormat,
    Json,
    Labels,
    Overwrite,
    Resume,
    SkipBad,
    check_data_exists,
)
from regard.cli.command import Command
from regard.cli.flags.help_groups import exit_with_help
from regard.cli.flags.toml import format_config, read_config, without_config
from regard.cli.next_steps import next_rows, report_row
from regard.cli.output import UsageError, print_json, print_scores, print_table
from regard.cli.training_progress import TrainingProgress, small_curves
from regard.errors import pluralize
from regard.training.settings import Settings

if TYPE_CHECKING:
    from regard.training.result import TrainResult

EXPLAIN = "--explain-defaults"
FOLDS_REASON = "each of {} trainings is scored on the rows that it leaves out; the last training is on all rows"
TIME_REASON = (
    "the settings above are those without a time limit; if the training would take longer, it has fewer steps, and "
    "does not learn similarity if that would take half of the time; if time is left, it is repeated with other seeds, "
    "and the weights are averaged"
)
PRINT_CONFIG = "--print-config"
HELP = """Train a model on your data and write it to a folder.

Examples:
  regard train reviews.csv --out runs/reviews                  fine-tune minilm; 10 % of the rows are for validation
  regard train reviews.csv --dev valid.csv --start runs/other --out runs/reviews
  regard train reviews.csv --columns text=opinion,label=stars --epochs 4 --lr 5e-5 --seed 1 --out runs/reviews
  regard train tickets.csv --labels multi --out runs/tickets   several labels per text: "billing, login"
  regard train reviews.csv --preset bert-mini --out runs/new   from scratch, with a new tokenizer
  regard train reviews.csv --preset ngram --out runs/ngram     a baseline: ngram, static or probe
  regard train all.en,all.de --task translate --preset transformer-small --out runs/en-de
  regard train --config run.toml --out runs/again --json       settings from a file; flags override it
  regard train reviews.csv --folds 5 --out runs/reviews        scores by cross-validation, the model of all rows
  regard train reviews.csv --time 5m --out runs/reviews        the mean of several seeds, for small data
  regard train reviews.csv --search 30m --out runs/reviews     search for the learning rate, epochs, …, then train
  regard train reviews.csv --explain-defaults                  which settings would be chosen, and why
  regard train reviews.csv --print-config > run.toml            these settings as a file for --config
  regard train reviews.csv --out runs/reviews --resume         continue after Ctrl-C, a kill, or a full disk

Settings that are not given (task, learning rate, epochs, batch size) are chosen from data and model, and printed."""


@dataclass(frozen=True)
class TrainCommand:
    data: Annotated[
        Positional[str],
        arg(
            help="Data: a file, two aligned files (a.en,a.de), a folder with train and valid, a glob, or - for stdin.",
            metavar="DATA",
        ),
    ]
    out: Annotated[Path, arg(help="Folder to write; transformers opens it too.", metavar="DIR")]
    start: Annotated[
        str | None,
        arg(help="Model to fine-tune: a folder, a published name or a hub id; minilm if not given.", metavar="MODEL"),
    ] = None
    preset: Annotated[
        str | None,
        arg(
            help="Network to train from scratch (docs/families.md), or a baseline: ngram, static, probe.",
            metavar="NAME",
        ),
    ] = None
    tokenizer: Annotated[
        str | None, arg(help="Tokenizer for --preset; trained on the data if not given.", metavar="DIR")
    ] = None
    task: Annotated[
        str | None,
        arg(
            help=f"Task: {', '.join(TRAIN_TASKS)}; recognized from the data if not given.",
            metavar="TASK",
        ),
    ] = None
    dev: Annotated[str | None, arg(help="Validation data; split off from DATA if not given.", metavar="DATA")] = None
    format: FileFormat = None
    columns: Columns = None
    encoding: Encoding = None
    labels: Labels = None
    skip_bad: SkipBad = None
    config: Annotated[
        Path | None, arg(help="TOML file with any of these settings; flags override it.", metavar="run.toml")
    ] = None
    resume: Resume = False
    overwrite: Overwrite = False
    json: Json = False
    explain_defaults: Annotated[
        bool, arg(help="Print the main settings that would be used, each with its reason, and train nothing.")
    ] = False
    print_config: Annotated[
        bool, arg(help="Print every setting that would be used as TOML for --config, and train nothing.")
    ] = False
    folds: Annotated[
        int | None,
        arg(help="Score by cross-validation with so many folds, then train on all rows.", metavar="N"),
    ] = None
    search: Annotated[
        str | None,
        arg(help="Search for lr, epochs, batch size and dropout for this long, such as 30m.", metavar="TIME"),
    ] = None
    time: Annotated[
        str | None,
        arg(help="Train with several seeds for at most this long, such as 5m, and write their mean.", metavar="TIME"),
    ] = None
    settings: Annotated[Settings, arg(name="")] = field(default_factory=Settings)


def parse(arguments: Sequence[str], **options: Any) -> TrainCommand:
    """The flags, over the settings of a file."""
    if "-h" in arguments or "--help" in arguments:
        exit_with_help(TrainCommand, **options)
    flags = list(arguments)
    if (EXPLAIN in flags or PRINT_CONFIG in flags) and not any(flag.startswith("--out") for flag in flags):
        flags = [*flags, "--out", "."]  # nothing is written
    rest, path = without_config(flags)
    if path is not None:
        needed = {"data": tyro.MISSING, "out": tyro.MISSING}
        options["default"] = TrainCommand(**{**needed, **read_config(path, TrainCommand), "config": path})
    result: TrainCommand = tyro.cli(TrainCommand, args=rest, **options)
    return result


def run(command: TrainCommand) -> None:
    from regard.baselines import BASELINES

    baseline = BASELINES.get(command.preset or "")
    if command.start is not None and command.preset is not None and not (baseline and baseline.takes_start):
        raise UsageError("--start and --preset were given; give one of them.")
    if command.tokenizer is not None and command.preset is None:
        raise UsageError("--tokenizer was given without --preset; a model to start from has its own.")
    if command.explain_defaults:
        _explain(command)
        return
    if command.print_config:
        _print_config(command)
        return
    if command.folds is not None or command.search is not None or command.time is not None:
        from regard.cli.selection import run_selection

        run_selection(command, _common_arguments(command))
        return
    check_data_exists(command.data, command.dev)
    from regard.training.engine.distributed.world import is_main_process
    from regard.training.train import train

    with TrainingProgress() as progress:
        result = train(
            command.data,
            out=command.out,
            skip_bad=command.skip_bad,
            resume=command.resume,
            overwrite=command.overwrite,
            progress=progress,
            **_common_arguments(command),
        )
    if not is_main_process():
        return
    if command.json:
        names = ("task", "rows", "scores", "seconds", "folder")
        every = result.json()
        print_json({name: every[name] for name in names})
    else:
        _print_result(result)


def _common_arguments(command: TrainCommand) -> dict[str, Any]:
    """The arguments that `train` and `explain_defaults` share."""
    from regard.data.schema.columns import parse_columns

    names = ("start", "preset", "tokenizer", "dev", "task", "format", "encoding", "labels")
    columns = None if command.columns is None else parse_columns(command.columns)
    return {**{name: getattr(command, name) for name in names}, "columns": columns, **asdict(command.settings)}


def _explain(command: TrainCommand) -> None:
    from regard.baselines import BASELINES
    from regard.training.defaults.explain import SettingReason
    from regard.training.inputs.preview import explain_defaults

    without_split: dict[str, Any] = {} if command.folds is None else {"dev_fraction": 0.0}
    reasons = [
        reason if reason.name not in without_split else reason._replace(reason=FOLDS_REASON.format(command.folds))
        for reason in explain_defaults(command.data, **_common_arguments(command) | without_split)
    ]
    if command.time is not None:
        reasons.append(SettingReason("time", command.time, TIME_REASON))
    baseline = BASELINES.get(command.preset or "")
    if baseline is not None and baseline.fitted:  # it has no training steps
        reasons = [reason for reason in reasons if reason.name in ("task", "dev_fraction")]
    if command.json:
        print_json({"settings": [reason._asdict() for reason in reasons]})
        return
    rows = [("setting", "value", "reason"), *reasons]
    width = max(len(name) for name, _, _ in rows)
    print_table([(f"{name.ljust(width)}  {value}", reason) for name, value, reason in rows])


def _print_config(command: TrainCommand) -> None:
    from regard.baselines import BASELINES
    from regard.training.from_scratch.baseline_model import BASELINE_SETTINGS
    from regard.training.inputs.preview import settings_to_repeat

    arguments = _common_arguments(command)
    settings = asdict(settings_to_repeat(command.data, **arguments))
    baseline = BASELINES.get(command.preset or "")
    if baseline is not None and baseline.fitted:  # it refuses settings of training steps
        settings = {name: value for name, value in settings.items() if name in BASELINE_SETTINGS}
    own = {
        name: arguments[name]
        for name in ("start", "preset", "tokenizer", "dev", "task", "format", "encoding", "labels")
    }
    values = {"data": command.data, **own, "columns": command.columns, **settings}
    if command.json:
        print_json(values)
    else:
        print(format_config(values))


def _print_result(result: TrainResult) -> None:
    if result.scores:
        print_scores(result.scores)
        print(scores_line(result))
        print()
    from regard.training.output.metrics_log import read_metrics

    if curves := small_curves(read_metrics(Path(result.folder))):
        print_table(curves)
        print()
    rows_read = pluralize(result.rows, "row")
    often = f"{result.repeats} × " if result.repeats > 1 else ""
    steps = f", {often}{pluralize(result.steps, 'step')}" if result.steps else ""
    files = "every setting is in run.json, how to use it in README.md"
    rows = [
        ("folder", f"{result.folder}, trained on {rows_read} in {result.seconds:.0f} s{steps}"),
        report_row(result.folder, result.task),
        ("curves", f"{result.folder}/curves.png; {files}") if result.steps else ("files", files),
        *next_rows(result.folder, result.task),
    ]
    if not result.scores:
        rows.insert(0, ("score", "none: there was no validation data"))
    print_table(rows)


def scores_line(result: TrainResult) -> str:
    """What the scores are of."""
    line = f"Scores on {pluralize(result.validation_rows, 'validation row')}"
    trainings = f"the mean of {result.repeats} trainings" if result.repeats > 1 else "a training"
    if result.refit is not None:
        model = "the model in the folder"
        then = f"the head of {model} is fitted" if result.refit == "head" else f"{model} is trained"
        return f"{line}, of {trainings} without them; {then} on all rows."
    return f"{line}, of {trainings}." if result.repeats > 1 else f"{line}."


COMMAND = Command(name="train", arguments=TrainCommand, help=HELP, run=run, parse=parse)
