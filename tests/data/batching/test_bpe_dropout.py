"""Epochs with other tokens of the same texts: reproducible, and never longer than planned."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from regard.checkpoint.source import from_preset
from regard.data.batching.bpe_dropout import BpeDropoutSource
from regard.data.batching.examples import Examples
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import TranslateRecord
from regard.tasks.translate import Translate
from regard.text.bpe_dropout import MarkingTokenizer
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer

SOURCES = ["the lower tower", "a newer and wider tower is slower than the lowest", "x é 中", "the newest"]
TARGETS = ["der niedrigere Turm", "ein neuer Turm ist langsamer", "y ß", "der neueste Turm und noch ein Turm </s> hier"]
RECORDS = [TranslateRecord(*pair) for pair in zip(SOURCES, TARGETS, strict=True)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    with pytest.warns(UserWarning, match="the text gives"):
        return train_tokenizer_from_texts((SOURCES + TARGETS) * 3, kind="bpe", size=400, special_tokens="roberta")


def preprocessing(tokenizer: Tokenizer) -> Preprocessing:
    return Preprocessing(tokenizer, from_preset("tiny-transformer", weights=False).config)


def source(tokenizer: Tokenizer, dropout: float, seed: int = 0) -> BpeDropoutSource:
    marking = replace(preprocessing(tokenizer), tokenizer=MarkingTokenizer.of(tokenizer))
    marked = Translate().examples(RECORDS, marking, labeled=True)
    return BpeDropoutSource(marked, tokenizer, dropout=dropout, seed=seed)


def same(one: Examples, other: Examples) -> bool:
    assert one.target is not None
    assert other.target is not None
    return (
        np.array_equal(one.ids, other.ids)
        and np.array_equal(one.bounds, other.bounds)
        and np.array_equal(one.target.ids, other.target.ids)
        and np.array_equal(one.target.bounds, other.target.bounds)
        and np.array_equal(one.target.by_token["word"], other.target.by_token["word"])
    )


def test_without_dropout_the_examples_are_the_plain_ones(tokenizer: Tokenizer) -> None:
    plain = Translate().examples(RECORDS, preprocessing(tokenizer), labeled=True)
    resampled = source(tokenizer, 0.0)
    assert same(plain, resampled.examples)
    assert same(plain, resampled.epoch(0))
    assert plain.ids.dtype == resampled.epoch(0).ids.dtype


def test_epochs_have_other_tokens_of_the_same_texts(tokenizer: Tokenizer) -> None:
    resampled = source(tokenizer, 0.5)
    epochs = [resampled.epoch(number) for number in range(4)]
    assert not any(same(one, other) for one, other in itertools.pairwise(epochs))
    for epoch in epochs:
        for row, (text, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
            inputs = epoch.take([row])
            assert inputs.target is not None
            assert tokenizer.decode(inputs.tokens.ids.tolist()) == text
            assert tokenizer.decode(inputs["word"].tolist()) == target.replace("</s> ", " ")
            assert inputs.target.ids[1:].tolist() == inputs["word"][:-1].tolist()
            assert tokenizer.backend.id_to_token(int(inputs["word"][-1])) == "</s>"


def test_an_epoch_depends_on_seed_and_number_alone(tokenizer: Tokenizer) -> None:
    one, other = source(tokenizer, 0.5), source(tokenizer, 0.5)
    one.epoch(0)
    assert same(one.epoch(3), other.epoch(3))
    assert not same(one.epoch(3), source(tokenizer, 0.5, seed=1).epoch(3))


def test_no_sequence_is_longer_than_the_longest(tokenizer: Tokenizer) -> None:
    resampled = source(tokenizer, 0.9)
    limits = resampled.examples
    assert limits.target is not None
    for number in range(5):
        epoch = resampled.epoch(number)
        assert epoch.target is not None
        assert epoch.max_length <= limits.max_length
        assert epoch.target.max_length <= limits.target.max_length
        assert epoch.lengths.max() <= resampled.max_tokens
