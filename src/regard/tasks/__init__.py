"""Tasks by name. To add one: a class in its own file, and its entry in `TASKS` (or a call of `register`)."""

from __future__ import annotations

from collections.abc import Iterable

from regard.data.records import register_task
from regard.errors import InputError, did_you_mean, setting
from regard.tasks.answer import QuestionAnswering
from regard.tasks.classify import Classify
from regard.tasks.embed import Embed
from regard.tasks.language.bidirectional_lm import BidirectionalLM
from regard.tasks.language.causal import Causal
from regard.tasks.language.masked import Masked
from regard.tasks.pair import Pair
from regard.tasks.tag import Tag
from regard.tasks.task import Task
from regard.tasks.translate import Translate

# A model from elsewhere has the first task that one of its heads is for: Translate comes before Causal, since both have
# a language-model head, and a translator has an encoder too.
TASKS: dict[str, type[Task]] = {}


def register(task: type[Task]) -> type[Task]:
    """Make a task known by its name: to training, evaluation, prediction, the data check and the command line."""
    TASKS[task.name] = task
    register_task(task.name, task.record.type_name)
    return task


for _task in (Classify, Pair, Tag, QuestionAnswering, Masked, Translate, Causal, BidirectionalLM, Embed):
    register(_task)


def task_class(name: str) -> type[Task]:
    """The task of that name."""
    if name not in TASKS:
        raise InputError(f'{setting("task")}: "{name}" is not a task that can be trained.{did_you_mean(name, TASKS)}')
    return TASKS[name]


def task_of_heads(heads: Iterable[str], *, encoder: bool) -> type[Task] | None:
    """The task that a model's heads are for; None for a plain network. `encoder`: whether it has an encoder."""
    names = set(heads)
    for task in TASKS.values():
        if names.intersection(task.model_heads) and (task.network_kind is None or encoder):
            return task
    return None


def for_pairs(task: Task) -> Task:
    """The same task for pairs of texts, where there is one with the same head; else the task itself."""
    if task.pair_task is None:
        return task
    return task_class(task.pair_task).from_settings(task.settings())


def tasks_table() -> list[tuple[str, str, str, str]]:
    """A row for each task, as the docs list them: name, model, columns of an input, command."""
    return [(task.name, task.title, ", ".join(task.input_roles), task.command) for task in TASKS.values()]
