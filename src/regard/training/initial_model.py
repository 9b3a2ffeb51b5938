"""The network that a training starts from, and its tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from regard.baselines import BASELINES
from regard.checkpoint.families import PRESETS, family_for
from regard.checkpoint.folder import Checkpoint, read_folder
from regard.checkpoint.generation import FILE as GENERATION
from regard.checkpoint.published import PUBLISHED
from regard.checkpoint.source import find_folder, from_preset
from regard.errors import InputError, setting, shorten, suggest
from regard.model.attention import Attention
from regard.model.network import Network
from regard.tasks.task import Task
from regard.text.tokenizer import Tokenizer
from regard.training.from_scratch.model_settings import ModelSettings, config_changes
from regard.training.from_scratch.preset_model import build_from_preset
from regard.training.from_scratch.vocabulary import learn_tokenizer, open_tokenizer
from regard.training.head_init.new_head import check_head_settings, choose_head_init, choose_pooling, with_pooling

EXAMPLES = "T5, BART, Marian"


class InitialModel(NamedTuple):
    """The model a training starts from.

    `pretrained` says that its weights are not randomly initialized, `head_init` what a new classification head starts
    from, `pooling` which vector it reads.
    """

    checkpoint: Checkpoint
    tokenizer: Tokenizer
    pretrained: bool
    head_init: str = "random"
    pooling: str = "first"

    @property
    def probe(self) -> bool:
        """Whether the head will be a linear probe, with or without contrastive training before."""
        return self.head_init in ("probe", "contrastive")


def initial_model(
    task: Task,
    *,
    start: str | Path | None,
    preset: str | None,
    tokenizer: str | Path | Tokenizer | None,
    texts: Iterable[str],
    targets: Iterable[str] | None = None,
    seed: int,
    dropout: float | None = None,
    prefix: str | None = None,
    head_init: str = "auto",
    pooling: str = "auto",
    rows: int = 0,
    model: ModelSettings | None = None,
) -> InitialModel:
    """A network with the heads of the task, and its tokenizer.

    For a preset without a tokenizer, one is trained on the texts, at most of the preset's vocabulary size, and another
    one from `targets` if these have a separate vocabulary. `prefix` is stored in config.json. The caller's random state
    is not preserved: new heads are initialized from `seed`. `head_init` and `pooling`: see `Settings`; "auto" depends
    on the number of `rows`. `model`: what differs from the preset.
    """
    torch.manual_seed(seed)
    _check_start(task, start, preset)
    check_head_settings(task, preset, head_init, pooling)
    if preset is not None:
        changes = config_changes(preset, model or ModelSettings())
        _check_network(task, preset, from_preset(preset, weights=False, **changes))
        loaded = open_tokenizer(tokenizer) if tokenizer is not None else learn_tokenizer(preset, texts, targets)
        checkpoint = build_from_preset(
            task, preset, loaded, seed=seed, separate_vocabularies=targets is not None, changes=changes
        )
    else:
        folder = find_folder(start or "minilm")
        _check_own_tokenizer(folder, tokenizer, targets)
        _check_network(task, folder, read_folder(folder, weights=False))
        checkpoint = read_folder(folder, heads=task.heads)
        loaded = open_tokenizer(tokenizer or folder)
    head_init = choose_head_init(task, checkpoint, head_init, rows)
    pooling = choose_pooling(checkpoint, pooling)
    checkpoint = with_pooling(checkpoint, pooling, probe=head_init != "random")
    if dropout is not None:
        set_dropout(checkpoint.network, dropout)
    return InitialModel(for_task(checkpoint, task, prefix), loaded, not checkpoint.untrained, head_init, pooling)


def check_preset(name: object) -> None:
    """Raise InputError for a name that is neither a preset nor a baseline; it names the most similar ones."""
    if name is None or (isinstance(name, str) and (name in PRESETS or name in BASELINES)):
        return
    if name == "minilm" or name in PUBLISHED:
        fix = f" It is a pretrained model: give it as {setting('start', str(name))}."
    else:
        fix = suggest(str(name), [*BASELINES, *PRESETS]) or f" Baselines: {', '.join(BASELINES)}. Presets: bert-mini, …"
    raise InputError(f'{setting("preset")} is "{shorten(str(name), 80)}", expected a preset or a baseline.{fix}')


def _check_start(task: Task, start: str | Path | None, preset: str | None) -> None:
    """Raise InputError if both `start` and `preset` were given, or none where the task needs one."""
    if start is not None and preset is not None:
        both = f"{setting('start', str(start))} and {setting('preset', preset)}"
        raise InputError(f"{both} were both given; give one of them.")
    if start is None and preset is None and task.network_kind is not None:
        raise InputError(
            f"no network for {task.name} was named. Name a folder to start from ({EXAMPLES}) or a preset to train from "
            "scratch: transformer-small, gru-additive, …"
        )


def _check_own_tokenizer(folder: Path, tokenizer: str | Path | Tokenizer | None, targets: Iterable[str] | None) -> None:
    """A pretrained model keeps its tokenizer and vocabulary."""
    if tokenizer is not None and not isinstance(tokenizer, Tokenizer):
        raise InputError(f"{folder} has its own tokenizer; leave {setting('tokenizer')} out, or name a preset.")
    if targets is not None:
        raise InputError(
            f"{folder} has its vocabulary already; leave {setting('vocabularies')} out, or name a preset to train "
            "from scratch."
        )


def for_task(checkpoint: Checkpoint, task: Task, prefix: str | None) -> Checkpoint:
    """The checkpoint with the task's fields of config.json. It is not marked as untrained, since it will be trained."""
    fields: dict[str, Any] = {}
    if task.problem_type:
        fields["problem_type"] = task.problem_type
    if prefix is not None:
        fields["prefix"] = prefix
    return replace(
        checkpoint,
        untrained=False,
        labels=task.labels,
        companion_files=_kept_files(checkpoint.companion_files, task),
        hf_config={**checkpoint.hf_config, **fields},
    )


def _kept_files(files: Mapping[str, Any], task: Task) -> dict[str, Any]:
    """Small files of a pretrained model that hold for the task too: its pooling, or how it generates text."""
    if task.keeps_pooling:
        return dict(files)
    return {name: content for name, content in files.items() if name == GENERATION and "language" in task.model_heads}


def _check_network(task: Task, name: str | Path, checkpoint: Checkpoint) -> None:
    """Raise InputError if the network cannot do the task, before a tokenizer is trained."""
    if task.network_kind is not None and checkpoint.config.kind != task.network_kind:
        raise InputError(
            f"{task.name} needs a network of kind {task.network_kind}, but {name} is of kind "
            f"{checkpoint.config.kind}. Use one that is ({EXAMPLES}), or a preset such as transformer-small."
        )
    available = {head for heads in family_for(checkpoint.family, checkpoint.config).classes.values() for head in heads}
    if not available.issuperset(task.heads):
        raise InputError(
            f"{task.name} needs a {' and a '.join(task.heads)} head, but models of the family {checkpoint.family} "
            f"({name}) have none here. Start from an encoder such as minilm, or name a preset such as bert-mini."
        )


def set_dropout(network: Network, dropout: float) -> None:
    """Set the dropout of the whole network, except in attention without dropout."""
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout
        elif isinstance(module, Attention):
            module.dropout = dropout if module.dropout else 0.0
        elif isinstance(module, nn.RNNBase) and module.num_layers > 1:
            module.dropout = dropout  # between recurrent layers only
