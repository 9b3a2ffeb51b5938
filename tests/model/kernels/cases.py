"""Masks, biases and lengths for every kernel, and a comparison of a kernel with the reference."""

import torch
from hypothesis import settings
from hypothesis import strategies as st

from regard.model.kernels.dense import AttentionCall
from regard.model.kernels.dispatch import attend
from regard.model.kernels.layout import Layout, Mask
from regard.model.scores import build_score

H, K = 4, 8
size = st.integers(0, 20)
few = settings(max_examples=30, deadline=None)
SELF = [(3, 3), (1, 1), (0, 0), (9, 9), (10, 10), (3, 3)]
CROSS = [(3, 5), (5, 3), (0, 4), (4, 0), (1, 9), (16, 17), (17, 16)]


def own_rule(sequence, head, query, key):
    """Depends on all four; the last head of sequence 0 sees nothing at all."""
    return ((query + key + head + sequence) % 3 > 0) & ~((sequence == 0) & (head == H - 1))


MASKS = {
    "free": Mask(),
    "causal": Mask(right=0),
    "left window": Mask(left=2, right=0),
    "both windows": Mask(left=1, right=2),
    "right only": Mask(right=1),
    "own rule": Mask(function=own_rule),
    "own rule, causal": Mask(right=0, function=own_rule),
}


def layout_of(pairs):
    counts = torch.tensor([(0, 0), *pairs])
    q_bounds, k_bounds = counts.cumsum(0).to(torch.int32).T.contiguous()
    return Layout(q_bounds, k_bounds, *counts.amax(0).tolist())


def biases(longest):
    distance = torch.arange(1 - longest, longest)
    alibi = -(2.0 ** -torch.arange(1.0, H + 1)).unsqueeze(1) * distance.abs()
    return {"none": None, "learned": torch.randn(H, 2 * longest - 1), "alibi": alibi}


def results(kernel, pairs, *, groups=H, mask=MASKS["free"], bias=None, score="scaled", select="soft", training=True):
    """The output and the gradient of everything that has one, from the same numbers whatever the kernel."""
    torch.manual_seed(0)
    layout = layout_of(pairs)
    q = torch.randn(int(layout.q_bounds[-1]), H, K, requires_grad=True)
    k = torch.randn(int(layout.k_bounds[-1]), groups, K, requires_grad=True)
    v = torch.randn(int(layout.k_bounds[-1]), groups, K, requires_grad=True)
    made = build_score(score, H, K, kv_heads=groups)
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    table = biases(max(layout.q_max_length, layout.k_max_length, 1))[bias or "none"]
    inputs = [q, k, v, *made.parameters()]
    if table is not None:
        inputs.append(table.requires_grad_())
    call = AttentionCall(layout, mask, made, select, table, training=training)
    scored_q, scored_k = made(q, k)
    out = attend(scored_q, scored_k, v, call, kernel=kernel)
    assert out.shape == q.shape
    loss = (out * torch.randn(out.shape)).sum() + 0 * sum(x.sum() for x in inputs)
    return [out.detach(), *torch.autograd.grad(loss, inputs)]


def agree(kernel, pairs, **settings):
    ours, expected = results(kernel, pairs, **settings), results("reference", pairs, **settings)
    assert all(x.isfinite().all() for x in ours)
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)
