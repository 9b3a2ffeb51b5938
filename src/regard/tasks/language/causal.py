"""Causal language modeling, the pretraining of GPT: predict the next token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch.nn import functional as F

from regard.data.batching.examples import LEARN, Examples, ExamplesBuilder, Inputs
from regard.data.batching.framing import Frame, single_windows
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.masking import IGNORE
from regard.data.records import DocumentRecord, Record
from regard.metrics.meter import Meter, PerplexityMeter
from regard.model.transformer import Output
from regard.tasks.language.masked import summed_cross_entropy
from regard.tasks.language.perplexity import SlidingPerplexity
from regard.tasks.language.token_losses import LikelihoodAnswer
from regard.tasks.task import Answer, Loss, Task
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Causal(Task):
    """Every token of a sequence but the first is predicted from those before it (Radford et al. 2018)."""

    name: ClassVar[str] = "causal"
    title: ClassVar[str] = "causal language model"
    record: ClassVar[type[Any]] = DocumentRecord
    pipeline_tag: ClassVar[str] = "text-generation"
    example_call: ClassVar[str] = 'generate("a text")'
    command: ClassVar[str] = "generate"
    command_example: ClassVar[str] = '"a text"'
    model_heads: ClassVar[tuple[str, ...]] = ("language",)
    language_model: ClassVar[bool] = True

    @classmethod
    def plain_text_task(cls, tokenizer: Tokenizer, *, vocabulary: int, has_settings: bool) -> Task | None:
        """Perplexity is measured in windows that slide over a text."""
        return SlidingPerplexity()

    @classmethod
    def from_records(cls, records: Iterable[Record], **_: Any) -> Self:
        return cls()

    def settings(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        return cls()

    @property
    def heads(self) -> dict[str, int]:
        return {"language": 0}

    def examples(self, records: Sequence[Record], preprocessing: Preprocessing, *, labeled: bool) -> Examples:
        """Long texts in overlapping windows: a token counts in the window with the most context before it."""
        builder, frame = ExamplesBuilder(segments=preprocessing.segments), Frame.of(preprocessing.tokenizer)
        texts = [record.text for record in records if isinstance(record, DocumentRecord)]
        for row, ids in enumerate(preprocessing.tokenizer.ids_batch(texts, special=False)):
            done = 0
            for cut in single_windows(frame, ids, max_tokens=preprocessing.max_tokens, overlap=preprocessing.overlap):
                again = np.array([token is not None and token < done for token in cut.tokens])
                learn = np.where(again, IGNORE, 0).astype(np.int8)
                done = max((token + 1 for token in cut.tokens if token is not None), default=done)
                builder.add(row, cut.ids, cut.segments, by_token={LEARN: learn})
        return builder.build()

    def prepare(self, inputs: Inputs) -> Inputs:
        """The target of each token is the next one; the last token of a sequence has none."""
        tokens = inputs.tokens
        next_N = tokens.ids.roll(-1)
        known_N = (tokens.positions.roll(-1) > 0) & (inputs[LEARN].roll(-1) != IGNORE)
        return replace(inputs, by_token={**inputs.by_token, "next": torch.where(known_N, next_N, IGNORE)})

    def loss(self, output: Output, inputs: Inputs) -> Loss:
        """Cross-entropy of every next token."""
        assert output.logits is not None
        return Loss(*summed_cross_entropy(output.logits, inputs["next"]))

    def row_outputs(self, output: Output, inputs: Inputs) -> list[Any]:
        assert output.logits is not None
        next_N = inputs["next"]
        losses_N = F.cross_entropy(output.logits.float(), next_N, reduction="none", ignore_index=IGNORE)
        values_N2 = torch.stack((losses_N.double(), (next_N != IGNORE).double()), dim=1)
        sums_B2 = values_N2.new_zeros(len(inputs.tokens), 2).index_add_(0, inputs.tokens.sequence_ids, values_N2)
        return [(nll, int(count)) for nll, count in sums_B2[: inputs.rows].tolist()]

    def answer(self, record: Record, outputs: Sequence[Any]) -> Answer:
        nll, count = (sum(one[part] for one in outputs) for part in range(2))
        return LikelihoodAnswer(len(outputs), nll=nll, count=count)

    def meter(self) -> Meter:
        return PerplexityMeter()

    def update(self, meter: Meter, answer: Answer, record: Record) -> None:
        assert isinstance(answer, LikelihoodAnswer)
        assert isinstance(meter, PerplexityMeter)
        text = record.text if isinstance(record, DocumentRecord) else ""
        meter.add(answer.nll, answer.count, len(text))
