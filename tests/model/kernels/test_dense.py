"""Dense attention: torch's fused kernel and the explicit one compute the same."""

import pytest
import torch
from tests.model.kernels.cases import H, K, layout_of

from regard.model.kernels.dense import (
    AttentionCall,
    explicit_attention,
    fused_attention,
    pairwise_bias,
    sequence_weights,
)
from regard.model.scores import build_score


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_fused_equals_explicit(masked, biased):
    torch.manual_seed(0)
    call = AttentionCall(layout_of([(5, 5), (5, 5)]))
    q = torch.randn(2, H, 5, K)
    k, v = torch.randn(2, 2, 2, 5, K)
    allowed = torch.ones(5, 5, dtype=torch.bool).tril() if masked else None
    bias = torch.randn(2, H, 5, 5) if biased else None
    fused = fused_attention(q, k, v, call, allowed, bias)
    torch.testing.assert_close(fused, explicit_attention(q, k, v, call, allowed, bias), rtol=1e-5, atol=1e-6)


def test_a_bias_depends_on_the_distance():
    table = torch.arange(7.0).expand(H, 7)  # distances -3 to 3
    place = torch.arange(4)
    bias = pairwise_bias(table, place.view(1, 1, 4, 1), place.view(1, 1, 1, 4))
    assert bias.shape == (1, H, 4, 4)
    assert bias[0, 0].tolist() == [[key - query + 3 for key in range(4)] for query in range(4)]


def test_weights_of_some_queries_are_rows_of_all():
    torch.manual_seed(0)
    call = AttentionCall(layout_of([(6, 6)]))
    q, k = torch.randn(2, H, 6, K)
    weights = sequence_weights(q, k, call, row=0, rows=slice(None))
    torch.testing.assert_close(weights.sum(-1), torch.ones(H, 6))
    torch.testing.assert_close(sequence_weights(q, k, call, row=0, rows=slice(2, 4)), weights[:, 2:4])


def test_dropout_and_fusing_follow_the_call():
    layout = layout_of([(2, 2)])
    assert AttentionCall(layout, dropout=0.3).active_dropout == 0
    assert AttentionCall(layout, dropout=0.3, training=True).active_dropout == 0.3
    assert AttentionCall(layout).can_fuse
    assert not AttentionCall(layout, select="hard").can_fuse
    assert not AttentionCall(layout, score=build_score("additive", H, K)).can_fuse
