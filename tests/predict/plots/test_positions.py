"""Pictures of position encodings, with the numbers that are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.config import PositionConfig
from regard.errors import InputError
from regard.model.positions import sinusoidal
from regard.predict.plots.positions import draw_hands, draw_positions, position_vectors


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("agg")
    yield
    pyplot.close("all")


def tiny(kind: str) -> regard.Model:
    return regard.create("tiny-bert", positions=PositionConfig(kind, max_tokens=16), vocabulary=30, device="cpu")


def test_learned_positions_are_the_rows_of_the_table() -> None:
    model = tiny("learned")
    vectors = position_vectors(model, 5)
    assert vectors.shape == (5, model.config.width)
    network: Any = model.network
    places = network.encoder.embeddings.places
    assert np.array_equal(vectors, places.weight[:5].detach().numpy())


def test_rows_before_position_0_are_left_out() -> None:
    model = regard.create("tiny-roberta", vocabulary=30, device="cpu")
    offset = model.config.positions.offset
    network: Any = model.network
    places = network.encoder.embeddings.places
    assert offset > 0
    assert np.array_equal(position_vectors(model, 3), places.weight[offset : offset + 3].detach().numpy())


def test_sinusoidal_positions() -> None:
    model = tiny("sinusoidal")
    assert np.allclose(position_vectors(model), sinusoidal(16, model.config.width).numpy())


@pytest.mark.parametrize(("kind", "words"), [("none", "no positions"), ("rotary", "turns queries and keys")])
def test_models_without_position_vectors_say_why(kind: str, words: str) -> None:
    with pytest.raises(InputError, match=f"adds no position vectors: .*{words}"):
        position_vectors(tiny(kind))


def test_the_map_and_the_similarity() -> None:
    vectors = sinusoidal(12, 8)
    axes: Any = draw_positions(vectors).axes
    left, right, *_ = axes
    assert np.allclose(left.images[0].get_array(), vectors.T.numpy())
    expected = torch.nn.functional.cosine_similarity(vectors[:, None], vectors[None], dim=2)
    assert np.allclose(right.images[0].get_array(), expected.numpy(), atol=1e-6)


def test_hands_point_to_cosine_and_sine() -> None:
    vectors = sinusoidal(4, 8)
    ax = draw_hands(vectors, hands=[0, 1], positions=[0, 3])
    ends: Any = ax.lines[1].get_xydata()
    start, end = ends
    assert np.allclose(end - start, [vectors[3, 1], vectors[3, 0]])
    assert {text.get_text() for text in ax.texts} == {"0", "3", "hand 0", "hand 1"}


def test_bad_input() -> None:
    with pytest.raises(InputError, match=r"hands \[9\] were given; expected numbers from 0 to 3"):
        draw_hands(sinusoidal(4, 8), hands=[9])
    with pytest.raises(InputError, match=r"shape \(3,\) were given"):
        draw_positions([1, 2, 3])
