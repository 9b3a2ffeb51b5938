"""Training sequences with random words masked, so that a model can be explained by masking words.

A model that never saw a mask in training is asked about texts that are unlike all it knows when an explanation hides
words. Here, half of the sequences of each epoch have a random fraction of their words masked, from none to all, as in
Madsen et al. 2023 (https://arxiv.org/abs/2310.07819).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.data.batching.examples import Examples
from regard.data.corpus.word_starts import WordStarts
from regard.errors import InputError, setting
from regard.text.tokenizer import Tokenizer

MASKED_FRACTION = 0.5  # of the sequences


@dataclass(frozen=True, eq=False)
class MaskedWordsSource:
    """The sequences of each epoch, with other words masked in each. Their lengths and targets stay the same."""

    examples: Examples
    words: npt.NDArray[np.int64]  # the number of the word that each token belongs to
    maskable: npt.NDArray[np.bool_]  # false for special tokens
    mask: int
    seed: int

    @classmethod
    def of(cls, examples: Examples, tokenizer: Tokenizer, *, seed: int) -> MaskedWordsSource:
        if tokenizer.mask is None:
            raise InputError(
                f"{setting('explainable')} was given, but the tokenizer of this model has no mask token. Leave it out, "
                "or start from a model with one, such as BERT or RoBERTa."
            )
        starts = WordStarts.from_tokenizer(tokenizer)(examples.ids).astype(bool)
        starts[examples.bounds[:-1]] = True
        maskable = ~np.isin(examples.ids, list(tokenizer.special.values()))
        return cls(examples, np.cumsum(starts) - 1, maskable, tokenizer.mask, seed)

    def epoch(self, number: int) -> Examples:
        """The sequences of an epoch."""
        generator = np.random.Generator(np.random.Philox(key=[self.seed, number]))
        sequences = len(self.examples.bounds) - 1
        rates = np.where(generator.random(sequences) < MASKED_FRACTION, generator.random(sequences), 0.0)
        rate_by_token = np.repeat(rates, np.diff(self.examples.bounds))
        chance_by_word = generator.random(int(self.words[-1]) + 1 if len(self.words) else 0)
        masked = (chance_by_word[self.words] < rate_by_token) & self.maskable
        ids: npt.NDArray[Any] = np.where(masked, self.mask, self.examples.ids).astype(np.int32)
        return replace(self.examples, ids=ids)
