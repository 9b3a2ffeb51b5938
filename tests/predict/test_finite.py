"""A network that computes NaN or infinity gives an error that names the text, never a vector or a score."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.errors import NotFinite
from regard.predict import Model
from regard.text.learn import train_tokenizer_from_texts

TEXTS = ["good work", "bad work", "a good day", "a bad day", "a day of rest"]


def spoiled(shape: str, **heads: int) -> Model:
    """A model of which the numbers overflow for one word: rest."""
    words = train_tokenizer_from_texts(TEXTS * 5, kind="wordpiece", size=42)
    model = regard.create(shape, tokenizer=words, heads=heads or None, device="cpu", tied=False)
    tokens = model.network.reader.get_parameter("embeddings.tokens.weight")
    with torch.no_grad():
        tokens[words.backend.token_to_id("rest")] = 3e38
    return model


def test_embed_names_the_text() -> None:
    model = spoiled("tiny-bert")
    assert model.embed(TEXTS[:4]).shape == (4, 32)
    for embed in (model.embed, model.embed_tokens):
        with pytest.raises(NotFinite, match=r"computed NaN or infinity for text 4, so there is no result.*fp32"):
            embed(TEXTS)


def test_predict_names_the_text() -> None:
    model = spoiled("tiny-bert", sequence=2)
    assert len(model.predict(TEXTS[:4])) == 4
    with pytest.raises(NotFinite, match="for text 4"):
        model.predict(TEXTS)
    with pytest.raises(NotFinite, match="for text 2"):
        model.predict(["good work", "bad work", "rest", "a bad day", "rest"], batch_tokens=8)


def test_fill_and_next_sentence_refuse() -> None:
    model = spoiled("tiny-bert", masked=0, next=2)
    with pytest.raises(NotFinite, match="for this text"):
        model.fill("a [MASK] of rest")
    with pytest.raises(NotFinite, match="for these two texts"):
        model.next_sentence("a day", "of rest")


def test_evaluate_names_the_text(trained: Path, write_rows: Callable[..., Path], tmp_path: Path) -> None:
    model = regard.load(trained, device="cpu")
    assert model.tokenizer is not None
    with torch.no_grad():
        tokens = model.network.get_parameter("encoder.embeddings.tokens.weight")
        tokens[model.tokenizer.encode("worst").ids[-2]] = 3e38
    data = write_rows(tmp_path / "rows.csv", [("a lovely film", "good"), ("a dull film", "bad"), ("the worst", "bad")])
    with pytest.raises(NotFinite, match="for text 2"):
        regard.evaluate(model, data)


@pytest.mark.parametrize(
    "settings",
    [{}, {"sample": True, "seed": 1}],
    ids=["greedy", "sample"],
)
def test_generate_names_the_prompt(settings: dict[str, Any]) -> None:
    model = spoiled("tiny-gpt2")
    assert model.tokenizer is not None
    good, bad = (list(model.tokenizer.encode(text).ids) for text in ("good work", "rest"))
    with pytest.raises(NotFinite, match="for prompt 1"):
        model.generate_ids([good, bad, good], max_tokens=4, **settings)


def test_beams_name_the_prompt() -> None:
    model = spoiled("tiny-gpt2")
    with pytest.raises(regard.errors.InputError, match="prompt 0"):
        model.generate("rest", max_tokens=4, beams=2)
