"""A last layer that averages the hidden states of all tokens, in the form of an ordinary post-norm block.

Sentence encoders are trained so that the mean of their hidden states describes a text, but the classification heads of
BERT and its relatives read the first token. With this layer the first token holds the mean, and the network is still a
plain BERT of one more layer: every program that runs BERT computes the same.

How it works: all queries are zero, so that every token attends to all tokens alike; values are the hidden states
themselves; the output projection multiplies their mean by 100, against which the residual is small, and the norm
removes the factor again. The feed-forward part adds zero. All of it can be trained further.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from regard.config import Config, ModelConfig
from regard.model.block import Block
from regard.model.initialization import initialize
from regard.model.network import Network
from regard.model.transformer import Transformer

FACTOR = 100.0  # of the mean, relative to the residual


def can_average(config: Config) -> bool:
    """Whether such a layer can be appended: to encoders with post-norm blocks of ordinary attention."""
    if not isinstance(config, ModelConfig) or config.kind != "encoder" or config.norm_first or config.norm != "layer":
        return False
    attention = config.attention
    plain = attention.score == "scaled" and attention.select == "soft" and attention.window is None
    whole = attention.heads * config.head_width == config.width and config.kv_heads == attention.heads
    distinct = config.distinct_layers in (None, config.layers)
    return plain and whole and distinct and config.positions.kind in ("learned", "none") and has_plain_pooler(config)


def has_plain_pooler(config: Config) -> bool:
    """Whether the pooler is a linear layer and a tanh on the first token, as that of BERT."""
    if not isinstance(config, ModelConfig):
        return False
    pool = config.pool
    return pool.pooling == "first" and pool.activation == "tanh" and not pool.norm


def append_mean_layer(network: Network) -> None:
    """Append the layer to the network and to its config; see `can_average`."""
    assert isinstance(network, Transformer)
    assert network.encoder is not None
    config = replace(network.config, layers=network.config.layers + 1)
    parameter = next(network.parameters())
    block = Block(config).to(parameter)
    _set_mean(block, config)
    stack = network.encoder
    stack.layers.append(block.train(network.training))
    stack.depth += 1
    stack.distinct += 1
    network.config = config


@torch.no_grad()
def ends_with_mean(network: Network) -> bool:
    """Whether the last layer of an encoder is such a layer, also after training, which changes the factor little."""
    if not isinstance(network, Transformer) or network.encoder is None or network.decoder is not None:
        return False
    block = network.encoder.layers[-1]
    if not can_average(network.config) or not isinstance(block, Block):
        return False
    weight = block.attention.out.weight
    return weight.shape[0] == weight.shape[1] and float(weight.diagonal().mean()) > FACTOR / 2


@torch.no_grad()
def _set_mean(block: Block, config: ModelConfig) -> None:
    initialize(block, config)
    width = config.width
    qkv = block.attention.qkv.weight
    qkv[:width].zero_()
    qkv[2 * width :].copy_(torch.eye(width))
    block.attention.out.weight.copy_(FACTOR * torch.eye(width))
    block.feedforward.down.weight.zero_()


@torch.no_grad()
def set_identity_pooler(network: Network) -> None:
    """Let the pooler pass on the hidden state of the first token, through its tanh."""
    dense = network.heads["pooled"].transform.dense  # type: ignore[union-attr]
    assert isinstance(dense, nn.Linear)
    dense.weight.copy_(torch.eye(dense.in_features))
    if dense.bias is not None:
        dense.bias.zero_()
