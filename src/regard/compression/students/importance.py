"""How much each head, feed-forward unit and dimension of a network matters for a task, measured on rows.

The change of the loss if a part is removed is, to first order, the sum of its weights times their gradients (Michel et
al. 2019; Molchanov et al. 2019). Its absolute value is added up over batches.

Shapes: D width, F feed-forward units, H heads, K head width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.config import ModelConfig
from regard.data.batching.preprocessing import Preprocessing
from regard.data.batching.sequences import token_batches
from regard.data.records import Record
from regard.model.block import Block
from regard.model.transformer import Transformer
from regard.tasks.task import Task

ROWS = 512  # rows at most
BATCH_TOKENS = 2048


@dataclass(frozen=True, eq=False)
class Importance:
    """The importance of each head and unit of each layer, and of each dimension of the hidden states."""

    heads: tuple[Tensor, ...]  # (H,) of each layer
    units: tuple[Tensor, ...]  # (F,) of each layer
    dimensions: Tensor  # (D,)


def measure_importance(
    network: Transformer, task: Task, records: Sequence[Record], preprocessing: Preprocessing
) -> Importance:
    """The importance of the parts of an encoder for labeled rows. The network is left as it was."""
    config = network.config
    assert isinstance(config, ModelConfig)
    task = task.bind(preprocessing)
    examples = task.examples(list(records[:ROWS]), preprocessing, labeled=True)
    blocks = [block for block in network.reader.layers if isinstance(block, Block)]
    heads = [torch.zeros(config.attention.heads) for _ in blocks]
    units = [torch.zeros(config.ffn_width) for _ in blocks]
    dimensions = torch.zeros(config.width)
    device = next(network.parameters()).device
    for rows in token_batches(examples.lengths.tolist(), max(BATCH_TOKENS, examples.max_length)):
        network.zero_grad(set_to_none=True)
        inputs = task.prepare(examples.take(np.asarray(rows, np.int64)).to(device))
        with torch.enable_grad(), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = task.loss(network(inputs.tokens, inputs.target, at=inputs.at), inputs)
            loss.sum.backward()
        for number, block in enumerate(blocks):
            heads[number] += _effect(block.attention.out.weight, dim=0).view(config.attention.heads, -1).sum(1).abs()
            units[number] += _effect(block.feedforward.down.weight, dim=0).abs()
            for norm in (block.attention_norm, block.feedforward_norm):
                dimensions += _effect(norm.get_parameter("weight"), dim=None).abs()
    network.zero_grad(set_to_none=True)
    return Importance(tuple(heads), tuple(units), dimensions)


def _effect(weight: Tensor, *, dim: int | None) -> Tensor:
    """Weights times their gradients, added up over `dim`; zeros for a weight that the loss does not depend on."""
    gradient = torch.zeros_like(weight) if weight.grad is None else weight.grad
    product = (weight * gradient).detach().float().cpu()
    return product if dim is None else product.sum(dim)
