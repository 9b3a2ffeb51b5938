"""The target of an explanation for any model: by its heads and its task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.config import BagConfig
from regard.errors import InputError
from regard.look.explain.targets.classes import class_target
from regard.look.explain.targets.spans import span_target
from regard.look.explain.targets.tags import tag_target
from regard.look.explain.targets.target import Target
from regard.look.explain.targets.vectors import vector_target
from regard.look.explain.targets.words import masked_word_target, next_word_target, translated_word_target
from regard.look.explain.tokenized import TokenizedText
from regard.tasks.answer import QuestionAnswering
from regard.tasks.classify import Classify
from regard.tasks.tag import Tag

if TYPE_CHECKING:
    from regard.predict.model import Model


def resolve_target(
    model: Model, text: str, pair: str | None = None, target: str | None = None
) -> tuple[TokenizedText, Target]:
    """A text as the model reads it, and what is explained of its answer; by default the answer that it gives."""
    if not isinstance(text, str) or not text.strip():
        raise InputError("the text is empty. Give it words.")
    heads = set(model.network.heads)
    if "language" in heads:
        _no_pair(pair, "a model that generates text")
        resolve = next_word_target if model.config.kind == "decoder" else translated_word_target
        return resolve(model, text, target)
    if heads & {"sequence", "token", "span"}:
        return _task_target(model, text, pair, target)
    if "masked" in heads:
        _no_pair(pair, "a masked language model")
        return masked_word_target(model, text, target)
    if "sides" in heads or isinstance(model.config, BagConfig):
        raise InputError("this model has no answers that could be explained. Train it on a task first: regard train.")
    return vector_target(model, text, pair, target)


def _task_target(model: Model, text: str, pair: str | None, target: str | None) -> tuple[TokenizedText, Target]:
    task, _ = model.task_and_records([text if pair is None else (text, pair)])
    if isinstance(task, Classify):
        if (pair is None) != (len(task.input_roles) == 1):
            raise InputError(f"this model reads {' and '.join(task.input_roles)}. {_advice(pair)}")
        return class_target(model, task, text, pair, target)
    if isinstance(task, QuestionAnswering):
        return span_target(model, text, pair, target)
    if isinstance(task, Tag):
        _no_pair(pair, "a tagger")
        return tag_target(model, task, text, target)
    raise InputError(f"answers of the task {task.name} cannot be explained yet.")


def _advice(pair: str | None) -> str:
    return "Give the second text as pair." if pair is None else "Leave the second text out."


def _no_pair(pair: str | None, what: str) -> None:
    if pair is not None:
        raise InputError(f"a second text was given, but {what} reads one. Leave it out.")
