"""Random initialization: the one place where weights are initialized."""

from __future__ import annotations

import torch
from torch import nn

from regard.config import Config, ModelConfig, RecurrentConfig
from regard.model.attention import Attention
from regard.model.block import FeedForward
from regard.model.recurrent.bidirectional_lm import ScalarMix
from regard.model.scores import AdditiveScore, BilinearScore


@torch.no_grad()
def initialize(network: nn.Module, config: Config, *, generator: torch.Generator | None = None) -> None:
    """Initialize every weight: normal with `init_std` (1 / sqrt(fan-in) when None), biases 0, norms 1.

    Residual outputs of pre-norm networks are divided by the square root of the number of residual layers (GPT-2).
    Queries of an unscaled dot product are divided by the square root of the head width (T5). Recurrent layers are
    uniform in +-1 / sqrt(width); their embeddings, unless tied to the output, have a standard deviation of 1: smaller
    ones reach the gates too weakly to be learned quickly.
    """
    alone = isinstance(config, RecurrentConfig) and not config.tied

    def draw(weight: torch.Tensor, fan_in: int) -> None:
        weight.normal_(0.0, config.init_std if config.init_std is not None else fan_in**-0.5, generator=generator)

    for module in network.modules():
        if isinstance(module, nn.Linear):
            draw(module.weight, module.in_features)
            if module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, nn.Embedding):
            draw(module.weight, 1 if alone else module.embedding_dim)
        elif isinstance(module, nn.LayerNorm | nn.RMSNorm):
            module.weight.fill_(1.0)
            if isinstance(module, nn.LayerNorm) and module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, BilinearScore | AdditiveScore):
            for weight in module.parameters(recurse=False):
                draw(weight, weight.shape[-1])
        elif isinstance(module, nn.RNNBase):
            for weight in module.parameters(recurse=False):
                weight.uniform_(-(module.hidden_size**-0.5), module.hidden_size**-0.5, generator=generator)
        elif isinstance(module, ScalarMix):
            module.scores.zero_()
            module.scale.fill_(1.0)
    if not isinstance(config, ModelConfig):
        return
    depth = config.layers + config.decoder_layers
    for module in network.modules():
        if config.norm_first and isinstance(module, Attention | FeedForward):
            last = module.out if isinstance(module, Attention) else module.down
            last.weight.mul_((2 * depth) ** -0.5)
        if isinstance(module, Attention) and config.attention.score == "dot":
            query = module.query if module.cross else module.qkv
            query.weight[: config.attention.heads * config.head_width].mul_(config.head_width**-0.5)
