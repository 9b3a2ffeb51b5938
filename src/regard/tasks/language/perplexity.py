"""Perplexity of a causal language model on running text, in sliding windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from regard.data.batching.examples import Examples, ExamplesBuilder
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.masking import IGNORE
from regard.data.corpus.sliding_windows import TextWindow
from regard.data.records import Record
from regard.errors import InputError
from regard.metrics.meter import Meter, PerplexityMeter
from regard.tasks.language.token_losses import WORD, LikelihoodAnswer, TokenLossTask
from regard.tasks.task import Answer


@dataclass(frozen=True)
class SlidingPerplexity(TokenLossTask):
    """Scores what `Causal` trains; windows are made while reading, since a text need not fit in memory."""

    name: ClassVar[str] = "causal"
    title: ClassVar[str] = "causal language model"
    language_model: ClassVar[bool] = True
    record: ClassVar[type[Any]] = TextWindow
    chunk_size: ClassVar[int] = 64

    @classmethod
    def from_records(cls, records: Iterable[Record], **_: Any) -> Self:
        raise InputError("this task is for evaluation; causal language models are trained with regard pretrain.")

    def settings(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        return cls()

    @property
    def heads(self) -> dict[str, int]:
        return {"language": 0}

    def examples(self, records: Sequence[Any], preprocessing: Preprocessing, *, labeled: bool) -> Examples:
        builder = ExamplesBuilder()
        for row, record in enumerate(records):
            targets = np.array([*record.ids[1:], IGNORE], np.int64)
            targets[: record.first_scored - 1] = IGNORE
            builder.add(row, record.ids, by_token={WORD: targets})
        return builder.build()

    def answer(self, record: Any, outputs: Sequence[Any]) -> Answer:
        ((nll, count),) = outputs
        return LikelihoodAnswer(nll=nll, count=count)

    def meter(self) -> Meter:
        return PerplexityMeter()

    def update(self, meter: Meter, answer: Answer, record: Any) -> None:
        assert isinstance(answer, LikelihoodAnswer)
        assert isinstance(meter, PerplexityMeter)
        meter.add(answer.nll, answer.count, record.characters, record.words)
