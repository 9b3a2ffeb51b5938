"""The Triton kernel. Without a GPU it runs in Triton's interpreter, where Triton is installed: pip install triton."""

import importlib.util
import os

import pytest
import torch

from regard.model.kernels.dense import AttentionCall
from regard.model.kernels.dispatch import attend
from regard.model.kernels.layout import Layout, Mask
from regard.model.scores import AttentionScore

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")
pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MASKS = {"free": Mask(), "causal": Mask(right=0), "window": Mask(2, 3), "causal window": Mask(4, 0)}
SIZES = {"short": ([3, 9, 0, 17], [3, 9, 0, 17]), "long": ([1, 90, 70], [1, 90, 70]), "cross": ([5, 20, 2], [30, 4, 0])}


def call_of(sizes, mask):
    q_bounds, k_bounds = (torch.tensor([0, *size]).cumsum(0).int().to(DEVICE) for size in sizes)
    return AttentionCall(Layout(q_bounds, k_bounds, max(sizes[0]), max(sizes[1])), mask, AttentionScore(0.25))


def random_tensor(tokens, heads, seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(tokens, heads, 16, generator=generator).to(DEVICE, dtype)


def check(sizes, mask, groups, *, compiled, dtype=torch.float16):
    call = call_of(SIZES[sizes], MASKS[mask])
    queries, keys = (sum(size) for size in SIZES[sizes])
    q, k, v = (
        random_tensor(queries, 2, 0, dtype),
        random_tensor(keys, groups, 1, dtype),
        random_tensor(keys, groups, 2, dtype),
    )

    def run(q, k, v):
        return attend(q, k, v, call, kernel="tiles")

    result = (torch.compile(run, backend="aot_eager", fullgraph=True) if compiled else run)(q, k, v).float()
    expected = attend(q.float(), k.float(), v.float(), call, kernel="reference")
    assert (result - expected).norm() <= (1e-2 if dtype == torch.float16 else 1e-6) * expected.norm()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("groups", [2, 1])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("sizes", SIZES)
def test_tiles_equal_the_reference(sizes, mask, groups, dtype):
    check(sizes, mask, groups, compiled=False, dtype=dtype)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_compiler_passes_tiles_on_as_they_are(sizes):
    check(sizes, "causal", 1, compiled=True)
