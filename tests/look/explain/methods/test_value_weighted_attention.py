"""Value-weighted attention equals a plain loop."""

from __future__ import annotations

import pytest
import torch
from tests.look.tiny_models import TEXT, model

from regard.look.explain.explain import make_scorer
from regard.look.explain.methods.value_weighted_attention import shares


def test_shares_equal_a_loop() -> None:
    generator = torch.Generator().manual_seed(1)
    heads, groups, tokens, width, size = 4, 2, 3, 2, 5
    weights = torch.rand(heads, tokens, tokens, generator=generator)
    values = torch.rand(tokens, groups, width, generator=generator)
    output = torch.rand(size, heads, width, generator=generator)
    x = torch.rand(tokens, size, generator=generator)
    expected = torch.zeros(tokens, tokens)
    for i in range(tokens):
        for j in range(tokens):
            carried = sum(weights[h, i, j] * (output[:, h] @ values[j, h // 2]) for h in range(heads))
            expected[i, j] = torch.linalg.vector_norm(carried + (x[i] if i == j else 0))
    torch.testing.assert_close(shares(weights, values, output, x), expected / expected.sum(-1, keepdim=True))


def test_value_weighted_attention_follows_the_layers_of_a_network() -> None:
    loaded = model("tiny-llama")
    explanation = loaded.explain(TEXT, method="value_weighted_attention")
    assert sum(explanation.token_scores) == pytest.approx(1, abs=1e-5)
    assert make_scorer(loaded, TEXT).erased_by == explanation.erased_by == "removal"
