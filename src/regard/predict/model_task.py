"""The task of a model: from run.json if regard trained it, else by its heads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.checkpoint.files import read_json
from regard.checkpoint.folder import Checkpoint
from regard.errors import FolderError, InputError, call_or_command, shorten
from regard.foreign import path_inside
from regard.model.network import Network
from regard.model.ngram_language import NgramNetwork
from regard.model.recurrent.networks import RecurrentNetwork

if TYPE_CHECKING:  # imported when a task is needed: loading a model needs none
    from regard.data.records import Record
    from regard.data.seen_rows import SeenRows
    from regard.predict.batch.read_options import TrainingReadOptions
    from regard.tasks.task import Task

RUN = "run.json"
# How to use a head, for messages: as a method call and as a command.
HEAD_CALLS = {
    "masked": call_or_command('model.fill("… [MASK] …")', "regard fill"),
    "next": call_or_command("model.next_sentence(first, second)", "regard fill --next"),
    "language": call_or_command("model.generate(text)", "regard generate"),
}
LANGUAGE_MODELS = {
    "causal": "a model that generates text",
    "masked": "a model that fills in masked words",
    "bidirectional": "a language model that reads a text in both directions",
}


@dataclass(frozen=True)
class TrainingRun:
    """What run.json records about the training of a model."""

    task: str
    settings: dict[str, Any]  # of the task
    window: int | None = None
    overlap: float = 0.25
    read_as: Any = None  # the entry "data" of run.json

    @property
    def seen_rows(self) -> SeenRows | None:
        """To count rows that the model was trained on; None if these are not known."""
        from regard.data.seen_rows import SeenRows

        sample = self.read_as.get("row_hashes") if isinstance(self.read_as, dict) else None
        return SeenRows(sample) if isinstance(sample, str) and sample else None

    @property
    def data(self) -> TrainingReadOptions:
        """How the training data was read."""
        from regard.predict.batch.read_options import TrainingReadOptions

        return TrainingReadOptions.of(self.read_as)


def task_name(heads: Iterable[str], *, encoder: bool) -> str | None:
    """The name of the task that heads are for; None for a plain network."""
    from regard.tasks import task_of_heads

    task = task_of_heads(heads, encoder=encoder)
    return None if task is None else task.name


def read_training_run(folder: Path | None) -> TrainingRun | None:
    """The content of run.json; None if there is no such file, or if regard did not write it."""
    if folder is None or not os.path.lexists(path_inside(folder, RUN)):
        return None
    run = read_json(folder, RUN)
    if "regard" not in run or not isinstance(run.get("task"), str):
        return None
    task_settings, settings = run.get("task_settings"), run.get("settings")
    if not isinstance(task_settings, dict) or not isinstance(settings, dict):
        raise FolderError(f"{folder / RUN} has no task_settings or settings. Remove it to go by config.json alone.")
    window, overlap = settings.get("window"), settings.get("overlap")
    return TrainingRun(
        run["task"],
        task_settings,
        window if isinstance(window, int) else None,
        float(overlap) if isinstance(overlap, int | float) else 0.25,
        run.get("data"),
    )


def seen_rows(folder: Path | None, records: Iterable[Record] = ()) -> SeenRows | None:
    """Counts rows that the model in this folder was trained on, these first; None if its training rows are unknown."""
    run = read_training_run(folder)
    seen = None if run is None else run.seen_rows
    if seen is not None:
        for record in records:
            seen.add(record)
    return seen


def task_for(checkpoint: Checkpoint, folder: Path | None) -> Task:
    """The task of a model: from run.json, else by its heads."""
    from regard.tasks import task_of_heads
    from regard.tasks.classify import PROBLEM_TYPES

    stored = read_training_run(folder)
    if stored is not None:
        return _restored(stored, checkpoint)
    network = checkpoint.network
    task = task_of_heads(network.heads, encoder=network.encoder is not None)
    if task is None or task.language_model:
        raise no_answers_error(network, None if task is None else task.name)
    head = next(network.heads[name] for name in task.model_heads if name in network.heads)
    problem_type = checkpoint.hf_config.get("problem_type")
    if problem_type not in (None, *PROBLEM_TYPES.values()):
        expected = ", ".join(PROBLEM_TYPES.values())
        raise FolderError(f'config.json: problem_type is "{problem_type!s:.80}", expected one of {expected}.')
    return task.from_head(head, labels=checkpoint.labels, problem_type=problem_type)


def _restored(stored: TrainingRun, checkpoint: Checkpoint) -> Task:
    from regard.tasks import task_class
    from regard.tasks.task import class_count

    fix = f"Remove {RUN} to go by config.json alone."
    try:
        task = task_class(stored.task).from_settings(stored.settings)
    except (KeyError, TypeError, ValueError) as error:
        raise FolderError(f"{RUN}: task_settings cannot be used ({error!r:.200}). {fix}") from error
    _check_labels(task, checkpoint, fix)
    heads = dict(checkpoint.network.heads.items())
    for name, size in task.heads.items():
        head = heads.get(name)
        if head is None or (name in ("sequence", "token") and class_count(head) != size):
            present = "none" if head is None else f"one of {class_count(head)}"
            raise FolderError(
                f"{RUN}: the task needs a {name} head of {size} classes, the network has {present}. {fix}"
            )
    return task


def _check_labels(task: Task, checkpoint: Checkpoint, fix: str) -> None:
    """Raise FolderError unless run.json names each class once and agrees with config.json."""
    from regard.tasks.task import first_repeated

    names = task.labels
    if not names:
        return
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise FolderError(f"{RUN}: a class is called {shorten(repr(wrong[0]), 80)}, expected a text. {fix}")
    repeated = first_repeated(names)
    if repeated is not None:
        raise FolderError(
            f'{RUN}: two classes are called "{shorten(repeated, 80)}", so answers would be ambiguous. {fix}'
        )
    for number, (ours, theirs) in enumerate(zip(names, checkpoint.labels or (), strict=False)):
        if ours != theirs:
            raise FolderError(
                f'{RUN} and config.json contradict each other: class {number} is "{shorten(ours, 80)}" there and '
                f'"{shorten(theirs, 80)}" here. Correct the wrong one, or remove {RUN} to go by config.json.'
            )


def describe_model(task: str | None) -> str:
    """What a model does, by the name of its task, for error messages: "a model that generates text"."""
    if task is None:
        return "a network without a task"
    return LANGUAGE_MODELS.get(task, f"a model for {task}")


def no_answers_error(network: Network, name: str | None) -> InputError:
    """The error for a model without a task to predict, with what it can do instead."""
    return InputError(
        f"this is {describe_model(name)}, so it has no answers to give. {capabilities(network)} "
        "Or train it: regard train."
    )


def capabilities(network: Network) -> str:
    """What a model can do, as a sentence for error messages."""
    from regard.tasks import task_of_heads

    task = task_of_heads(network.heads, encoder=network.encoder is not None)
    ways = [HEAD_CALLS[head] for head in network.heads if head in HEAD_CALLS]
    ways += (
        [call_or_command("model.predict(texts)", "regard predict")]
        if task is not None and task.command == "predict"
        else []
    )
    if not isinstance(network, (RecurrentNetwork, NgramNetwork)):
        ways.append(call_or_command("model.embed(texts)", "regard embed"))
    return f"What it can do: {', '.join(ways)}."
