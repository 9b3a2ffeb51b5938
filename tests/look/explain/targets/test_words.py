"""Next, masked and translated words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.look.tiny_models import TEXT, model

from regard.look.explain.explain import make_scorer
from regard.ragged import Ragged


def test_the_next_word_is_the_one_that_is_generated() -> None:
    loaded = model("tiny-gpt2")
    explanation = loaded.explain(TEXT, method="random")
    tokenizer = loaded.require_tokenizer()
    with torch.no_grad():
        chances = loaded.network(Ragged.of([tokenizer.encode(TEXT).ids])).logits[-1].softmax(-1)
    number = int(chances[: tokenizer.size].argmax())
    assert tokenizer.decode([number], special=True).strip() == explanation.target.label
    assert explanation.probability == pytest.approx(float(chances[number]), abs=1e-5)


def test_a_long_text_before_the_next_word_is_cut_at_its_start() -> None:
    loaded = model("tiny-gpt2", max_tokens=8)
    explanation = loaded.explain(" ".join([TEXT] * 4), method="occlusion")
    assert len(explanation.tokens) == 8
    assert explanation.note is not None
    assert "reads the last 8" in explanation.note


def test_a_masked_word_is_the_one_that_is_filled_in() -> None:
    loaded = model("tiny-bert", {"masked": 0})
    text = "the [MASK] was warm"
    explanation = loaded.explain(text, method="random")
    best = loaded.fill(text, top=1)[0][0]
    assert (explanation.target.label, explanation.probability) == (best.word, pytest.approx(best.score, abs=1e-6))


@pytest.mark.parametrize("name", ["tiny-transformer", "tiny-t5", "tiny-lstm-feeding"])
def test_a_translated_word_has_the_probability_of_its_decoding(name: str) -> None:
    loaded = model(name)
    (translation,) = loaded.translate([TEXT])
    explanation = loaded.explain(TEXT, target="1", method="occlusion")
    assert explanation.target.description.endswith(f'of "{translation}"')
    assert explanation.pair is not None
    assert translation.startswith(explanation.pair)
    first = loaded.explain(TEXT, method="random")
    scorer: Any = make_scorer(loaded, TEXT)
    row = scorer.text.sequences[0]
    with torch.no_grad():
        logits = loaded.network(Ragged.of([row.ids]), Ragged.of([row.decoder_ids])).logits
    numbers = scorer.target.numbers
    places = scorer.target.positions
    chances = [float(logits.softmax(-1)[i, number]) for i, number in zip(places, numbers, strict=True)]
    assert first.probability == pytest.approx(np.mean(chances), abs=1e-5)
