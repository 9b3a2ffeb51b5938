"""Weight averaging: the mean of the weights after each of the last steps.

In plain terms, it works as follows:
1. The first part of the training is left as it is.
2. After each of the last steps, the weights are added to a running mean: mean += (weights - mean) / n.
3. The mean is evaluated instead of the latest weights, and is what the trained network gets.

The latest weights move around a minimum as long as the learning rate is not zero; their mean is closer to it.

Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992; Izmailov et al., "Averaging weights
leads to wider optima and better generalization", 2018 (https://arxiv.org/abs/1803.05407).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from regard.errors import FolderError
from regard.training.engine.distributed.fsdp import local


class WeightAverage:
    """The running mean of the trained weights over the last `fraction` of `steps` steps; no mean for a fraction of 0.

    `update` and `swapped` only enqueue work on the device. With sharded weights, each rank averages its shard.
    """

    def __init__(self, network: nn.Module, *, fraction: float, steps: int) -> None:
        self.parameters = {name: one for name, one in network.named_parameters() if one.requires_grad}
        self.first = steps - max(1, round(fraction * steps)) if fraction else steps
        self.means: dict[str, Tensor] = {}

    @property
    def started(self) -> bool:
        """Whether there is a mean."""
        return bool(self.means)

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Add the weights after this step, counted from 1, if it is one of the last."""
        count = step - self.first
        if count < 1:
            return
        if not self.means:
            self.means = {name: one.detach().clone() for name, one in self.parameters.items()}
            return
        torch._foreach_lerp_(_locals(self.means), _locals(self.parameters), 1 / count)

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """Inside this block the network has the mean; afterwards it has its latest weights again."""
        self.swap()
        try:
            yield
        finally:
            self.swap()

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the weights of the network and the mean, in place: CUDA graphs refer to weights by address."""
        for name, mean in self.means.items():
            weight, other = local(self.parameters[name].detach()), local(mean)
            before = weight.clone()
            weight.copy_(other)
            other.copy_(before)

    def restore(self, means: Mapping[str, Tensor]) -> None:
        """Continue from the mean of a saved state; it is empty if there was none."""
        if means and means.keys() != self.parameters.keys():
            raise FolderError("the averaged weights of the saved state belong to another network. Start over.")
        if means:
            self.means = {name: means[name].clone().to(one.device) for name, one in self.parameters.items()}


def _locals(tensors: Mapping[str, Tensor]) -> list[Tensor]:
    return [local(tensor.detach()) for tensor in tensors.values()]
