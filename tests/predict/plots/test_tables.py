"""Pictures of tables: a cell for each number, names on both sides."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from regard.errors import InputError
from regard.predict.plots.tables import heat_map, line_plot


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("agg")
    yield
    pyplot.close("all")


def test_a_table_with_names_and_numbers() -> None:
    ax = heat_map(torch.tensor([[0.25, 0.75], [1, 0]]), ["cat", "sat"], ["a", "b"], title="weights")
    assert [text.get_text() for text in ax.texts] == ["0.25", "0.75", "1.00", "0"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["cat", "sat"]
    assert ax.get_title() == "weights"


def test_negative_numbers_have_a_scale_around_zero() -> None:
    image = heat_map([[-2.0, 1.0]], ["a"], ["b", "c"], numbers=False).images[0]
    assert image.get_clim() == (-2, 2)


def test_names_must_fit() -> None:
    with pytest.raises(InputError, match=r"shape \(1, 2\) was given with 1 row names and 1 column names"):
        heat_map([[1, 2]], ["a"], ["b"])


def test_lines() -> None:
    ax = line_plot({"one": ([1, 2], [3, 4]), "two": ([1, 2], [5, 4])}, x_name="step", log="y")
    assert len(ax.lines) == 2
    assert (ax.get_xlabel(), ax.get_yscale()) == ("step", "log")
