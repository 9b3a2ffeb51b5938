"""The vectors of a sentence encoder against those of `embed`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.sentence_encoder import as_sentence_encoder
from tests.training.starting import start

import regard
from regard.checkpoint.reading import preprocessing_of
from regard.tasks.pair import Pair
from regard.training.head_init.sentence_encoder import SentenceEncoder


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token"])
@pytest.mark.parametrize("classified", ["auto", "first"])
def test_vectors_are_those_of_the_sentence_encoder(encoder_folder: Path, pooling: str, classified: str) -> None:
    folder = as_sentence_encoder(encoder_folder, pooling)
    texts = ["a good day", "the day", "a very long and bad day " * 60, "the day was long"]
    model = start(Pair(names=("no", "yes")), start=folder, pooling=classified)
    assert model.head_init == "similarity"
    preprocessing = preprocessing_of(model.checkpoint, model.tokenizer, window=None, overlap=0.0)
    vectors = SentenceEncoder(
        model.checkpoint.network, preprocessing, model.checkpoint.pooling or "", model.pooling == "mean"
    ).vectors(texts)
    short = [0, 1, 3]  # of a long text, `embed` weighs the windows
    expected = regard.load(folder, device="cpu").embed([texts[row] for row in short], normalize=True)
    np.testing.assert_allclose(vectors[short], expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
