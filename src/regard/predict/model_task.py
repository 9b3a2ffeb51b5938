"""Which task a model was made for: as its folder says where it was trained here, else by its heads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.checkpoint.files import read_json
from regard.checkpoint.folder import Checkpoint
from regard.errors import FolderError, InputError, shorten
from regard.foreign import path_inside
from regard.model.network import Network
from regard.model.recurrent.networks import Recurrent

if TYPE_CHECKING:  # tasks and readers of data are imported where one is asked for: loading a model needs none
    from regard.predict.remembered import TrainingReadOptions
    from regard.tasks.task import Task

RUN = "run.json"
HEADS = {
    "sequence": "classify",
    "token": "tag",
    "span": "answer",
    "masked": "masked",
    "replaced": "masked",
    "next": "masked",
    "sides": "two-sided",
}
KINDS = {"single_label_classification": "single", "multi_label_classification": "multi", "regression": "number"}
GUESSES = ("masked", "causal", "two-sided")  # tasks of words, which have no answers about a text
# What can be done with a model instead, by its heads.
CAN = {
    "masked": 'model.fill("… [MASK] …")',
    "next": "model.next_sentence(first, second)",
    "language": "model.generate(text)",
}


@dataclass(frozen=True)
class Trained:
    """What a folder says of the training it comes from."""

    task: str
    settings: dict[str, Any]  # of the task
    window: int | None = None
    overlap: float = 0.25
    read_as: Any = None  # what run.json says of its data

    @property
    def data(self) -> TrainingReadOptions:
        """How its data was read."""
        from regard.predict.remembered import TrainingReadOptions

        return TrainingReadOptions.of(self.read_as)


def name_of(heads: Iterable[str], *, encoder: bool) -> str | None:
    """The task that heads are for; None for a plain network."""
    heads = tuple(heads)
    if "language" in heads:
        return "translate" if encoder else "causal"
    return next((task for head, task in HEADS.items() if head in heads), None)


def trained(folder: Path | None) -> Trained | None:
    """What run.json says; None where there is none, or where it is not ours."""
    if folder is None or not os.path.lexists(path_inside(folder, RUN)):
        return None
    run = read_json(folder, RUN)
    if "regard" not in run or not isinstance(run.get("task"), str):
        return None
    settings, how = run.get("task_settings"), run.get("settings")
    if not isinstance(settings, dict) or not isinstance(how, dict):
        raise FolderError(f"{folder / RUN} has no task_settings or settings. Remove it to go by config.json alone.")
    window, overlap = how.get("window"), how.get("overlap")
    return Trained(
        run["task"],
        settings,
        window if isinstance(window, int) else None,
        float(overlap) if isinstance(overlap, int | float) else 0.25,
        run.get("data"),
    )


def task_for(checkpoint: Checkpoint, folder: Path | None) -> Task:
    """The task, ready to read texts and give answers."""
    from regard.tasks import TASKS, task_class

    kept = trained(folder)
    heads = checkpoint.network.heads
    if kept is not None:
        return _restored(kept, checkpoint)
    name = name_of(heads, encoder=checkpoint.network.encoder is not None)
    if name is None or name not in TASKS or name in GUESSES:
        raise no_answers(checkpoint.network, name)
    return task_class(name).from_settings(_from_config(checkpoint, name))


def _restored(kept: Trained, checkpoint: Checkpoint) -> Task:
    from regard.tasks import task_class

    fix = f"Remove {RUN} to go by config.json alone."
    try:
        task = task_class(kept.task).from_settings(kept.settings)
    except (KeyError, TypeError, ValueError) as error:
        raise FolderError(f"{RUN}: task_settings cannot be used ({error!r:.200}). {fix}") from error
    _check_labels(task, checkpoint, fix)
    there = dict(checkpoint.network.heads.items())
    for name, size in task.heads.items():
        head = there.get(name)
        if head is None or (name in ("sequence", "token") and _classes(head) != size):
            held = "none" if head is None else f"one of {_classes(head)}"
            raise FolderError(f"{RUN}: the task needs a {name} head of {size} classes, the network has {held}. {fix}")
    return task


def _check_labels(task: Task, checkpoint: Checkpoint, fix: str) -> None:
    """Whether run.json names each class once, and as config.json does."""
    names = task.labels
    if not names:
        return
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise FolderError(f"{RUN}: a class is called {shorten(repr(wrong[0]), 80)}, expected a text. {fix}")
    twice = _twice(names)
    if twice is not None:
        raise FolderError(
            f'{RUN}: two classes are called "{shorten(twice, 80)}", and an answer could not tell them apart. {fix}'
        )
    for number, (ours, theirs) in enumerate(zip(names, checkpoint.labels or (), strict=False)):
        if ours != theirs:
            raise FolderError(
                f'{RUN} and config.json contradict each other: class {number} is "{shorten(ours, 80)}" there and '
                f'"{shorten(theirs, 80)}" here. Correct the wrong one, or remove {RUN} to go by config.json.'
            )


def _twice(names: Sequence[str]) -> str | None:
    """The first name that stands there a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _classes(head: Any) -> int:
    return int(head.output.out_features)


def no_answers(network: Network, name: str | None) -> InputError:
    """That a model was not made to answer, and what it can do instead."""
    what = f"a model for {name}" if name else "a network without a task"
    return InputError(f"this is {what}, so it has no answers to give. {can(network)} Or train it: regard train.")


def _from_config(checkpoint: Checkpoint, name: str) -> dict[str, Any]:
    """What config.json says of labels, as the settings of a task."""
    given, labels = checkpoint.hf_config.get("problem_type"), checkpoint.labels
    if name in ("answer", "translate"):
        return {}
    head = checkpoint.network.heads["sequence" if name in ("classify", "pair") else "token"]
    classes = _classes(head)
    names = labels if labels and len(labels) == classes else tuple(f"LABEL_{number}" for number in range(classes))
    twice = _twice(names)
    if twice is not None:
        raise FolderError(
            f'config.json: two classes of id2label are called "{twice}", and an answer could not tell them apart. '
            "Give each a name of its own."
        )
    if given is not None and given not in KINDS:
        raise FolderError(f'config.json: problem_type is "{given}", expected one of {", ".join(KINDS)}.')
    kind = KINDS[given] if given else "number" if classes == 1 else "single"
    return {"kind": kind, "labels": [] if kind == "number" else list(names)}


def can(network: Network) -> str:
    """What a model can do, in words for a message about what it cannot."""
    name = name_of(network.heads, encoder=network.encoder is not None)
    ways = [CAN[head] for head in network.heads if head in CAN]
    ways += ["model.predict(texts)"] if name in ("classify", "tag", "answer") else []
    ways += [] if isinstance(network, Recurrent) else ["model.embed(texts)"]
    return f"What it can do: {', '.join(ways)}."
