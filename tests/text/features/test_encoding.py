"""What tokenizers of features share with those of the `tokenizers` library."""

from __future__ import annotations

from array import array

import pytest

from regard.errors import InputError
from regard.text.features.encoding import FeatureBackend, FeatureEncoding
from regard.text.features.words import FEATURES, WordFeatures
from regard.text.tokenizer import Tokenizer


def test_a_pair_has_two_segments() -> None:
    first = FeatureEncoding(array("i", [1, 2]), [(0, 3)] * 2)
    both = first.followed_by(FeatureEncoding(array("i", [2]), [(0, 1)]))
    assert list(both.ids) == [1, 2, 2]
    assert list(both.sequence_ids) == [0, 0, 1]
    assert list(both.special_tokens_mask) == [0, 0, 0]


def test_there_are_no_special_tokens_and_no_names() -> None:
    tokenizer = Tokenizer(WordFeatures.learn(["warm soup"]))
    assert tokenizer.special == {}
    assert tokenizer.short_text
    assert len(tokenizer.ids_batch(["a b"])[0]) == 2 * FEATURES
    with pytest.raises(InputError, match="has the id 1"):
        tokenizer.decode([1])


def test_a_backend_must_be_implemented() -> None:
    backend = FeatureBackend()
    with pytest.raises(NotImplementedError):
        backend.encode_texts(["a"])
    with pytest.raises(NotImplementedError):
        backend.get_vocab_size()
    with pytest.raises(NotImplementedError):
        backend.to_str()
