"""The network a training begins with, and its tokenizer."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.checkpoint.folder import Checkpoint, read_folder
from regard.checkpoint.source import find, from_preset
from regard.errors import InputError
from regard.model.attention import Attention
from regard.model.transformer import Transformer
from regard.tasks.task import Task
from regard.text.learn import learn_from
from regard.text.tokenizer import Tokenizer


def begin(
    task: Task,
    *,
    start: str | Path | None,
    preset: str | None,
    tokenizer: str | Path | Tokenizer | None,
    texts: Iterable[str],
    seed: int,
    dropout: float | None = None,
) -> tuple[Checkpoint, Tokenizer, bool]:
    """A pretrained network with the heads of the task, or a preset drawn anew; whether it is pretrained.

    A preset without a tokenizer learns one from the texts, as large as the preset's vocabulary at most.
    """
    torch.manual_seed(seed)  # heads that start anew are drawn
    if start is not None and preset is not None:
        raise InputError(f'start "{start}" and preset "{preset}" were both given; give one of them.')
    found = find(preset if preset is not None else start or "minilm")
    if isinstance(found, str):
        words = opened(tokenizer) if tokenizer is not None else _learned(found, texts)
        checkpoint = from_preset(found, heads=task.heads, seed=seed, vocabulary=words.size)
    elif tokenizer is not None and not isinstance(tokenizer, Tokenizer):
        raise InputError(f"{found} has a tokenizer of its own; leave tokenizer out, or name a preset.")
    else:
        checkpoint, words = read_folder(found, heads=task.heads), opened(tokenizer or found)
    if dropout is not None:
        set_dropout(checkpoint.network, dropout)
    named = {"problem_type": task.problem} if task.problem else {}
    checkpoint = replace(
        checkpoint,
        labels=task.labels,
        companions={} if "embed" not in task.name else checkpoint.companions,
        foreign={**checkpoint.foreign, **named},
    )
    return checkpoint, words, not isinstance(found, str)


def opened(tokenizer: str | Path | Tokenizer) -> Tokenizer:
    return tokenizer if isinstance(tokenizer, Tokenizer) else Tokenizer.load(tokenizer)


def _learned(name: str, texts: Iterable[str]) -> Tokenizer:
    kind, size = vocabulary_of(name)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the text gives")  # fewer pieces than the preset has room for
        return learn_from(texts, kind=kind, size=size)


def vocabulary_of(name: str) -> tuple[str, int]:
    """The kind of vocabulary that a preset's family has, and how large it is there."""
    shape: Any = from_preset(name, weights=False)
    kind = {"gpt2": "bpe", "roberta": "bpe", "bart": "bpe", "modernbert": "bpe", "llama": "bpe", "t5": "unigram"}
    return kind.get(shape.family, "wordpiece"), shape.config.vocabulary


def set_dropout(network: Transformer, share: float) -> None:
    """One dropout for the whole network."""
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = share
        elif isinstance(module, Attention):
            module.dropout = share
