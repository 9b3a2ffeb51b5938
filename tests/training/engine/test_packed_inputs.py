"""Packed batches have the values of the original, in one buffer."""

from __future__ import annotations

import torch

from regard.data.batching.examples import Inputs
from regard.ragged import Ragged
from regard.training.engine.packed_inputs import PackedInputs, tensors


def inputs() -> Inputs:
    tokens = Ragged.of([[5, 6, 7], [8, 9]], segments=[[0, 0, 1], [0, 1]])
    return Inputs(tokens, {"weight": torch.tensor([0.5, 1.5]), "label": torch.tensor([1, 0])}, rows=2)


def test_packing_changes_no_value() -> None:
    original = inputs()
    packed = PackedInputs.of(original, pinned=False)
    assert packed.inputs.rows == 2
    assert packed.inputs.tokens.max_length == 3
    for mine, theirs in zip(tensors(packed.inputs), tensors(original), strict=True):
        assert mine.dtype == theirs.dtype
        assert torch.equal(mine, theirs)


def test_all_tensors_are_views_of_the_buffer() -> None:
    packed = PackedInputs.of(inputs(), pinned=False)
    storages = {tensor.untyped_storage().data_ptr() for tensor in tensors(packed.inputs)}
    assert storages == {packed.buffer.untyped_storage().data_ptr()}


def test_copying_a_buffer_copies_the_batch() -> None:
    first = PackedInputs.of(inputs(), pinned=False)
    other = Inputs(
        Ragged.of([[1, 2], [3, 4, 5]], segments=[[0, 0], [1, 1, 1]]),
        {"weight": torch.tensor([2.0, 3.0]), "label": torch.tensor([0, 1])},
        rows=2,
    )
    first.buffer.copy_(PackedInputs.of(other, pinned=False).buffer)
    for mine, theirs in zip(tensors(first.inputs), tensors(other), strict=True):
        assert torch.equal(mine, theirs)


def test_moving_keeps_the_values() -> None:
    packed = PackedInputs.of(inputs(), pinned=False)
    moved = packed.to(torch.device("cpu"))
    assert torch.equal(moved.inputs.tokens.ids, packed.inputs.tokens.ids)
    assert torch.equal(moved.inputs["weight"], packed.inputs["weight"])
