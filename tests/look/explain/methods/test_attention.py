"""Attention weights of the last layer."""

from __future__ import annotations

import numpy as np
from tests.look.tiny_models import TEXT, model


def test_the_last_layer_is_the_mean_of_its_heads() -> None:
    loaded = model("tiny-bert", {"sequence": 2})
    explanation = loaded.explain(TEXT, method="attention")
    np.testing.assert_allclose(explanation.token_scores, loaded.attention(TEXT)[2].mean(0)[0].numpy(), atol=1e-6)
    assert explanation.note is not None
    assert "not an explanation" in explanation.note
    assert not explanation.signed
