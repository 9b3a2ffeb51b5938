"""Tasks by name. To add one: a file here, a line below, a row in the contract battery."""

from __future__ import annotations

from regard.errors import InputError, did_you_mean, setting
from regard.tasks.answer import QuestionAnswering
from regard.tasks.bidirectional_lm import BidirectionalLM
from regard.tasks.causal import Causal
from regard.tasks.classify import Classify
from regard.tasks.embed import Embed
from regard.tasks.masked import Masked
from regard.tasks.pair import Pair
from regard.tasks.tag import Tag
from regard.tasks.task import Task
from regard.tasks.translate import Translate

TASKS: dict[str, type[Task]] = {
    kind.name: kind
    for kind in (Classify, Pair, Tag, QuestionAnswering, Masked, Causal, BidirectionalLM, Embed, Translate)
}


def task_class(name: str) -> type[Task]:
    """The task of that name."""
    if name not in TASKS:
        raise InputError(f'{setting("task")}: "{name}" is not a task that can be trained.{did_you_mean(name, TASKS)}')
    return TASKS[name]
