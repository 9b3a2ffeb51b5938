"""Generation with a model: texts, ids and streams of the same continuation."""

from __future__ import annotations

import pytest

import regard
from regard.errors import InputError
from regard.text.learn import train_tokenizer_from_texts


def test_texts_ids_and_streams_agree() -> None:
    tokenizer = train_tokenizer_from_texts(["a small text about nothing"] * 9, kind="char")
    model = regard.create("tiny-gpt2", tokenizer=tokenizer)
    text = model.generate("a small", max_tokens=8)
    assert model.generate(["a small", "text"], max_tokens=8)[0] == text
    assert "".join(model.stream("a small", max_tokens=8)) == text
    (best,) = model.continuations(["a small"], max_tokens=8)[0]
    assert best.text == text
    prompt = tokenizer.encode("a small").ids
    assert model.generate_ids([prompt], max_tokens=8)[0] == list(model.continuations([prompt], max_tokens=8)[0][0].ids)


def test_an_encoder_cannot_generate() -> None:
    with pytest.raises(InputError, match=r"this bert model .* and cannot generate"):
        regard.create("tiny-bert").generate_ids([[5]])
