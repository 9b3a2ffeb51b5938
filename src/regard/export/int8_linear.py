"""Linear layers with 8-bit integer weights, for inference on a CPU with torch alone.

It works as follows:

1. Input dimensions with large numbers are scaled down, and the weights that read them up; see smoothing.py.
2. Each row of the weight is divided by its largest absolute value and rounded to integers from -127 to 127.
3. Each token is divided by its own largest absolute value, so that a token with large numbers does not cost the
   others precision; torch then rounds the tokens to integers too (`quantized::linear_dynamic`, oneDNN).
4. The product of the integers is multiplied by both scales in fp32, and the bias is added.

Norms, attention and heads stay in fp32. Scales per row are applied here and not by oneDNN: its weights with one scale
per channel are slow and wrong on ARM.

Shapes: N tokens, I numbers in, O numbers out.
"""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Collection

import torch
from torch import Tensor, nn

from regard.device import needs_reduced_range
from regard.errors import InputError, RegardError
from regard.export.smoothing import smoothing_scales
from regard.model.block import Block
from regard.model.linear import Linear, pack_weights
from regard.model.network import Network

ENGINE = "onednn"
LEVELS = 127  # largest integer of a weight
MAX_ERROR = 0.05  # of a layer's output relative to fp32; 8 bits give about 0.01
CHECK_TOKENS = 64


class Int8Linear(nn.Module):
    """A linear layer whose matrix product is computed with 8-bit integers."""

    def __init__(self, layer: nn.Linear, smoothing_I: Tensor, *, reduce_range: bool | None = None) -> None:
        super().__init__()
        self.in_features = layer.in_features
        self.out_features = layer.out_features
        # 7 bits for activations, where products of 8 bits would overflow
        self.reduce_range = needs_reduced_range(reduce_range)
        self.inverse_I = 1 / smoothing_I
        weight_OI = layer.weight.detach().float() * smoothing_I
        self.row_scale_O = weight_OI.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny)
        self.bias_O = weight_OI.new_zeros(len(weight_OI)) if layer.bias is None else layer.bias.detach().float()
        self.packed = _pack(weight_OI / self.row_scale_O.unsqueeze(1))

    def forward(self, x_NI: Tensor) -> Tensor:
        if not x_NI.shape[0]:
            return x_NI.new_zeros(0, self.out_features)
        x_NI = x_NI * self.inverse_I
        scale_N1 = torch.linalg.vector_norm(x_NI, float("inf"), dim=1, keepdim=True)
        scale_N1.clamp_(min=torch.finfo(torch.float32).tiny)
        product_NO: Tensor = torch.ops.quantized.linear_dynamic(x_NI.div_(scale_N1), self.packed, self.reduce_range)
        return torch.addcmul(self.bias_O, product_NO.mul_(scale_N1), self.row_scale_O)

    @property
    def bytes(self) -> int:
        """The size of the weights."""
        vectors = (self.inverse_I, self.row_scale_O, self.bias_O)
        return self.in_features * self.out_features + sum(vector.nbytes for vector in vectors)


def _pack(weight_OI: Tensor) -> torch.ScriptObject:
    """A weight with entries from -1 to 1 as integers, in oneDNN's layout."""
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = ENGINE
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch wants to replace the type of the tensor, not the operation
            integers_OI = torch.quantize_per_tensor(weight_OI, 1 / LEVELS, 0, torch.qint8)
        packed: torch.ScriptObject = torch.ops.quantized.linear_prepack(integers_OI, None)
        return packed
    finally:
        torch.backends.quantized.engine = before


def int8_layers(network: nn.Module) -> dict[str, Linear]:
    """The layers that can be computed in int8, by name: all linear layers of the blocks. Heads stay in fp32."""
    return {
        f"{block_name}.{name}": layer
        for block_name, block in network.named_modules()
        if isinstance(block, Block)
        for name, layer in block.named_modules()
        if isinstance(layer, Linear)
    }


def int8_network(network: Network, *, reduce_range: bool | None = None, exclude: Collection[str] = ()) -> Network:
    """A copy of the network with int8 layers; everything else is shared with the original.

    reduce_range: whether activations have 7 bits in place of 8; None: if this CPU needs it.
    exclude: names of layers (see `int8_layers`) that stay in fp32.
    Raises InputError for a network without such layers, RegardError where this machine computes them wrongly.
    """
    if not int8_layers(network):
        raise InputError("this network has no Transformer blocks, so there is nothing to compute in int8.")
    if ENGINE not in torch.backends.quantized.supported_engines:
        raise RegardError(f"this build of torch has no {ENGINE} engine for int8 products.")
    tensors = itertools.chain(network.parameters(), network.buffers())
    copied = copy.deepcopy(network, {id(tensor): tensor for tensor in tensors})
    checked: set[tuple[int, int]] = set()
    scales = smoothing_scales(network, int8_layers(network))
    for name, layer in int8_layers(copied).items():
        if name in exclude or name not in scales:
            continue
        new_layer = Int8Linear(layer, scales[name], reduce_range=reduce_range)
        if (layer.in_features, layer.out_features) not in checked:
            check_layer(layer, new_layer)
            checked.add((layer.in_features, layer.out_features))
        copied.set_submodule(name, new_layer)
    pack_weights(copied)
    return copied.eval()


@torch.inference_mode()
def check_layer(layer: nn.Linear, int8_layer: Int8Linear) -> None:
    """Raise RegardError unless the int8 layer computes nearly the same as the layer in fp32."""
    generator = torch.Generator().manual_seed(0)
    x_NI = torch.randn(CHECK_TOKENS, layer.in_features, generator=generator) / int8_layer.inverse_I
    bias_O = None if layer.bias is None else layer.bias.float()
    expected_NO = nn.functional.linear(x_NI, layer.weight.float(), bias_O)
    difference = (int8_layer(x_NI) - expected_NO).norm() / expected_NO.norm().clamp(min=1e-12)
    if not difference <= MAX_ERROR:
        shape = f"{layer.in_features} to {layer.out_features}"
        raise RegardError(f"int8 products are wrong on this machine: a layer from {shape} is {difference:.0%} off.")
