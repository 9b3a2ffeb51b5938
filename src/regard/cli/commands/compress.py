"""`regard compress`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from regard.cli.arguments import Columns, Device, Encoding, FileFormat, Json, Labels, ModelName
from regard.cli.command import Command
from regard.cli.output import print_json, print_status
from regard.cli.training_progress import StepProgress, same_command_goes_on
from regard.errors import pluralize

if TYPE_CHECKING:
    from regard.compression.result import Compression
    from regard.progress import Progress

HELP = """Find the fastest model that keeps the score of a trained one: int8, fewer layers, smaller students.

Each candidate is measured on this machine. One counts only if it keeps --floor of the score on test rows that chose
nothing, with 95 % confidence; otherwise nothing is written. After a kill, run the same command again: it goes on.

Examples:
  regard compress runs/reviews reviews.csv --out runs/small
  regard compress runs/reviews reviews.csv --test test.csv --floor 0.99 --time 30m --out runs/small
  regard compress runs/reviews reviews.csv --unlabeled texts.txt --floor 0.95 --out runs/small
  regard compress runs/reviews reviews.csv --methods int8 layers --out runs/small --json
  regard predict runs/small "a great film" """


@dataclass(frozen=True)
class CompressCommand:
    model: Annotated[ModelName, arg(help="Trained model: a folder written by regard train, or a hub id.")]
    data: Annotated[Positional[str], arg(help="Labeled data for its task; students are trained on it.", metavar="DATA")]
    out: Annotated[Path, arg(help="Folder to write the chosen model to.", metavar="DIR")]
    floor: Annotated[float, arg(help="Part of the teacher's main score to keep.", metavar="X")] = 0.99
    unlabeled: Annotated[
        str | None,
        arg(help="Texts that the teacher labels for students; variants of DATA if not given.", metavar="FILE"),
    ] = None
    test: Annotated[
        str | None,
        arg(help="Test data that the teacher was not trained on; a fifth of DATA if not given.", metavar="DATA"),
    ] = None
    dev: Annotated[
        str | None, arg(help="Validation data that candidates are chosen on; split off if not given.", metavar="DATA")
    ] = None
    time: Annotated[
        str, arg(help="Time for all candidates together; those that are left then are skipped.", metavar="TIME")
    ] = "60m"
    target_ms: Annotated[
        float | None,
        arg(help="Stop at the first candidate that takes at most so many ms for a text of 24 words.", metavar="X"),
    ] = None
    methods: Annotated[
        tuple[str, ...],
        arg(help="Candidates to try: int8, layers, static, ngram.", metavar="NAME ..."),
    ] = ("int8", "layers", "static", "ngram")
    allow_below_floor: Annotated[bool, arg(help="Write the candidate that comes nearest if none holds the floor.")] = (
        False
    )
    keep_all: Annotated[bool, arg(help="Keep all candidates, in the folder DIR.compress.")] = False
    test_fraction: Annotated[
        float, arg(help="Fraction of DATA for the test, if there is no test data.", metavar="X")
    ] = 0.2
    overwrite: Annotated[bool, arg(help="Start over, and write to --out even if it is not empty.")] = False
    epochs: Annotated[
        float | None, arg(help="Passes of students over the training data; 10 if not given.", metavar="X")
    ] = None
    steps: Annotated[int | None, arg(help="Optimizer steps of students, instead of epochs.", metavar="N")] = None
    format: FileFormat = None
    columns: Columns = None
    encoding: Encoding = None
    labels: Labels = None
    device: Annotated[Device, arg(help="Device of the trainings; candidates are measured on the CPU.")] = "auto"
    json: Json = False


def run(command: CompressCommand) -> None:
    from regard.compression.compress import BelowFloor, compress
    from regard.data.schema.columns import parse_columns

    settings: dict[str, Any] = {"epochs": command.epochs, "steps": command.steps, "device": command.device}
    names = ("out", "floor", "unlabeled", "test", "dev", "time", "target_ms", "methods", "test_fraction", "format")
    more = ("encoding", "labels", "allow_below_floor", "keep_all", "overwrite")
    options: dict[str, Any] = {name: getattr(command, name) for name in (*names, *more)}
    try:
        with same_command_goes_on(command.out), CandidateProgress() as shown:
            result = compress(
                command.model,
                command.data,
                columns=None if command.columns is None else parse_columns(command.columns),
                progress=shown.on_progress,
                training=shown.on_training,
                **options,
                **{name: value for name, value in settings.items() if value is not None},
            )
    except BelowFloor as error:
        _print(error.compression, json=command.json)
        raise
    _print(result, json=command.json)


def _print(result: Compression, *, json: bool) -> None:
    if json:
        print_json(result.json())
        return
    from regard.cli.report import print_columns
    from regard.compression.output import table_cells

    measured = [one for one in (result.teacher, *result.candidates) if one.error is None]
    rows = [table_cells(one, result.metric) for one in measured]
    header = ["model", result.metric, "difference", "ms for 1 / 24 / 128 words", "texts/s", "MB"]
    print_columns([header, *([cell.replace("*", "") for cell in row] for row in rows)])
    for one in result.candidates:
        if one.error is not None:
            print_status(f"{one.name}: {one.error}")
    if result.chosen is not None:
        print(f"\nchosen of {pluralize(len(result.candidates), 'candidate')}: {result.chosen}, in {result.folder}")
    for note in result.notes:
        print(f"Note: {note}.")


class CandidateProgress(StepProgress):
    """A line per candidate; a bar for each training, and for rows that the teacher or a candidate answers."""

    def on_progress(self, progress: Progress) -> None:
        if progress.stage == "candidates":
            self.on_step(progress, progress.values["name"])
        else:
            self.on_rows(progress, "answers of the teacher" if progress.stage == "teacher" else "scoring")


COMMAND = Command(name="compress", arguments=CompressCommand, help=HELP, run=run)
