"""Attention as an explanation: rollout and value-weighted attention equal plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.look.tiny_models import TEXT, model

from regard.look.explain.explain import make_scorer
from regard.look.explain.methods.attention_rollout import decoder_rollout, rollout
from regard.look.explain.methods.value_weighted_attention import shares


def test_rollout_equals_a_loop() -> None:
    loaded = model("tiny-bert", {"sequence": 2})
    attention = loaded.attention(TEXT)
    size = len(attention.tokens)
    total = np.eye(size)
    for layer in attention:
        mean = attention[layer].mean(0).numpy()
        new = np.zeros((size, size))
        for i in range(size):
            for j in range(size):
                new[i, j] = sum((mean[i, k] + (i == k)) / 2 * total[k, j] for k in range(size))
        total = new
    explanation = loaded.explain(TEXT, method="attention_rollout")
    np.testing.assert_allclose(explanation.token_scores, total[0], atol=1e-6)
    assert sum(explanation.token_scores) == pytest.approx(1, abs=1e-5)


def test_the_last_layer_is_the_mean_of_its_heads() -> None:
    loaded = model("tiny-bert", {"sequence": 2})
    explanation = loaded.explain(TEXT, method="attention")
    np.testing.assert_allclose(explanation.token_scores, loaded.attention(TEXT)[2].mean(0)[0].numpy(), atol=1e-6)
    assert explanation.note is not None
    assert "not an explanation" in explanation.note
    assert not explanation.signed


def test_what_a_decoder_reads_adds_up_to_one() -> None:
    generator = torch.Generator().manual_seed(0)
    own = [torch.rand(2, 3, 3, generator=generator).softmax(-1) for _ in range(2)]
    cross = [torch.rand(2, 3, 4, generator=generator).softmax(-1) for _ in range(2)]
    total = decoder_rollout(own, cross, rollout([torch.rand(2, 4, 4, generator=generator).softmax(-1)]))
    assert total.shape == (3, 7)
    torch.testing.assert_close(total.sum(-1), torch.ones(3))


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
