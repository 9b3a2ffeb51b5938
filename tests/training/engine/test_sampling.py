"""Class-balanced sampling: how often each label and each row is sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regard.data.batching.examples import Examples, ExamplesBuilder
from regard.errors import InputError
from regard.training.engine.sampling import balanced_source


def examples(labels: list[Any]) -> Examples:
    """Row i has i + 1 tokens, all of them i."""
    builder = ExamplesBuilder()
    for row, label in enumerate(labels):
        builder.add(row, [row] * (row + 1), by_sequence={"label": label})
    return builder.build()


def test_labels_are_equally_likely() -> None:
    source = balanced_source(examples([0, 0, 0, 1, 2, 2]), seed=0)
    assert source.probabilities.tolist() == pytest.approx([1 / 9, 1 / 9, 1 / 9, 1 / 3, 1 / 6, 1 / 6])


def test_labels_are_equally_frequent() -> None:
    labels = np.array([0] * 900 + [1] * 90 + [2] * 10)
    source = balanced_source(examples(labels.tolist()), seed=1)
    counts = sum(np.bincount(labels[source.epoch(number).rows], minlength=3) for number in range(10))
    error = (10_000 * 1 / 3 * 2 / 3) ** 0.5  # standard deviation of a binomial count
    assert np.abs(counts - 10_000 / 3).max() < 4 * error


def test_an_epoch_is_as_long_as_the_data() -> None:
    source = balanced_source(examples([0, 0, 0, 1]), seed=0)
    sample = source.epoch(0)
    assert len(sample.rows) == 4
    assert sample.lengths.tolist() == (sample.rows + 1).tolist()
    inputs = sample.take(np.array([2, 0]))
    assert inputs.tokens.split(inputs.tokens.ids)[0].tolist() == [sample.rows[2]] * (sample.rows[2] + 1)
    assert inputs["label"].tolist() == [int(sample.rows[row] == 3) for row in (2, 0)]


def test_each_epoch_and_seed_has_its_own_sample() -> None:
    data = examples([0, 1] * 50)
    samples = {
        (seed, number): balanced_source(data, seed).epoch(number).rows.tolist() for seed in (0, 1) for number in (0, 1)
    }
    assert len({tuple(rows) for rows in samples.values()}) == 4
    assert balanced_source(data, 1).epoch(1).rows.tolist() == samples[1, 1]


@pytest.mark.parametrize("labels", [[0.5, 1.5], [(0, 1), (1, 1)]], ids=["numbers", "several labels"])
def test_it_needs_one_label_per_text(labels: list[Any]) -> None:
    with pytest.raises(InputError, match=r"class_balance='sampling' needs one label per text; use weights, or none"):
        balanced_source(examples(labels), seed=0)


def test_rows_without_labels_are_refused() -> None:
    builder = ExamplesBuilder()
    builder.add(0, [1, 2])
    with pytest.raises(InputError, match="needs one label per text"):
        balanced_source(builder.build(), seed=0)
