"""One graph serves every batch. `aot_eager` traces forward and backward as inductor does, without its minute of C++."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from tests.presets import transformer_config
from torch._dynamo.testing import CompileCounterWithBackend

from regard.config import AttentionConfig
from regard.model.kernels.dense import AttentionCall
from regard.model.kernels.dispatch import attend
from regard.model.kernels.layout import Layout, Mask
from regard.model.scores import AttentionScore

LENGTHS = [[3, 5], [4, 4, 7], [2, 0, 3], [10, 11, 12, 13, 14]]
BUDGET = {"tokens": 64, "sequences": 12, "max_length": 16}
SMALL = {name: replace(transformer_config(f"tiny-{name}"), layers=1) for name in ("bert", "llama")}
SMALL["t5"] = replace(transformer_config("tiny-t5"), layers=1, decoder_layers=1)


@pytest.fixture(autouse=True)
def reset_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def gradients(network, run, *batches):
    network.zero_grad()
    output = run(*batches)
    output.logits.square().mean().backward()
    return [output.logits.detach(), *(p.grad.clone() for p in network.parameters() if p.grad is not None)]


def compiled(network):
    counter = CompileCounterWithBackend("aot_eager")
    return torch.compile(network, backend=counter, fullgraph=True), counter


def agree(network, run, *batches):
    for actual, expected in zip(gradients(network, run, *batches), gradients(network, network, *batches), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6)


def test_a_fixed_budget_compiles_once(build, tokens):
    network = build(SMALL["bert"], {"sequence": 3})
    run, counter = compiled(network)
    for lengths in LENGTHS:
        agree(network, run, tokens(lengths).fixed(**BUDGET))
    assert counter.frame_count == 1


def test_changing_sizes_compile_once_more_and_then_no_more(build, tokens):
    network = build(SMALL["llama"], {"language": 0})
    run, counter = compiled(network)
    for lengths in LENGTHS[:2]:
        agree(network, run, tokens(lengths))
    with torch.compiler.set_stance("fail_on_recompile"):
        for lengths in LENGTHS[2:]:
            agree(network, run, tokens(lengths))
    assert counter.frame_count == 2


def test_an_encoder_and_decoder_with_biases_compile_as_one(build, tokens):
    network = build(SMALL["t5"], {"language": 0})
    run, counter = compiled(network)
    for lengths in LENGTHS:
        agree(network, run, tokens(lengths), tokens([length + 1 for length in lengths[::-1]], seed=1))
    assert counter.frame_count == 2


def test_compiled_training_with_dropout_runs_and_samples_each_time(build, tokens):
    config = replace(SMALL["bert"], attention=AttentionConfig(4, dropout=0.5), dropout=0.0)
    network = build(config, {"masked": 0}).train()
    run, counter = compiled(network)
    batch = tokens(LENGTHS[1]).fixed(**BUDGET)
    first, *grads = gradients(network, run, batch)
    second = gradients(network, run, batch)[0]
    assert (first - second).abs().max() > 1e-3
    assert all(grad.isfinite().all() for grad in grads)
    assert counter.frame_count == 1
    torch.manual_seed(3)
    once = run(batch).logits
    torch.manual_seed(3)
    assert torch.equal(run(batch).logits, once)


def test_the_same_places_are_dropped_forward_and_backward():
    """What comes out is linear in the values, so <g, out> = <dv, v> holds exactly when both drop the same."""
    torch.manual_seed(0)
    q, k, g = torch.randn(3, 12, 4, 8)
    v = torch.randn(12, 2, 8, requires_grad=True)
    call = AttentionCall(
        Layout.for_self_attention(torch.tensor([0, 5, 7, 12]), 5), Mask(right=0), dropout=0.5, training=True
    )

    def drop(v):
        return attend(q, k[:, :2], v, call, kernel="grouped")

    out = torch.compile(drop, backend="aot_eager", fullgraph=True)(v)
    (grad,) = torch.autograd.grad(out, v, g)
    torch.testing.assert_close((g * out).sum(), (grad * v).sum())
    assert (out - drop(v)).abs().max() > 1e-3


def test_a_query_without_keys_and_a_batch_of_nothing_have_gradients_when_compiled():
    mask, score = Mask(), AttentionScore()

    def total(q, k, bounds, ends):
        return attend(q, k, k, AttentionCall(Layout(bounds, ends, 2, 2), mask, score), kernel="grouped")

    run = torch.compile(total, backend="aot_eager", fullgraph=True)
    q, k = torch.randn(3, 4, 8, requires_grad=True), torch.randn(2, 4, 8, requires_grad=True)
    for ends in ([0, 0, 2], [0, 2, 2]):
        out = run(q, k, torch.tensor([0, 2, 3]), torch.tensor(ends))
        expected = total(q, k, torch.tensor([0, 2, 3]), torch.tensor(ends))
        torch.testing.assert_close(out, expected)
        for ours, theirs in zip(*(torch.autograd.grad(x.square().sum(), (q, k)) for x in (out, expected)), strict=True):
            torch.testing.assert_close(ours, theirs)
    none = run(q, torch.randn(0, 4, 8), torch.tensor([0, 2, 3]), torch.tensor([0, 0, 0]))
    assert not none.any()
    assert not torch.autograd.grad(none.sum(), q)[0].any()


@torch.no_grad()
def test_what_no_fused_kernel_can_do_still_runs_compiled(build, tokens):
    """Additive scores and a mask of one's own pause the graph instead of failing."""
    network = build(replace(SMALL["bert"], attention=AttentionConfig(4, score="additive")), {"masked": 0})
    run, batch = torch.compile(network, backend="eager"), tokens([5, 2])
    torch.testing.assert_close(run(batch).logits, network(batch).logits)

    def alone(sequence, head, query, key):
        return query == key

    torch.testing.assert_close(run(batch, mask=alone).logits, network(batch, mask=alone).logits)


def test_building_a_network_does_not_import_the_compiler():
    """It takes as long to import as the rest of torch."""
    program = "import sys, regard; regard.create('tiny-t5'); sys.exit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
