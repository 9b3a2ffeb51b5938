"""Pictures of attention, alignments, positions and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.look.models import KINDS, TEXT

import regard
from regard.config import PositionConfig
from regard.errors import InputError
from regard.model.positions import sinusoidal
from regard.predict.attention import AttentionWindow
from regard.predict.model import Model
from regard.predict.plots.alignment import draw_alignments
from regard.predict.plots.attention import draw_attention
from regard.predict.plots.attention_svg import MAX_TOKENS, attention_svg
from regard.predict.plots.positions import draw_hands, draw_positions, position_vectors
from regard.predict.plots.tables import heat_map, line_plot
from regard.predict.plots.word_tables import prediction_table, weight_table
from regard.predict.translation import Alignment
from regard.text.learn import train_tokenizer_from_texts

# A picture of attention weights.


@pytest.fixture(scope="module")
def window() -> AttentionWindow:
    tokenizer = train_tokenizer_from_texts(["a small text about nothing"] * 9, kind="char")
    model = regard.create("tiny-bert", tokenizer=tokenizer)
    (window,) = model.attention("a small text").windows
    return window


def test_every_head_of_every_layer_is_plotted(window: AttentionWindow, tmp_path: Path) -> None:
    draw_attention(window, [0, 1, 2, 3], tmp_path / "attention.png")
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")


def test_too_many_heads_or_tokens_are_refused(window: AttentionWindow, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a picture shows up to 48 heads; 80 were asked for"):
        draw_attention(window, [0] * 40, tmp_path / "attention.png")
    long = replace(window, tokens=window.tokens * 9)
    with pytest.raises(InputError, match="a picture shows up to 64 tokens"):
        draw_attention(long, [0], tmp_path / "attention.png")
    assert not any(tmp_path.iterdir())


# The picture of weights in notebooks.


def test_every_weight_is_a_cell() -> None:
    weights = KINDS["encoder"]().attention(TEXT)
    picture = weights._repr_html_()
    count = len(weights.tokens)
    assert picture.count("<rect") == count * count
    opacities = [float(value) for value in re.findall(r'fill-opacity="([\d.]+)"', picture)]
    mean = weights[2].mean(0)
    assert abs(opacities[1] - float(mean[0, 1] / mean.max())) < 2e-3


def test_tokens_are_escaped_and_long_texts_cut() -> None:
    hostile = ["<script>", *["x"] * MAX_TOKENS]
    weights = [[1.0] * len(hostile)] * len(hostile)
    picture = attention_svg(hostile, weights, title="a & b", layer=1)
    assert "<script>" not in picture
    assert "a &amp; b" in picture
    assert picture.count("<rect") == MAX_TOKENS**2


# A picture of alignments.


ALIGNMENT = Alignment(("▁ein", "▁Wort"), ("▁a", "▁word", "."), ((0.9, 0.1), (0.1, 0.9), (0.5, 0.5)))


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_the_suffix_decides_the_format(tmp_path: Path, name: str, start: bytes) -> None:
    draw_alignments([ALIGNMENT, ALIGNMENT], tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


# Pictures of position encodings, with the numbers that are drawn.


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


# Pictures of tables: a cell for each number, names on both sides.


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


# Tables of predictions and weights hold what the model computes, and print it.


TEXT_WORD_TABLES = "the man fed the dog"


@pytest.fixture(scope="module")
def model() -> Model:
    tokenizer = train_tokenizer_from_texts(
        [TEXT_WORD_TABLES, "the woman fed the cat"], kind="word"
    ).without_special_tokens()
    return regard.create("tiny-gpt2", tokenizer=tokenizer, device="cpu")


def test_predictions(model: Model) -> None:
    table = prediction_table(model, TEXT_WORD_TABLES)
    assert table.rows == ("the", "man", "fed", "the", "dog")
    assert set(table.columns) == {"the", "man", "fed", "dog", "woman", "cat"}
    assert model.tokenizer is not None
    ids = model.tokenizer.encode(TEXT_WORD_TABLES).ids
    logits = model.outputs([ids])[0].logits
    assert logits is not None
    cat = model.tokenizer.encode("cat").ids[0]
    assert table[4, "cat"] == pytest.approx(float(torch.softmax(logits[4], -1)[cat]))
    assert prediction_table(model, TEXT_WORD_TABLES, ["cat", "dog"]).values.shape == (5, 2)
    with pytest.raises(InputError, match='"horse" is not a token'):
        prediction_table(model, TEXT_WORD_TABLES, ["horse"])


def test_weights(model: Model) -> None:
    table = weight_table(model, TEXT_WORD_TABLES, layer=1, head=0)
    assert table.values.sum(1) == pytest.approx([1] * 5)
    assert (table[0, "the"], table[0, 4]) == (1, 0)
    assert weight_table(model, TEXT_WORD_TABLES).values.shape == (5, 5)


def test_text(model: Model) -> None:
    lines = str(weight_table(model, TEXT_WORD_TABLES, layer=1)).splitlines()
    assert lines[0].split() == TEXT_WORD_TABLES.split()
    assert lines[1].split() == ["the", "1.00", ".", ".", ".", "."]
    assert len({len(line) for line in lines}) == 1


def test_a_model_without_words() -> None:
    tokenizer = train_tokenizer_from_texts([TEXT_WORD_TABLES], kind="word")
    with pytest.raises(InputError, match="no head that predicts words"):
        prediction_table(regard.create("tiny-bert", tokenizer=tokenizer, heads={}, device="cpu"), TEXT_WORD_TABLES)
