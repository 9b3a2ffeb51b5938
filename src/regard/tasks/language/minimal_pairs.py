"""Minimal pairs: of two sentences that differ in one point of grammar, is the good one more likely?

A causal model has a likelihood for a sentence. A masked one has a pseudo-likelihood (Salazar et al. 2020): each token
is masked in turn, and its negative log-likelihood given all other tokens is added up. Nothing is trained on such pairs:
the task scores any model with a language-model head.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from regard.data.batching.examples import Examples, ExamplesBuilder, Inputs
from regard.data.batching.framing import Frame
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.masking import IGNORE
from regard.data.records import MinimalRecord, Place, Record
from regard.errors import InputError, pluralize
from regard.metrics.language_meters import PreferenceMeter
from regard.metrics.meter import Meter
from regard.model.network import Network
from regard.model.transformer import Output
from regard.tasks.language.token_losses import WORD, TokenLossTask
from regard.tasks.task import Answer

BAD = "bad"  # per sequence: whether it is of the bad sentence


@dataclass(frozen=True, repr=False)
class PreferenceAnswer(Answer):
    """The negative log-likelihood of each sentence, and which is more likely; None for a tie."""

    cost_good: float = 0.0
    cost_bad: float = 0.0
    preferred: str | None = None
    kind: str | None = None


class _ScoredSequence(NamedTuple):
    """A sequence and the target of each of its tokens; IGNORE for none."""

    ids: list[int]
    targets: list[int]


@dataclass(frozen=True)
class MinimalPairs(TokenLossTask):
    """`hides`: whether the network is a masked language model; else it is a causal one."""

    name: ClassVar[str] = "minimal"
    title: ClassVar[str] = "language model scored on minimal pairs"
    record: ClassVar[type[Any]] = MinimalRecord
    chunk_size: ClassVar[int] = 256  # each has a sequence per token

    hides: bool

    @classmethod
    def of(cls, network: Network) -> Self | None:
        """The task for a network by its heads; None without a language-model head, or for an encoder-decoder."""
        if "masked" in network.heads:
            return cls(hides=True)
        return cls(hides=False) if "language" in network.heads and network.encoder is None else None

    @classmethod
    def from_records(cls, records: Iterable[Record], **_: Any) -> Self:
        raise InputError("minimal pairs are for the evaluation of language models; nothing is trained on them.")

    def settings(self) -> dict[str, Any]:
        return {"hides": self.hides}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        return cls(bool(settings["hides"]))

    @property
    def heads(self) -> dict[str, int]:
        return {"masked" if self.hides else "language": 0}

    def examples(self, records: Sequence[Record], preprocessing: Preprocessing, *, labeled: bool) -> Examples:
        """One sequence per sentence for a causal model, one per token for a masked model."""
        builder, frame = ExamplesBuilder(segments=preprocessing.segments), Frame.of(preprocessing.tokenizer)
        pairs = [record for record in records if isinstance(record, MinimalRecord)]
        texts = [text for pair in pairs for text in (pair.good, pair.bad)]
        for number, ids in enumerate(preprocessing.tokenizer.ids_batch(texts, special=False)):
            row, bad = divmod(number, 2)
            for sequence in self._sequences(ids, preprocessing, frame, pairs[row].place):
                words = np.array(sequence.targets, np.int64)
                builder.add(row, sequence.ids, by_sequence={BAD: np.int64(bad)}, by_token={WORD: words})
        return builder.build()

    def _sequences(
        self, ids: list[int], preprocessing: Preprocessing, frame: Frame, place: Place
    ) -> Iterator[_ScoredSequence]:
        words, framed = preprocessing.tokenizer, frame.single(ids)
        first, whole = framed.parts[0].at, framed.ids
        begin = words.bos if words.bos is not None else words.eos
        if not self.hides and first == 0 and begin is not None:
            first, whole = 1, [begin, *whole]  # so that the first token has a likelihood too
        if not ids or (preprocessing.max_tokens is not None and len(whole) > preprocessing.max_tokens):
            fix = f"Use sentences of 1 to {preprocessing.max_tokens} tokens with the special ones."
            raise place.error(f"a sentence here has {pluralize(len(ids), 'token')}", fix=fix)
        if not self.hides:
            known = whole[max(first, 1) : first + len(ids)]
            before = max(first, 1) - 1
            yield _ScoredSequence(whole, [IGNORE] * before + known + [IGNORE] * (len(whole) - before - len(known)))
            return
        if words.mask is None:
            raise InputError("this is a masked language model, but its tokenizer has no mask token ([MASK]).")
        for at in range(first, first + len(ids)):
            targets = [IGNORE] * len(whole)
            targets[at] = whole[at]
            yield _ScoredSequence([*whole[:at], words.mask, *whole[at + 1 :]], targets)

    def row_outputs(self, output: Output, inputs: Inputs) -> list[Any]:
        """The sentence that each sequence belongs to, and its negative log-likelihood."""
        costs = [cost for cost, _ in super().row_outputs(output, inputs)]
        return list(zip(inputs[BAD][: inputs.rows].tolist(), costs, strict=True))

    def answer(self, record: Record, outputs: Sequence[Any]) -> Answer:
        assert isinstance(record, MinimalRecord)
        good, bad = (sum(cost for side, cost in outputs if side == which) for which in (0, 1))
        preferred = None
        if good != bad:
            preferred = "good" if good < bad else "bad"
        return PreferenceAnswer(cost_good=good, cost_bad=bad, preferred=preferred, kind=record.kind)

    def meter(self) -> Meter:
        return PreferenceMeter()

    def update(self, meter: Meter, answer: Answer, record: Record) -> None:
        assert isinstance(answer, PreferenceAnswer)
        meter.add(answer.preferred == "good", answer.kind)
