"""What a new classification head starts from, and which vector it reads."""

from __future__ import annotations

from dataclasses import replace

from regard.checkpoint.folder import Checkpoint
from regard.config import ModelConfig
from regard.errors import InputError, setting
from regard.model.mean_layer import append_mean_layer, can_average, has_plain_pooler, set_identity_pooler
from regard.tasks.classify import Classify
from regard.tasks.task import Task
from regard.training.defaults.recipes import default_head_init

HEADS = {
    "masked": "masked-token head",
    "next": "next-sentence head",
    "language": "language-model head",
    "sides": "bidirectional language-model head",
    "pooled": "pooler",
    "sequence": "classification head",
    "token": "tagging head",
    "span": "answer head",
}


def check_head_settings(task: Task, preset: str | None, head_init: str, pooling: str) -> None:
    """Raise InputError for settings of a classification head where there is none, or no vectors to probe."""
    values = {"head_init": head_init, "pooling": pooling}
    names = [setting(name, value) for name, value in values.items() if value != "auto"]
    if names and task.probe == "never":
        takers = "pair takes" if names == [setting("head_init", "similarity")] else "classify and pair take"
        raise InputError(
            f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'} given, but the task is {task.name}; only "
            f"{takers} it. Leave it out."
        )
    if preset is not None and (head_init not in ("auto", "random") or pooling == "mean"):
        raise InputError(
            f"{names[0]} was given, but {setting('preset', preset)} has random weights, whose vectors say nothing yet. "
            f"Leave it out, or name a pretrained model with {setting('start')}."
        )


def choose_head_init(task: Task, checkpoint: Checkpoint, head_init: str, rows: int) -> str:
    """What the head starts from: as requested; by default, sentence encoders with a new head do not start at random."""
    if head_init == "contrastive" and not (isinstance(task, Classify) and task.kind == "single"):
        raise InputError(
            f"{setting('head_init', 'contrastive')} needs one label per text, since it makes the vectors of texts with "
            f"the same label similar. Use {setting('head_init', 'probe')}."
        )
    if head_init == "similarity" and task.name != "pair":
        raise InputError(
            f"{setting('head_init', 'similarity')} is for text pairs, but the task is {task.name}. Leave it out."
        )
    if head_init == "similarity" and not isinstance(checkpoint.config, ModelConfig):
        raise InputError(f"{setting('head_init', 'similarity')} needs a Transformer. Leave it out.")
    if head_init != "auto":
        return head_init
    if not isinstance(task, Classify) or checkpoint.pooling not in ("mean", "first") or not has_new_head(checkpoint):
        return "random"
    if task.name == "pair":
        return "similarity" if isinstance(checkpoint.config, ModelConfig) else "random"
    return default_head_init(len(task.names), rows) if task.kind == "single" else "probe"


def has_new_head(checkpoint: Checkpoint) -> bool:
    """Whether the classification head is not one that was trained before."""
    return any(name.startswith("heads.sequence.") for name in checkpoint.new_tensors)


def choose_pooling(checkpoint: Checkpoint, pooling: str) -> str:
    """Which vector a classification head reads: that of the first token, or the mean."""
    if pooling == "auto":
        mean = checkpoint.pooling == "mean" and can_average(checkpoint.config) and has_new_head(checkpoint)
        return "mean" if mean else "first"
    return pooling


def with_pooling(checkpoint: Checkpoint, pooling: str, *, probe: bool) -> Checkpoint:
    """The checkpoint with a layer that averages all tokens if the mean is classified; see `regard.model.mean_layer`."""
    if pooling == "mean" and not can_average(checkpoint.config):
        raise InputError(
            f"{setting('pooling', 'mean')} is for encoders with post-norm layers, such as BERT and RoBERTa, "
            f"not for models of the family {checkpoint.family}. Leave it out."
        )
    if pooling == "mean" and not has_new_head(checkpoint):
        raise InputError(
            f"{setting('pooling', 'mean')} is for a new classification head, but this model has a trained one, which "
            "reads the first token. Leave it out."
        )
    network = checkpoint.network
    if pooling == "mean":
        append_mean_layer(network)
    if pooling == "mean" or (probe and checkpoint.pooling == "first" and has_plain_pooler(checkpoint.config)):
        set_identity_pooler(network)
    return replace(checkpoint, config=network.config)


def new_heads(checkpoint: Checkpoint) -> list[str]:
    """The names of heads that the pretrained model did not have; they are randomly initialized."""
    names = dict.fromkeys(name.split(".")[1] for name in checkpoint.new_tensors if name.startswith("heads."))
    return [HEADS.get(name, f"{name} head") for name in names]
