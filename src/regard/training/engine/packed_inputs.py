"""Batches whose tensors are views of one buffer, so that one copy brings a batch to the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from regard.data.batching.examples import Inputs
from regard.data.batching.prefetch import map_tensors

ALIGNMENT = 64  # bytes; every tensor begins at a multiple of it


@dataclass(frozen=True, eq=False)
class PackedInputs:
    """A batch, and the buffer of bytes that holds all its tensors."""

    inputs: Inputs
    buffer: Tensor

    @classmethod
    def of(cls, inputs: Inputs, *, pinned: bool) -> PackedInputs:
        """A copy of a batch on the CPU. From pinned memory, a GPU copies it without waiting of the host."""
        originals = list(tensors(inputs))
        sizes = [-(-tensor.numel() * tensor.element_size() // ALIGNMENT) * ALIGNMENT for tensor in originals]
        buffer = torch.empty(sum(sizes), dtype=torch.uint8, pin_memory=pinned)
        packed = cls(_views(inputs, originals, buffer), buffer)
        for original, view in zip(originals, tensors(packed.inputs), strict=True):
            view.copy_(original)
        return packed

    def to(self, device: torch.device) -> PackedInputs:
        """The batch on another device, in a buffer there."""
        buffer = self.buffer.to(device, non_blocking=True)
        return PackedInputs(_views(self.inputs, list(tensors(self.inputs)), buffer), buffer)


def _views(inputs: Inputs, originals: list[Tensor], buffer: Tensor) -> Inputs:
    """The same inputs with views of the buffer for their tensors, in order."""
    views: dict[int, Tensor] = {}
    start = 0
    for tensor in originals:
        size = tensor.numel() * tensor.element_size()
        views[id(tensor)] = buffer[start : start + size].view(tensor.dtype).view(tensor.shape)
        start += -(-size // ALIGNMENT) * ALIGNMENT
    packed: Inputs = map_tensors(inputs, lambda tensor: views[id(tensor)])
    return packed


def tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor in a value of dataclasses and dicts, always in the same order."""
    if isinstance(value, Tensor):
        yield value
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from tensors(getattr(value, field.name))
    elif isinstance(value, dict):
        for name in sorted(value):
            yield from tensors(value[name])
