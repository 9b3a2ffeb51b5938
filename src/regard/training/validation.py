"""Validation data of a training: records or plain text, and what a unigram model scores on the same text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch

from regard.data.batching.examples import Examples
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.text_source import PairRows, Stream
from regard.data.records import Record
from regard.errors import InputError, setting
from regard.model.kernels.dispatch import without_tiles
from regard.tasks.inference import RowSource, ScoreResult, network_runner, score_records, score_rows
from regard.tasks.task import RowOutputs, Task
from regard.training.job import TrainingJob

MAX_STORED_TOKENS = 10_000_000  # of validation sequences in memory
MAX_ROWS = 20_000  # validation rows whose outputs are kept, for tuning and for the report
SHORT = 1000  # tokens of validation text below which it may happen that none of them is masked


class ValidationRows:
    """Validation rows with what the network computed for them: all of them, or an even sample of many."""

    def __init__(self, count: int, *, limit: int = MAX_ROWS) -> None:
        self.rows: list[RowOutputs] = []
        self._every = max(1, -(-count // limit))
        self._seen = 0

    @property
    def is_complete(self) -> bool:
        """Whether these are all rows."""
        return self._every == 1

    def add(self, row: RowOutputs) -> None:
        if self._seen % self._every == 0:
            self.rows.append(row)
        self._seen += 1


@dataclass(frozen=True)
class RecordValidation:
    """Labeled validation records. Their sequences are made once and used at every score."""

    records: Sequence[Record]
    preprocessing: Preprocessing
    _examples: dict[tuple[int, int, bool], Examples] = field(default_factory=dict, compare=False)

    def check(self, job: TrainingJob) -> None:
        """Whether every record can be scored: a label that the training data does not have is found here."""
        for start in range(0, len(self.records), job.task.chunk_size):
            self._make_examples(job.task, True, self.records[start : start + job.task.chunk_size])

    def samples_all(self, task: Task) -> bool:
        return not task.joins_records and len(self.records) <= (task.max_dev_rows or len(self.records))

    def score(self, job: TrainingJob, *, sampled: bool = False, rows: ValidationRows | None = None) -> ScoreResult:
        device = _device(job)
        with without_tiles():
            return score_records(
                job.task,
                network_runner(job.network, job.task, dtype=job.dtype),
                self._sample(job.task.max_dev_rows) if sampled else self.records,
                self.preprocessing,
                device=device,
                batch_tokens=_batch_tokens(device),
                seed=job.settings.seed,
                make_examples=partial(self._make_examples, job.task, sampled),
                on_outputs=None if rows is None else rows.add,
            )

    def _make_examples(self, task: Task, quick: bool, chunk: Sequence[Record]) -> Examples:
        joined = quick and task.joins_records
        key = (id(chunk[0]), len(chunk), joined)  # a chunk is always made of the same records
        if key not in self._examples:
            if joined:
                examples = task.joined_examples(chunk, self.preprocessing)
            else:
                examples = task.examples(chunk, self.preprocessing, labeled=True)
            if sum(len(known.ids) for known in self._examples.values()) > MAX_STORED_TOKENS:
                return examples
            self._examples[key] = examples
        return self._examples[key]

    def _sample(self, limit: int | None) -> Sequence[Record]:
        """At most `limit` of the records, evenly spaced."""
        count = len(self.records)
        rows = np.linspace(0, count - 1, min(count, limit or count)).astype(int)
        return [self.records[row] for row in rows.tolist()]


@dataclass(frozen=True)
class TextValidation:
    """Validation text as rows of tokens."""

    rows: RowSource

    def check(self, job: TrainingJob) -> None:
        """Whether a short text can be scored: it may be that none of its tokens is masked."""
        if self.rows.lengths.sum() >= SHORT:
            return
        job.network.eval()
        try:
            self.score(job)
        except InputError as error:
            raise InputError(
                "the validation text is too short to be scored: it has no token to predict. Give more text, "
                f"or {setting('dev_fraction', 0)} for no scores."
            ) from error

    def samples_all(self, task: Task) -> bool:
        return True

    def score(self, job: TrainingJob, *, sampled: bool = False, rows: ValidationRows | None = None) -> ScoreResult:
        device = _device(job)
        run = network_runner(job.network, job.task, dtype=job.dtype)
        tokens = _batch_tokens(device)
        return score_rows(job.task, run, self.rows, device=device, batch_tokens=tokens, seed=job.settings.seed)


def _device(job: TrainingJob) -> torch.device:
    return next(job.network.parameters()).device


def _batch_tokens(device: torch.device) -> int:
    return 65_536 if device.type == "cuda" else 8192


def unigram_baseline(train: Stream, dev: Stream, rows: RowSource, *, vocabulary: int) -> dict[str, float]:
    """What a unigram model scores on the validation text: it knows token frequencies only.

    masked_accuracy: of always predicting the most frequent token. perplexity: of the token frequencies in the training
    text, with add-one smoothing. next_accuracy: of always giving the more frequent of the two answers.
    """
    train_counts = train.counts(vocabulary)
    dev_counts = dev.counts(vocabulary)
    probabilities = (train_counts + 1) / (train_counts.sum() + vocabulary)
    nll = float(-(dev_counts * np.log(probabilities)).sum() / dev_counts.sum())
    accuracy = float(dev_counts[train_counts.argmax()] / dev_counts.sum())
    scores = {"masked_accuracy": accuracy, "perplexity": math.exp(nll)}
    if isinstance(rows, PairRows):
        fraction = float(np.mean(rows.pairs.labels))
        scores["next_accuracy"] = max(fraction, 1 - fraction)
    return scores
