"""What a model costs and how it answers: latency by length, texts per second, size, and its rows on validation and
test data."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from regard.comparison.trainings.measure import median_latency
from regard.data.records import AnswerRecord, ClassifyRecord, PairRecord, Record, TagRecord, TranslateRecord
from regard.export.int8_encoder import Int8Encoder
from regard.export.int8_linear import Int8Linear
from regard.metrics.confidence import Score
from regard.metrics.meter import Meter
from regard.metrics.paired.rows import HasRows, RowTable, row_table
from regard.predict.model import Model
from regard.progress import OnProgress, Progress
from regard.tasks.inference import Answered, LossTotal, answer_records, score_answers
from regard.tasks.task import RowOutputs, Task

LENGTHS = (1, 24, 128)  # words of the texts whose latency is measured
REPEATS = 12
THROUGHPUT_ROWS = 512


@dataclass(frozen=True, eq=False)
class Measured:
    """A model with its tuned task, and what was measured."""

    task: Task
    dev: RowTable
    test: RowTable
    scores: dict[str, Score]  # on the test rows
    latency_ms: dict[str, float]
    texts_per_second: float
    bytes: int
    parameters: int


def measure(
    model: Model, task: Task, dev: Sequence[Record], test: Sequence[Record], *, progress: OnProgress | None = None
) -> Measured:
    """Answer all rows. What the task tunes (temperature, thresholds) is tuned again on the validation rows.

    progress: called with `Progress("rows", done, total)`; validation rows are scored twice where the task is tuned.
    """
    total = 2 * len(dev) + len(test)

    def report(before: int, done: int) -> None:
        if progress is not None:
            progress(Progress("rows", before + done, total))

    outputs: list[RowOutputs] = []
    first = _rows(model, task, dev, partial(report, 0), outputs)
    tuned = task.tuned(first, outputs)
    dev_meter = first if tuned == task else _rows(model, tuned, dev, partial(report, len(dev)))
    test_meter = _rows(model, tuned, test, partial(report, 2 * len(dev)))
    answers = _answer_function(model, tuned)
    some = list(test[:THROUGHPUT_ROWS])
    list(answers(some[:32]))  # the first batch is slower
    started = time.perf_counter()
    list(answers(some))
    seconds = time.perf_counter() - started
    return Measured(
        task=tuned,
        dev=row_table(dev_meter),
        test=row_table(test_meter),
        scores=test_meter.scores(),
        latency_ms=latencies(model, tuned, test),
        texts_per_second=round(len(some) / max(seconds, 1e-9), 2),
        bytes=weight_bytes(model),
        parameters=sum(weight.numel() for weight in model.network.parameters()),
    )


def empty_table(meter: Meter) -> RowTable:
    """A table without rows, for its scores: they say which columns of stored rows are added up."""
    if isinstance(meter, HasRows):
        meter.keep_rows()
    return row_table(meter)


def _rows(
    model: Model,
    task: Task,
    records: Sequence[Record],
    on_batch: Callable[[int], None],
    outputs: list[RowOutputs] | None = None,
) -> Meter:
    """The meter of all rows, with the numbers of each."""
    meter = task.meter()
    if isinstance(meter, HasRows):
        meter.keep_rows()
    losses = LossTotal()
    answered = answer_records(
        task,
        model.task_runner(task),
        records,
        model.preprocessing(),
        device=model.device,
        labeled=True,
        losses=losses,
        on_outputs=None if outputs is None else outputs.append,
        on_batch=on_batch,
    )
    score_answers(task, answered, losses, meter=meter)
    return meter


def _answer_function(model: Model, task: Task) -> Callable[[Sequence[Record]], Answered]:
    """A function that answers records, without looking at their labels."""
    run, preprocessing = model.task_runner(task), model.preprocessing()
    return lambda records: answer_records(task, run, records, preprocessing, device=model.device)


def latencies(model: Model, task: Task, records: Sequence[Record]) -> dict[str, float]:
    """The median time of one text in ms, by its number of words; of the rows as they are where words do not count."""
    answers = _answer_function(model, task)
    result = {}
    for length in LENGTHS:
        items = [with_words(record, length) for record in records[:REPEATS]]
        result[str(length)] = round(median_latency(lambda record: list(answers([record])), items), 4)
    return result


def with_words(record: Record, count: int) -> Record:
    """The record with a text of so many words: cut, or repeated."""
    if isinstance(record, ClassifyRecord):
        return replace(record, text=_words(record.text, count))
    if isinstance(record, PairRecord):
        half = max(count // 2, 1)
        return replace(record, first=_words(record.first, half), second=_words(record.second, half))
    if isinstance(record, TagRecord):
        return TagRecord.from_tokens(_words(record.text, count).split(), None, place=record.place)
    if isinstance(record, TranslateRecord):
        return replace(record, source=_words(record.source, count))
    if isinstance(record, AnswerRecord):
        return AnswerRecord(record.id, _words(record.context, count), record.question, place=record.place)
    return record


def _words(text: str, count: int) -> str:
    words = text.split() or ["a"]
    repeated = words * (count // len(words) + 1)
    return " ".join(repeated[:count])


def weight_bytes(model: Model) -> int:
    """The size of the weights as the engine computes with them."""
    network = model.inference_network
    if isinstance(network, Int8Encoder):
        return network.bytes
    tensors = {id(tensor): tensor.nbytes for tensor in [*network.parameters(), *network.buffers()]}
    int8 = sum(module.bytes for module in network.modules() if isinstance(module, Int8Linear))
    if model.engine == "onnx int8" and model.folder is not None:
        return sum(path.stat().st_size for path in (model.folder / "onnx").glob("*_quantized.onnx"))
    if not int8 and model.folder is not None:
        return model.info().bytes
    return sum(tensors.values()) + int8
