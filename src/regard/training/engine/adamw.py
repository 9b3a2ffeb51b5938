"""AdamW, which on a CPU updates only those rows of token embeddings that ever had a gradient.

A step reads a few hundred tokens of a vocabulary of 30,000, so nearly all rows of the gradient of the embeddings are
zero. As one tensor it is the largest gradient of a small network: to allocate it, to take its norm and to update all
moments takes a tenth of a step of 900 tokens of MiniLM, and more of smaller steps. `row_gradients` makes it sparse.

The update stays the same: before a row has its first gradient, its moments are zero, and AdamW changes it by weight
decay only. With so many different tokens that copying their rows takes longer than an update of all rows, the gradient
becomes a dense tensor again, in memory that is used in every step.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

MAX_FRACTION = 1 / 8  # of all rows, up to which the rows with gradients are copied


@contextmanager
def row_gradients(network: nn.Module) -> Iterator[None]:
    """In this block, token embeddings on a CPU get sparse gradients, which `AdamW` and `gradients` here read.

    Not if their weights have a second use, such as an output layer: then all rows have gradients.
    """
    uses = Counter(id(parameter) for _, parameter in network.named_parameters(remove_duplicate=False))
    tables = [
        module
        for name, module in network.named_modules()
        if isinstance(module, nn.Embedding) and name.endswith("tokens") and uses[id(module.weight)] == 1
    ]
    tables = [table for table in tables if table.weight.device.type == "cpu"]
    for table in tables:
        table.sparse = True
    try:
        yield
    finally:
        for table in tables:
            table.sparse = False


def gradients(parameters: Iterable[Tensor]) -> list[Tensor]:
    """The gradient of each parameter that has one, to be read or changed in place; of a sparse one its values."""
    tensors = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
            tensors.append(parameter.grad.values())
        elif parameter.grad is not None:
            tensors.append(parameter.grad)
    return tensors


class AdamW(torch.optim.AdamW):
    """torch's AdamW without the decorators that import torch's compiler at the first call, which takes seconds.

    Sparse gradients change weights and moments as the same gradients in dense form would.
    """

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    _dense_step = inspect.unwrap(torch.optim.AdamW.step)

    def __init__(self, params: Any, **settings: Any) -> None:
        super().__init__(params, **settings)
        self._tables: dict[Tensor, _Table] = {}

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # the loss is never computed again here
        """Update every parameter that has a gradient."""
        allocate_state(self)
        used_tables = []
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and parameter.grad.is_sparse:
                    table = self._table(parameter)
                    parameter.grad = self._after_row_update(table, group, parameter.grad.coalesce())
                    used_tables.append(table)
        self._dense_step()
        for table in used_tables:
            table.clear()

    def _table(self, parameter: Tensor) -> _Table:
        if parameter not in self._tables:
            self._tables[parameter] = _Table(parameter, self.state[parameter])
        return self._tables[parameter]

    def _after_row_update(self, table: _Table, group: Mapping[str, Any], gradient: Tensor) -> Tensor | None:
        """Update the rows; where there are too many, the dense gradient that is left to do."""
        rows = table.add_rows(gradient)
        if len(rows) > MAX_FRACTION * len(table.weight):
            return table.dense(gradient)
        found_inf = getattr(self, "found_inf", None)
        if found_inf is None or not bool(found_inf):
            table.update(group, rows, gradient, grad_scale=getattr(self, "grad_scale", None))
        return None


class _Table:
    """The weights and moments of one embedding."""

    def __init__(self, weight: Tensor, state: Mapping[str, Tensor]) -> None:
        self.weight, self.state = weight, state
        self.used = state["exp_avg"].any(1) | state["exp_avg_sq"].any(1)  # (V,) whether a row had a gradient
        self.buffer: Tensor | None = None  # a dense gradient; zero between steps
        self.filled: Tensor | None = None  # its rows that are not

    def add_rows(self, gradient: Tensor) -> Tensor:
        """The rows that had a gradient in this step or earlier, in order."""
        self.used[gradient.indices()[0]] = True
        return self.used.nonzero().squeeze(1)

    def update(self, group: Mapping[str, Any], rows: Tensor, gradient: Tensor, *, grad_scale: Tensor | None) -> None:
        """AdamW for these rows; weight decay for all others."""
        tensors = (self.weight, self.state["exp_avg"], self.state["exp_avg_sq"])
        weights, first, second = parts = [tensor.index_select(0, rows) for tensor in tensors]
        values = torch.zeros_like(weights)
        values.index_copy_(0, torch.searchsorted(rows, gradient.indices()[0]), gradient.values())
        self.state["step"] += 1
        beta1, beta2 = group["betas"]
        torch._fused_adamw_(
            [weights],
            [values],
            [first],
            [second],
            [],  # without amsgrad
            [self.state["step"]],
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
            grad_scale=grad_scale,
        )
        if group["weight_decay"]:
            self.weight.add_(self.weight, alpha=-float(group["lr"]) * group["weight_decay"])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.index_copy_(0, rows, part)

    def dense(self, gradient: Tensor) -> Tensor:
        """The same gradient as a dense tensor, until `clear`."""
        if self.buffer is None:
            self.buffer = torch.zeros_like(self.weight)
        self.filled = gradient.indices()[0]
        return self.buffer.index_copy_(0, self.filled, gradient.values())

    def clear(self) -> None:
        """Make the dense gradient zero again."""
        if self.buffer is not None and self.filled is not None:
            self.buffer.index_fill_(0, self.filled, 0.0)
            self.filled = None


def allocate_state(optimizer: torch.optim.Optimizer) -> None:
    """Allocate the moments of every parameter that has a gradient, all of them or none.

    AdamW itself allocates them one by one inside its first step: if memory runs out there, part of the step is applied
    and one parameter keeps half of its state.
    """
    state = {
        parameter: {
            "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
            "exp_avg": torch.zeros_like(parameter, memory_format=torch.preserve_format),
            "exp_avg_sq": torch.zeros_like(parameter, memory_format=torch.preserve_format),
        }
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.grad is not None and parameter not in optimizer.state
    }
    optimizer.state.update(state)
