"""`regard predict`."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import arg

from regard.cli.arguments import (
    INPUT_ROLES,
    Abstain,
    Answers,
    BatchTokens,
    Device,
    Dtype,
    Encoding,
    Engine,
    FileFormat,
    Input,
    Json,
    LiteralTexts,
    ModelName,
    Ray,
    RayWorkers,
    ShardRows,
    Texts,
    check_not_files,
    check_output,
    check_ray,
    check_texts,
)
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json, print_parts, print_status, progress_rows, shorten
from regard.errors import pluralize

if TYPE_CHECKING:
    from regard.predict import Model
    from regard.predict.batch.files import Predictions
    from regard.predict.batch.rows import InputRow

ABSTAINED = "(abstained) "
HELP = """Predict labels, entities or answers for texts with a trained model.

Examples:
  regard predict runs/reviews "a great film" "two dull hours"
  regard predict runs/reviews --input texts.txt --output answers.jsonl
  regard predict runs/reviews --input new.csv --output answers.csv    the same rows with their predictions
  regard predict runs/reviews --input new.csv --columns text=opinion --json
  regard predict runs/reviews --input new.csv --abstain 0.8 --output answers.csv    mark answers below 80 %
  regard predict runs/same "a text" "another text"       a model for pairs takes texts two by two
  regard predict runs/reader "a question" "a context"    and so does one that answers questions
  regard predict runs/reader "a question" "another" --context page.txt
  regard predict runs/reviews --input new.csv --output answers --ray    on a Ray cluster, a folder of JSON lines
  cat texts.txt | regard predict runs/reviews --input - --json"""

FILES = "To read it, use --input {name} (one text per line, or a table), or --context {name} for questions about it."


@dataclass(frozen=True)
class PredictCommand:
    model: Annotated[ModelName, arg(help="Trained model: a folder written by regard train, or a hub id.")]
    texts: Annotated[
        Texts, arg(help="Texts to classify or tag; two by two for pairs, and for questions with their contexts.")
    ] = ()
    input: Input = None
    columns: Annotated[
        str | None,
        arg(
            help="Columns of --input by role: text=opinion. Recognized by name if not given. "
            f"Roles: {', '.join(INPUT_ROLES)}.",
            metavar="ROLE=NAME,...",
        ),
    ] = None
    format: FileFormat = None
    encoding: Encoding = None
    context: Annotated[str | None, arg(help="File with the context of all questions; - is stdin.", metavar="FILE")] = (
        None
    )
    literal: LiteralTexts = False
    output: Answers = None
    resume: Annotated[bool, arg(help="Continue an --output that was stopped, after its last complete row.")] = False
    abstain: Abstain = None
    ray: Ray = False
    ray_workers: RayWorkers = 0
    shard_rows: ShardRows = 1000
    batch_tokens: BatchTokens = 8192
    device: Device = "auto"
    dtype: Dtype = "fp32"
    engine: Engine = "auto"
    json: Json = False


def run(command: PredictCommand) -> None:
    _check(command)
    from regard.predict import load

    model = load(command.model, device=command.device, dtype=command.dtype, engine=command.engine)
    context = _context(command, model)
    rows = input_rows(command, model, context)
    if command.ray:
        _run_on_ray(command, rows)
        return
    if command.output is not None:
        _write(command, model, rows, context)
        return
    pending: deque[InputRow] = deque()
    for answer in model.answers(_queued(rows, pending), abstain=command.abstain, batch_tokens=command.batch_tokens):
        row = pending.popleft()
        if command.json:
            print_json(answer.json())
        else:
            mark = ABSTAINED if answer.abstained else " " * len(ABSTAINED)
            mark = "" if command.abstain is None else mark
            print(f"{mark}{answer.display()}  {shorten(_text(row.item), 70)}")


def _check(command: PredictCommand) -> None:
    """Check the arguments before anything is read."""
    encoding = None if command.context is not None else command.encoding
    check_texts(command.texts, command.input, command.columns, encoding, command.format)
    check_not_files(command.texts, command.literal, FILES)
    if command.context == "-" and command.input == "-":
        raise UsageError("--input and --context cannot both be stdin; give one of them as a file.")
    if command.resume and command.output is None:
        raise UsageError("--resume was given without --output; it continues a file that was not finished.")
    if command.ray:
        check_ray(output=command.output, file=command.input)
        return
    check_output(command.output, "--output", inputs=(command.input, command.context), model=command.model)
    if command.output is None:
        return
    from regard.data.atomic import is_stream
    from regard.data.formats.writers import output_format

    output_format(command.output)
    if command.resume and is_stream(command.output):
        raise UsageError(f"--resume was given, but --output {command.output} is not a file that can be continued.")


def _run_on_ray(command: PredictCommand, rows: Iterator[InputRow]) -> None:
    assert command.output is not None
    from regard.cluster.bulk import run_on_ray

    with progress_rows() as progress:
        done = run_on_ray(
            command.model,
            "predict",
            (row.item for row in rows),
            command.output,
            load_options={"device": command.device, "dtype": command.dtype, "engine": command.engine},
            options={"abstain": command.abstain, "batch_tokens": command.batch_tokens},
            workers=command.ray_workers,
            shard_rows=command.shard_rows,
            progress=progress,
        )
    print_parts(done.rows, done.parts, done.output, json=command.json)


def _context(command: PredictCommand, model: Model) -> str | None:
    """The context of all questions, if one was given."""
    if command.context is None:
        return None
    from regard.predict.batch.rows import input_roles, read_context
    from regard.predict.model_task import describe_model

    if "context" not in input_roles(model.task):
        what = describe_model(model.task)
        raise UsageError(f"--context is for models that answer questions; this is {what}.")
    return read_context(command.context, encoding=command.encoding)


def input_rows(command: PredictCommand, model: Model, context: str | None) -> Iterator[InputRow]:
    """The rows to predict on."""
    from regard.data.schema.columns import parse_columns
    from regard.predict.batch.rows import file_rows, input_roles, text_rows
    from regard.predict.model_task import read_training_run

    task = model.task
    if command.input is not None:
        columns = {} if command.columns is None else parse_columns(command.columns)
        run = read_training_run(model.folder)
        return file_rows(
            command.input,
            task,
            columns=columns,
            format=command.format,
            encoding=command.encoding,
            read_options=None if run is None else run.data,
            context=context,
        )
    roles = input_roles(task)
    if context is None and len(roles) == 2 and len(command.texts) % 2:
        what = "two texts that belong together"
        if "context" in roles:
            what = "a question and its context (or questions with --context FILE)"
        raise UsageError(
            f"this model takes {what}, but the last of {pluralize(len(command.texts), 'text')} has no second one."
        )
    return text_rows(command.texts, task, context=context)


def _write(command: PredictCommand, model: Model, rows: Iterator[InputRow], context: str | None) -> None:
    from regard.data.atomic import is_stream
    from regard.predict.batch.files import predict_to_file

    assert command.output is not None
    digest = None if context is None else hashlib.sha256(context.encode("utf-8", "surrogatepass")).hexdigest()
    settings = {"columns": command.columns, "encoding": command.encoding, "context": digest}
    settings |= {"dtype": command.dtype, "engine": command.engine}
    with progress_rows() as progress:
        done = predict_to_file(
            model,
            rows,
            command.output,
            batch_tokens=command.batch_tokens,
            abstain=command.abstain,
            settings=settings,
            resume=command.resume,
            progress=progress,
        )
    _print_notes(command, done)
    summary = {"rows": done.rows, "output": str(command.output)}
    if not command.json:
        print_status(f"{pluralize(done.rows, 'answer')}: {command.output}")
    elif is_stream(command.output):  # which may be stdout, where the answers are
        print_status(json.dumps(summary))
    else:
        print_json(summary)


def _print_notes(command: PredictCommand, done: Predictions) -> None:
    if done.removed:
        answers = pluralize(done.removed, "answer")
        print_status(f"discarded: {answers} of a stopped run; --resume would have kept them.")
    if command.resume and done.resumed:
        print_status(f"resumed after {pluralize(done.resumed, 'answer')} of the run that was stopped.")
    elif command.resume:
        print_status("there was nothing to resume; started with the first row.")
    for field, name in done.renamed.items():
        print_status(f"the input has a column {field}, so the predicted one is called {name}.")


def _queued(rows: Iterator[InputRow], pending: deque[InputRow]) -> Iterator[Any]:
    """The items of the rows; each row is queued until it is answered."""
    for row in rows:
        pending.append(row)
        yield row.item


def _text(item: Any) -> str:
    if isinstance(item, tuple):
        return " | ".join(item)
    names = ("question", "first", "text")
    return item if isinstance(item, str) else str(next(getattr(item, name) for name in names if hasattr(item, name)))


COMMAND = Command(name="predict", arguments=PredictCommand, help=HELP, run=run)
