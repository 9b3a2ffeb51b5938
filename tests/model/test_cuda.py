"""The CUDA kernels and the network on a GPU; run where there is one, with the same claims the CPU tests make."""

import pytest
import torch
from tests.presets import transformer_config

from regard.checkpoint.families import PRESETS
from regard.checkpoint.source import from_preset
from regard.device import has_cudnn
from regard.model.initialization import initialize
from regard.model.kernels.cuda_graphs import GraphedForward, supports_graphs
from regard.model.kernels.dense import AttentionCall
from regard.model.kernels.dispatch import attend, pick_kernel
from regard.model.kernels.layout import Layout, Mask
from regard.model.network import build_network
from regard.model.positions import Alibi
from regard.model.scores import AttentionScore
from regard.model.transformer import Transformer
from regard.predict import Model
from regard.ragged import Ragged

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU"),
    pytest.mark.filterwarnings("ignore:::torch"),  # what its compiler says of itself, and of TF32
]

LENGTHS = [1, 100, 7, 33, 130, 0, 64]
MASKS = {
    "free": Mask(),
    "causal": Mask(right=0),
    "window": Mask(left=5, right=5),
    "causal window": Mask(left=9, right=0),
}


def bounds(lengths):
    return torch.tensor([0, *lengths]).cumsum(0).to(torch.int32).cuda()


def tensors(lengths, heads, dtype, seed, width=32):
    generator = torch.Generator("cuda").manual_seed(seed)
    sampled = torch.randn(sum(lengths), heads, width, device="cuda", generator=generator)
    return sampled.to(dtype).requires_grad_()


def compare(kernel, call, q, k, v, tolerance):
    out = attend(q, k, v, call, kernel=kernel)
    grad = torch.randn_like(out)
    result = torch.autograd.grad(out, (q, k, v), grad)
    exact_q, exact_k, exact_v = (x.detach().float().requires_grad_() for x in (q, k, v))
    expected = attend(exact_q, exact_k, exact_v, call, kernel="reference")
    grads = torch.autograd.grad(expected, (exact_q, exact_k, exact_v), grad.float())
    for one, other in zip((out, *result), (expected, *grads), strict=True):
        assert (one.float() - other).norm() <= tolerance * other.norm()


@pytest.mark.parametrize("groups", [4, 2, 1])
@pytest.mark.parametrize("mask", MASKS)
def test_varlen_equals_the_reference(mask, groups):
    call = AttentionCall(
        Layout.for_self_attention(bounds(LENGTHS), max(LENGTHS)), MASKS[mask], AttentionScore(32**-0.5)
    )
    q, k, v = (tensors(LENGTHS, heads, torch.bfloat16, i) for i, heads in enumerate((4, groups, groups)))
    assert pick_kernel(q, call) == "varlen"
    compare("varlen", call, q, k, v, 1e-2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("width", [16, 32, 64, 128])
@pytest.mark.parametrize("lengths", [LENGTHS, [3, 9, 24, 1, 0, 17, 30]], ids=["long", "short"])
@pytest.mark.parametrize("groups", [4, 1])
@pytest.mark.parametrize("mask", MASKS)
def test_tiles_equal_the_reference(mask, groups, lengths, width, dtype):
    call = AttentionCall(
        Layout.for_self_attention(bounds(lengths), max(lengths)), MASKS[mask], AttentionScore(width**-0.5)
    )
    q, k, v = (tensors(lengths, heads, dtype, i, width) for i, heads in enumerate((4, groups, groups)))
    with torch.no_grad():
        assert pick_kernel(q, call) == "tiles"
        result = attend(q, k, v, call).float()
        expected = attend(q.float(), k.float(), v.float(), call, kernel="reference")
    assert (result - expected).norm() <= (1e-2 if dtype == torch.bfloat16 else 1e-5) * expected.norm()


@pytest.mark.parametrize("mask", MASKS)
def test_tiles_cross_from_targets_to_sources(mask):
    sources = [3, 50, 9, 20, 1, 4, 0]
    layout = Layout(bounds(LENGTHS), bounds(sources), max(LENGTHS), max(sources))
    q, k, v = (tensors(n, 4, torch.float16, i) for i, n in enumerate((LENGTHS, sources, sources)))
    with torch.no_grad():
        call = AttentionCall(layout, MASKS[mask], AttentionScore(32**-0.5))
        result = attend(q, k, v, call, kernel="tiles").float()
        expected = attend(q.float(), k.float(), v.float(), call, kernel="reference")
    assert (result - expected).norm() <= 1e-2 * expected.norm()


@pytest.mark.parametrize("mask", [Mask(), Mask(right=0)], ids=["free", "causal"])
def test_a_rectangle_of_equal_lengths_equals_the_reference(mask):
    layout = Layout.for_self_attention(torch.arange(0, 6 * 40, 40, dtype=torch.int32, device="cuda"), 40)
    q, k, v = (tensors([40] * 5, 4, torch.bfloat16, seed) for seed in range(3))
    call = AttentionCall(layout, mask, AttentionScore(32**-0.5))
    assert pick_kernel(q, call) == ("dense" if has_cudnn() else "varlen")
    if has_cudnn():
        compare("dense", call, q, k, v, 1e-2)


def test_varlen_crosses_from_targets_to_sources():
    sources = [3, 50, 9, 20, 1, 4, 200]
    layout = Layout(bounds(LENGTHS), bounds(sources), max(LENGTHS), max(sources))
    q, k, v = (tensors(n, 4, torch.bfloat16, i) for i, n in enumerate((LENGTHS, sources, sources)))
    compare("varlen", AttentionCall(layout, Mask(), AttentionScore(32**-0.5)), q, k, v, 1e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mask", [*MASKS, "own"])
def test_flex_equals_the_reference(mask, dtype):
    own = Mask(function=lambda row, head, query, key: (query + key + row + head) % 3 != 0)
    layout = Layout.for_self_attention(bounds(LENGTHS), max(LENGTHS))
    bias = Alibi(4).cuda()(max(LENGTHS))
    call = AttentionCall(layout, MASKS.get(mask, own), AttentionScore(32**-0.5), bias_HR=bias)
    q, k, v = (tensors(LENGTHS, 4, dtype, i) for i in range(3))
    assert pick_kernel(q, call) == "flex"
    compare("flex", call, q, k, v, 1e-5 if dtype == torch.float32 else 1e-2)


def test_flex_passes_gradients_to_a_learned_bias():
    layout = Layout.for_self_attention(bounds(LENGTHS), max(LENGTHS))
    q, k, v = (tensors(LENGTHS, 4, torch.float32, i) for i in range(3))
    grads = []
    for kernel in ("flex", "reference"):
        bias = torch.linspace(-1, 1, 4 * (2 * max(LENGTHS) - 1), device="cuda").view(4, -1).requires_grad_()
        out = attend(q, k, v, AttentionCall(layout, Mask(), AttentionScore(0.2), bias_HR=bias), kernel=kernel)
        grads.append(torch.autograd.grad((out * v.detach()).sum(), bias)[0])
    assert (grads[0] - grads[1]).norm() <= 1e-4 * grads[1].norm()


def test_flash_dropout_keeps_the_mean_and_has_a_gradient():
    lengths = [64] * 15 + [48]  # of one length, they are "dense" where cuDNN is
    layout = Layout.for_self_attention(bounds(lengths), 64)
    q, k, v = (tensors(lengths, 4, torch.bfloat16, i) for i in range(3))
    free = attend(q, k, v, AttentionCall(layout, Mask(), AttentionScore(0.2)), kernel="varlen")
    call = AttentionCall(layout, Mask(), AttentionScore(0.2), dropout=0.3, training=True)
    assert pick_kernel(q, call) == "varlen"
    runs = torch.stack([attend(q, k, v, call, kernel="varlen").float() for _ in range(200)])
    assert not torch.equal(runs[0], runs[1])
    assert (runs.mean(0) - free.float()).abs().mean() < 0.03
    assert all(grad.isfinite().all() for grad in torch.autograd.grad(runs.sum(), (q, k, v)))


def run(network, batch):
    return network(batch, batch) if network.config.kind == "encoder-decoder" else network(batch)


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("tiny-")])
def test_a_network_gives_the_same_result_on_gpu_and_cpu(name):
    preset = PRESETS[name]
    network = build_network(preset.config, preset.heads).eval()
    initialize(network, preset.config, generator=torch.Generator().manual_seed(0))
    batch = Ragged.of([[(7 * i) % 90 for i in range(n)] for n in (1, 50, 7, 33, 8)])
    with torch.no_grad():
        expected = run(network, batch).hidden
        result = run(network.cuda(), batch.to("cuda")).hidden.cpu()
    assert torch.allclose(result, expected, atol=1e-4)


@pytest.mark.parametrize("name", ["bert-tiny", "modernbert-base"])
def test_compiled_in_half_precision_equals_eager_without_recompiling(name):
    preset = PRESETS[name]
    network = Transformer(transformer_config(name), preset.heads).eval().cuda()
    initialize(network, preset.config, generator=torch.Generator("cuda").manual_seed(0))
    network.bfloat16()
    torch._dynamo.reset()
    compiled = torch.compile(network, dynamic=True, fullgraph=True)
    batches = [
        Ragged.of([[(7 * i) % 90 for i in range(n)] for n in sizes], device="cuda")
        for sizes in ([5, 60, 9], [30, 31], [100, 2, 3, 4], [17] * 9, [250, 1])
    ]
    with torch.no_grad():
        for batch in batches[:2]:
            compiled(batch)
        with torch.compiler.set_stance("fail_on_recompile"):
            for batch in batches:
                result, expected = compiled(batch).hidden.float(), network(batch).hidden.float()
                assert (result - expected).norm() <= 2e-2 * expected.norm()


@pytest.mark.parametrize("sizes", [[32] * 4, [3, 40, 9]], ids=["a rectangle", "ragged"])
def test_learning_in_half_precision_is_one_graph(sizes):
    network = Transformer(transformer_config("bert-tiny"), {"masked": 0}).train().cuda()
    batch = Ragged.of([[(7 * i) % 90 for i in range(n)] for n in sizes], device="cuda")
    torch._dynamo.reset()
    with torch.autocast("cuda", torch.bfloat16):
        out = torch.compile(network, backend="aot_eager", fullgraph=True)(batch, at=torch.arange(4, device="cuda"))
    out.logits.float().sum().backward()


@pytest.mark.parametrize("compiled", [False, True])
def test_replayed_launches_give_the_result_of_the_network(compiled):
    config = transformer_config("bert-tiny")
    network = Transformer(config, {"pooled": 0, "sequence": 3}).eval().cuda()
    initialize(network, config, generator=torch.Generator("cuda").manual_seed(0))
    network.bfloat16()
    assert supports_graphs(network)
    run = torch.compile(network, dynamic=True) if compiled else network
    replay = GraphedForward(run, device=torch.device("cuda"), max_tokens=512)
    sizes = ([5, 60, 9], [30, 31], [100, 2, 3, 4], [17] * 9, [250, 1], [512] * 3)
    ids = [[[(7 * i + n) % 90 for i in range(n)] for n in row] for row in sizes]
    batches = [Ragged.of(rows, segments=[[i % 2 for i in range(len(row))] for row in rows]) for rows in ids]
    with torch.no_grad():
        results = [replay(batch) for batch in batches]  # all before any is looked at: results are not overwritten
        for batch, output in zip(batches, results, strict=True):
            expected = network(batch.to("cuda"))
            for name in ("hidden", "logits", "pooled"):
                one, other = getattr(output, name).float(), getattr(expected, name).float()
                assert one.shape == other.shape
                assert (one - other).norm() <= 2e-2 * other.norm()
    assert len(replay.recordings) < len(batches)


def test_a_compiled_model_gives_the_same_result_on_gpu_and_cpu():
    checkpoint = from_preset("tiny-bert", dtype=torch.float32)
    ids = [[(7 * i + n) % 90 for i in range(n)] for n in (1, 60, 7, 33, 500)]
    expected = [output.hidden for output in Model(checkpoint).outputs(ids)]
    checkpoint.network.to("cuda", torch.bfloat16)
    for one, other in zip(Model(checkpoint, compile=True).outputs(ids), expected, strict=True):
        assert (one.hidden.float().cpu() - other).norm() <= 3e-2 * other.norm()
