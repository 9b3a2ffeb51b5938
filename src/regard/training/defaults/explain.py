"""Why each training setting has its value, in words: `regard train DATA --explain-defaults`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from regard.device import pick_device
from regard.errors import pluralize
from regard.tasks.classify import Classify
from regard.tasks.joined_sentences import JoinedSentences
from regard.tasks.recipe import RDROP, RDROP_PAIRS
from regard.training.defaults.recipes import (
    FEW_ROWS,
    FINE_TUNING,
    GPU_REFIT_ROWS,
    LITTLE_DATA,
    MANY_CLASSES,
    REFIT_ROWS,
    SIMILARITY_ROWS,
    TEXTS,
    ContrastiveTraining,
    resolve_settings,
    texts_per_step,
)
from regard.training.defaults.unused import unused_settings
from regard.training.head_init.initializer import planned_contrastive, refits_head_only
from regard.training.head_init.new_head import has_new_head
from regard.training.load_data import DEV_FRACTION, LabeledData, default_dev_fraction
from regard.training.run import TrainingInputs
from regard.training.settings import Settings

BY_USER = "given by you"
MODEL_OWN = "the model's own"


class SettingReason(NamedTuple):
    """A setting, its value, and why it has this value."""

    name: str
    value: str
    reason: str


def explain_settings(
    user_settings: Settings, inputs: TrainingInputs, data: LabeledData, *, refit: bool
) -> list[SettingReason]:
    """The settings that decide how a training goes, each with the reason for its value."""
    checkpoint, device = inputs.model.checkpoint, pick_device(inputs.settings.device)
    chosen = resolve_settings(
        inputs.settings, inputs.size, checkpoint.config, pretrained=inputs.model.pretrained, recipe=inputs.recipe
    )
    rows = [
        SettingReason("task", inputs.task.name, data.reason),
        _validation(user_settings, data),
        _refit(user_settings, inputs, data, refit=refit),
    ]
    if inputs.task.probe != "never":
        rows += _head(user_settings, inputs)
    contrastive = planned_contrastive(inputs.model, inputs.rows, inputs.settings, device)
    if inputs.fitted:
        rows += _contrastive_values(user_settings, contrastive)
        parts = [*_dropout(user_settings, chosen, inputs), *_freeze(user_settings, chosen, inputs)]
        parts += _unused(user_settings, contrastive=contrastive is not None)
        return [*rows, _no_steps(inputs, contrastive, device, refit=refit), *parts]
    if contrastive is not None:
        first = f"{_contrastive_in_words(contrastive, inputs)} and a linear probe come before the steps on the labels"
        rows.append(SettingReason("contrastive", str(contrastive.steps), first))
    return [*rows, *_optimization(user_settings, chosen, inputs)]


def _no_steps(
    inputs: TrainingInputs, before: ContrastiveTraining | None, device: torch.device, *, refit: bool
) -> SettingReason:
    """Why there are no steps after a linear model was fitted, and what comes before it."""
    if before is None:
        return SettingReason("steps", "0", "all weights are set before the first step")
    often = f", in each of {before.repeats} trainings whose weights are averaged" if before.repeats > 1 else ""
    if refit:
        head_only = ", without the validation rows; then the head is fitted again, with them"
        twice = ", twice: without the validation rows and with them"
        often += head_only if refits_head_only(inputs, device) else twice
    first = f"{_contrastive_in_words(before, inputs)} come before{often}"
    return SettingReason("steps", "0", f"{first}; more training made it worse on few rows")


def _contrastive_in_words(training: ContrastiveTraining, inputs: TrainingInputs) -> str:
    texts = min(training.texts, inputs.rows)
    return f"{training.steps} contrastive steps of {texts} texts at {training.lr:.2g}"


def _contrastive_values(user: Settings, training: ContrastiveTraining | None) -> Iterator[SettingReason]:
    """What the user gave for contrastive steps."""
    if training is not None and user.lr is not None:
        yield SettingReason("lr", f"{user.lr:.2g}", f"{BY_USER}: of the contrastive steps")
    if training is not None and user.batch_size is not None:
        yield SettingReason("batch_size", f"{user.batch_size}", f"{BY_USER}: texts in a contrastive step")


def _unused(user: Settings, *, contrastive: bool) -> Iterator[SettingReason]:
    """Settings of the user that change nothing."""
    for name in unused_settings(user, contrastive=contrastive):
        advice = "; --epochs 3 trains on the labels too" if contrastive else ""
        reason = f"{BY_USER}, but unused, since there are no training steps{advice}"
        yield SettingReason(name, str(getattr(user, name)), reason)


def _validation(user: Settings, data: LabeledData) -> SettingReason:
    total = len(data.train) + len(data.dev)
    value = f"{len(data.dev):,} of {total:,} rows"
    if not data.split_off:
        return SettingReason("dev", value, "the data has validation rows")
    if user.dev_fraction is not None:
        return SettingReason("dev_fraction", value, BY_USER)
    tenth = default_dev_fraction(total) == DEV_FRACTION
    reason = "a tenth" if tenth else "450 and one percent: of many rows, fewer than a tenth measure well enough"
    return SettingReason("dev_fraction", value, f"{reason}; rows with equal texts stay together")


def _refit(user: Settings, inputs: TrainingInputs, data: LabeledData, *, refit: bool) -> SettingReason:
    value = "yes" if refit else "no"
    if user.refit != "auto":
        return SettingReason("refit", value, BY_USER)
    if refit:
        reason = "there are few rows: a second network is trained on all of them, validation rows too, and written"
        if refits_head_only(inputs, pick_device(inputs.settings.device)):
            reason = "there are few rows: the head is fitted again on all of them, validation rows too"
        return SettingReason("refit", value, reason)
    if not data.dev:
        reason = "there are no validation rows to add"
    elif not data.split_off:
        reason = "the validation rows are separate data"
    elif not inputs.model.pretrained or inputs.task.probe != "default":
        reason = "only pretrained classifiers of single texts are trained again by default"
    else:
        few = f"up to {REFIT_ROWS} rows from a linear probe, on a GPU up to {GPU_REFIT_ROWS:,} rows of a small model"
        reason = f"it takes the time of a second training; by default {few}"
    return SettingReason("refit", value, reason)


def _head(user: Settings, inputs: TrainingInputs) -> Iterator[SettingReason]:
    """How the classification head begins, and which vector it reads."""
    probe = inputs.model.probe
    pooling = inputs.model.checkpoint.pooling
    value, reason = _head_reason(inputs)
    yield SettingReason("head_init", value, reason if user.head_init == "auto" else BY_USER)
    mean = inputs.model.pooling == "mean"
    reason = "as the sentence-transformers files of the folder say" if pooling and (probe or mean) else "as in BERT"
    yield SettingReason("pooling", "mean" if mean else "first", reason if user.pooling == "auto" else BY_USER)


def _head_reason(inputs: TrainingInputs) -> tuple[str, str]:
    """What a classification head starts from, and why this is the default."""
    if inputs.model.head_init == "contrastive":
        reason = f"few classes with fewer than {FEW_ROWS} rows each: the vectors of texts with the same label are made "
        return "contrastive", reason + "similar, then a linear probe is fitted"
    if inputs.model.probe:
        reason = "the vectors of a sentence encoder are separated well by a linear classifier; "
        return "probe", reason + _why_probe(inputs)
    if inputs.model.head_init == "similarity":
        reason = "the model is a sentence encoder: it learns to predict how similar its own vectors of two texts are "
        return "similarity", reason + "before it is trained on the labels"
    if not inputs.model.pretrained:
        return "random", "the network is trained from scratch"
    if not has_new_head(inputs.model.checkpoint):
        return "trained", "the model has a classification head for these labels, which is trained further"
    if inputs.model.checkpoint.pooling is not None and inputs.task.name == "pair":
        return (
            "random",
            "similarity is not learned with --fsdp, by a frozen encoder, or from maximum pooling",
        )
    if inputs.model.checkpoint.pooling is not None:
        return "random", f"there are at least {FEW_ROWS} rows of each class, on average"
    return "random", "the model is not a sentence encoder: it has no files of sentence-transformers"


def _why_probe(inputs: TrainingInputs) -> str:
    """Why fine-tuning begins with a linear probe."""
    classes = len(inputs.model.checkpoint.labels or ())
    if not isinstance(inputs.task, Classify) or inputs.task.kind != "single":
        return "models of numbers or of several labels per text always start from one"
    if classes > MANY_CLASSES:
        return f"{classes} classes are many"
    return f"there are fewer than {FEW_ROWS} rows of each class, on average"


def _optimization(user: Settings, chosen: Settings, inputs: TrainingInputs) -> Iterator[SettingReason]:
    size, recipe = inputs.size, inputs.recipe
    config = inputs.model.checkpoint.config
    joined = isinstance(inputs.source, JoinedSentences)
    texts_read = pluralize(size.sequences, "sentence" if joined else "sequence")
    assert chosen.lr is not None
    if user.steps is not None:
        yield SettingReason("steps", str(user.steps), BY_USER)
    else:
        reason = f"{texts_read}: the fewer there are, the more often each is read"
        if inputs.model.head_init == "similarity" and size.sequences <= SIMILARITY_ROWS:
            reason = f"{texts_read}: few epochs, since the network has learned to compare texts before"
        if inputs.model.head_init == "probe" and size.sequences <= REFIT_ROWS:
            reason = f"{texts_read}: few epochs, since the head starts from a linear probe"
        reason += f"; in each of {chosen.repeats} trainings" if (chosen.repeats or 1) > 1 else ""
        yield SettingReason("epochs", f"{chosen.epochs:g}", reason if user.epochs is None else BY_USER)
    texts = min(user.batch_size or (chosen.batch_tokens or 0) / size.mean, size.sequences)
    reason = f"about {texts:.0f} {'sentences' if joined else 'texts'} of {size.mean:.0f} tokens on average"
    if joined:
        reason += "; those of a document share sequences"
    if recipe.tokens is None and round(texts) < TEXTS:
        reason += f"; fewer than {TEXTS}, so that an epoch of few texts has more steps"
    elif inputs.model.pretrained and round(texts) > TEXTS and texts_per_step(size.sequences, config, recipe) > TEXTS:
        reason += f"; more than {TEXTS}, since a small encoder learns large data sets as well with large steps"
    if user.batch_size is not None:
        yield SettingReason("batch_size", f"{user.batch_size}", BY_USER)
    else:
        yield SettingReason("batch_tokens", f"{chosen.batch_tokens:,}", BY_USER if user.batch_tokens else reason)
    yield from _learning_rate(user, chosen, inputs)
    reason = f"{recipe.schedule} decay after a warm-up, as is usual for this task"
    value = f"{chosen.schedule}, {chosen.warmup:g}"
    by_user = user.schedule is not None or user.warmup is not None
    yield SettingReason("schedule, warmup", value, BY_USER if by_user else reason)
    yield from _dropout(user, chosen, inputs)
    yield from _freeze(user, chosen, inputs)
    yield from _rdrop(user, chosen, inputs)
    if (chosen.repeats or 1) > 1:
        reason = "the mean of the weights of several short trainings is better than one long training"
        yield SettingReason("repeats", f"{chosen.repeats}", reason if user.repeats is None else BY_USER)


def _dropout(user: Settings, chosen: Settings, inputs: TrainingInputs) -> Iterator[SettingReason]:
    config = inputs.model.checkpoint.config
    value = f"{config.dropout if chosen.dropout is None else chosen.dropout:g}"
    reason = MODEL_OWN if chosen.dropout is None else "chosen for this number of rows"
    if chosen.dropout == 0.0:
        what = "pairs" if inputs.task.probe == "request" else "short texts"
        reason = f"a small pretrained encoder does not overfit {what}, and learns more without"
        if inputs.fitted:
            reason = "the contrastive steps take less time on a CPU, and few texts are learned as well without"
    yield SettingReason("dropout", value, reason if user.dropout is None else BY_USER)


def _freeze(user: Settings, chosen: Settings, inputs: TrainingInputs) -> Iterator[SettingReason]:
    if chosen.freeze:
        what = "texts" if inputs.fitted else "pairs"
        reason = f"few {what} on a CPU are learned faster, and as well or better, without training the first layer"
        yield SettingReason("freeze", " ".join(chosen.freeze), reason if user.freeze is None else BY_USER)


def _rdrop(user: Settings, chosen: Settings, inputs: TrainingInputs) -> Iterator[SettingReason]:
    translates = inputs.recipe.rdrop_lr is not None
    if not chosen.rdrop and not translates:
        return
    texts = "translations" if translates else "texts of this length"
    if inputs.task.name == "tag":
        texts = "tags"
    reason = f"{texts} are better with it; it takes a second pass in each step, so it is used on a GPU only"
    if not chosen.rdrop:
        reason = f"it doubles the time of a step; {RDROP:g} on a GPU with up to {RDROP_PAIRS:,} pairs, else 0"
    yield SettingReason("rdrop", f"{chosen.rdrop:g}", reason if user.rdrop is None else BY_USER)
    if chosen.rdrop_start:
        reason = "with many rows, it begins late, so that it takes no longer than one more epoch"
        by_user = user.rdrop_start is not None
        yield SettingReason("rdrop_start", f"{chosen.rdrop_start:.2g}", BY_USER if by_user else reason)


def _learning_rate(user: Settings, chosen: Settings, inputs: TrainingInputs) -> Iterator[SettingReason]:
    size, config = inputs.size, inputs.model.checkpoint.config
    by_layer = inputs.recipe.layerwise_lr_decay
    if by_layer != 1:
        reason = "a high rate for the head; each layer below has a lower one, so that what the model knows is kept"
    elif inputs.model.pretrained:
        reason = f"{FINE_TUNING:.0e} for a pretrained network of width 768 and {TEXTS} texts per step; narrow networks "
        reason += f"(this one: {config.width}) get more, small steps less and large ones more"
        random_head = not inputs.model.probe and inputs.model.head_init != "similarity"
        if random_head and size.sequences <= LITTLE_DATA:
            reason += "; little data with a random head gets more"
    else:
        reason = f"a network of width {config.width} from scratch"
        if chosen.rdrop and inputs.recipe.rdrop_lr is not None:
            reason += ", with R-Drop"
        if inputs.recipe.tokens is not None and (chosen.batch_tokens or 0) < inputs.recipe.tokens:
            reason += f"; steps of fewer than {inputs.recipe.tokens:,} tokens get less"
    yield SettingReason("lr", f"{chosen.lr:.2g}", reason if user.lr is None else BY_USER)
    if chosen.layerwise_lr_decay != 1:
        reason = "tags are better with it, most of all with few sentences (benchmarks/defaults.md)"
        by_user = user.layerwise_lr_decay is not None
        yield SettingReason("layerwise_lr_decay", f"{chosen.layerwise_lr_decay:g}", BY_USER if by_user else reason)
