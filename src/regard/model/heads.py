"""Heads: logits of tokens (masked or next), of sequence and token labels, of spans.

Shapes: N tokens, B sequences, D width, E embedding width, V vocabulary, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.config import Config, ModelConfig
from regard.errors import InputError, did_you_mean
from regard.model.block import activation_function, build_norm
from regard.model.kernels.cpu_autograd import Dropout
from regard.model.linear import Linear
from regard.ragged import Ragged


class HeadTransform(nn.Module):
    """A linear layer, an activation and optionally a norm: the first part of most heads."""

    def __init__(self, config: ModelConfig, width: int, *, activation: str, norm: bool, bias: bool = True) -> None:
        super().__init__()
        self.dense = Linear(config.width, width, bias=bias)
        self.activation = activation_function(activation)
        self.norm = build_norm(config, width, bias=config.bias) if norm else nn.Identity()

    def forward(self, x_ND: Tensor) -> Tensor:
        out_ND: Tensor = self.norm(self.activation(self.dense(x_ND)))
        return out_ND


class Pooler(nn.Module):
    """One vector per sequence: first token, mean or maximum (zeros for an empty one), then a transform."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        pool = config.pool
        self.pooling = pool.pooling
        self.transform = HeadTransform(config, config.width, activation=pool.activation, norm=pool.norm, bias=pool.bias)

    def forward(self, x_ND: Tensor, batch: Ragged, firsts_BD: Tensor | None = None) -> Tensor:
        """From the hidden states of all tokens, or from `firsts_BD`, those of the first tokens."""
        if self.pooling == "first":
            empty_B = batch.lengths == 0
            x_BD = x_ND[batch.first()] if firsts_BD is None else firsts_BD
            x_BD = x_BD.masked_fill(empty_B.unsqueeze(1), 0.0)
        else:
            x_BD = batch.mean(x_ND) if self.pooling == "mean" else batch.max(x_ND)
        out_BD: Tensor = self.transform(x_BD)
        return out_BD


class MaskedLanguageHead(nn.Module):
    """Masked language modeling (Devlin et al. 2019): a transform, then a logit for every token of the vocabulary."""

    def __init__(self, config: ModelConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        width = tokens.embedding_dim
        self.transform = HeadTransform(config, width, activation=config.activation, norm=True, bias=config.pool.bias)
        self.output = Linear(width, config.vocabulary)
        if config.tied:
            self.output.weight = tokens.weight

    def forward(self, x_ND: Tensor) -> Tensor:
        logits_NV: Tensor = self.output(self.transform(x_ND))
        return logits_NV


class LanguageHead(nn.Module):
    """Language modeling: a logit for every possible next token. A bias of a converted model is kept fixed."""

    def __init__(self, config: ModelConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.scale = config.width**-0.5 if config.output == "scaled" else 1.0
        self.output = Linear(config.width, config.vocabulary, bias=False)
        if config.tied:
            self.output.weight = tokens.weight
        self.bias: Tensor | None
        self.register_buffer("bias", torch.zeros(config.vocabulary) if config.output == "biased" else None)

    def forward(self, x_ND: Tensor) -> Tensor:
        logits_NV: Tensor = self.output(x_ND * self.scale if self.scale != 1.0 else x_ND)
        return logits_NV if self.bias is None else logits_NV + self.bias


class ClassifierHead(nn.Module):
    """Classification: a logit for every label, of a pooled sequence or of each token."""

    def __init__(
        self, config: Config, classes: int, *, transform: HeadTransform | None = None, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.transform = transform or nn.Identity()
        self.dropout = Dropout(dropout)
        self.output = Linear(config.width, classes)

    def forward(self, x_ND: Tensor) -> Tensor:
        logits_NC: Tensor = self.output(self.dropout(self.transform(x_ND)))
        return logits_NC


TOKEN_HEADS = ("masked", "language", "token", "span", "replaced")
SEQUENCE_HEADS = ("sequence", "next")
HEADS = ("pooled", *SEQUENCE_HEADS, *TOKEN_HEADS)


def build_heads(config: ModelConfig, sizes: Mapping[str, int], tokens: nn.Embedding) -> nn.ModuleDict:
    """Heads by name; the sizes are the numbers of classes of `sequence` and `token` heads."""
    for name in sizes:
        if name not in HEADS:
            raise InputError(f'head "{name}" is not known.{did_you_mean(name, HEADS)}')
    heads: dict[str, nn.Module] = {}
    if "pooled" in sizes or any(name in sizes for name in SEQUENCE_HEADS):
        heads["pooled"] = Pooler(config)
    for name, size in sizes.items():
        if name != "pooled":
            heads[name] = _build_head(name, size, config, tokens)
    return nn.ModuleDict(heads)


def _build_head(name: str, size: int, config: ModelConfig, tokens: nn.Embedding) -> nn.Module:
    if name == "masked":
        return MaskedLanguageHead(config, tokens)
    if name == "language":
        return LanguageHead(config, tokens)
    classes = {"next": 2, "span": 2, "replaced": 1}.get(name, size)
    if classes < 1:
        raise InputError(f'the "{name}" head needs at least 1 class, not {classes}.')
    pool, dropout = config.pool, config.dropout if name in ("sequence", "token") else 0.0
    if name == "replaced":
        return ClassifierHead(
            config, 1, transform=HeadTransform(config, config.width, activation=config.activation, norm=False)
        )
    if name in TOKEN_HEADS and pool.transform_tokens:
        transform = HeadTransform(config, config.width, activation=pool.activation, norm=pool.norm, bias=pool.bias)
        return ClassifierHead(config, classes, transform=transform, dropout=dropout)
    return ClassifierHead(config, classes, dropout=dropout)
