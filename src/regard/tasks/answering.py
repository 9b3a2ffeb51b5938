"""A network and records to answers, a few thousand records at a time: memory does not grow with their number."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from regard.data.examples import Examples, Inputs
from regard.data.pieces import batches
from regard.data.records import Record
from regard.errors import RegardError
from regard.metrics.confidence import Score
from regard.metrics.meter import Meter
from regard.model.network import Network
from regard.model.transformer import Output
from regard.tasks.task import Answer, Reading, Task

CHUNK = Task.at_once  # where a task says nothing else
BATCH_TOKENS = 8192

Run = Callable[[Inputs], Output]
Tell = Callable[[int], None]


@dataclass(frozen=True)
class Scored:
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


def runner(network: Network, task: Task, *, dtype: torch.dtype = torch.float32) -> Run:
    """The network as it reads: without gradients, in the given number format."""
    device = next(network.parameters()).device

    def run(inputs: Inputs) -> Output:
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            return task.run(network, inputs)

    return run


@torch.inference_mode()
def answers(
    task: Task,
    run: Run,
    records: Iterable[Record],
    reading: Reading,
    *,
    device: torch.device,
    labelled: bool = False,
    batch_tokens: int = BATCH_TOKENS,
    losses: list[float] | None = None,
) -> Iterator[tuple[Record, Answer]]:
    """Each record with its answer, in order. `losses` receives sum and count where the records are labelled."""
    stream, task = iter(records), task.reads(reading)
    while held := list(islice(stream, task.at_once)):
        examples = task.examples(held, reading, labelled=labelled)
        found: list[Any] = [None] * len(examples)
        for rows in batches(examples.lengths.tolist(), max(batch_tokens, int(examples.lengths.max(initial=1)))):
            for part, inputs, output in _run_all(task, run, examples, rows, device):
                for row, said in zip(part, task.read(output, inputs), strict=True):
                    found[row] = said
                if losses is not None and labelled:
                    loss = task.loss(output, inputs)
                    losses[0] += float(loss.sum)
                    losses[1] += float(loss.count)
        windows: list[list[Any]] = [[] for _ in held]
        for owner, said in zip(examples.owners.tolist(), found, strict=True):
            windows[owner].append(said)
        for record, said in zip(held, windows, strict=True):
            yield record, task.answer(record, said)


def _run_all(
    task: Task, run: Run, examples: Examples, rows: list[int], device: torch.device
) -> Iterator[tuple[list[int], Inputs, Output]]:
    """The batch of these rows, in halves where the device has not enough memory for all of it."""
    waiting = [rows]
    while waiting:
        part = waiting.pop()
        try:
            inputs = task.prepare(examples.take(part).to(device))
            output = run(inputs)
        except torch.OutOfMemoryError as error:
            if len(part) == 1:
                raise RegardError(
                    f"the GPU has not enough memory for one sequence of {int(examples.lengths[part[0]])} tokens. "
                    "Free some, use a smaller model, or the CPU."
                ) from error
            torch.cuda.empty_cache()
            waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
            continue
        yield part, inputs, output


def score(
    task: Task,
    run: Run,
    records: Iterable[Record],
    reading: Reading,
    *,
    device: torch.device,
    batch_tokens: int = BATCH_TOKENS,
    seed: int = 0,
    tell: Tell | None = None,
) -> Scored:
    """Answers held against what the records say."""
    began, meter, losses, rows = time.monotonic(), task.meter(), [0.0, 0.0], 0
    torch.manual_seed(seed)  # what a task draws is the same at every score
    found = answers(task, run, records, reading, device=device, labelled=True, batch_tokens=batch_tokens, losses=losses)
    for record, answer in found:
        task.mark(meter, answer, record)
        rows += 1
        if tell is not None:
            tell(rows)
    mean = losses[0] / losses[1] if losses[1] else float("nan")
    return Scored(rows, meter.scores(), meter.main, mean, time.monotonic() - began, meter, higher=meter.higher)
