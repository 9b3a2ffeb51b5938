"""Which recipe a training gets, from its task, its initial model and what the user leaves open."""

from __future__ import annotations

from dataclasses import dataclass, replace

from regard.baselines import Baseline
from regard.config import ModelConfig
from regard.device import pick_device
from regard.tasks.classify import Classify
from regard.tasks.recipe import Recipe
from regard.tasks.task import Task
from regard.training.defaults.recipes import (
    DataSize,
    classifier_recipe,
    contrastive_recipe,
    fill_from_recipe,
    fine_tuning_dropout,
    pair_recipe,
    pair_repeats,
    probe_recipe,
    short_text_recipe,
    similarity_recipe,
    static_recipe,
    tag_recipe,
)
from regard.training.initial_model import InitialModel, set_dropout
from regard.training.settings import Settings


@dataclass(frozen=True)
class NewTraining:
    """What is to be trained.

    baseline: None for a network. rows: training rows. joined: whether several rows share a sequence. distilled: whether
    a teacher gives the targets. ranks: processes that train together.
    """

    task: Task
    model: InitialModel
    baseline: Baseline | None
    size: DataSize
    rows: int
    joined: bool = False
    distilled: bool = False
    ranks: int = 1


def with_recipe(settings: Settings, recipe: Recipe, training: NewTraining) -> tuple[Settings, Recipe]:
    """The settings with the values of this training's recipe, and that recipe; `recipe` where there is no other."""
    settings = with_dropout(settings, training)
    recipe = choose_recipe(settings, training) or recipe
    return fill_from_recipe(settings, recipe), recipe


def choose_recipe(settings: Settings, training: NewTraining) -> Recipe | None:
    """The recipe of a baseline, of a linear probe that is trained further, of pairs, tags and texts; None for others.

    Those for tags and texts are used if all weights are trained, without a teacher, and the user leaves open how the
    learning rate differs by layer. Only then are parts frozen, and trainings repeated if their length is left open too.
    """
    task, model, baseline, rows = training.task, training.model, training.baseline, training.rows
    config, gpu = model.checkpoint.config, pick_device(settings.device).type == "cuda"
    plain = _is_plain(settings, training)
    has_dropout = bool(config.dropout if settings.dropout is None else settings.dropout)  # as R-Drop needs
    repeatable = plain and training.ranks == 1 and settings.epochs is None and settings.steps is None
    if baseline is not None and not baseline.fitted:
        return static_recipe(rows)
    if model.probe:
        return _contrastive_recipe(settings, training) or probe_recipe(config, rows)
    if model.head_init == "similarity":
        repeats = settings.repeats or (pair_repeats(config, rows) if repeatable else 1)
        recipe = similarity_recipe(config, rows, repeats=repeats, gpu=gpu)
        return recipe if plain else replace(recipe, freeze=())
    if baseline is not None or (model.pretrained and task.probe == "request"):
        return pair_recipe(rows)
    if not plain or not model.pretrained:
        return None
    if task.name == "tag" and isinstance(config, ModelConfig):
        return tag_recipe(config, rows, joined=training.joined, gpu=gpu and has_dropout)
    single_texts = isinstance(task, Classify) and task.kind == "single" and model.head_init == "random"
    if not single_texts or settings.rdrop is not None:
        return None
    if settings.dropout == 0:
        repeatable = repeatable and settings.repeats is None and has_two_classes(task)
        return short_text_recipe(config, rows, mean_length=training.size.mean) if repeatable else None
    return classifier_recipe(config, rows, mean_length=training.size.mean, gpu=gpu and has_dropout)


def with_dropout(settings: Settings, training: NewTraining) -> Settings:
    """The settings with the dropout that a classifier is trained with, if none was given; set in the network too."""
    dropout = None if settings.dropout is not None else _default_dropout(settings, training)
    if dropout is None:
        return settings
    set_dropout(training.model.checkpoint.network, dropout)
    return replace(settings, dropout=dropout)


def _default_dropout(settings: Settings, training: NewTraining) -> float | None:
    """The dropout that a pretrained classifier is trained with; None for the model's own."""
    task, model = training.task, training.model
    if recipe := _contrastive_recipe(settings, training):
        return recipe.dropout
    pairs = task.probe == "request"
    single_texts = has_two_classes(task) and model.head_init == "random" and not training.distilled
    if training.baseline is not None or not model.pretrained or not (pairs or single_texts) or settings.rdrop:
        return None
    mean_length = None if pairs else training.size.mean
    return fine_tuning_dropout(model.checkpoint.config, training.rows, mean_length=mean_length)


def _contrastive_recipe(settings: Settings, training: NewTraining) -> Recipe | None:
    """The recipe of contrastive training of all weights that no steps on the labels follow, where it has its own."""
    without_steps = settings.epochs is None and settings.steps is None
    if training.model.head_init != "contrastive" or not without_steps or not _is_plain(settings, training):
        return None
    gpu = pick_device(settings.device).type == "cuda"
    return contrastive_recipe(training.model.checkpoint.config, training.rows, gpu=gpu)


def _is_plain(settings: Settings, training: NewTraining) -> bool:
    """Whether all weights are trained, without a teacher, and the user leaves open how the rate differs by layer."""
    return not training.distilled and not settings.lora.rank and settings.layerwise_lr_decay is None


def has_two_classes(task: Task) -> bool:
    """Whether the task gives each text one of two classes."""
    return isinstance(task, Classify) and task.kind == "single" and len(task.names) == 2
