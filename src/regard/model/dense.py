"""The dense layer, which knows quicker ways to multiply on a CPU when only the result is wanted.

Shapes: N rows, I numbers in, O numbers out.
"""

from __future__ import annotations

import platform
from typing import Any

import torch
from torch import Tensor, nn

FEW = range(8, 65)  # rows: one token each of a batch, or one short text
SEVERAL = 4  # rows from which on a weight that is laid out for reading pays
MOST = 1 << 30  # bytes of weights that are laid out a second time; where there are more, memory matters more


class Linear(nn.Linear):
    """As torch's. A few rows are multiplied as weight times rows: the long side first, which libraries split better.

    Where `packs` is set, the weight is kept a second time as the library wants it, which otherwise turns it around in
    every call. It is made anew when the weight was changed in place or put elsewhere.
    """

    packs = False
    _packed: tuple[Tensor, int, int] | None = None  # with version and address of the weight it was made of

    def forward(self, x_NI: Tensor) -> Tensor:
        if not self.quick(x_NI):
            return super().forward(x_NI)
        if self.packs and x_NI.shape[0] >= SEVERAL:
            multiply = torch.ops.mkldnn._linear_pointwise
            out_NO: Tensor = multiply(x_NI.contiguous(), self.packed(), self.bias, "none", [], "")
            return out_NO
        if x_NI.shape[0] not in FEW:
            return super().forward(x_NI)
        if self.bias is None:
            return (self.weight @ x_NI.t()).t().contiguous()
        return torch.addmm(self.bias.unsqueeze(1), self.weight, x_NI.t()).t().contiguous()

    def quick(self, x_NI: Tensor) -> bool:
        """Whether it is on the CPU, in fp32, for the result alone."""
        return (
            not torch.compiler.is_compiling()  # first: sizes that are compared become sizes to compile for
            and x_NI.device.type == "cpu"
            and x_NI.dim() == 2
            and x_NI.dtype == self.weight.dtype == torch.float32
            and not torch.is_grad_enabled()
            and not torch.is_autocast_enabled("cpu")
        )

    def packed(self) -> Tensor:
        """The weight as the library wants it."""
        weight = self.weight
        now = (0 if weight.is_inference() else weight._version, weight.data_ptr())
        if self._packed is None or self._packed[1:] != now:
            self._packed = (torch.ops.mkldnn._reorder_linear_weight(weight.detach(), FEW[-1]), *now)
        return self._packed[0]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_packed"}  # a copy makes its own


def can_pack() -> bool:
    """Whether torch brings the library here (oneDNN with Arm's kernels). Elsewhere nothing was measured."""
    return platform.machine() in ("aarch64", "arm64") and torch.backends.mkldnn.is_available() and _HAS_OPERATION


_HAS_OPERATION = hasattr(torch.ops.mkldnn, "_reorder_linear_weight") and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def pack(network: nn.Module) -> None:
    """Let a network that only reads keep its weights a second time, if they are not too many."""
    layers = [module for module in network.modules() if isinstance(module, Linear)]
    held = {id(layer.weight): 4 * layer.weight.numel() for layer in layers}  # one that is shared is counted once
    if can_pack() and sum(held.values()) <= MOST:
        for layer in layers:
            layer.packs = True
