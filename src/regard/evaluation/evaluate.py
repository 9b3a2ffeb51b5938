"""How good a model is on data it has not seen: scores with their 95 % intervals, over a stream of rows."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.checkpoint.files import model_files
from regard.data.atomic import check_output_path
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.sliding_windows import sliding_windows, text_chunks
from regard.data.formats.writers import output_format, table_file
from regard.data.readers import Reader
from regard.data.records import Record
from regard.data.rows import Row
from regard.data.schema.columns import Columns
from regard.data.seen_rows import SeenRows
from regard.data.sources.locate import DataLocation
from regard.errors import DataError, InputError, SeenRowsWarning, setting
from regard.evaluation.open_data import open_data
from regard.evaluation.result import Abstention, Evaluation
from regard.metrics.confidence import wilson
from regard.metrics.meter import Meter
from regard.metrics.report import report_of
from regard.predict import BATCH_TOKENS, Model, load
from regard.predict.model_task import describe_model, seen_rows
from regard.predict.translation import translation_run
from regard.progress import OnProgress, Progress
from regard.random_state import seeded
from regard.tasks.inference import Answered, LossTotal, ScoreResult, answer_records, score_answers
from regard.tasks.language.perplexity import SlidingPerplexity
from regard.tasks.task import Answer, Task, check_abstain, with_abstention
from regard.tasks.translate import Translate

WINDOW, OVERLAP = 1024, 0.5  # of plain text: tokens, and which share of them the next window shows again
LOGITS = 1 << 27  # maximum number of logits in memory at once


class RowObserver:
    """Sees every row of an evaluation, and may change how it is scored. This one changes nothing."""

    def scoring_task(self, task: Task) -> Task:
        """The task that compares answers with records."""
        return task

    def meter(self, task: Task) -> Meter:
        """An empty meter of the scoring task."""
        return task.meter()

    def on_read(self, row: Row, record: Record) -> None:
        """Called with every row, in order, before it is answered."""

    def answer(self, record: Record, answer: Answer) -> Answer:
        """The answer to score; called with every answer, in order."""
        return answer


def evaluate(
    model: Model | str | Path,
    data: DataLocation,
    *,
    split: str | None = None,
    format: str | None = None,
    columns: Columns | None = None,
    encoding: str | None = None,
    labels: str | None = None,
    skip_bad: str | Path | None = None,
    output: str | Path | None = None,
    window: int | None = None,
    overlap: float | None = None,
    beams: int | None = None,
    length_penalty: float | None = None,
    abstain: float | None = None,
    batch_tokens: int = BATCH_TOKENS,
    seed: int = 0,
    progress: OnProgress | None = None,
    observer: RowObserver | None = None,
) -> Evaluation:
    """Score a model, or the model of a folder, on labeled data; a language model on plain text or minimal pairs.

    Rows are read, answered and scored as a stream: memory does not grow with their number.
    split: of a folder that has several; test if there is one, else valid.
    format: of the files, such as "csv"; recognized if not given.
    encoding: of the files, such as "cp1252"; recognized from their bytes if not given.
    output: a file for the answers, one per row, in order; CSV, TSV or Parquet by its name, else JSON lines. It is
        written completely or not at all.
    window: maximum number of tokens of a window over plain text, for language models; the model's own limit, up to
        1,024, if not given.
    overlap: fraction of a window that the next window repeats, for causal language models; 0.5 if not given.
    beams: number of beams of a translation model; 1 is greedy decoding. That of the model's folder if not given, else
        1.
    length_penalty: of beam search: above 1 favors long texts; that of the model's folder if not given.
    abstain: confidence below which the model does not answer; `abstention` has the scores of the rows that are left.
    seed: random seed of the tokens that are masked, for masked language models.
    observer: sees every row with its answer.
    """
    started, observer = time.monotonic(), observer or RowObserver()
    check_abstain(abstain)
    answer_file = None if output is None else Path(output).expanduser()
    _check_outputs(model, data, answer_file, None if skip_bad is None else Path(skip_bad))
    model = model if isinstance(model, Model) else load(model)
    reading: dict[str, Any] = {"format": format, "columns": columns, "encoding": encoding, "labels": labels}
    task, reader = open_data(model, data, split=split, skip_bad=skip_bad, **reading)
    request = _evaluation_request(model, task, reader, window, overlap, observer)
    losses, scoring_task = LossTotal(), observer.scoring_task(task)
    beam_options = {"beams": beams, "length_penalty": length_penalty}
    answered = _answered(model, task, request, beam_options, batch_tokens, losses, labeled=scoring_task is task)
    seen = seen_rows(model.folder)
    observed = ((record, observer.answer(record, answer)) for record, answer in _not_empty(answered, reader))
    with seeded(seed, model.device), contextlib.ExitStack() as stack:
        write = None if answer_file is None else stack.enter_context(table_file(answer_file))
        rows = _EvaluatedRows(scoring_task, abstain, write, progress, seen)
        meter = observer.meter(scoring_task)
        result = score_answers(scoring_task, observed, losses, on_answer=rows.add, meter=meter)
    evaluation = _evaluation(model, task, reader, result, started)
    return replace(evaluation, abstention=rows.abstention(), seen=None if seen is None else _seen_fraction(seen))


def _seen_fraction(seen: SeenRows) -> float:
    """The fraction of the rows that the model was trained on, with a warning if it is not small."""
    if seen.words is not None:
        much = "too high" if seen.fraction >= 0.1 else "a little too high"
        message = f"{seen.words} are also in the training data of the model; the score is {much}."
        warnings.warn(message, SeenRowsWarning, stacklevel=3)
    return round(seen.fraction, 4)


class _EvaluatedRows:
    """Counts and writes the answers, and scores those that are answered at a confidence if there is one."""

    def __init__(
        self,
        task: Task,
        below: float | None,
        write: Callable[[dict[str, Any]], None] | None,
        progress: OnProgress | None,
        seen: SeenRows | None,
    ) -> None:
        self.seen = seen
        self.task, self.below, self.meter = task, below, task.meter()
        self.write, self.progress = write, progress
        self.rows = self.answered = 0

    def add(self, record: Record, answer: Answer) -> None:
        self.rows += 1
        if self.seen is not None:
            self.seen.add(record)
        if self.below is not None:
            answer = with_abstention(answer, self.below)
            if not answer.abstained:
                self.answered += 1
                self.task.update(self.meter, answer, record)
        if self.write is not None:
            self.write(answer.json())
        if self.progress is not None:
            self.progress(Progress("rows", self.rows))

    def abstention(self) -> Abstention | None:
        if self.below is None:
            return None
        scores = self.meter.scores() if self.answered else {}
        return Abstention(self.below, wilson(self.answered, self.rows), scores)


def _check_outputs(
    model: Model | str | Path, data: DataLocation, answer_file: Path | None, bad_rows_file: Path | None
) -> None:
    """Refuse output files that would overwrite the data or the model, before anything is read."""
    if answer_file is not None:
        output_format(answer_file)
    folder = model.folder if isinstance(model, Model) else Path(model)
    inputs = [data, *([] if folder is None else model_files(folder))]
    for name, path in (("skip_bad", bad_rows_file), ("output", answer_file)):
        if path is not None:
            check_output_path(path, name, inputs=inputs, others={"skip_bad": bad_rows_file})


def _not_empty(answered: Answered, reader: Reader) -> Answered:
    """The same answers; an error where there are none."""
    empty = True
    for record, answer in answered:
        empty = False
        yield record, answer
    if empty:
        raise DataError(
            "has no token that follows another one", file=reader.sources[0][0].name, expected="at least two tokens"
        )


def _evaluation(model: Model, task: Task, reader: Reader, result: ScoreResult, started: float) -> Evaluation:
    return Evaluation(
        task=task.name,
        rows=result.meter.rows,
        scores=result.scores,
        seconds=round(time.monotonic() - started, 3),
        folder=None if model.folder is None else str(model.folder),
        main=result.main,
        loss=result.loss,
        data=reader.summary,
        bad=reader.bad_rows,
        unit="windows" if isinstance(task, SlidingPerplexity) else "rows",
        signatures=task.signatures,
        report=report_of(result.meter),
        calibration=result.calibration,
    )


@dataclass(frozen=True)
class _EvaluationRequest:
    """The records to answer, and how their texts are tokenized."""

    records: Iterable[Any]
    preprocessing: Preprocessing


def _evaluation_request(
    model: Model, task: Task, reader: Reader, window: int | None, overlap: float | None, observer: RowObserver
) -> _EvaluationRequest:
    _check_window(model, task, window, overlap)
    preprocessing = model.preprocessing()
    preprocessing = replace(preprocessing, window=window or preprocessing.window)
    if not isinstance(task, SlidingPerplexity):
        return _EvaluationRequest(_observed(reader, observer), preprocessing)
    windows = sliding_windows(
        text_chunks(reader),
        preprocessing.tokenizer,
        size=window or default_window(model),
        overlap=OVERLAP if overlap is None else overlap,
    )
    return _EvaluationRequest(windows, preprocessing)


def _observed(reader: Reader, observer: RowObserver) -> Iterator[Record]:
    for row, record in reader.with_rows():
        observer.on_read(row, record)
        yield record


def _check_window(model: Model, task: Task, window: int | None, overlap: float | None) -> None:
    """Refuse settings that the model has no use for."""
    if overlap is not None and not isinstance(task, SlidingPerplexity):
        raise InputError(
            f"{setting('overlap')} is for causal language models on plain text; this is {describe_model(task.name)}."
        )
    if window is None:
        return
    if not task.language_model:
        raise InputError(
            f"{setting('window')} is for language models on plain text; this is {describe_model(task.name)}."
        )
    limit = model.preprocessing().config.max_tokens
    if not 2 <= window <= (limit or window):
        at_most = "" if limit is None else f", and at most {limit}, the limit of this model"
        raise InputError(f"{setting('window')} is {window}; use at least 2 tokens{at_most}.")


def default_window(model: Model) -> int:
    """The number of tokens of a window over plain text if none is given."""
    return min(model.preprocessing().max_tokens or WINDOW, WINDOW)


def _answered(
    model: Model,
    task: Task,
    request: _EvaluationRequest,
    beam_options: Mapping[str, Any],
    batch_tokens: int,
    losses: LossTotal,
    *,
    labeled: bool,
) -> Answered:
    run, beams = model.task_runner(task), beam_options["beams"] or 1
    if isinstance(task, Translate):
        run, beams = translation_run(model, task, beam_options)
        batch_tokens = -(-batch_tokens // max(beams, 1))
    elif beams != 1:
        raise InputError(
            f"{setting('beams', beams)} was given, but beams are for models that translate; "
            f"this is {describe_model(task.name)}."
        )
    if beams == 1 and beam_options["length_penalty"] is not None:
        raise InputError(f"{setting('length_penalty')} was given, but it needs {setting('beams')} above 1.")
    if isinstance(task, SlidingPerplexity):
        batch_tokens = min(batch_tokens, max(LOGITS // model.config.vocabulary, 1))
    return answer_records(
        task,
        run,
        request.records,
        request.preprocessing,
        device=model.device,
        labeled=labeled,
        batch_tokens=batch_tokens,
        losses=losses,
    )
