"""Values with erased words, masked or removed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.look.tiny_models import TEXT, model

from regard.look.explain.explain import make_scorer
from regard.look.explain.scorer import embedding_modules


def test_masked_and_removed_words_equal_texts_without_them() -> None:
    classifier = model("tiny-bert", {"sequence": 2})
    scorer: Any = make_scorer(classifier, "the soup was warm")
    masked = scorer.erased_probabilities(scorer.word_masks([1]))
    label = scorer.target.info.label
    assert masked[0] == pytest.approx(classifier.predict(["the [MASK] was warm"])[0].scores[label], abs=1e-6)
    language = model("tiny-gpt2")
    scorer = make_scorer(language, "the soup was warm", target="and")
    for words, text in (([1], "the was warm"), ([3], "the soup was"), ([0, 2], "soup warm")):
        erased = scorer.word_masks(words).any(0, keepdims=True)
        expected = make_scorer(language, text, target="and")
        value = expected.erased_probabilities(expected.nothing_erased)
        assert scorer.erased_probabilities(erased) == pytest.approx(value, abs=1e-6)


def test_a_text_without_any_word_still_has_a_value() -> None:
    for name in ("tiny-gpt2", "tiny-t5", "tiny-gru"):
        scorer: Any = make_scorer(model(name), TEXT)
        assert np.isfinite(scorer.erased_scores(scorer.all_erased)).all()


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-t5", "tiny-gru", "tiny-lstm-feeding", "tiny-llama"])
def test_token_vectors_give_the_same_value_as_tokens(name: str) -> None:
    scorer: Any = make_scorer(model(name, {"sequence": 2} if name == "tiny-bert" else None), TEXT)
    (sequence,) = scorer.text.sequences
    with torch.no_grad():
        vectors = scorer.token_vectors(sequence)
        value = scorer.score_vectors(sequence, torch.stack((vectors, vectors)))
    assert value.tolist() == pytest.approx(scorer.erased_scores(scorer.nothing_erased).tolist() * 2, abs=1e-5)


def test_the_baseline_keeps_special_tokens() -> None:
    scorer: Any = make_scorer(model("tiny-bert", {"sequence": 2}), TEXT)
    (sequence,) = scorer.text.sequences
    vectors = scorer.token_vectors(sequence)
    blank = scorer.baseline_vectors(sequence, vectors)
    assert torch.equal(blank[0], vectors[0])
    assert torch.equal(blank[1], embedding_modules(scorer.network)[0].weight[scorer.mask])
