"""Masked words and the next sentence, as transformers predicts them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.predict.foreign import Foreign, logits

import regard
from regard.errors import InputError
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer


def test_words_of_another_model_are_neither_filled_in_nor_follow(foreign: Foreign, words: Tokenizer) -> None:
    folder, _ = foreign("BertForPreTraining")
    more = [f"{one}{two}{three}" for one in "bcdfghkl" for two in "mnpqrstv" for three in "aeo"]
    train_tokenizer_from_texts([" ".join(more)] * 2, kind="wordpiece", size=words.size + 60, lowercase=True).save(
        folder
    )
    model = regard.load(folder, device="cpu")
    for call in (lambda: model.fill("[MASK] " + " ".join(more)), lambda: model.next_sentence(" ".join(more), "a")):
        with pytest.raises(InputError, match="belongs to another model"):
            call()
    assert [len(candidates) for candidates in model.fill("[MASK]", top=words.size + 60)] == [words.size]
    with pytest.raises(InputError, match="has no token this tokenizer can read"):
        model.next_sentence("", " ")


def test_filled_words_are_those_of_transformers(foreign: Foreign, words: Tokenizer) -> None:
    folder, theirs = foreign("BertForPreTraining")
    model = regard.load(folder, device="cpu")
    text = "a [MASK] film of the [MASK]"
    expected = logits(theirs, words, text).prediction_logits[0].softmax(-1)
    places = [place for place, token in enumerate(words.encode(text).ids) if token == words.mask]
    result = model.fill(text, top=4)
    assert len(result) == 2
    for place, best in zip(places, result, strict=True):
        assert [one.score for one in best] == pytest.approx(expected[place].topk(4).values.tolist(), abs=1e-5)
    assert [one.word for one in result[0]] == [
        words.backend.id_to_token(token) for token in expected[places[0]].topk(4).indices.tolist()
    ]
    (alone,) = model.fill("a <mask> film")
    assert len(alone) == 5
    assert alone[0].text.endswith(" film")


def test_a_mask_far_down_a_long_text(foreign: Foreign) -> None:
    folder, _ = foreign("BertForPreTraining")
    model = regard.load(folder, device="cpu")
    (filled,) = model.fill("warm and lovely " * 60 + "[MASK] film")
    assert len(filled) == 5


def test_what_follows_is_as_in_transformers(foreign: Foreign, words: Tokenizer) -> None:
    folder, theirs = foreign("BertForPreTraining")
    model = regard.load(folder, device="cpu")
    expected = logits(theirs, words, "a dull film", "the worst").seq_relationship_logits[0].softmax(0)[0]
    assert model.next_sentence("a dull film", "the worst") == pytest.approx(float(expected), abs=1e-5)
    with pytest.raises(InputError, match="the maximum of this network is 64"):
        model.next_sentence("a dull film " * 40, "the worst")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.fill("no mask"), r"there is no \[MASK\] in the text"),
        (lambda model: model.fill("a [MASK]", top=0), "top is 0"),
        (lambda model: model.fill(["a [MASK]"]), "one text was expected"),
        (lambda model: model.predict(["a"]), r"model that fills in masked words, so it has no answers.*model.fill"),
    ],
)
def test_what_cannot_be_filled(foreign: Foreign, call: Any, message: str) -> None:
    folder, _ = foreign("BertForMaskedLM")
    with pytest.raises(InputError, match=message):
        call(regard.load(folder, device="cpu"))


def test_a_head_that_is_not_there(foreign: Foreign) -> None:
    folder, _ = foreign("BertForMaskedLM")
    with pytest.raises(InputError, match=r"no head for next sentences.*What it can do: model.fill"):
        regard.load(folder, device="cpu").next_sentence("a", "b")
