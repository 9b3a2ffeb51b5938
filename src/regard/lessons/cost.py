"""Time and memory of one layer against the length of a text: attention, recurrence, convolution."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.config import AttentionConfig, ModelConfig
from regard.errors import InputError, did_you_mean
from regard.model.attention import Attention, ForwardContext
from regard.model.kernels.layout import Layout
from regard.model.recurrent.networks import RecurrentLayers
from regard.model.recurrent.unrolled import Unrolled
from regard.ragged import Ragged

LAYERS = ("attention", "stored attention", "recurrence", "convolution")
KERNEL_WIDTH = 3  # words that a convolution reads
HEAD_WIDTH = 32

Layer = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class LayerCost:
    """The cost of one training step of a layer on one text."""

    layer: str
    length: int  # tokens
    width: int
    milliseconds: float  # forward and backward; of CPU time on one core, or of a GPU
    megabytes: float  # what the forward pass keeps for the backward pass, without weights


def layer_cost(layer: str, *, length: int, width: int, device: str = "cpu", repeats: int = 3) -> LayerCost:
    """Measure one of LAYERS: the fastest of several steps.

    "stored attention" is the textbook computation, which keeps all weights of attention; "attention" uses the fused
    kernel, which computes them again in the backward pass.
    """
    if layer not in LAYERS:
        raise InputError(f'"{layer}" is not a layer.{did_you_mean(layer, LAYERS)}')
    module, run = _build(layer, length, width, torch.device(device))
    x_ND = torch.randn(length, width, generator=torch.Generator().manual_seed(0)).to(device).requires_grad_()
    saved = _saved_bytes(run, x_ND, {parameter.data_ptr() for parameter in module.parameters()})
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds = min(_step_seconds(run, x_ND) for _ in range(repeats))
    finally:
        torch.set_num_threads(threads)
    return LayerCost(layer, length, width, seconds * 1e3, saved / 1e6)


def _build(layer: str, length: int, width: int, device: torch.device) -> tuple[nn.Module, Layer]:
    batch = Ragged.of([[0] * length], device=device)
    if layer == "recurrence":
        cells = RecurrentLayers("gru", width, width, layers=1, dropout=0.0).to(device)
        steps = Unrolled.of(batch)
        return cells, lambda x_ND: cells(x_ND, batch, steps)[0]
    if layer == "convolution":
        convolution = nn.Conv1d(width, width, KERNEL_WIDTH, padding=KERNEL_WIDTH // 2).to(device)
        return convolution, lambda x_ND: convolution(x_ND.T.unsqueeze(0))[0].T
    heads = max(1, width // HEAD_WIDTH)
    config = ModelConfig(vocabulary=1, width=width, layers=1, ffn_width=width, attention=AttentionConfig(heads))
    attention = Attention(config).to(device)
    if layer == "stored attention":
        attention.mix.kernel = "reference"
    context = ForwardContext(Layout.for_self_attention(batch.bounds, length))
    return attention, lambda x_ND: attention(x_ND, context)


def _saved_bytes(run: Layer, x_ND: Tensor, weights: set[int]) -> int:
    """Bytes of the distinct tensors that the forward pass saves for the backward pass."""
    sizes: dict[int, int] = {}

    def save(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        result = run(x_ND)
        total = sum(sizes.values())  # read while the tensors are alive, so that no address is used twice
        result.sum().backward()
    return total


def _step_seconds(run: Layer, x_ND: Tensor) -> float:
    if x_ND.is_cuda:
        torch.cuda.synchronize()
        clock = time.perf_counter
    else:
        clock = time.thread_time  # depends neither on other programs nor on other threads of this process
    started = clock()
    run(x_ND).sum().backward()
    if x_ND.is_cuda:
        torch.cuda.synchronize()
    return clock() - started
