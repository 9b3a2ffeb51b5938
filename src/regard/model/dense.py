"""The dense layer, which knows the quicker of two ways to multiply a few rows on a CPU.

Shapes: N rows, I numbers in, O numbers out.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

FEW = range(8, 65)  # rows: one token each of a batch, or one short text


class Linear(nn.Linear):
    """As torch's. A few rows are multiplied as weight times rows: the long side first, which libraries split better."""

    def forward(self, x_NI: Tensor) -> Tensor:
        if not self.quick(x_NI):
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
            and x_NI.shape[0] in FEW
            and x_NI.dtype == self.weight.dtype == torch.float32
            and not torch.is_grad_enabled()
            and not torch.is_autocast_enabled("cpu")
        )
