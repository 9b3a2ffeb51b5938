"""A network and records to answers, a few thousand records at a time: memory does not grow with their number."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from regard.data.batching.examples import Inputs
from regard.data.batching.packing import Ints
from regard.data.batching.preprocessing import Preprocessing
from regard.data.batching.sequences import token_batches
from regard.data.records import Record
from regard.errors import InputError, NotFinite, RegardError, setting
from regard.metrics.confidence import Score
from regard.metrics.meter import Meter
from regard.model.network import Network
from regard.model.transformer import Output
from regard.tasks.task import Answer, Task

CHUNK = Task.chunk_size  # where a task says nothing else
BATCH_TOKENS = 8192

RunNetwork = Callable[[Inputs], Output]


@dataclass(frozen=True)
class ScoreResult:
    """Scores of many answers; `main` names the one that matters most, `loss` is the mean loss."""

    rows: int
    scores: dict[str, Score]
    main: str
    loss: float
    seconds: float
    meter: Meter
    higher: bool = True  # whether more of the main score is better

    @property
    def value(self) -> float:
        return self.scores[self.main].value


class RowSource(Protocol):
    """Rows that are taken by their numbers."""

    @property
    def lengths(self) -> npt.NDArray[Any]: ...

    def take(self, rows: Ints) -> Inputs: ...


def network_runner(network: Network, task: Task, *, dtype: torch.dtype = torch.float32) -> RunNetwork:
    """The network as it reads: without gradients, in the given number format."""
    device = next(network.parameters()).device

    def run(inputs: Inputs) -> Output:
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            return task.run(network, inputs)

    return run


@torch.inference_mode()
def answer_records(
    task: Task,
    run: RunNetwork,
    records: Iterable[Record],
    preprocessing: Preprocessing,
    *,
    device: torch.device,
    labelled: bool = False,
    batch_tokens: int = BATCH_TOKENS,
    losses: list[float] | None = None,
    finite: bool = True,
) -> Iterator[tuple[Record, Answer]]:
    """Each record with its answer, in order. `losses` receives sum and count where the records are labelled.

    finite: raise an error that names the first text for which the network computes NaN or infinity.
    """
    if batch_tokens < 1:
        raise InputError(f"{setting('batch_tokens')} is {batch_tokens}, expected at least 1.")
    stream, task, before = iter(records), task.bind(preprocessing), 0
    run = check_finite(run) if finite else run
    while held := list(islice(stream, task.chunk_size)):
        examples = task.examples(held, preprocessing, labelled=labelled)
        found: list[Any] = [None] * len(examples)
        for rows in token_batches(examples.lengths.tolist(), max(batch_tokens, int(examples.lengths.max(initial=1)))):
            try:
                parts = batch_outputs(task, run, examples, rows, device=device, losses=losses if labelled else None)
                for part, told in parts:
                    for row, said in zip(part, told, strict=True):
                        found[row] = said
            except NotFinite as error:
                bad = _first_bad(task, run, examples, rows, device=device)
                raise NotFinite(f"text {before + int(examples.owners[bad])}") from error
        windows: list[list[Any]] = [[] for _ in held]
        for owner, said in zip(examples.owners.tolist(), found, strict=True):
            windows[owner].append(said)
        for record, said in zip(held, windows, strict=True):
            yield record, task.answer(record, said)
        before += len(held)


def check_finite(run: RunNetwork) -> RunNetwork:
    """The same network, with an error where what it says of a batch is NaN or infinite."""

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
    losses: list[float] | None,
) -> Iterator[tuple[Sequence[int], list[Any]]]:
    """What each of these rows says, in halves of them where the device has not enough memory for all at once."""
    waiting = [rows]
    while waiting:
        part = waiting.pop()
        try:
            inputs = task.prepare(source.take(np.asarray(part, np.int64)).to(device))
            output = run(inputs)
            said, loss = task.row_outputs(output, inputs), None if losses is None else task.loss(output, inputs)
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
            losses[0] += float(loss.sum)
            losses[1] += float(loss.count)
        yield part, said


def score_records(
    task: Task,
    run: RunNetwork,
    records: Iterable[Record],
    preprocessing: Preprocessing,
    *,
    device: torch.device,
    batch_tokens: int = BATCH_TOKENS,
    seed: int = 0,
) -> ScoreResult:
    """Answers held against what the records say."""
    began, meter, losses, rows = time.monotonic(), task.meter(), [0.0, 0.0], 0
    torch.manual_seed(seed)  # what a task draws is the same at every score
    found = answer_records(
        task,
        run,
        records,
        preprocessing,
        device=device,
        labelled=True,
        batch_tokens=batch_tokens,
        losses=losses,
        finite=False,  # a training has its own way with a loss that is no number
    )
    for record, answer in found:
        task.update(meter, answer, record)
        rows += 1
    mean = losses[0] / losses[1] if losses[1] else float("nan")
    return ScoreResult(
        rows, meter.scores(), meter.main, mean, time.monotonic() - began, meter, higher=meter.higher_is_better
    )
