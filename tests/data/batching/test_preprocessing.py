"""Limits of sequences: those of the network and those of the user."""

import pytest

from regard.checkpoint.source import from_preset
from regard.data.batching.preprocessing import Preprocessing
from regard.text.learn import train_tokenizer_from_texts


@pytest.mark.parametrize(
    ("preset", "window", "expected"),
    [
        ("tiny-bert", None, 512),
        ("tiny-bert", 16, 16),
        ("tiny-bert", 1000, 512),
        ("tiny-gru", 16, 16),
        ("tiny-gru", None, None),
    ],
)
def test_the_smaller_limit_counts(preset, window, expected):
    tokenizer = train_tokenizer_from_texts(["a b c"], kind="char", size=20)
    config = from_preset(preset, weights=False).config
    assert (config.max_tokens is None) == (preset == "tiny-gru")
    assert Preprocessing(tokenizer, config, window=window).max_tokens == expected


def test_segments_of_bert():
    tokenizer = train_tokenizer_from_texts(["a b c"], kind="char", size=20)
    assert Preprocessing(tokenizer, from_preset("tiny-bert", weights=False).config).segments
