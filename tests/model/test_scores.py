import pytest
import torch

from regard.config import SCORES
from regard.model.scores import build_score, scores_to_weights

H, T, S, K = 2, 3, 4, 6


def prepared(name, *, groups=None):
    torch.manual_seed(0)
    score = build_score(name, H, K, kv_heads=groups)
    for weight in score.parameters():
        torch.nn.init.normal_(weight)
    q_THK, k_SGK = torch.randn(T, H, K), torch.randn(S, groups or H, K)
    return score, q_THK, k_SGK


def by_definition(name, score, head, q_K, k_K, group):
    if name == "cosine":
        return q_K @ k_K / (q_K.norm() * k_K.norm())
    if name == "bilinear":
        return q_K @ score.weight[head] @ k_K
    if name == "additive":
        return score.weight[head] @ torch.tanh(q_K @ score.query[head] + k_K @ score.key[group])
    return q_K @ k_K * (K**-0.5 if name == "scaled" else 1.0)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("groups", [None, 1])
def test_pairs_of_prepared_queries_and_keys_are_the_score_by_definition(name, groups):
    score, q_THK, k_SGK = prepared(name, groups=groups)
    q, k = score(q_THK, k_SGK)
    k = k.repeat_interleave(H // k.shape[1], 1)
    pairs_HTS = score.score_pairs(q.transpose(0, 1), k.transpose(0, 1))
    for head in range(H):
        group = head if groups is None else 0
        for t in range(T):
            for s in range(S):
                expected = by_definition(name, score, head, q_THK[t, head], k_SGK[s, group], group)
                torch.testing.assert_close(pairs_HTS[head, t, s], expected)


@pytest.mark.parametrize("name", SCORES)
def test_pairs_of_chosen_heads_are_those_heads_of_all(name):
    score, q_THK, k_SHK = prepared(name)
    q, k = (x.transpose(0, 1) for x in score(q_THK, k_SHK))
    chosen = torch.tensor([1])
    torch.testing.assert_close(score.score_pairs(q[chosen], k[chosen], chosen), score.score_pairs(q, k)[chosen])


def test_true_means_may_attend():
    allowed = torch.tensor([[True, False, True]])
    weights = scores_to_weights(torch.zeros(1, 3), allowed, select="soft")
    assert weights.tolist() == [[0.5, 0.0, 0.5]]


@pytest.mark.parametrize("select", ["soft", "hard"])
@pytest.mark.parametrize("training", [True, False])
def test_a_query_that_may_see_nothing_gets_zeros_and_no_nan_in_its_gradient(select, training):
    scores = torch.randn(2, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    allowed = torch.tensor([[False, False, False], [True, True, False]])
    weights = scores_to_weights(scores, allowed, select=select, training=training)
    assert weights[0].tolist() == [0.0, 0.0, 0.0]
    assert weights[1].sum().item() == pytest.approx(1.0)
    if weights.requires_grad:
        (grad,) = torch.autograd.grad((weights * torch.arange(3.0)).sum(), scores)
        assert grad.isfinite().all()
        assert grad[0].tolist() == [0.0, 0.0, 0.0]


def test_hard_is_exactly_one_hot_at_the_best_allowed_key():
    scores = torch.randn(50, 7, generator=torch.Generator().manual_seed(0)) * 3
    allowed = torch.rand(50, 7, generator=torch.Generator().manual_seed(1)) > 0.3
    allowed[:, 0] = True
    best = scores.masked_fill(~allowed, -torch.inf).argmax(-1)
    for training in (True, False):
        weights = scores_to_weights(scores, allowed, select="hard", training=training)
        assert torch.equal(weights, torch.nn.functional.one_hot(best, 7).float())


def test_hard_passes_on_the_gradient_of_the_softmax_in_training():
    generator = torch.Generator().manual_seed(0)
    scores, grad = torch.randn(4, 5, generator=generator), torch.randn(4, 5, generator=generator)
    grads = []
    for select in ("soft", "hard"):
        inputs = scores.clone().requires_grad_()
        scores_to_weights(inputs, None, select=select, training=True).backward(grad)
        grads.append(inputs.grad)
    torch.testing.assert_close(grads[0], grads[1])
    assert grads[0].abs().sum() > 0
