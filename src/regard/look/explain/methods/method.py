"""The interface of a method: from a text and a target to a score for every token.

Shapes: T tokens of the text, W words, S tokens attended to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import BagConfig, ModelConfig, RecurrentConfig
from regard.look.explain.scorer import Scorer
from regard.look.explain.tokenized import InputSequence
from regard.model.network import Network
from regard.progress import OnProgress, Progress

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MethodOptions:
    """Settings of the methods. steps: points on the path of integrated gradients; chosen by the method if None."""

    steps: int | None = None
    seed: int = 0
    progress: OnProgress | None = None

    def report(self, stage: str, done: int, total: int) -> None:
        """Say how far a method is."""
        if self.progress is not None:
            self.progress(Progress(stage, done, total))


@dataclass(frozen=True, eq=False)
class Attribution:
    """The scores of a method.

    words: (W,) scores of words where they are more than the sums of their tokens' scores.
    baseline: the value that the scores are relative to; None for methods whose scores do not add up to the value.
    bias: the part of the value that belongs to no token.
    """

    tokens_T: Floats
    words_W: Floats | None = None
    baseline: float | None = None
    bias: float | None = None


@torch.no_grad()
def weights_of_target(scorer: Scorer, weights_of: Callable[[Scorer, InputSequence], Tensor]) -> Attribution:
    """The mean weights of the tokens that the answer is read from, from (T, S) weights of each sequence of the text."""
    text = scorer.text
    tokens_T = np.zeros(len(text))
    for sequence in text.sequences:
        weights_TS = weights_of(scorer, sequence)
        rows = scorer.target.rollout_rows(len(weights_TS))
        scores_S = weights_TS[rows].mean(0).double().cpu().numpy()
        np.add.at(tokens_T, list(sequence.index[: len(scores_S)]), scores_S / len(text.sequences))
    return Attribution(tokens_T)


def any_network(network: Network) -> str | None:
    """For methods that only need answers."""
    return None


def needs_gradients(network: Network) -> str | None:
    """For methods that differentiate with respect to token embeddings."""
    if isinstance(network.config, BagConfig):
        return "a baseline without a network has no token embeddings to differentiate"
    return None


def needs_attention(network: Network) -> str | None:
    """For methods that read attention weights between all tokens."""
    if isinstance(network.config, RecurrentConfig):
        return "a recurrent network has no attention between the tokens of a text"
    if not isinstance(network.config, ModelConfig):
        return "a baseline without Transformer blocks has no attention"
    return None


@dataclass(frozen=True)
class Method:
    """A method with its name. `why_not` says why it cannot explain a network, or None if it can."""

    name: str
    title: str
    explain: Callable[[Scorer, MethodOptions], Attribution]
    why_not: Callable[[Network], str | None] = any_network
    signed: bool = True
