"""Bidirectional language modeling, the pretraining of ELMo: predict the next and the previous token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch.nn import functional as F

from regard.data.batching.examples import LEARN, Inputs
from regard.data.corpus.masking import IGNORE
from regard.data.records import Record
from regard.metrics.language_meters import BidirectionalMeter
from regard.metrics.meter import Meter
from regard.model.transformer import Output
from regard.tasks.language.causal import Causal
from regard.tasks.language.masked import summed_cross_entropy
from regard.tasks.task import Answer, Loss, Task
from regard.text.tokenizer import Tokenizer

TARGETS = ("next", "before")


@dataclass(frozen=True, repr=False)
class BidirectionalAnswer(Answer):
    """The negative log-likelihood of a text from its beginning and from its end, each over all tokens but one."""

    ahead: float = 0.0
    back: float = 0.0
    counts: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class BidirectionalLM(Causal):
    """Every token is predicted from those before it, and again from those after it (Peters et al. 2018)."""

    name: ClassVar[str] = "bidirectional"
    title: ClassVar[str] = "bidirectional language model"
    pipeline_tag: ClassVar[str] = "feature-extraction"
    in_transformers: ClassVar[bool] = False
    example_call: ClassVar[str] = 'embed(["a text"])'
    command: ClassVar[str] = "embed"
    model_heads: ClassVar[tuple[str, ...]] = ("sides",)

    @classmethod
    def plain_text_task(cls, tokenizer: Tokenizer, *, vocabulary: int, has_settings: bool) -> Task | None:
        return None

    @property
    def heads(self) -> dict[str, int]:
        return {"sides": 0}

    def prepare(self, inputs: Inputs) -> Inputs:
        """The token after each and the token before it, where the sequence has one there."""
        tokens = inputs.tokens
        learn_N, first_N = inputs[LEARN] != IGNORE, tokens.positions == 0
        next_N = torch.where(~first_N.roll(-1) & learn_N.roll(-1), tokens.ids.roll(-1), IGNORE)
        before_N = torch.where(~first_N & learn_N.roll(1), tokens.ids.roll(1), IGNORE)
        return replace(inputs, by_token={**inputs.by_token, "next": next_N, "before": before_N})

    def loss(self, output: Output, inputs: Inputs) -> Loss:
        """The sum of the cross-entropies of next and previous tokens (https://arxiv.org/abs/1802.05365)."""
        assert output.logits is not None
        sides = [summed_cross_entropy(output.logits[:, side], inputs[name]) for side, name in enumerate(TARGETS)]
        return Loss(sides[0][0] + sides[1][0], sides[0][1] + sides[1][1])

    def row_outputs(self, output: Output, inputs: Inputs) -> list[Any]:
        assert output.logits is not None
        targets_N2 = torch.stack([inputs[name] for name in TARGETS], 1)
        logits_NV2 = output.logits.float().transpose(1, 2)
        losses_N2 = F.cross_entropy(logits_NV2, targets_N2, reduction="none", ignore_index=IGNORE)
        values_N4 = torch.cat((losses_N2.double(), (targets_N2 != IGNORE).double()), 1)
        sums_B4 = values_N4.new_zeros(len(inputs.tokens), 4).index_add_(0, inputs.tokens.sequence_ids, values_N4)
        rows: list[Any] = sums_B4[: inputs.rows].tolist()
        return rows

    def answer(self, record: Record, outputs: Sequence[Any]) -> Answer:
        ahead, back, *counts = (sum(one[part] for one in outputs) for part in range(4))
        return BidirectionalAnswer(len(outputs), ahead=ahead, back=back, counts=(int(counts[0]), int(counts[1])))

    def meter(self) -> Meter:
        return BidirectionalMeter()

    def update(self, meter: Meter, answer: Answer, record: Record) -> None:
        assert isinstance(answer, BidirectionalAnswer)
        meter.add((answer.ahead, answer.back), answer.counts)
