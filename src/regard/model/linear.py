"""A linear layer with faster matrix products for inference on a CPU and for training on a GPU.

Shapes: N rows, I numbers in, O numbers out.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn

from regard.model.kernels.gpu_linear import LinearFunction, is_half_training

ARM = platform.machine().lower() in ("aarch64", "arm64")
X86 = platform.machine().lower() in ("x86_64", "amd64")
FEW = range(8, 65)  # rows: one token per sequence of a batch, or one short text
SEVERAL = 2 if ARM else 4  # rows from which a packed weight is faster
MOST = 1 << 30  # bytes of weights that are packed at most, to limit memory


class Linear(nn.Linear):
    """nn.Linear. For few rows the product is computed as weight times rows, which libraries parallelize better.

    With `keeps_packed`, a second copy of the weight is kept in oneDNN's own layout, which saves reordering it in every
    call. The copy is made again when the weight was changed in place or moved, and dropped in training, since fused
    optimizers change weights without increasing their version.
    """

    keeps_packed = False
    min_packed_rows = SEVERAL  # fewest rows that use the packed weight
    _packed: tuple[Tensor, Tensor, int] | None = (
        None  # packed weight, its source and version; the reference keeps the address in use
    )

    def forward(self, x_NI: Tensor) -> Tensor:
        if not self.is_cpu_inference(x_NI):
            if self._packed is not None and torch.is_grad_enabled():
                self._packed = None
            if is_half_training(x_NI, self.weight, self.bias):
                trained_NO: Tensor = LinearFunction.apply(x_NI, self.weight, self.bias)  # type: ignore[no-untyped-call]
                return trained_NO
            return super().forward(x_NI)
        if self.keeps_packed and x_NI.shape[0] >= self.min_packed_rows and self.can_watch_weight():
            return self.packed_product(x_NI)
        if x_NI.shape[0] not in FEW:
            return super().forward(x_NI)
        if self.bias is None:
            return (self.weight @ x_NI.t()).t().contiguous()
        return torch.addmm(self.bias.unsqueeze(1), self.weight, x_NI.t()).t().contiguous()

    def is_cpu_inference(self, x_NI: Tensor) -> bool:
        """Whether this is inference on a CPU in fp32."""
        return (
            not torch.compiler.is_compiling()  # first: comparing sizes would specialize the compiled graph
            and x_NI.device.type == "cpu"
            and x_NI.dim() == 2
            and x_NI.dtype == self.weight.dtype == torch.float32
            and not torch.is_grad_enabled()
            and not torch.is_autocast_enabled("cpu")
        )

    def can_watch_weight(self) -> bool:
        """Whether changes of the weight can be detected: it is a parameter without a gradient."""
        weight: Tensor = self.weight
        return isinstance(weight, nn.Parameter) and weight.grad is None and not weight.is_inference()

    def packed_product(self, x_NI: Tensor) -> Tensor:
        """The product with the packed weight. A row has the same bits for any number of rows.

        On x86, oneDNN adds up a single row of many numbers in another order: such a row is computed twice.
        """
        is_doubled = X86 and x_NI.shape[0] == 1
        rows_NI = x_NI.expand(2, -1) if is_doubled else x_NI
        multiply = torch.ops.mkldnn._linear_pointwise
        out_NO: Tensor = multiply(rows_NI.contiguous(), self.packed_weight(), self.bias, "none", [], "")
        return out_NO[:1] if is_doubled else out_NO

    def packed_weight(self) -> Tensor:
        """The weight in oneDNN's layout."""
        now = self.weight.detach()
        if self._packed is not None:
            made, of, version = self._packed
            if of.data_ptr() == now.data_ptr() and version == now._version:
                return made
        laid: Tensor = torch.ops.mkldnn._reorder_linear_weight(now, FEW[-1])
        self._packed = (laid, now, now._version)
        return laid

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self._packed = None  # the weight moves to another device or dtype
        moved: Self = super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return moved

    def __getstate__(self) -> dict[str, Any]:
        """Without the packed copy: the pickle may be loaded on a machine without oneDNN."""
        return {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("keeps_packed", "min_packed_rows", "_packed")
        }


@functools.cache
def can_pack() -> bool:
    """Whether torch has oneDNN here, on ARM with the Arm Compute Library; other processors were not measured."""
    operations = ("_reorder_linear_weight", "_linear_pointwise", "_is_mkldnn_acl_supported")
    if not torch.backends.mkldnn.is_available() or not all(hasattr(torch.ops.mkldnn, name) for name in operations):
        return False
    return X86 or (ARM and bool(torch.ops.mkldnn._is_mkldnn_acl_supported()))


def pack_weights(network: nn.Module) -> None:
    """Let a network for inference keep packed copies of its weights, if they are small enough.

    oneDNN gives a row the same bits for any number of rows. So it multiplies single rows too, although that takes some
    50 to 100 microseconds longer than torch: a text has few such products, those of its pooled state. Only a network
    that generates leaves few rows to torch, since every product of a decoding step has one row per text or beam.
    """
    layers = [module for module in network.modules() if isinstance(module, Linear)]
    generates = "language" in getattr(network, "heads", ())
    if can_pack() and sum(4 * layer.weight.numel() for layer in layers) <= MOST:
        for layer in layers:
            layer.keeps_packed = True
            layer.min_packed_rows = SEVERAL if generates else 1
