"""Tables of predictions and weights hold what the model computes, and print it."""

from __future__ import annotations

import pytest
import torch

import regard
from regard.errors import InputError
from regard.predict.model import Model
from regard.predict.plots.word_tables import prediction_table, weight_table
from regard.text.learn import train_tokenizer_from_texts

TEXT = "the man fed the dog"


@pytest.fixture(scope="module")
def model() -> Model:
    tokenizer = train_tokenizer_from_texts([TEXT, "the woman fed the cat"], kind="word").without_special_tokens()
    return regard.create("tiny-gpt2", tokenizer=tokenizer, device="cpu")


def test_predictions(model: Model) -> None:
    table = prediction_table(model, TEXT)
    assert table.rows == ("the", "man", "fed", "the", "dog")
    assert set(table.columns) == {"the", "man", "fed", "dog", "woman", "cat"}
    assert model.tokenizer is not None
    ids = model.tokenizer.encode(TEXT).ids
    logits = model.outputs([ids])[0].logits
    assert logits is not None
    cat = model.tokenizer.encode("cat").ids[0]
    assert table[4, "cat"] == pytest.approx(float(torch.softmax(logits[4], -1)[cat]))
    assert prediction_table(model, TEXT, ["cat", "dog"]).values.shape == (5, 2)
    with pytest.raises(InputError, match='"horse" is not a token'):
        prediction_table(model, TEXT, ["horse"])


def test_weights(model: Model) -> None:
    table = weight_table(model, TEXT, layer=1, head=0)
    assert table.values.sum(1) == pytest.approx([1] * 5)
    assert (table[0, "the"], table[0, 4]) == (1, 0)
    assert weight_table(model, TEXT).values.shape == (5, 5)


def test_text(model: Model) -> None:
    lines = str(weight_table(model, TEXT, layer=1)).splitlines()
    assert lines[0].split() == TEXT.split()
    assert lines[1].split() == ["the", "1.00", ".", ".", ".", "."]
    assert len({len(line) for line in lines}) == 1


def test_a_model_without_words() -> None:
    tokenizer = train_tokenizer_from_texts([TEXT], kind="word")
    with pytest.raises(InputError, match="no head that predicts words"):
        prediction_table(regard.create("tiny-bert", tokenizer=tokenizer, heads={}, device="cpu"), TEXT)
