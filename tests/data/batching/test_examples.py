"""Sequences in flat arrays, and batches of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from regard.data.batching.examples import Examples, ExamplesBuilder, Inputs, join_examples
from regard.data.corpus.masking import IGNORE
from regard.errors import InputError
from regard.ragged import Ragged


def examples() -> Examples:
    """Two records; the first has two windows."""
    builder = ExamplesBuilder(segments=True)
    builder.add(0, [1, 2, 3], [0, 0, 1], by_sequence={"label": 4, "weight": 0.5}, by_token={"tag": np.array([7, 8, 9])})
    builder.add(0, [5], by_sequence={"label": 4, "weight": 0.5}, by_token={"tag": np.array([6])})
    builder.add(1, [8, 9], [1, 1], by_sequence={"label": 2, "weight": 2.0}, by_token={"tag": np.array([1, 0])})
    assert len(builder) == 3
    return builder.build()


def test_a_batch_has_its_rows_in_the_order_given() -> None:
    inputs = examples().take([2, 0])
    assert inputs.tokens.ids.tolist() == [8, 9, 1, 2, 3]
    assert inputs.tokens.bounds.tolist() == [0, 2, 5]
    assert inputs.tokens.segments is not None
    assert inputs.tokens.segments.tolist() == [1, 1, 0, 0, 1]
    assert inputs["label"].tolist() == [2, 4]
    assert inputs["tag"].tolist() == [1, 0, 7, 8, 9]
    assert inputs["weight"].dtype == torch.float32
    assert inputs.rows == 2
    assert "label" in inputs
    assert "nothing" not in inputs
    with pytest.raises(KeyError, match="nothing"):
        inputs["nothing"]


def test_lengths_and_owners() -> None:
    built = examples()
    assert (len(built), built.max_length) == (3, 3)
    assert built.lengths.tolist() == [3, 1, 2]
    assert built.owners.tolist() == [0, 0, 1]
    assert built.groups is None


def test_sequences_of_the_same_row_stay_together() -> None:
    builder = ExamplesBuilder()
    builder.add(0, [1, 2])
    builder.add(0, [3], same_row=True)
    builder.add(1, [4, 5, 6])
    builder.add(1, [7], same_row=True)
    built = builder.build()
    assert len(built) == 2
    assert built.lengths.tolist() == [3, 4]
    inputs = built.take([1])
    assert inputs.tokens.ids.tolist() == [4, 5, 6, 7]
    assert inputs.tokens.lengths.tolist() == [3, 1]
    assert inputs.rows == 2  # sequences


def test_targets_of_a_decoder_count_as_tokens() -> None:
    source, target = ExamplesBuilder(), ExamplesBuilder()
    for row, (ids, written) in enumerate([([1, 2], [9]), ([3], [8, 7, 6])]):
        source.add(row, ids)
        target.add(row, written, by_token={"word": np.array(written) * 10})
    built = source.build(target=target.build())
    assert built.lengths.tolist() == [3, 4]
    inputs = built.take([1])
    assert inputs.target is not None
    assert (inputs.tokens.ids.tolist(), inputs.target.ids.tolist()) == ([3], [8, 7, 6])
    assert inputs["word"].tolist() == [80, 70, 60]


def test_padding_has_no_target() -> None:
    inputs = examples().take([0, 2])
    fixed = inputs.fixed(tokens=8, sequences=4, max_length=4)
    assert (fixed.tokens.tokens, len(fixed.tokens), fixed.tokens.max_length) == (8, 4, 4)
    assert fixed.tokens.ids[:5].tolist() == [1, 2, 3, 8, 9]
    assert fixed["tag"].tolist() == [7, 8, 9, 1, 0, IGNORE, IGNORE, IGNORE]
    assert fixed["label"].tolist() == [4, 2, IGNORE, IGNORE]
    assert fixed["weight"][:2].tolist() == [0.5, 2.0]
    assert fixed["weight"][2:].isnan().all()
    assert fixed.rows == 2
    assert fixed.fixed_shape


def test_some_batches_have_no_fixed_shape() -> None:
    tokens = Ragged.of([[1, 2]])
    for inputs in (Inputs(tokens, at=torch.tensor([0])), Inputs(tokens, target=tokens)):
        with pytest.raises(InputError, match="cannot be padded to a fixed shape"):
            inputs.fixed(tokens=8, sequences=2, max_length=8)


def test_what_belongs_to_selected_tokens_moves_along() -> None:
    inputs = Inputs(Ragged.of([[5, 6], [7]]), by_token={"word": torch.tensor([0, IGNORE, 1])}, rows=2)
    selected = inputs.selected(inputs["word"] >= 0)
    assert selected.at is not None
    assert selected.at.tolist() == [0, 2]
    assert (selected["word"].tolist(), selected.by_token) == ([0, 1], {})


def test_a_batch_without_targets_has_the_same_tokens() -> None:
    inputs = examples().take([0, 1])
    blank = inputs.without_targets()
    assert blank.tokens is inputs.tokens
    assert blank.rows == 0
    assert (blank["label"] == IGNORE).all()
    assert (blank["tag"] == IGNORE).all()
    assert all(math.isnan(weight) for weight in blank["weight"].tolist())


def test_every_tensor_is_moved() -> None:
    inputs = Inputs(
        Ragged.of([[1, 2]], segments=[[0, 1]]),
        by_sequence={"label": torch.tensor([1])},
        by_token={"tag": torch.tensor([1, 2])},
        at=torch.tensor([1]),
        target=Ragged.of([[3]]),
        by_target={"word": torch.tensor([3])},
        by_position={"words": torch.tensor([2])},
    )
    moved = inputs.to("meta")
    assert moved.at is not None
    assert moved.target is not None
    tensors = [moved.tokens.ids, moved.tokens.segments, moved.at, moved.target.ids]
    tensors += [moved[name] for name in ("label", "tag", "word", "words")]
    assert {tensor.device.type for tensor in tensors if tensor is not None} == {"meta"}
    assert len([tensor for tensor in tensors if tensor is not None]) == 8


def test_every_epoch_has_the_same_sequences() -> None:
    built = examples()
    assert built.epoch(3) is built


def test_twice_repeats_every_target() -> None:
    inputs = examples().take([0, 1])
    both = inputs.twice()
    assert both.rows == 2 * inputs.rows
    assert len(both.tokens) == 2 * len(inputs.tokens)
    for group in ("by_sequence", "by_token"):
        for name, tensor in getattr(inputs, group).items():
            torch.testing.assert_close(getattr(both, group)[name], torch.cat((tensor, tensor)), equal_nan=True)
    with pytest.raises(InputError, match="selected positions"):
        Inputs(inputs.tokens, at=torch.tensor([0])).twice()


def test_joined_examples_have_the_rows_of_all() -> None:
    parts = []
    for start in (1, 10):
        builder = ExamplesBuilder(segments=True)
        builder.add(0, [start, start + 1], [0, 1], by_sequence={"label": start}, by_token={"learn": np.zeros(2)})
        builder.add(0, [start + 2], [0], by_sequence={"label": 0}, by_token={"learn": np.ones(1)}, same_row=start == 10)
        parts.append(builder.build())
    joined = join_examples(parts)
    assert len(joined) == 3
    assert joined.lengths.tolist() == [2, 1, 3]
    assert joined.owners.tolist() == [0, 0, 1]
    inputs = joined.take([2, 1])
    assert inputs.tokens.ids.tolist() == [10, 11, 12, 3]
    assert inputs.tokens.segments.tolist() == [0, 1, 0, 0]
    assert inputs["learn"].tolist() == [0, 0, 1, 1]
    assert join_examples([parts[0]]).take([0]).tokens.ids.tolist() == [1, 2]
