"""The teacher of a distillation: its answers for the training rows, computed once and kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.atomic import atomic_path
from regard.data.batching.examples import TEACHER, Examples
from regard.data.batching.sequences import token_batches
from regard.data.records import AnswerRecord, ClassifyRecord, PairRecord, Record, TagRecord
from regard.data.records.question import AnswerSpan
from regard.errors import InputError
from regard.predict.batch.files import model_digest
from regard.predict.model import Model
from regard.progress import OnProgress, Progress
from regard.tasks.answer import SpanAnswer
from regard.tasks.classify import Classify, LabelAnswer, LabelsAnswer, NumberAnswer
from regard.tasks.tag import Tag, TagAnswer
from regard.tasks.task import Task

BATCH_TOKENS = 8192
WORD = "word"  # numbers of tagged words by token, at the first token of each


@dataclass(frozen=True, eq=False)
class Teacher:
    """A trained model with its task, and the folder for its answers."""

    model: Model
    task: Task
    cache: Path
    progress: OnProgress | None = None

    @property
    def identity(self) -> str:
        """The same for the same teacher."""
        return model_digest(self.model)

    def soft_targets(self, task: Task, examples: Examples, records: Sequence[Record]) -> Examples:
        """The examples with the teacher's log-probabilities (or logits) for each of their positions.

        A student with another tokenizer gets those of whole texts or words; that is possible for classification and
        tagging only.
        """
        own = self._own_examples(task, records)
        values = self._stored_positions(task, own)
        if not np.array_equal(own.bounds, examples.bounds):  # ids may differ: of a smaller vocabulary
            if isinstance(task, Classify):
                values = _mean_by_record(values, own, len(records))[examples.owners]
            elif WORD in own.by_token and WORD in examples.by_token:
                values = _by_word(values, own, examples)
            else:
                raise InputError(f"a student for {task.name} needs the tokenizer of its teacher, but has another one.")
        if len(values) == len(examples):
            return replace(examples, by_sequence={**examples.by_sequence, TEACHER: values})
        return replace(examples, by_token={**examples.by_token, TEACHER: values})

    def answer(self, records: Sequence[Record]) -> None:
        """Compute and keep the answers for these records, so that `soft_targets` finds them."""
        self._stored_positions(self.task, self._own_examples(self.task, records))

    def _stored_positions(self, task: Task, own: Examples) -> NDArray[Any]:
        """The teacher's answers, from disk if they were computed before."""
        path = self.cache / f"{self._key(own)}.npy"
        if path.is_file():
            stored: NDArray[Any] = np.load(path, allow_pickle=False)
            return stored
        values = self._positions(task, own)
        self.cache.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as part, part.open("wb") as file:
            np.save(file, values)
        return values

    def _key(self, examples: Examples) -> str:
        digest = hashlib.blake2b(digest_size=16)
        digest.update(self.identity.encode())
        for part in (examples.ids, examples.bounds, examples.owners):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def _own_examples(self, task: Task, records: Sequence[Record]) -> Examples:
        """Sequences as the teacher reads them: with the context that it was trained with, if it tags words."""
        preprocessing = self.model.preprocessing()
        own = self.task if isinstance(self.task, Tag) and isinstance(task, Tag) else task
        return own.bind(preprocessing).examples(list(records), preprocessing, labeled=True)

    @torch.inference_mode()
    def _positions(self, task: Task, examples: Examples) -> NDArray[Any]:
        """The teacher's answers for each sequence or token."""
        network, device = self.model.inference_network, self.model.device
        values: NDArray[Any] | None = None
        done = 0
        lengths = examples.lengths.tolist()
        for rows in token_batches(lengths, max(BATCH_TOKENS, max(lengths, default=1))):
            inputs = task.prepare(examples.take(np.asarray(rows, np.int64)).to(device))
            output = network(inputs.tokens, inputs.target, at=inputs.at)
            assert output.logits is not None
            soft: Tensor = output.logits.float()
            if task.predicts_classes:
                soft = task.log_probabilities(output, inputs)[0]
            by_sequence = len(output.logits) == len(rows)
            soft = soft.reshape(len(output.logits), *((-1,) if soft.shape[0] == len(output.logits) else (-1, 2)))
            if values is None:
                size = len(examples) if by_sequence else len(examples.ids)
                values = np.full((size, *soft.shape[1:]), np.nan, np.float32)
            if by_sequence:
                place = np.asarray(rows)
            else:
                place = examples.flat_positions(np.asarray(rows, np.int64))[0]
                place = place if inputs.at is None else place[inputs.at.cpu().numpy()]
            values[place] = soft.cpu().numpy()
            done += len(rows)
            self.report(done, len(examples))
        assert values is not None
        return values

    def report(self, done: int, total: int) -> None:
        """Tell `progress` how many rows the teacher has answered."""
        if self.progress is not None:
            self.progress(Progress("teacher", done, total))

    def label(self, records: Sequence[Record]) -> list[Record]:
        """Records without labels, with the labels that the teacher predicts."""
        labeled: list[Record] = []
        for record, answer in zip(records, self.model.predict(list(records)), strict=True):
            if isinstance(record, TagRecord):
                assert isinstance(answer, TagAnswer)
                labeled.append(replace(record, tags=answer.tags))
                continue
            if isinstance(record, AnswerRecord):
                assert isinstance(answer, SpanAnswer)
                spans = () if answer.start is None else (AnswerSpan(answer.answer, answer.start),)
                labeled.append(replace(record, answers=spans))
                continue
            assert isinstance(record, ClassifyRecord | PairRecord)
            if isinstance(answer, LabelAnswer):
                labeled.append(replace(record, label=answer.label))
            elif isinstance(answer, LabelsAnswer):
                labeled.append(replace(record, label=tuple(answer.labels)))
            elif isinstance(answer, NumberAnswer):
                labeled.append(replace(record, label=float(answer.value)))
        return labeled


def _mean_by_record(values: NDArray[Any], examples: Examples, records: int) -> NDArray[Any]:
    """The mean over the windows of each record."""
    sums = np.zeros((records, *values.shape[1:]), np.float64)
    np.add.at(sums, examples.owners, values)
    counts = np.bincount(examples.owners, minlength=records).reshape(-1, *(1,) * (values.ndim - 1))
    return (sums / counts).astype(np.float32)


def _by_word(values: NDArray[Any], own: Examples, examples: Examples) -> NDArray[Any]:
    """The values of each word, at the first tokens of the words in other sequences; NaN elsewhere."""
    rows = {key: row for row, key in _words(own)}
    result = np.full((len(examples.ids), *values.shape[1:]), np.nan, np.float32)
    for row, key in _words(examples):
        if key in rows:
            result[row] = values[rows[key]]
    return result


def _words(examples: Examples) -> Iterator[tuple[int, tuple[int, int]]]:
    """The position of the first token of each word, with the number of its record and its number."""
    owners = np.repeat(examples.owners, examples.lengths)
    words = examples.by_token[WORD]
    for row in np.flatnonzero(words >= 0).tolist():
        yield row, (int(owners[row]), int(words[row]))
