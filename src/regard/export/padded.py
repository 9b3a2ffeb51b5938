"""A network on padded batches, as ONNX files take them: ids and a mask in, hidden states and logits out.

The blocks, embeddings and heads are those of the network, on all tokens in one flat row. Only the attention kernel and
the pooling differ: they see which of the tokens are padding. `torch.onnx` traces these modules.

Shapes: B sequences, T tokens, S = T keys, N = B T, D width, H heads, G key-value heads, K head width.
"""

from __future__ import annotations

import copy
import itertools
from typing import Any, cast

import torch
from torch import Tensor, nn

from regard.model.attention import Attention, ForwardContext
from regard.model.block import Block
from regard.model.kernels.dense import AttentionCall
from regard.model.kernels.layout import Layout, Mask
from regard.model.positions import Alibi, RelativeBias
from regard.model.scores import scores_to_weights
from regard.model.transformer import Stack, Transformer
from regard.ragged import Ragged

MASKED = -1e9  # added to scores of keys that are not attended to; minus infinity gives NaN where all are masked
NO_LAYOUT = Layout(torch.zeros(1), torch.zeros(1), 0, 0)


class PaddedBatch:
    """What embeddings and heads read of a batch, for padded sequences."""

    def __init__(self, ids_BT: Tensor, mask_BT: Tensor, segments_BT: Tensor | None = None) -> None:
        self.size, self.length = ids_BT.shape
        self.ids = ids_BT.flatten()
        self.segments = None if segments_BT is None else segments_BT.flatten()
        self.mask_BT = mask_BT
        self.positions = (mask_BT.cumsum(1) - 1).clamp(min=0).flatten()
        self.tokens = self.ids.shape[0]

    @property
    def lengths(self) -> Tensor:
        return self.mask_BT.sum(1)

    def first(self) -> Tensor:
        """(B,) index of the first token of each sequence, which is padded on the right."""
        return torch.arange(self.size) * self.length

    def mean(self, values_ND: Tensor) -> Tensor:
        """(B, D) mean over the tokens that are no padding."""
        weights_BT1 = self.mask_BT.unsqueeze(2).to(values_ND.dtype)
        sums_BD = (values_ND.unflatten(0, (self.size, self.length)) * weights_BT1).sum(1)
        mean_BD: Tensor = sums_BD / weights_BT1.sum(1).clamp(min=1)
        return mean_BD

    def max(self, values_ND: Tensor) -> Tensor:
        """(B, D) maximum over the tokens that are no padding."""
        values_BTD = values_ND.unflatten(0, (self.size, self.length))
        max_BD: Tensor = values_BTD.masked_fill(self.mask_BT.unsqueeze(2) == 0, MASKED).amax(1)
        return max_BD


class PaddedAttention(nn.Module):
    """Attention with a mask for padding, on the flat tokens of sequences of equal length."""

    def __init__(self) -> None:
        super().__init__()
        self.mask_BS: Tensor | None = None
        self.bias_HTS: Tensor | None = None

    def forward(self, q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall) -> Tensor:
        assert self.mask_BS is not None
        size = self.mask_BS.shape[0]
        q_BHTK, k_BGSK, v_BGSK = (_by_sequence(x, size) for x in (q_NHK, k_MGK, v_MGK))
        heads_per_kv = q_BHTK.shape[1] // k_BGSK.shape[1]
        if heads_per_kv > 1:
            k_BGSK, v_BGSK = (x.repeat_interleave(heads_per_kv, 1) for x in (k_BGSK, v_BGSK))
        scores_BHTS = call.score.score_pairs(q_BHTK, k_BGSK)
        if self.bias_HTS is not None:
            scores_BHTS = scores_BHTS + self.bias_HTS
        allowed = _allowed(call.mask, self.mask_BS)
        scores_BHTS = scores_BHTS + (1 - allowed.to(scores_BHTS.dtype)) * MASKED
        weights_BHTS = scores_to_weights(scores_BHTS, None, select=call.select)
        return (weights_BHTS @ v_BGSK).transpose(1, 2).flatten(0, 1)


def _by_sequence(x_NHK: Tensor, size: int) -> Tensor:
    """(B, H, T, K) from flat tokens."""
    return x_NHK.reshape(size, -1, *x_NHK.shape[1:]).transpose(1, 2)


def _allowed(mask: Mask, mask_BS: Tensor) -> Tensor:
    """(B, 1, T or 1, S) True = may attend."""
    allowed = mask_BS[:, None, None, :] != 0
    if mask.allows_all:
        return allowed
    position_T = torch.arange(mask_BS.shape[1])
    none = torch.zeros(1, dtype=torch.int64)
    return allowed & mask.allowed(none, none, position_T.unsqueeze(1), position_T.unsqueeze(0))


def _bias(module: RelativeBias | Alibi | None, length: int) -> Tensor | None:
    """(H, T, S) the score bias of each pair."""
    if module is None:
        return None
    position_T = torch.arange(length)
    distance_TS = position_T.unsqueeze(0) - position_T.unsqueeze(1)
    if isinstance(module, Alibi):
        return -module.slope_H[:, None, None] * distance_TS.abs()
    bias_TSH: Tensor = module.table(module.bucket(distance_TS))
    return bias_TSH.permute(2, 0, 1)


def padded_copy(network: Transformer) -> Transformer:
    """A copy that shares all weights, with attention for padded sequences."""
    tensors = itertools.chain(network.parameters(), network.buffers())
    copied = copy.deepcopy(network, {id(tensor): tensor for tensor in tensors}).eval()
    for module in copied.modules():
        if isinstance(module, Attention):
            module.mix = cast("Any", PaddedAttention())
    return copied


def run_stack(stack: Stack, batch: PaddedBatch) -> Tensor:
    """(N, D) hidden states."""
    x_ND: Tensor = stack.embeddings(cast("Ragged", batch))
    context = ForwardContext(
        layout=NO_LAYOUT,
        rotary=None if stack.rotary is None else stack.rotary(batch.positions),
        local_rotary=None if stack.local_rotary is None else stack.local_rotary(batch.positions),
    )
    bias_HTS = _bias(stack.bias, batch.length)
    for i in range(stack.depth):
        block = cast("Block", stack.layers[stack.layer_index(i)])
        attention = cast("PaddedAttention", block.attention.mix)
        attention.mask_BS, attention.bias_HTS = batch.mask_BT, bias_HTS
        x_ND = block(x_ND, context)
    hidden_ND: Tensor = stack.norm(x_ND)
    return hidden_ND
