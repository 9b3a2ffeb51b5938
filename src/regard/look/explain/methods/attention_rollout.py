"""Attention rollout (Abnar and Zuidema 2020): attention weights multiplied through all layers.

In each layer a token is half its own state (the residual connection) and half the weighted sum of what it attends to.
In a decoder with an encoder, a third each: its own state, the tokens before it, and the source.

Shapes: H heads, T tokens, S tokens of the encoder, then of the decoder.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.look.explain.methods.method import Attribution, Method, MethodOptions, needs_attention, weights_of_target
from regard.look.explain.scorer import Scorer, Variant, VariantBatch
from regard.look.explain.tokenized import InputSequence
from regard.model import hooks as taps
from regard.model.network import Network


def rollout(layers: Sequence[Tensor], start_TT: Tensor | None = None) -> Tensor:
    """(T, T) the product of (A + I) / 2 over the layers; A is the mean of the heads of each layer."""
    size = layers[0].shape[-1]
    own_TT = torch.eye(size, device=layers[0].device)
    total_TT = own_TT if start_TT is None else start_TT
    for weights_HTT in layers:
        total_TT = (weights_HTT.float().mean(0) + own_TT) / 2 @ total_TT
    return total_TT


def decoder_rollout(self_layers: Sequence[Tensor], cross_layers: Sequence[Tensor], encoder_SS: Tensor) -> Tensor:
    """(T, S + T) the same for a decoder: how much comes from each token of the encoder and of the decoder."""
    size = self_layers[0].shape[-1]
    device = encoder_SS.device
    total = torch.cat((torch.zeros(size, len(encoder_SS), device=device), torch.eye(size, device=device)), 1)
    nothing = torch.zeros(len(encoder_SS), size, device=device)
    source = torch.cat((encoder_SS, nothing), 1)
    for own_HTT, cross_HTS in zip(self_layers, cross_layers, strict=True):
        total = (total + own_HTT.float().mean(0) @ total + cross_HTS.float().mean(0) @ source) / 3
    return total


def sequence_rollout(network: Network, batch: VariantBatch) -> Tensor:
    """(T, S) of the stack that has the output."""

    def weights(stack: str, *, cross: bool = False) -> list[Tensor]:
        target = batch.decoder if stack == "decoder" else None
        layers = taps.attention(network, batch.tokens, stack=stack, cross=cross, target=target)
        return [weights for (weights,) in layers.values()]

    if batch.decoder is None:
        return rollout(weights("main"))
    return decoder_rollout(weights("decoder"), weights("decoder", cross=True), rollout(weights("encoder")))


def explain(scorer: Scorer, options: MethodOptions) -> Attribution:
    return weights_of_target(scorer, _rollout)


def _rollout(scorer: Scorer, sequence: InputSequence) -> Tensor:
    variant = Variant(sequence.ids, sequence.segments, sequence.decoder_ids, scorer.target.positions)
    return sequence_rollout(scorer.network, VariantBatch.of([variant], scorer.device))


METHOD = Method("attention_rollout", "attention rollout", explain, needs_attention, signed=False)
