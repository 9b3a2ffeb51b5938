"""Attention rollout equals a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.look.tiny_models import TEXT, model

from regard.look.explain.methods.attention_rollout import decoder_rollout, rollout


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


def test_what_a_decoder_reads_adds_up_to_one() -> None:
    generator = torch.Generator().manual_seed(0)
    own = [torch.rand(2, 3, 3, generator=generator).softmax(-1) for _ in range(2)]
    cross = [torch.rand(2, 3, 4, generator=generator).softmax(-1) for _ in range(2)]
    total = decoder_rollout(own, cross, rollout([torch.rand(2, 4, 4, generator=generator).softmax(-1)]))
    assert total.shape == (3, 7)
    torch.testing.assert_close(total.sum(-1), torch.ones(3))
