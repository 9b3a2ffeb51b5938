"""Decomposition: the exact sum of what each token contributes through all layers (DecompX, Modarressi et al. 2023).

The network is linearized at the text (see `linearized`). Then the score is the sum of the contributions of the input
vectors (token, position and segment embedding of each token) and of the biases, without a baseline and in one forward
and backward pass.

Shapes: N tokens of the encoder, then of the decoder; D width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.look.explain.linearized import constants, linearized, with_gradients
from regard.look.explain.methods.method import Attribution, Method, MethodOptions, needs_attention
from regard.look.explain.scorer import Scorer, Variant, VariantBatch, for_equal_lengths
from regard.look.explain.tokenized import InputSequence
from regard.model.network import Network


@contextmanager
def input_vectors(network: Network) -> Iterator[list[Tensor]]:
    """The input vectors of the encoder and the decoder when the network has run, each with a gradient of its own."""
    vectors: list[Tensor] = []

    def cut(_: nn.Module, __: Any, value: Tensor) -> Tensor:
        vectors.append(value.detach().requires_grad_())
        return vectors[-1]

    with ExitStack() as hooks:
        for stack in (network.encoder, network.decoder):
            if stack is not None:
                hooks.callback(stack.embeddings.register_forward_hook(cut).remove)  # type: ignore[union-attr]
        yield vectors


def explain(scorer: Scorer, options: MethodOptions) -> Attribution:
    text = scorer.text
    tokens_T, bias = np.zeros(len(text)), 0.0
    for sequence in text.sequences:
        scores_S, own_bias = decompose(scorer, sequence)
        np.add.at(tokens_T, list(sequence.index), scores_S.double().cpu().numpy() / len(text.sequences))
        bias += own_bias / len(text.sequences)
    return Attribution(tokens_T, baseline=0.0, bias=bias)


def decompose(scorer: Scorer, sequence: InputSequence) -> tuple[Tensor, float]:
    """(S,) the contribution of each position to the score of a sequence, and that of all biases."""
    network, target = scorer.network, scorer.target
    variant = Variant(sequence.ids, sequence.segments, sequence.decoder_ids, target.positions)
    batch = VariantBatch.of([variant], scorer.device)
    added = constants(network)
    with (
        torch.enable_grad(),
        with_gradients(added),
        for_equal_lengths(network),
        linearized(network),
        input_vectors(network) as vectors,
    ):
        score = target.linear_score(batch.read(network, target)).sum()
        gradients = torch.autograd.grad(score, [*vectors, *added], allow_unused=True)
    parts = [
        torch.zeros_like(values) if gradient is None else (values * gradient).detach()
        for values, gradient in zip([*vectors, *added], gradients, strict=True)
    ]
    scores_S = torch.cat([part.double().sum(-1) for part in parts[: len(vectors)]])
    return scores_S, float(sum(part.double().sum() for part in parts[len(vectors) :]))


METHOD = Method("decomposition", "decomposition through the layers", explain, needs_attention)
