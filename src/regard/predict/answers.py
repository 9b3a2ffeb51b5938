"""Answers of a model's task about texts, pairs, questions or words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from regard.checkpoint.folder import Checkpoint
from regard.data.batching.examples import Inputs
from regard.data.records import Record
from regard.errors import InputError
from regard.model.network import Network
from regard.model.transformer import Output
from regard.predict.inputs import as_items, as_records, is_pair, token_error
from regard.predict.model_task import no_answers_error, read_training_run, task_for
from regard.tasks import for_pairs
from regard.tasks.inference import RunNetwork, network_runner
from regard.tasks.task import Task


def task_and_records(
    checkpoint: Checkpoint, folder: Path | None, items: Iterable[Any]
) -> tuple[Task, Iterator[Record]]:
    """The task of a model, and the items as records of this task.

    A folder of transformers does not say whether its classifier takes texts or pairs: the first item decides.
    """
    task = task_for(checkpoint, folder)
    if task.language_model:
        raise no_answers_error(checkpoint.network, task.name)
    stream = iter(as_items(items))
    ahead = list(islice(stream, 1))
    first = ahead[0] if ahead else None
    if is_pair(first) and read_training_run(folder) is None:
        task = for_pairs(task)
    return task, as_records(chain(ahead, stream), task.record)


def checked_runner(network: Network, task: Task) -> RunNetwork:
    """The network as a task runs it, with an error for ids that are outside its vocabulary."""
    plain = network_runner(network, task)
    config = network.config

    def run(inputs: Inputs) -> Output:
        for batch, vocabulary in ((inputs.tokens, config.vocabulary), (inputs.target, config.output_vocabulary)):
            largest = -1 if batch is None else int(batch.ids.max())
            if largest >= vocabulary:
                raise InputError(token_error("a text", largest, vocabulary))
        return plain(inputs)

    return run
