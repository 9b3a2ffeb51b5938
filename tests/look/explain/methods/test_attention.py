"""Attention weights of the last layer."""

from __future__ import annotations

import numpy as np
from tests.look.tiny_models import TEXT, model

from regard.model.mean_layer import append_mean_layer


def test_the_last_layer_is_the_mean_of_its_heads() -> None:
    loaded = model("tiny-bert", {"sequence": 2})
    explanation = loaded.explain(TEXT, method="attention")
    np.testing.assert_allclose(explanation.token_scores, loaded.attention(TEXT)[2].mean(0)[0].numpy(), atol=1e-6)
    assert explanation.note is not None
    assert "not an explanation" in explanation.note
    assert not explanation.signed


def test_a_layer_that_averages_is_multiplied_by_the_one_before() -> None:
    loaded = model("tiny-bert", {"sequence": 2})
    append_mean_layer(loaded.network)
    layers = loaded.attention(TEXT)
    last, before = layers[3].mean(0)[0].numpy(), layers[2].mean(0).numpy()
    assert last.max() - last.min() < 1e-6
    explanation = loaded.explain(TEXT, method="attention")
    np.testing.assert_allclose(explanation.token_scores, last @ before, atol=1e-6)
    assert max(explanation.token_scores) - min(explanation.token_scores) > 1e-3
