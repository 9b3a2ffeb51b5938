"""The logits of the start and the end of an answer in its context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.data.batching.framing import Frame, context_windows
from regard.errors import InputError
from regard.look.explain.explanation import ExplainedTarget
from regard.look.explain.targets.tags import one_window, window_positions
from regard.look.explain.targets.target import Target
from regard.look.explain.tokenized import TokenizedText, from_windows
from regard.model.transformer import Output
from regard.ragged import Ragged
from regard.tasks.answer import SpanAnswer

if TYPE_CHECKING:
    from regard.predict.model import Model


@dataclass(frozen=True)
class SpanTarget(Target):
    """The sum of the logits of the start and the end of an answer, or of none (the first token for both)."""

    def at(self, positions_BP: Tensor) -> None:
        return None

    def read(self, output: Output, batch: Ragged, positions_BP: Tensor) -> Tensor:
        """(B, 2) the sum of both logits, and of both log-probabilities."""
        assert output.logits is not None
        logits_N2 = output.logits.float()
        totals_B2 = torch.stack([part.logsumexp(0) for part in batch.split(logits_N2)])
        picked_B2 = torch.stack((logits_N2[positions_BP[:, 0], 0], logits_N2[positions_BP[:, 1], 1]), 1)
        return torch.stack((picked_B2.sum(1), (picked_B2 - totals_B2).sum(1)), 1)

    def score(self, values_BC: Tensor) -> Tensor:
        return values_BC[:, 0]

    def probability(self, values_BC: Tensor) -> Tensor:
        return values_BC[:, 1].exp()


def span_target(model: Model, question: str, context: str | None, target: str | None) -> tuple[TokenizedText, Target]:
    """The target for an answer, a part of the context; the predicted one if None."""
    if context is None:
        raise InputError("this model answers questions about a context. Give the question and, as pair, the context.")
    if target is None:
        (answer,) = model.predict([(question, context)])
        assert isinstance(answer, SpanAnswer)
        start, end = answer.start, answer.end
    else:
        start = context.find(target)
        if start < 0 or not target:
            raise InputError(f'target "{target}" is not in the context. Give a part of it.')
        end = start + len(target)
    preprocessing = model.preprocessing()
    tokenizer = preprocessing.tokenizer
    encodings = [tokenizer.encode(one, special=False) for one in (question, context)]
    cuts = context_windows(
        Frame.of(tokenizer),
        encodings[0].ids,
        encodings[1].ids,
        max_tokens=preprocessing.max_tokens,
        overlap=preprocessing.overlap,
    )
    text = from_windows(tokenizer, (question, context), encodings, cuts, segments=preprocessing.segments)
    if start is None or end is None:
        info = ExplainedTarget("span", "", "that there is no answer", (0, 0))
        return one_window(text, text.sequences[0]), SpanTarget(info)
    inside = [
        i for i, (first, last) in enumerate(text.offsets) if text.sequence_ids[i] == 1 and first < end and last > start
    ]
    if not inside:
        raise InputError(f'the answer "{context[start:end]}" has no token.')
    sequence, positions = window_positions(text, [inside[0], inside[-1]])
    answer_text = context[start:end]
    info = ExplainedTarget("span", answer_text, f'the answer "{answer_text}"', tuple(positions))
    return one_window(text, sequence), SpanTarget(info)
