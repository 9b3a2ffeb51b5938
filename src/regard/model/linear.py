"""The dense layer, which knows quicker ways to multiply on a CPU when only the result is wanted.

Shapes: N rows, I numbers in, O numbers out.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn

FEW = range(8, 65)  # rows: one token each of a batch, or one short text
SEVERAL = 2  # rows from which on a weight that is laid out for reading pays
MOST = 1 << 30  # bytes of weights that are laid out a second time; where there are more, memory matters more


class Linear(nn.Linear):
    """As torch's. A few rows are multiplied as weight times rows: the long side first, which libraries split better.

    Where `packs` is set, the weight is kept a second time as the library wants it, which otherwise turns it around in
    every call. It is made anew when the weight was changed in place or put elsewhere, and forgotten when the layer
    learns: fused optimizers change weights without a trace.
    """

    keeps_packed = False
    min_packed_rows = SEVERAL  # rows that are multiplied with it
    _packed: tuple[Tensor, Tensor, int] | None = None  # of which weight, and its version: held, so that its place stays

    def forward(self, x_NI: Tensor) -> Tensor:
        if not self.is_cpu_inference(x_NI):
            if self._packed is not None and torch.is_grad_enabled():
                self._packed = None
            return super().forward(x_NI)
        if self.keeps_packed and x_NI.shape[0] >= self.min_packed_rows and self.can_watch_weight():
            multiply = torch.ops.mkldnn._linear_pointwise
            out_NO: Tensor = multiply(x_NI.contiguous(), self.packed_weight(), self.bias, "none", [], "")
            return out_NO
        if x_NI.shape[0] not in FEW:
            return super().forward(x_NI)
        if self.bias is None:
            return (self.weight @ x_NI.t()).t().contiguous()
        return torch.addmm(self.bias.unsqueeze(1), self.weight, x_NI.t()).t().contiguous()

    def is_cpu_inference(self, x_NI: Tensor) -> bool:
        """Whether it is on the CPU, in fp32, for the result alone."""
        return (
            not torch.compiler.is_compiling()  # first: sizes that are compared become sizes to compile for
            and x_NI.device.type == "cpu"
            and x_NI.dim() == 2
            and x_NI.dtype == self.weight.dtype == torch.float32
            and not torch.is_grad_enabled()
            and not torch.is_autocast_enabled("cpu")
        )

    def can_watch_weight(self) -> bool:
        """Whether the weight is one that can be watched, and no step of a training is under way."""
        weight: Tensor = self.weight
        return isinstance(weight, nn.Parameter) and weight.grad is None and not weight.is_inference()

    def packed_weight(self) -> Tensor:
        """The weight as the library wants it."""
        now = self.weight.detach()
        if self._packed is not None:
            made, of, version = self._packed
            if of.data_ptr() == now.data_ptr() and version == now._version:
                return made
        laid: Tensor = torch.ops.mkldnn._reorder_linear_weight(now, FEW[-1])
        self._packed = (laid, now, now._version)
        return laid

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self._packed = None  # it goes to another device or number format
        moved: Self = super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return moved

    def __getstate__(self) -> dict[str, Any]:
        """A copy may live on a machine without the library."""
        return {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("keeps_packed", "min_packed_rows", "_packed")
        }


@functools.cache
def can_pack() -> bool:
    """Whether torch brings the library here: oneDNN with Arm's kernels. Elsewhere nothing was measured."""
    operations = ("_reorder_linear_weight", "_linear_pointwise", "_is_mkldnn_acl_supported")
    return (
        platform.machine() in ("aarch64", "arm64")
        and torch.backends.mkldnn.is_available()
        and all(hasattr(torch.ops.mkldnn, name) for name in operations)
        and bool(torch.ops.mkldnn._is_mkldnn_acl_supported())
    )


def pack_weights(network: nn.Module) -> None:
    """Let a network that only reads keep its weights a second time, if they are not too many.

    The library gives a row the same bits however many rows there are. So it multiplies a single row too, although
    that costs some 50 microseconds more than torch's way: a text has few such products, those of its pooled state. Only
    a network that writes leaves single rows to torch, since every product of a step for one text is one.
    """
    layers = [module for module in network.modules() if isinstance(module, Linear)]
    writes = "language" in getattr(network, "heads", ())
    if can_pack() and sum(4 * layer.weight.numel() for layer in layers) <= MOST:
        for layer in layers:
            layer.keeps_packed = True
            layer.min_packed_rows = SEVERAL if writes else 1
