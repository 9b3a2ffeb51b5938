"""`regard compare`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from regard.cli.arguments import Columns, Device, Encoding, FileFormat, Json, Labels
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json
from regard.cli.training_progress import StepProgress, same_command_goes_on

if TYPE_CHECKING:
    from regard.progress import Progress

HELP = """Compare models on your data: train or load each, test every pair, and measure what they cost.

A verdict is "a beats b" only if every test agrees; otherwise it says how many rows would be needed. After a kill, run
the same command again: it goes on with the models that are left in --out.

Examples:
  regard compare reviews.csv --models ngram minilm
  regard compare reviews.csv --models ngram static probe bert-mini minilm --out runs/compare
  regard compare reviews.csv --models ngram runs/reviews --test test.csv --seeds 3 --time 30m
  regard compare phrases.tsv --models ngram minilm --columns group=sentence_id
  regard compare reviews.csv --models ngram minilm --curve --json"""


@dataclass(frozen=True)
class CompareCommand:
    data: Annotated[
        Positional[str],
        arg(
            help="Data: a file, two aligned files (a.en,a.de), a folder with train and test, or a glob.", metavar="DATA"
        ),
    ]
    models: Annotated[
        tuple[str, ...],
        arg(
            help="Models: baselines (ngram, static, probe), presets (trained from scratch), minilm or hub ids "
            "(fine-tuned), folders of trained models (loaded). start:NAME and preset:NAME say which of two is meant.",
            metavar="NAME ...",
        ),
    ]
    test: Annotated[
        str | None,
        arg(help="Data for the final test, scored once per model; a fifth of DATA if not given.", metavar="DATA"),
    ] = None
    dev: Annotated[
        str | None, arg(help="Validation data of the trainings; split off if not given.", metavar="DATA")
    ] = None
    seeds: Annotated[int, arg(help="Trainings of each model, with different random seeds.", metavar="N")] = 1
    time: Annotated[
        str | None,
        arg(help="Time for all trainings together, such as 30m; each gets an equal share.", metavar="TIME"),
    ] = None
    out: Annotated[
        Path | None,
        arg(help="Folder for models, predictions, results and plots; nothing is kept if not given.", metavar="DIR"),
    ] = None
    overwrite: Annotated[bool, arg(help="Start over in --out, instead of going on with what is there.")] = False
    curve: Annotated[bool, arg(help="Also train on 1/16 to 1/2 of the rows, and predict the score with more rows.")] = (
        False
    )
    metric: Annotated[
        str | None, arg(help="Score to compare by; the main score of the task if not given.", metavar="NAME")
    ] = None
    test_fraction: Annotated[
        float, arg(help="Fraction of DATA for the test, if there is no test data.", metavar="X")
    ] = 0.2
    epochs: Annotated[
        float | None,
        arg(
            help="Passes over the training data, for networks and static; ngram and probe are fitted at once. Chosen "
            "for each model if not given.",
            metavar="X",
        ),
    ] = None
    steps: Annotated[
        int | None, arg(help="Optimizer steps of networks and static, instead of epochs.", metavar="N")
    ] = None
    task: Annotated[str | None, arg(help="Task of the data; recognized if not given.", metavar="NAME")] = None
    format: FileFormat = None
    columns: Columns = None
    encoding: Encoding = None
    labels: Labels = None
    device: Device = "auto"
    json: Json = False


def run(command: CompareCommand) -> None:
    if not command.models:
        raise UsageError("no model was named. Name at least one: --models ngram minilm.")
    from regard.cli.comparison_tables import print_comparison
    from regard.comparison.compare import compare
    from regard.data.schema.columns import parse_columns

    settings: dict[str, Any] = {"epochs": command.epochs, "steps": command.steps, "device": command.device}
    with same_command_goes_on(command.out), ModelProgress() as shown:
        result = compare(
            command.data,
            models=command.models,
            test=command.test,
            dev=command.dev,
            out=command.out,
            seeds=command.seeds,
            time=command.time,
            curve=command.curve,
            metric=command.metric,
            task=command.task,
            test_fraction=command.test_fraction,
            format=command.format,
            columns=None if command.columns is None else parse_columns(command.columns),
            encoding=command.encoding,
            labels=command.labels,
            overwrite=command.overwrite,
            progress=shown.on_model,
            training=shown.on_training,
            **{name: value for name, value in settings.items() if value is not None},
        )
    if command.json:
        print_json(result.json())
        return
    print_comparison(result)
    if result.folder is not None:
        print(f"results: {result.folder}")


class ModelProgress(StepProgress):
    """A line per model; a bar for each training and scoring."""

    def on_model(self, progress: Progress) -> None:
        values = progress.values
        part = "" if values["fraction"] >= 1 else f", 1/{round(1 / values['fraction'])} of the rows"
        seed = f", seed {values['seed']}" if values["seed"] else ""
        self.on_step(progress, f"{values['model']}{seed}{part}: {values['message']}")


COMMAND = Command(name="compare", arguments=CompareCommand, help=HELP, run=run)
