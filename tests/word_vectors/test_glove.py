"""Counts of pairs and GloVe, against plain loops."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import InputError
from regard.word_vectors import glove as cooccurrence
from regard.word_vectors.glove import Cooccurrences, Glove, GloveSettings, count_cooccurrences


def plain(ids: list[int], bounds: list[int], window: int) -> dict[tuple[int, int], float]:
    result: Counter[tuple[int, int]] = Counter()
    for first, last in zip(bounds[:-1], bounds[1:], strict=True):  # noqa: RUF007  # lists
        for i in range(first, last):
            for j in range(i + 1, min(last, i + window + 1)):
                result[min(ids[i], ids[j]), max(ids[i], ids[j])] += 1 / (j - i)  # type: ignore[assignment]  # weights
    return dict(result)


def pair_weights(pairs: Cooccurrences) -> dict[tuple[int, int], float]:
    return {(int(a), int(b)): float(w) for a, b, w in zip(pairs.left, pairs.right, pairs.weights, strict=True)}


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(1, 4), st.integers(1, 9), st.data())
def test_counts_are_the_plain_loops(ids: list[int], window: int, chunk: int, data: st.DataObject) -> None:
    edges = sorted({0, len(ids), *data.draw(st.lists(st.integers(0, len(ids)), max_size=4))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cooccurrence, "CHUNK", chunk)
        result = count_cooccurrences(np.array(ids), np.array(edges), 6, window=window)
    assert pair_weights(result) == pytest.approx(plain(ids, edges, window))
    assert result.dropped == 0


def test_past_the_limit_the_lightest_pairs_are_dropped_and_reported() -> None:
    ids = np.array([0, 1] * 50 + [2, 3, 4, 5])
    every = count_cooccurrences(ids, np.array([0, 104]), 6, window=2)
    few = count_cooccurrences(ids, np.array([0, 104]), 6, window=2, max_pairs=6)
    assert len(few) == 3
    assert few.dropped == len(every) - 3
    assert {(0, 0), (0, 1), (1, 1)} == set(pair_weights(few))


def test_a_step_is_the_plain_loop() -> None:
    random = np.random.default_rng(0)
    glove = Glove(5, GloveSettings(width=3, x_max=10))
    for table in (glove.word_table, glove.context_table):
        table.rows_VD[:, :3] = random.normal(size=(5, 3))
    w, c = glove.word_table.rows_VD[:, :3].astype(float), glove.context_table.rows_VD[:, :3].astype(float)
    b, d = np.zeros(5), np.zeros(5)
    inner, outer = random.integers(0, 5, 8), random.integers(0, 5, 8)
    weights = random.uniform(0.5, 20, 8).astype(np.float32)
    up, across, up_bias, across_bias = np.zeros((5, 3)), np.zeros((5, 3)), np.zeros(5), np.zeros(5)
    for i, j, x in zip(inner, outer, weights.astype(float), strict=True):
        slope = min(1, x / 10) ** 0.75 * (math.log(x) - w[i] @ c[j] - b[i] - d[j])
        up[i], across[j] = up[i] + slope * c[j], across[j] + slope * w[i]
        up_bias[i], across_bias[j] = up_bias[i] + slope, across_bias[j] + slope
    glove.step(inner, outer, weights, 0.1)
    for rows, bias, g, h in ((w, b, up, up_bias), (c, d, across, across_bias)):
        scale = 0.1 / np.sqrt(1e-8 + ((g**2).sum(1) + h**2) / 5)
        rows += scale[:, None] * g
        bias += scale * h
    np.testing.assert_allclose(glove.word_table.rows_VD, np.c_[w, b, np.ones(5)], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(glove.context_table.rows_VD, np.c_[c, np.ones(5), d], rtol=1e-4, atol=1e-5)


def test_an_epoch_is_every_pair_once_in_one_of_its_directions() -> None:
    pairs = Cooccurrences(np.arange(50, dtype=np.int32), np.arange(50, 100, dtype=np.int32), np.ones(50, np.float32))
    recorded = [
        (int(a), int(b)) for x, y, _ in Glove(100, GloveSettings()).batches(pairs) for a, b in zip(x, y, strict=True)
    ]
    assert sorted((min(p), max(p)) for p in recorded) == [(i, i + 50) for i in range(50)]
    assert 10 < sum(a < b for a, b in recorded) < 40


def test_products_become_logarithms_of_the_weights() -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(20, 4))
    left, right = np.triu_indices(20)
    weights = np.exp((vectors @ vectors.T)[left, right]).astype(np.float32)
    glove = Glove(20, GloveSettings(width=8, epochs=600, x_max=1e-3))
    glove.train(Cooccurrences(left.astype(np.int32), right.astype(np.int32), weights))
    product = glove.word_table.rows_VD @ glove.context_table.rows_VD.T
    assert np.abs(product[left, right] - np.log(weights)).mean() < 0.1


def test_the_same_seed_gives_the_same_vectors() -> None:
    ids, bounds = np.random.default_rng(0).integers(0, 20, 500), np.array([0, 500])
    pairs = count_cooccurrences(ids, bounds, 20)
    one, same, other = (Glove(20, GloveSettings(width=5, epochs=2, seed=seed)).train(pairs) for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("options", [{"width": 0}, {"epochs": 0}, {"lr": 0.0}, {"x_max": -1.0}])
def test_invalid_arguments_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        GloveSettings(**options)
    with pytest.raises(InputError, match="window is 0"):
        count_cooccurrences(np.array([0, 1]), np.array([0, 2]), 2, window=0)
    alone = count_cooccurrences(np.array([0, 1]), np.array([0, 1, 2]), 2)
    with pytest.raises(InputError, match="no pair"):
        Glove(2, GloveSettings()).train(alone)
