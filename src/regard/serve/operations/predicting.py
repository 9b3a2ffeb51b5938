"""Answers of a model's task: the same as `Model.predict`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import torch

from regard.data.batching.examples import join_examples
from regard.data.records import AnswerRecord, Record
from regard.errors import InputError
from regard.predict.answers import checked_runner
from regard.predict.inputs import as_records
from regard.predict.model import Model
from regard.predict.model_task import no_answers_error, read_training_run, task_for
from regard.serve.operations.operation import Operation, Prepared, as_input
from regard.serve.served import Item
from regard.tasks import for_pairs
from regard.tasks.inference import answer_records, batch_outputs, check_finite
from regard.tasks.task import Task, check_abstain, with_abstention


class PredictOperation(Operation):
    """The task of a model, read once. An encoder runs sequences of many requests at once, others text by text."""

    def __init__(self, model: Model, *, abstain: float | None = None, pairs: bool = False) -> None:
        super().__init__(model)
        check_abstain(abstain)
        task = task_for(model.checkpoint, model.folder)
        if task.language_model:
            raise no_answers_error(model.network, task.name)
        if pairs and read_training_run(model.folder) is None:
            task = for_pairs(task)
        self.abstain = abstain
        self.preprocessing = model.preprocessing()
        self.task: Task = task.bind(self.preprocessing)
        self.run_network = check_finite(checked_runner(model.inference_network, self.task))
        self.batches = model.config.kind == "encoder"

    @property
    def group(self) -> Hashable:
        return ("predict", self.task.name, self.abstain)

    def prepare(self, items: Sequence[Item]) -> list[Prepared]:
        records = list(as_records([as_input(item) for item in items], self.task.record))
        return [self._prepared(record) for record in records]

    def _prepared(self, record: Record) -> Prepared:
        examples = self.task.examples([record], self.preprocessing, labeled=False)
        lengths = tuple(examples.lengths.tolist())
        if not self.batches:
            lengths = (sum(lengths),)
        return Prepared(lengths, (record, examples))

    @torch.inference_mode()
    def run(self, rows: Sequence[tuple[Prepared, int]]) -> list[Any]:
        if not self.batches:
            return [self._alone(prepared.payload[0]) for prepared, _ in rows]
        jobs = list({id(prepared): prepared for prepared, _ in rows}.values())
        joined = join_examples([prepared.payload[1] for prepared in jobs])
        starts, start = {}, 0
        for prepared in jobs:
            starts[id(prepared)] = start
            start += len(prepared.lengths)
        numbers = [starts[id(prepared)] + index for prepared, index in rows]
        parts = batch_outputs(self.task, self.run_network, joined, numbers, device=self.model.device, losses=None)
        outputs = {number: output for part, values in parts for number, output in zip(part, values, strict=True)}
        return [outputs[number] for number in numbers]

    def _alone(self, record: Record) -> Any:
        """The answer of a network that generates, by the same call as `predict` makes for one text."""
        answered = answer_records(
            self.task, self.run_network, [record], self.preprocessing, device=self.model.device, finite=False
        )
        return next(iter(answered))[1]

    def answer(self, prepared: Prepared, outputs: Sequence[Any]) -> dict[str, Any]:
        answer = self.task.answer(prepared.payload[0], outputs) if self.batches else outputs[0]
        return (answer if self.abstain is None else with_abstention(answer, self.abstain)).json()


class AnswerOperation(PredictOperation):
    """Answers to questions about a context; an error for a model of another task."""

    def __init__(self, model: Model, *, abstain: float | None = None) -> None:
        super().__init__(model, abstain=abstain)
        if self.task.record is not AnswerRecord:
            raise InputError(f"this is a model for {self.task.name}; it answers no questions. Use POST /predict.")
