"""Counted language models are written, loaded, evaluated and used for generation like trained ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.config import NgramConfig
from regard.errors import InputError
from regard.text.learn import train_tokenizer_from_texts
from regard.training.from_scratch.ngram_language import ORDERS

SENTENCES = [
    f"the {who} {did} the {pet} ." for who, pet in (("man", "dog"), ("woman", "cat")) for did in ("fed", "saw")
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "corpus.txt").write_text("\n\n".join(SENTENCES * 10))
    tokenizer = train_tokenizer_from_texts(SENTENCES, kind="word")
    (tmp_path / "words").mkdir()
    tokenizer.save(tmp_path / "words")
    return tmp_path / "corpus.txt"


@pytest.mark.parametrize("preset", ORDERS)
def test_pretrain_counts(preset: str, corpus: Path, tmp_path: Path) -> None:
    result = regard.pretrain(
        [corpus], objective="causal", preset=preset, tokenizer=tmp_path / "words", out=tmp_path / "run", device="cpu"
    )
    assert result.steps == 0
    assert result.scores["perplexity"].value < result.baseline["perplexity"]
    model = regard.load(tmp_path / "run", device="cpu")
    assert isinstance(model.config, NgramConfig)
    assert (model.family, model.task, model.config.order) == ("ngram-language", "causal", ORDERS[preset])
    scores = regard.evaluate(model, corpus).scores
    assert scores["perplexity"].value < 4
    if preset == "ngram":
        assert model.generate("the woman fed the", max_tokens=1) == "cat"
        assert model.generate("the man saw the", max_tokens=1, beams=2) == "dog"
    again = regard.load(model.save(tmp_path / "copy"), device="cpu")
    ids = [[5, 6, 7, 8]]
    one, other = model.outputs(ids)[0].logits, again.outputs(ids)[0].logits
    assert one is not None
    assert other is not None
    assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "mlm"}, "use it with objective='causal'"),
        ({"steps": 5}, "steps was given, but bigram is counted at once"),
        ({"model": {"layers": 1}}, "model was given, but bigram is counted at once"),
    ],
)
def test_settings_without_effect(settings: dict[str, Any], message: str, corpus: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"objective": "causal", **settings}
    with pytest.raises(InputError, match=message):
        regard.pretrain([corpus], preset="bigram", out=tmp_path / "run", **options)
