"""Whole words are masked in half of the sequences, others in each epoch, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from regard.data.batching.examples import Examples, ExamplesBuilder
from regard.data.batching.masked_words import MaskedWordsSource
from regard.errors import InputError
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer

TEXT = "The unbelievable market unbelievably closed, closing marketplaces."
ROWS = 400


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer_from_texts([TEXT] * 30, kind="wordpiece", size=55, lowercase=False)


@pytest.fixture(scope="module")
def examples(tokenizer: Tokenizer) -> Examples:
    builder = ExamplesBuilder()
    for row in range(ROWS):
        builder.add(row, tokenizer.encode(TEXT).ids, by_sequence={"label": row % 2})
    return builder.build()


def test_half_of_the_sequences_have_masked_words(examples: Examples, tokenizer: Tokenizer) -> None:
    source = MaskedWordsSource.of(examples, tokenizer, seed=0)
    rows = source.epoch(0).ids.reshape(ROWS, -1) == tokenizer.mask
    assert 0.4 < rows.any(1).mean() < 0.55
    fractions = rows.mean(1)[rows.any(1)]
    assert fractions.min() < 0.2
    assert fractions.max() > 0.7


def test_special_tokens_lengths_and_targets_stay(examples: Examples, tokenizer: Tokenizer) -> None:
    masked = MaskedWordsSource.of(examples, tokenizer, seed=0).epoch(3)
    assert np.array_equal(masked.lengths, examples.lengths)
    assert np.array_equal(masked.by_sequence["label"], examples.by_sequence["label"])
    special = np.isin(examples.ids, list(tokenizer.special.values()))
    assert np.array_equal(masked.ids[special], examples.ids[special])
    kept = masked.ids != tokenizer.mask
    assert np.array_equal(masked.ids[kept], examples.ids[kept])


def test_words_are_masked_as_a_whole(examples: Examples, tokenizer: Tokenizer) -> None:
    masked = MaskedWordsSource.of(examples, tokenizer, seed=0).epoch(0).ids.reshape(ROWS, -1) == tokenizer.mask
    words = tokenizer.encode(TEXT).word_ids
    assert len(words) > len(set(words))
    for word in {number for number in words if number is not None}:
        columns = masked[:, [column for column, number in enumerate(words) if number == word]]
        assert np.array_equal(columns.any(1), columns.all(1))


def test_each_epoch_masks_other_words_and_repeats_for_its_seed(examples: Examples, tokenizer: Tokenizer) -> None:
    source = MaskedWordsSource.of(examples, tokenizer, seed=0)
    assert not np.array_equal(source.epoch(0).ids, source.epoch(1).ids)
    assert np.array_equal(source.epoch(1).ids, MaskedWordsSource.of(examples, tokenizer, seed=0).epoch(1).ids)
    assert not np.array_equal(source.epoch(1).ids, MaskedWordsSource.of(examples, tokenizer, seed=1).epoch(1).ids)


def test_a_tokenizer_without_a_mask_is_an_error(examples: Examples) -> None:
    without = train_tokenizer_from_texts([TEXT] * 30, kind="bpe", size=275)
    if without.mask is not None:
        pytest.skip("this vocabulary has a mask token")
    with pytest.raises(InputError, match=r"explainable.* has no mask token"):
        MaskedWordsSource.of(examples, without, seed=0)
