"""Negative log-likelihoods of chosen tokens, for the evaluation of language models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch.nn import functional as F

from regard.data.batching.examples import Inputs
from regard.data.corpus.masking import IGNORE
from regard.model.transformer import Output
from regard.tasks.language.masked import summed_cross_entropy
from regard.tasks.task import Answer, Loss, Task

WORD = "word"  # per token: its target, or IGNORE for none


@dataclass(frozen=True, repr=False)
class LikelihoodAnswer(Answer):
    """The negative log-likelihood of a text, over its tokens but the first."""

    nll: float = 0.0
    count: int = 0


class TokenLossTask(Task):
    """A task whose batches have the target `WORD` for every token; only tokens with a target reach the output layer."""

    fixed_shapes: ClassVar[bool] = False

    def prepare(self, inputs: Inputs) -> Inputs:
        at = (inputs[WORD] != IGNORE).nonzero().squeeze(1)
        return replace(inputs, at=at, by_position={"words": inputs[WORD][at]})

    def loss(self, output: Output, inputs: Inputs) -> Loss:
        assert output.logits is not None
        return Loss(*summed_cross_entropy(output.logits, inputs["words"]))

    def row_outputs(self, output: Output, inputs: Inputs) -> list[Any]:
        """The negative log-likelihood of each sequence, and its number of targets."""
        assert output.logits is not None
        assert inputs.at is not None
        costs_M = F.cross_entropy(output.logits.float(), inputs["words"], reduction="none").double()
        values_M2 = torch.stack((costs_M, torch.ones_like(costs_M)), dim=1)
        sums_B2 = values_M2.new_zeros(len(inputs.tokens), 2).index_add_(
            0, inputs.tokens.sequence_ids[inputs.at], values_M2
        )
        return [(cost, int(count)) for cost, count in sums_B2[: inputs.rows].tolist()]
