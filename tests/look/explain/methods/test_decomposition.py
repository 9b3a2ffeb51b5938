"""The decomposition equals one that carries a vector for every pair of tokens through the layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from tests.look.tiny_models import TEXT, model
from torch import Tensor

from regard.look.explain.explain import make_scorer
from regard.model import hooks as taps
from regard.model.block import Block
from regard.ragged import Ragged


def fixed_norm(norm: Any, parts_TSD: Tensor) -> Tensor:
    """The norm of a sum of parts, as a sum of parts. The last part is that of the biases."""
    total_TD = parts_TSD.sum(1)
    scale_T1 = (total_TD.var(-1, correction=0, keepdim=True) + norm.eps).rsqrt()
    out = (parts_TSD - parts_TSD.mean(-1, keepdim=True)) * scale_T1.unsqueeze(1) * norm.weight
    out[:, -1] += norm.bias
    return out


def linear(layer: torch.nn.Linear, parts: Tensor) -> Tensor:
    out = parts @ layer.weight.T
    out[..., -1, :] += layer.bias
    return out


def activation(function: Any, parts: Tensor) -> Tensor:
    total = parts.sum(-2, keepdim=True)
    return parts * (function(total) / total)


def block_parts(block: Block, parts_TSD: Tensor, weights_HTT: Tensor) -> Tensor:
    heads, size = len(weights_HTT), parts_TSD.shape[-1]
    values_TSD = linear(block.attention.qkv, parts_TSD)[..., 2 * size :]
    values_TSHK = values_TSD.unflatten(-1, (heads, -1))
    mixed_TSD = torch.einsum("hqt,tshk->qshk", weights_HTT, values_TSHK).flatten(2)
    parts_TSD = fixed_norm(block.attention_norm, parts_TSD + linear(block.attention.out, mixed_TSD))
    wide = activation(block.feedforward.activation, linear(block.feedforward.up, parts_TSD))
    return fixed_norm(block.feedforward_norm, parts_TSD + linear(block.feedforward.down, wide))


@torch.no_grad()
def test_the_decomposition_equals_one_that_carries_every_part_forward() -> None:
    loaded = model("tiny-bert", {"sequence": 3})
    network = loaded.network
    scorer: Any = make_scorer(loaded, TEXT)
    sequence = scorer.text.sequences[0]
    batch = Ragged.of([sequence.ids], segments=[sequence.segments])
    weights = taps.attention(network, batch)
    x_TD = network.encoder.embeddings(batch)
    size = len(x_TD)
    parts_TSD = torch.zeros(size, size + 1, x_TD.shape[1])
    parts_TSD[torch.arange(size), torch.arange(size)] = x_TD
    for layer, block in enumerate(network.encoder.layers):
        parts_TSD = block_parts(block, parts_TSD, weights[layer][0])
    transform, head = network.heads["pooled"].transform, network.heads["sequence"]
    pooled_SD = activation(transform.activation, linear(transform.dense, parts_TSD[0]))
    logits_SC = linear(head.output, pooled_SD)
    explanation = loaded.explain(TEXT, method="decomposition")
    expected = logits_SC[:, scorer.target.number].numpy()
    np.testing.assert_allclose(explanation.token_scores, expected[:-1], atol=1e-5)
    np.testing.assert_allclose(explanation.bias, expected[-1], atol=1e-5)
