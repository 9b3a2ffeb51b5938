"""`regard evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from regard.cli.arguments import (
    Abstain,
    Answers,
    BatchTokens,
    Columns,
    Device,
    Dtype,
    Encoding,
    Engine,
    FileFormat,
    Json,
    ModelName,
    SkipBad,
    check_output,
)
from regard.cli.command import Command
from regard.cli.output import UsageError, format_rate, print_json, print_scores, print_status, progress_rows
from regard.cli.report import print_report
from regard.errors import pluralize

if TYPE_CHECKING:
    from regard.evaluation.result import Evaluation

HELP = """Evaluate a model on labeled data, with 95 % intervals; a language model on text or minimal pairs.

With several models, every pair of them is tested on the same rows: regard evaluate MODEL_A MODEL_B DATA.

Examples:
  regard evaluate runs/reviews test.csv
  regard evaluate runs/small runs/large test.csv
  regard evaluate runs/small runs/large test.csv --slices length,label --predictions answers.jsonl
  regard evaluate runs/reviews data/ --split test --json
  regard evaluate runs/reviews test.csv --output answers.jsonl
  regard evaluate runs/reviews test.csv --confusion confusion.png
  regard evaluate runs/reviews test.csv --reliability reliability.png --abstain 0.8
  regard evaluate runs/reviews test.csv --columns text=opinion,label=stars
  regard evaluate runs/translator test.en,test.de --beams 5
  regard evaluate gpt2 text.txt --window 1024 --overlap 0.5
  regard evaluate runs/language "blimp/*.jsonl" --json"""


@dataclass(frozen=True)
class EvaluateCommand:
    model: Annotated[
        ModelName, arg(help="Model: a folder with a trained model, a published name such as gpt2, or a hub id.")
    ]
    data: Annotated[
        Positional[str],
        arg(
            help="Data: a file, two aligned files (a.en,a.de), a folder with test or valid, a glob, or - for stdin.",
            metavar="DATA",
        ),
    ]
    more: Annotated[
        Positional[tuple[str, ...]],
        arg(help="With several models: MODEL MODEL ... DATA.", metavar="[...]", help_behavior_hint=""),
    ] = ()
    split: Annotated[str | None, arg(help="Split of a folder with several; test if not given.", metavar="NAME")] = None
    format: FileFormat = None
    columns: Columns = None
    encoding: Encoding = None
    labels: Annotated[
        str | None,
        arg(help="Kind of the labels (see regard train --help); as in training if not given.", metavar="KIND"),
    ] = None
    skip_bad: SkipBad = None
    output: Answers = None
    window: Annotated[
        int | None, arg(help="Plain text: maximum tokens per window; the model's maximum if not given.")
    ] = None
    overlap: Annotated[
        float | None,
        arg(help="Plain text: fraction of a window that the next one repeats; 0.5 if not given.", metavar="X"),
    ] = None
    slices: Annotated[
        str | None,
        arg(help="Also score by slice: length, label, or columns of the data.", metavar="length,label,COLUMN"),
    ] = None
    predictions: Annotated[
        Path | None,
        arg(
            help="Write texts, labels and the answers of all models to this file: .csv, .tsv, .parquet or JSON lines.",
            metavar="FILE",
        ),
    ] = None
    metric: Annotated[
        str | None,
        arg(help="Score that models are compared by; the main score of the task if not given.", metavar="NAME"),
    ] = None
    confusion: Annotated[
        Path | None, arg(help="Draw the confusion matrix to this file: .png, .svg or .pdf.", metavar="FILE.png")
    ] = None
    reliability: Annotated[
        Path | None,
        arg(help="Draw how often predictions are right, by their probability: .png, .svg or .pdf.", metavar="FILE.png"),
    ] = None
    abstain: Abstain = None
    beams: Annotated[
        int | None,
        arg(
            help="Translation: number of beams; that of the model's generation_config.json if not given, else 1 "
            "(greedy decoding).",
            metavar="N",
        ),
    ] = None
    length_penalty: Annotated[
        float | None,
        arg(help="Translation: above 1 favors long texts; that of the model's generation_config.json if not given."),
    ] = None
    batch_tokens: BatchTokens = 8192
    device: Device = "auto"
    dtype: Dtype = "fp32"
    engine: Engine = "auto"
    json: Json = False


def run(command: EvaluateCommand) -> None:
    if command.more or command.slices or command.predictions or command.metric:
        _run_several(command)
    else:
        _run_one(command)


def _run_several(command: EvaluateCommand) -> None:
    """Several models on the same rows, or slices of one."""
    names = [command.model, command.data, *command.more]
    models, data = names[:-1], names[-1]
    _check_options_of_several(command, models)
    from regard.cli.comparison_tables import print_evaluations
    from regard.comparison.evaluate_models import evaluate_models

    outputs = {"--skip-bad": command.skip_bad, "--predictions": command.predictions}
    for flag, path in outputs.items():
        for model in models:
            check_output(path, flag, inputs=(data,), model=model, others=outputs)
    with progress_rows() as progress:
        result = evaluate_models(
            models,
            data,
            metric=command.metric,
            slices=[name.strip() for name in (command.slices or "").split(",") if name.strip()],
            predictions=command.predictions,
            abstain=command.abstain,
            device=command.device,
            dtype=command.dtype,
            progress=progress,
            **_options(command),
        )
    print_status(f"data: {next(iter(result.models.values())).data}")
    if command.json:
        print_json(result.json())
        return
    print_evaluations(result)
    if command.predictions is not None:
        print(f"predictions: {command.predictions}")


def _options(command: EvaluateCommand) -> dict[str, Any]:
    """Options for reading and decoding, which one and several models share."""
    from regard.data.schema.columns import parse_columns

    names = ("split", "format", "encoding", "labels", "skip_bad", "beams", "length_penalty", "batch_tokens")
    columns = None if command.columns is None else parse_columns(command.columns)
    return {"columns": columns, **{name: getattr(command, name) for name in names}}


def _check_options_of_several(command: EvaluateCommand, models: list[str]) -> None:
    """Raise UsageError for options that are for one model, or for plain text."""
    options = {
        "--window": command.window,
        "--overlap": command.overlap,
        "--confusion": command.confusion,
        "--reliability": command.reliability,
        "--output": command.output,
    }
    name = next((name for name, value in options.items() if value is not None), None)
    if name is not None:
        instead = " Use --predictions, which has the answers of all models." if name == "--output" else ""
        raise UsageError(f"{name} cannot be used with several models, --slices, --predictions or --metric.{instead}")
    if any(model == "-" for model in models):
        raise UsageError("- is stdin, which is data; the data comes last: regard evaluate MODEL_A MODEL_B DATA.")
    if len(models) > 1 and (command.data, *command.more)[-1] == "-":
        raise UsageError("stdin can be read once, but each model reads the data. Write it to a file.")


def _run_one(command: EvaluateCommand) -> None:
    from regard.evaluation.evaluate import evaluate
    from regard.predict import load

    pictures = {"--confusion": command.confusion, "--reliability": command.reliability}
    for flag, path in pictures.items():
        _check_picture(flag, path)
    outputs = {"--skip-bad": command.skip_bad, "--output": command.output, **pictures}
    for flag, path in outputs.items():
        check_output(path, flag, inputs=(command.data,), model=command.model, others=outputs)
    model = load(command.model, device=command.device, dtype=command.dtype, engine=command.engine)
    with progress_rows() as progress:
        evaluation = evaluate(
            model,
            command.data,
            output=command.output,
            window=command.window,
            overlap=command.overlap,
            abstain=command.abstain,
            progress=progress,
            **_options(command),
        )
    _print_status(command, evaluation)
    if command.json:
        print_json(_json(evaluation))
        return
    _print_evaluation(evaluation)
    if command.output is not None:
        print(f"answers: {command.output}")


def _print_status(command: EvaluateCommand, evaluation: Evaluation) -> None:
    """What was read, and the pictures that were asked for."""
    print_status(f"data: {evaluation.data}")
    if evaluation.bad:
        print_status(f"{pluralize(evaluation.bad, 'row')} could not be used, listed in {command.skip_bad}")
    if command.confusion is not None:
        evaluation.plot(command.confusion)
        print_status(f"confusion matrix: {command.confusion}")
    if command.reliability is not None:
        evaluation.plot_reliability(command.reliability)
        print_status(f"reliability diagram: {command.reliability}")


def _print_evaluation(evaluation: Evaluation) -> None:
    from regard.data.seen_rows import FEW

    print_scores(evaluation.scores)
    if evaluation.seen is not None and evaluation.seen >= FEW:
        print(f"seen in training: {evaluation.seen:.0%} of the rows".replace("%", " %"))
    for name, signature in evaluation.signatures.items():
        print(f"{name}: {signature}")
    print_report(evaluation.report)
    _print_calibration(evaluation)
    rows = pluralize(evaluation.rows, evaluation.unit.removesuffix("s"))
    print(f"\n{rows} in {evaluation.seconds:.1f} s, {format_rate(evaluation.rows, evaluation.seconds)}.")


def _print_calibration(evaluation: Evaluation) -> None:
    """Whether probabilities are right, and what is left if the model abstains."""
    calibration, abstention = evaluation.calibration, evaluation.abstention
    if calibration is not None:
        print(
            f"\ncalibration error {calibration.error:.4f}: mean confidence {calibration.confidence:.4f}, "
            f"right {calibration.accuracy:.4f}"
        )
    if abstention is None:
        return
    below, coverage = abstention.below, abstention.coverage
    print(f"\nanswered with a confidence of at least {below:g}: {coverage.value:.1%} of the rows")
    if abstention.scores:
        print_scores({"coverage": coverage, **abstention.scores})


def _json(evaluation: Evaluation) -> dict[str, Any]:
    names = ["task", "rows", "scores", "seconds", "folder", "seen"]
    names += ["signatures"] if evaluation.signatures else []
    names += ["classes", "averages", "confusion"] if evaluation.classes else []
    every = evaluation.json()
    return {name: every[name] for name in (*names, "calibration", "abstention") if name in every}


def _check_picture(flag: str, path: Path | None) -> None:
    """Check that the plot can be written, before the evaluation runs."""
    from regard.data.atomic import check_output_path
    from regard.metrics.report_plot import plot_format

    if path is not None:
        plot_format(path)
        check_output_path(path.expanduser(), flag)


COMMAND = Command(name="evaluate", arguments=EvaluateCommand, help=HELP, run=run)
