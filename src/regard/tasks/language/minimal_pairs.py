"""Minimal pairs: of two sentences that differ in one point of grammar, is the good one likelier for a language model?

A causal model has a likelihood for a sentence. A masked one has a pseudo-likelihood (Salazar et al. 2020): each token
is hidden in turn, and what it costs to guess it from all the others is added up. Nothing is learned from such pairs:
the task is for scoring, of any model that has a head for words.
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

BAD = "bad"  # of each sequence: whether it is of the bad sentence


@dataclass(frozen=True, repr=False)
class PreferenceAnswer(Answer):
    """What each sentence costs (its negative log-likelihood), and which is the likelier; None for a tie."""

    cost_good: float = 0.0
    cost_bad: float = 0.0
    preferred: str | None = None
    kind: str | None = None


class _Look(NamedTuple):
    """A sequence to run, and the word that is asked for at each place; IGNORE where none is."""

    ids: list[int]
    words: list[int]


@dataclass(frozen=True)
class MinimalPairs(TokenLossTask):
    """`hides` says that the network guesses hidden words; else it guesses the next one."""

    name: ClassVar[str] = "minimal"
    title: ClassVar[str] = "language model scored on minimal pairs"
    record: ClassVar[type[Any]] = MinimalRecord
    chunk_size: ClassVar[int] = 256  # each is a sequence a token

    hides: bool

    @classmethod
    def of(cls, network: Network) -> Self | None:
        """As the heads of a network allow; None where it has none for words, or an encoder before them."""
        if "masked" in network.heads:
            return cls(hides=True)
        return cls(hides=False) if "language" in network.heads and network.encoder is None else None

    @classmethod
    def from_records(cls, records: Iterable[Record], **_: Any) -> Self:
        raise InputError("minimal pairs are there to score language models; nothing is learned from them.")

    def settings(self) -> dict[str, Any]:
        return {"hides": self.hides}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        return cls(bool(settings["hides"]))

    @property
    def heads(self) -> dict[str, int]:
        return {"masked" if self.hides else "language": 0}

    def examples(self, records: Sequence[Record], preprocessing: Preprocessing, *, labelled: bool) -> Examples:
        """One sequence a sentence for a model of next words, one a token for a model of hidden words."""
        builder, frame = ExamplesBuilder(segments=preprocessing.segments), Frame.of(preprocessing.tokenizer)
        pairs = [record for record in records if isinstance(record, MinimalRecord)]
        texts = [text for pair in pairs for text in (pair.good, pair.bad)]
        for number, ids in enumerate(preprocessing.tokenizer.ids_batch(texts, special=False)):
            row, bad = divmod(number, 2)
            for look in self._looks(ids, preprocessing, frame, pairs[row].place):
                words = np.array(look.words, np.int64)
                builder.add(row, look.ids, by_sequence={BAD: np.int64(bad)}, by_token={WORD: words})
        return builder.build()

    def _looks(self, ids: list[int], preprocessing: Preprocessing, frame: Frame, place: Place) -> Iterator[_Look]:
        words, framed = preprocessing.tokenizer, frame.single(ids)
        first, whole = framed.parts[0].at, framed.ids
        begin = words.bos if words.bos is not None else words.eos
        if not self.hides and first == 0 and begin is not None:
            first, whole = 1, [begin, *whole]  # so that the first word has a likelihood too
        if not ids or (preprocessing.max_tokens is not None and len(whole) > preprocessing.max_tokens):
            fix = f"Use sentences of 1 to {preprocessing.max_tokens} tokens with the special ones."
            raise place.error(f"a sentence here has {pluralize(len(ids), 'token')}", fix=fix)
        if not self.hides:
            known = whole[max(first, 1) : first + len(ids)]
            before = max(first, 1) - 1
            yield _Look(whole, [IGNORE] * before + known + [IGNORE] * (len(whole) - before - len(known)))
            return
        if words.mask is None:
            raise InputError(
                "this model guesses hidden words, but its tokenizer has no token to hide them with ([MASK])."
            )
        for at in range(first, first + len(ids)):
            asked = [IGNORE] * len(whole)
            asked[at] = whole[at]
            yield _Look([*whole[:at], words.mask, *whole[at + 1 :]], asked)

    def row_outputs(self, output: Output, inputs: Inputs) -> list[Any]:
        """Which sentence each sequence looks at, and its cost there."""
        costs = [cost for cost, _ in super().row_outputs(output, inputs)]
        return list(zip(inputs[BAD][: inputs.rows].tolist(), costs, strict=True))

    def answer(self, record: Record, said: Sequence[Any]) -> Answer:
        assert isinstance(record, MinimalRecord)
        good, bad = (sum(cost for side, cost in said if side == which) for which in (0, 1))
        preferred = None
        if good != bad:
            preferred = "good" if good < bad else "bad"
        return PreferenceAnswer(cost_good=good, cost_bad=bad, preferred=preferred, kind=record.kind)

    def meter(self) -> Meter:
        return PreferenceMeter()

    def update(self, meter: Meter, answer: Answer, record: Record) -> None:
        assert isinstance(answer, PreferenceAnswer)
        meter.add(answer.preferred == "good", answer.kind)
