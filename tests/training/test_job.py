"""The number of optimizer steps."""

from __future__ import annotations

import pytest

from regard.data.batching.batches import BatchSettings
from regard.data.batching.examples import Examples, ExamplesBuilder
from regard.training.job import total_steps
from regard.training.settings import Settings

BATCHES = BatchSettings(tokens=100, sequences=4)


def examples(rows: int) -> Examples:
    builder = ExamplesBuilder()
    for row in range(rows):
        builder.add(row, [1, 2, 3], by_sequence={"label": row % 2})
    return builder.build()


def test_steps_that_are_given_count() -> None:
    assert total_steps(examples(10), BATCHES, Settings(steps=7)) == 7


@pytest.mark.parametrize(
    ("epochs", "steps"),
    [(None, 3), (1, 3), (2, 6), (1.5, 5), (0.5, 2), (0.01, 1)],  # 10 rows in batches of 4 are 3 steps
)
def test_parts_of_an_epoch_are_rounded_up(epochs: float | None, steps: int) -> None:
    assert total_steps(examples(10), BATCHES, Settings(epochs=epochs)) == steps


class OtherRows:
    """Sequences of which each epoch has others."""

    def epoch(self, number: int) -> Examples:
        return examples(10)


@pytest.mark.parametrize(("epochs", "steps"), [(1, 3), (1.5, 4), (1.4, 4), (0.01, 1)])
def test_epochs_of_other_rows_are_estimated_from_the_first(epochs: float, steps: int) -> None:
    """Python rounds 4.5 to 4."""
    assert total_steps(OtherRows(), BATCHES, Settings(epochs=epochs)) == steps
