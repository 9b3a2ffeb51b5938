"""Run a network on records: their answers, and their scores.

Records are read a few thousand at a time, so memory does not grow with their number. There is one loop for answers
(`answer_records` for records, `answer_rows` for rows that are tokens already) and one for scores (`score_answers`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from regard.data.batching.examples import Examples, Inputs
from regard.data.batching.preprocessing import Preprocessing
from regard.data.batching.sequences import token_batches
from regard.data.records import DocumentRecord, Record
from regard.errors import InputError, NotFinite, RegardError, setting
from regard.metrics.calibration import Calibration, CalibrationCounts
from regard.metrics.confidence import Score
from regard.metrics.meter import Meter
from regard.model.network import Network
from regard.model.transformer import Output
from regard.random_state import seeded
from regard.tasks.task import Answer, Loss, RowOutputs, Task
from regard.text.flat_tokens import Ints

CHUNK = Task.chunk_size  # records per chunk, unless a task has its own number
BATCH_TOKENS = 8192
NO_RECORD = DocumentRecord("")  # for rows that come from no record

RunNetwork = Callable[[Inputs], Output]
MakeExamples = Callable[[Sequence[Record]], Examples]
Answered = Iterator[tuple[Record, Answer]]


@dataclass(frozen=True)
class ScoreResult:
    """Scores of many answers; `main` names the most important one, `loss` is the mean loss."""

    rows: int
    scores: dict[str, Score]
    main: str
    loss: float
    seconds: float
    meter: Meter
    higher: bool = True  # whether a higher main score is better
    calibration: Calibration | None = None  # of probabilities, where answers have them

    @property
    def value(self) -> float:
        """The main score."""
        return self.scores[self.main].value


@dataclass
class LossTotal:
    """The sum of losses and how much it is the sum of."""

    sum: float = 0.0
    count: float = 0.0

    def add(self, loss: Loss) -> None:
        self.sum += float(loss.sum)
        self.count += float(loss.count)

    @property
    def mean(self) -> float:
        """NaN where nothing has a loss."""
        return self.sum / self.count if self.count else float("nan")


class RowSource(Protocol):
    """Sequences that are taken by their row numbers."""

    @property
    def lengths(self) -> npt.NDArray[Any]: ...

    def take(self, rows: Ints) -> Inputs: ...


def network_runner(network: Network, task: Task, *, dtype: torch.dtype = torch.float32) -> RunNetwork:
    """A function that runs the network on a batch as the task needs it, in the given number format."""
    device = next(network.parameters()).device

    def run(inputs: Inputs) -> Output:
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            return task.run(network, inputs)

    return run


def answer_records(
    task: Task,
    run: RunNetwork,
    records: Iterable[Record],
    preprocessing: Preprocessing,
    *,
    device: torch.device,
    labeled: bool = False,
    batch_tokens: int = BATCH_TOKENS,
    losses: LossTotal | None = None,
    finite: bool = True,
    make_examples: MakeExamples | None = None,
    on_outputs: Callable[[RowOutputs], None] | None = None,
    on_batch: Callable[[int], None] | None = None,
) -> Answered:
    """Each record with its answer, in order. `losses` receives the loss of records that are labeled.

    on_outputs: called with what the network computed for each record, in order.
    on_batch: called after each batch with the number of records that are done so far.
    finite: raise an error that names the first text for which the network computes NaN or infinity.
    make_examples: returns the sequences of a chunk of records; `task.examples` if not given.
    """
    if batch_tokens < 1:
        raise InputError(f"{setting('batch_tokens')} is {batch_tokens}, expected at least 1.")
    task = task.bind(preprocessing)
    run = check_finite(run) if finite else run
    stream = iter(records)
    done = 0
    while chunk := list(islice(stream, task.chunk_size)):
        if make_examples is None:
            examples = task.examples(chunk, preprocessing, labeled=labeled)
        else:
            examples = make_examples(chunk)
        outputs = _row_outputs(
            task,
            run,
            examples,
            batch_tokens,
            done,
            device=device,
            losses=losses if labeled else None,
            on_batch=None if on_batch is None else partial(_count_records, on_batch, done, len(chunk)),
        )
        for record, record_outputs in zip(chunk, examples.by_record(outputs, len(chunk)), strict=True):
            if on_outputs is not None:
                on_outputs(RowOutputs(record, record_outputs))
            yield record, task.answer(record, record_outputs)
        done += len(chunk)


@torch.inference_mode()  # once for each chunk: on the generator above it would be entered for each answer
def _row_outputs(
    task: Task,
    run: RunNetwork,
    examples: Examples,
    batch_tokens: int,
    done: int,
    *,
    device: torch.device,
    losses: LossTotal | None,
    on_batch: Callable[[float], None] | None = None,
) -> list[Any]:
    """The output of each sequence, in order; batches are made of sequences of similar length.

    on_batch: called after each batch with the fraction of the sequences that is done.
    """
    outputs: list[Any] = [None] * len(examples)
    finished = 0
    max_length = int(examples.lengths.max(initial=1))
    for rows in token_batches(examples.lengths.tolist(), max(batch_tokens, max_length)):
        try:
            for part, part_outputs in batch_outputs(task, run, examples, rows, device=device, losses=losses):
                for row, output in zip(part, part_outputs, strict=True):
                    outputs[row] = output
        except NotFinite as error:
            bad = _first_bad(task, run, examples, rows, device=device)
            raise NotFinite(f"text {done + int(examples.owners[bad])}") from error
        finished += len(rows)
        if on_batch is not None:
            on_batch(finished / len(examples))
    return outputs


def _count_records(on_batch: Callable[[int], None], before: int, records: int, fraction: float) -> None:
    on_batch(before + int(fraction * records))


@torch.inference_mode()
def answer_rows(
    task: Task,
    run: RunNetwork,
    rows: RowSource,
    *,
    device: torch.device,
    batch_tokens: int = BATCH_TOKENS,
    losses: LossTotal | None = None,
) -> Answered:
    """An answer for each row of a source of plain text, each row its own window; in the order of the batches."""
    lengths = rows.lengths.tolist()
    for chosen in token_batches(lengths, max(batch_tokens, max(lengths, default=1))):
        for _, outputs in batch_outputs(task, run, rows, chosen, device=device, losses=losses):
            for output in outputs:
                yield NO_RECORD, task.answer(NO_RECORD, [output])


def check_finite(run: RunNetwork) -> RunNetwork:
    """The same network, with an error where its output for a batch is NaN or infinite."""

    def checks(inputs: Inputs) -> Output:
        output = run(inputs)
        values = output.hidden if output.logits is None else output.logits
        if values.numel() and not all(torch.isfinite(edge) for edge in torch.aminmax(values)):
            raise NotFinite("this batch")
        return output

    return checks


def _first_bad(task: Task, run: RunNetwork, source: RowSource, rows: Sequence[int], *, device: torch.device) -> int:
    """The first row, by its number, for which the network computes NaN or infinity."""
    for row in sorted(rows):
        try:
            run(task.prepare(source.take(np.asarray([row], np.int64)).to(device)))
        except NotFinite:
            return row
    return min(rows)


def batch_outputs(
    task: Task,
    run: RunNetwork,
    source: RowSource,
    rows: Sequence[int],
    *,
    device: torch.device,
    losses: LossTotal | None,
) -> Iterator[tuple[Sequence[int], list[Any]]]:
    """The outputs of these rows; the batch is halved where the device has too little memory for all at once."""
    waiting = [rows]
    while waiting:
        part = waiting.pop()
        try:
            inputs = task.prepare(source.take(np.asarray(part, np.int64)).to(device))
            output = run(inputs)
            outputs = task.row_outputs(output, inputs)
            loss = None if losses is None else task.loss(output, inputs)
        except torch.OutOfMemoryError as error:
            if len(part) == 1:
                raise RegardError(
                    f"the GPU has not enough memory for one sequence of {int(source.lengths[part[0]])} tokens. "
                    "Free some, use a smaller model, or the CPU."
                ) from error
            torch.cuda.empty_cache()
            waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
            continue
        if losses is not None and loss is not None:
            losses.add(loss)
        yield part, outputs


def score_answers(
    task: Task,
    answered: Answered,
    losses: LossTotal,
    *,
    on_answer: Callable[[Record, Answer], None] | None = None,
    meter: Meter | None = None,
) -> ScoreResult:
    """Compare answers with their records, one after the other.

    losses: receives the losses while `answered` is consumed. on_answer: called after each answer.
    meter: an empty meter to add to; that of the task if not given.
    """
    started = time.monotonic()
    meter, calibration = task.meter() if meter is None else meter, CalibrationCounts()
    rows = 0
    for record, answer in answered:
        task.update(meter, answer, record)
        for probability, correct in task.calibration_pairs(answer, record):
            if math.isfinite(probability):
                calibration.add(probability, correct)
        rows += 1
        if on_answer is not None:
            on_answer(record, answer)
    seconds = time.monotonic() - started
    return ScoreResult(
        rows,
        meter.scores(),
        meter.main,
        losses.mean,
        seconds,
        meter,
        higher=meter.higher_is_better,
        calibration=calibration.result(),
    )


def score_records(
    task: Task,
    run: RunNetwork,
    records: Iterable[Record],
    preprocessing: Preprocessing,
    *,
    device: torch.device,
    batch_tokens: int = BATCH_TOKENS,
    seed: int = 0,
    make_examples: MakeExamples | None = None,
    on_outputs: Callable[[RowOutputs], None] | None = None,
) -> ScoreResult:
    """The scores of a network on records. What a task samples is the same at every call."""
    losses = LossTotal()
    answered = answer_records(
        task,
        run,
        records,
        preprocessing,
        device=device,
        labeled=True,
        batch_tokens=batch_tokens,
        losses=losses,
        finite=False,  # the training loop handles a loss that is not finite
        make_examples=make_examples,
        on_outputs=on_outputs,
    )
    with seeded(seed, device):
        return score_answers(task, answered, losses)


def score_rows(
    task: Task,
    run: RunNetwork,
    rows: RowSource,
    *,
    device: torch.device,
    batch_tokens: int = BATCH_TOKENS,
    seed: int = 0,
) -> ScoreResult:
    """The scores of a network on plain text. Which tokens are masked is the same at every call."""
    losses = LossTotal()
    answered = answer_rows(task, run, rows, device=device, batch_tokens=batch_tokens, losses=losses)
    with seeded(seed, device):
        return score_answers(task, answered, losses)


def score_outputs(task: Task, rows: Sequence[RowOutputs], *, loss: float) -> tuple[ScoreResult, list[Answer]]:
    """What this task answers with the outputs of a network, and its scores; `loss` is that of the network."""
    answers = [task.answer(row.record, row.outputs) for row in rows]
    answered = ((row.record, answer) for row, answer in zip(rows, answers, strict=True))
    return score_answers(task, answered, LossTotal(loss, 1.0)), answers
